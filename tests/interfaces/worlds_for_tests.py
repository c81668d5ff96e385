"""Tiny worlds and policies, used by tests as a user's own: copied beside a scenario."""

import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from agents.errors import InvalidAction, RunPaused
from agents.simulation.protocols import Action, Observation, Outcome


class Stones:
    """Agents count stones. In tick ``fail_at`` it raises; in tick ``interrupt_at``, Ctrl-C.

    In tick ``kill_at`` its process is killed; with ``kill_once``, only if there is no file of that
    name, which it makes. With ``wait_in``, it leaves its pid in that folder and never ends.
    """

    actions: Mapping[str, str] = {"step": "take a step"}

    def __init__(
        self,
        fail_at: int = 0,
        interrupt_at: int = 0,
        kill_at: int = 0,
        kill_once: str = "",
        wait_in: str = "",
    ) -> None:
        if fail_at < 0:
            raise ValueError("fail_at is a tick")
        self._fail_at = fail_at
        self._interrupt_at = interrupt_at
        self._kill_at = kill_at
        self._kill_once = kill_once
        self._wait_in = wait_in
        self._tick = 0

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        self._rng = rng
        self._steps = dict.fromkeys(agent_ids, 0)

    def observe(self, agent_id: str) -> Observation | str:
        return f"{agent_id} sees {self._rng.randrange(1000)} stones"

    def apply(self, agent_id: str, action: Action) -> Outcome | str | None:
        if action.name != "step":
            raise InvalidAction(f"there is no {action.name} here")
        self._steps[agent_id] += 1
        return Outcome(f"{agent_id} took step {self._steps[agent_id]}")

    def end_tick(self) -> None:
        self._tick += 1
        if self._tick == self._interrupt_at:
            os.kill(os.getpid(), signal.SIGINT)
        if self._tick == self._fail_at:
            raise RuntimeError("the sky fell")
        if self._tick == self._kill_at and not (self._kill_once and Path(self._kill_once).exists()):
            if self._kill_once:
                Path(self._kill_once).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if self._wait_in:
            (Path(self._wait_in) / str(os.getpid())).touch()
            while True:
                time.sleep(0.1)

    def metrics(self) -> Mapping[str, float]:
        return {"steps": sum(self._steps.values()), "luck": self._rng.random()}

    def get_state(self) -> Any:
        return {"tick": self._tick, "steps": self._steps}

    def set_state(self, state: Any) -> None:
        self._tick, self._steps = state["tick"], state["steps"]

    def rules(self, tier: str = "pinned", steps: bool = True) -> "Walk":
        return Walk(tier, steps)


class Walk:
    """Takes a step and keeps a note."""

    def __init__(self, tier: str, steps: bool) -> None:
        self._tier = tier
        self._steps = steps

    def decide(self, observation: Observation, memories: Any, rng: Random) -> Sequence[Action]:
        note = {"content": f"note {rng.randrange(100)}", "tier": self._tier}
        return [*[Action("step")] * self._steps, Action("store_memory", note)]


class RaisingPolicy:
    def decide(self, observation: Observation, memories: Any, rng: Random) -> Sequence[Action]:
        if observation.tick == 3:
            raise RuntimeError("the mind went blank")
        return []


class PausingPolicy:
    """Steps; in tick 3 it can't go on until there is a file ``ready`` in the current folder."""

    def decide(self, observation: Observation, memories: Any, rng: Random) -> Sequence[Action]:
        if observation.tick == 3 and observation.agent_id == "bob" and not Path("ready").exists():
            raise RunPaused("the oracle is away")
        return [Action("step"), Action("store_memory", {"content": f"note {rng.randrange(100)}"})]


class NumberPolicy:
    def decide(self, observation: Observation, memories: Any, rng: Random) -> Any:
        return 5


class NotANumber(Stones):
    def metrics(self) -> Mapping[str, float]:
        return {"luck": float("nan")}


class TextMetric(Stones):
    def metrics(self) -> Any:
        return {"luck": "much" if self._tick else 1}


class HugeMetric(Stones):
    def metrics(self) -> Any:
        return {"luck": 2**70}


class DrawingMetric(Stones):
    """Its metric would clear the screen and write a line of its own."""

    def metrics(self) -> Mapping[str, float]:
        return {"luck\x1b[2J\u202e\n  state 0000": 1.0}


class NoMetrics(Stones):
    def metrics(self) -> Any:
        return None


class SetAsState(Stones):
    def get_state(self) -> Any:
        return {1, 2}


class NumberAsOutcome(Stones):
    def apply(self, agent_id: str, action: Action) -> Any:
        return 5


class NumberAsObservation(Stones):
    def observe(self, agent_id: str) -> Any:
        return 5


class TextAsHeard(Stones):
    def observe(self, agent_id: str) -> Any:
        return Observation("a street", heard=("a shout",))  # type: ignore[arg-type]


class RaisingReport(Stones):
    def by_agent(self) -> Any:
        raise RuntimeError("who knows")


class RaisingStart(Stones):
    def __init__(self) -> None:
        raise RuntimeError("no world today")


class RaisingSetup(Stones):
    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        raise RuntimeError("no ground")


class Half:
    def observe(self, agent_id: str) -> str:
        return ""


class Vault(Stones):
    """Has an option that is named like a secret of somebody's."""

    def __init__(self, token: int = 0) -> None:
        super().__init__()
        self._token = token

    def metrics(self) -> Mapping[str, float]:
        return {"token": self._token}
