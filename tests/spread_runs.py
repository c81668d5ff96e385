"""Runs that are spread over workers, for tests: worlds, scenarios, and what a run came to."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from agents import InvalidAction
from agents.config.load import load_settings
from agents.config.settings import Settings
from agents.memory.records import Hits
from agents.simulation.protocols import Action, Ask, Observation, Outcome, Remark
from agents.simulation.runs.placement import LOCAL, Placement
from agents.simulation.runs.run import Run

OUTPUTS = ("metrics.parquet", "ticks.parquet", "decisions.parquet", "summary.json", "config.yaml")
HERE = "spread_runs"


class Town:
    """A world that uses all that a world may give."""

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        self.rng, self.agents, self.steps = rng, list(agent_ids), 0

    def observe(self, agent_id: str) -> Observation:
        heard = [Remark("a drum", kind="fact", tags=("loud",))] if self.steps % 2 else ()
        facts = {"far": float("inf"), "steps": self.steps, "way": [1, 2.5]}
        return Observation(f"at place {self.rng.randrange(5)}", facts=facts, heard=heard)

    def may_tell(self, teller: str, listener: str) -> bool:
        return (len(teller) + int(listener[-2:]) + self.steps) % 3 != 0

    def apply(self, agent_id: str, action: Action) -> Outcome | str | None:
        if action.name == "fly":
            raise InvalidAction("nobody flies")
        if action.name == "rest":
            return None
        self.steps += 1
        return Outcome(
            f"did {action.name}", success=self.steps % 4 != 0, metadata={"step": self.steps}
        )

    def end_tick(self) -> None:
        self.steps += self.rng.randrange(3)

    def metrics(self) -> Mapping[str, float]:
        return {"steps": self.steps}

    def get_state(self) -> Any:
        return {"steps": self.steps}

    def set_state(self, state: Any) -> None:
        self.steps = state["steps"]


class MadeUp(Town):
    """A world whose texts, facts, outcomes and hearing are options."""

    def __init__(
        self, sights: list[str], facts: dict[str, Any], outcomes: list[str | None],
        hearing: int, draws: int,
    ) -> None:  # fmt: skip
        self.sights, self.facts, self.outcomes = sights, facts, outcomes
        self.hearing, self.draws = hearing, draws

    def observe(self, agent_id: str) -> Observation:
        drawn = [self.rng.randrange(9) for _ in range(self.draws)]
        text = self.sights[(self.steps + sum(drawn)) % len(self.sights)]
        return Observation(text, facts={**self.facts, "drawn": drawn})

    def may_tell(self, teller: str, listener: str) -> bool:
        apart = self.agents.index(teller) - self.agents.index(listener) + self.steps
        return apart % self.hearing == 0

    def apply(self, agent_id: str, action: Action) -> Outcome | str | None:
        if action.name == "fly":
            raise InvalidAction("nobody flies")
        self.steps += 1
        return self.outcomes[self.steps % len(self.outcomes)]


class Anything:
    """A policy that asks, tells, moves its memories, writes notes and makes mistakes."""

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> Sequence[Any]:
        if observation.asks_left and not observation.answers and rng.random() < 0.5:
            return [Ask("drum"), Ask("place", limit=2, cold=True)]
        choice = rng.randrange(10)
        acts: list[Any] = [Action("walk", {"far": 1})]
        if memories:
            best = {"memory_id": memories[0].memory.id}
            acts += {
                0: [Action("broadcast", best)],
                1: [Action("tell", {**best, "to": "agent_03", "note": "psst"})],
                2: [Action("pin_memory", best)],
                3: [Action("demote_memory", {**best, "to": "cold"})],
            }.get(choice, [])
        if choice == 9:
            text = f"something {rng.random()}"
            return [
                Action("rest"),
                Action("no_op", {"reason": "tired"}),
                Action("store_memory", {"content": text, "tier": "critical"}),
            ]
        odd: dict[int, Any] = {4: Action("fly"), 5: 3, 6: Action("append_note", {"text": "hello"})}
        odd |= {7: Action("forget_memory", {"memory_id": "none"}), 8: Ask("once more?")}
        return [*acts, odd[choice]] if choice in odd else acts


class Walker:
    """A policy that walks."""

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> Sequence[Any]:
        return [Action("walk")]


class Scribe:
    """A policy that remembers the facts, letter by letter."""

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> Sequence[Any]:
        return [Action("store_memory", {"content": repr(observation.facts)})]


class Faulty(Town):
    """A world that gives one agent what can't become a memory in tick 3, while a file is there."""

    def __init__(self, fault: str, file: str) -> None:
        self.fault, self.file = fault, Path(file)

    def apply(self, agent_id: str, action: Action) -> Outcome:
        if agent_id != "agent_05" or self.steps != 2 or not self.file.exists():
            return Outcome("did it")
        wrong = {
            "tier": Outcome("hm", tier="nope"),
            "metadata": Outcome("hm", metadata={"bad": [1, {"far": {}}]}),
            "full": Outcome("hm", tier="critical"),
        }
        return wrong[self.fault]

    def end_tick(self) -> None:
        self.steps += 1


class Cooks(Town):
    """A world whose metric shows which memories were hot when the cooks decided."""

    def observe(self, agent_id: str) -> Observation:
        return Observation("", query="pie")

    def apply(self, agent_id: str, action: Action) -> None:
        self.steps = 10 * self.steps + action.arguments["hot"]

    def end_tick(self) -> None:
        pass


class Picky:
    """A policy of agents that ask two kinds of questions in a round, each in an order of its own.

    The one that was found last stays hot, as what is stored then takes the room of the other.
    """

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> Sequence[Any]:
        if observation.tick == 1 and not observation.answers:
            asked = [Ask("banana pie", limit=2), Ask("apple pie")]
            return asked if int(observation.agent_id[-2:]) % 2 else asked[::-1]
        if observation.tick == 1:
            return [Action("store_memory", {"content": "cherry pie", "temperature": "hot"})]
        hot = [hit.memory.content for hit in memories if hit.memory.temperature.name == "HOT"]
        return [Action("say", {"hot": 1 + ("apple pie" in hot)})]


def scenario(world: str = "town", **simulation: Any) -> Settings:
    """The settings of a run; ``town`` is the world above."""
    own = {"world": f"{HERE}:Town", "policy": f"{HERE}:Anything"} if world == "town" else {}
    values = {"world": world, "agents": 12, "ticks": 6, **own, **simulation}
    return load_settings(
        {
            "seed": 5,
            "simulation": values,
            "storage": {"sync": "manual"},
            "checkpoint": {"every": 4, "keep": 2},
        }
    )


def engine(workers: int) -> Placement:
    """Processes; none for 0 workers."""
    return Placement("processes", workers) if workers else LOCAL


def run_to_the_end(folder: Path, settings: Settings, workers: int) -> list[dict[str, Any]]:
    """Run a scenario; the records of its ticks."""
    own = Path(__file__).parent
    with Run.create(folder, settings, scenario=own, engine=engine(workers)) as run:
        records = list(run.advance(settings.simulation.ticks))
        run.finish(report=False)
    return records


def results(folder: Path) -> dict[str, bytes]:
    """What a run came to: the bytes of its results. ``summary.json`` has the journal's hash."""
    return {name: timeless(folder / name) for name in OUTPUTS}


def timeless(file: Path) -> bytes:
    """The bytes of a file, or of a summary without how long the answers of a model took."""
    data = file.read_bytes()
    return re.sub(rb'"(median_)?seconds": [0-9.]+', b"", data) if file.suffix == ".json" else data
