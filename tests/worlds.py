"""A world and a policy for tests of the loop."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from agents.simulation.protocols import Action, Observation


class Diary:
    """A world that writes down what it is asked. In ``fail`` = (method, tick) it raises."""

    def __init__(self, fail: tuple[str, int] | None = None) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.fail = fail
        self.count = 0
        self.says: Callable[[str], Any] = lambda agent: ""
        self.answers: Callable[[str, Action], Any] = lambda agent, action: None

    def _called(self, method: str, *arguments: object) -> None:
        self.calls.append((method, *arguments))
        if self.fail == (method, self.count + 1):
            raise RuntimeError("the sky fell")

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        self.rng = rng
        self.calls.append(("setup", tuple(agent_ids)))

    def observe(self, agent_id: str) -> Any:
        self._called("observe", agent_id)
        return self.says(agent_id)

    def apply(self, agent_id: str, action: Action) -> Any:
        self._called("apply", agent_id, action.name)
        return self.answers(agent_id, action)

    def end_tick(self) -> None:
        self._called("end_tick")
        self.count += 1

    def metrics(self) -> Mapping[str, float]:
        return {"count": self.count}

    def get_state(self) -> Any:
        return {"count": self.count}

    def set_state(self, state: Any) -> None:
        self.count = state["count"]

    def made(self, method: str) -> list[tuple[object, ...]]:
        return [call[1:] for call in self.calls if call[0] == method]


class Mind:
    """Does what a function says; keeps what it saw."""

    def __init__(self, does: Callable[[Observation], list[Any]] | None = None) -> None:
        self.seen: list[Observation] = []
        self.found: list[tuple[str, int, list[str]]] = []
        self.drawn: list[float] = []
        self._does = does

    def decide(self, observation: Observation, memories: Any, rng: Random) -> list[Any]:
        self.seen.append(observation)
        texts = [hit.memory.content for hit in memories]
        self.found.append((observation.agent_id, observation.tick, texts))
        self.drawn.append(rng.random())
        return self._does(observation) if self._does else []
