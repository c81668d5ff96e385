"""A world in which agents see and do the same again, and runs of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from agents.config.load import load_settings
from agents.memory.records import Hits
from agents.simulation.protocols import Action, Observation, Remark
from agents.simulation.runs.run import Run

HERE = "repeating_worlds"
AGENTS = ("agent_00", "agent_01")


class Well:
    """Everybody sees the same well in each tick, and hears the same and something new."""

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        self.day = 1

    def observe(self, agent_id: str) -> Observation:
        return Observation(
            "the well is clean", heard=[Remark("a drum"), Remark(f"bell {self.day}")]
        )

    def may_tell(self, teller: str, listener: str) -> bool:
        return True

    def apply(self, agent_id: str, action: Action) -> str:
        return f"went {action.arguments['to']}"

    def end_tick(self) -> None:
        self.day += 1

    def metrics(self) -> Mapping[str, float]:
        return {"day": self.day}

    def get_state(self) -> Any:
        return {"day": self.day}

    def set_state(self, state: Any) -> None:
        self.day = state["day"]


class Walker:
    """Goes north and elsewhere, stores a memory that is called a note, and writes a real note."""

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> list[Action]:
        day = observation.tick
        return [
            Action("go", {"to": "north"}),
            Action("store_memory", {"content": f"own {day}", "kind": "note"}),
            Action("append_note", {"text": f"line {day}"}),
            Action("store_memory", {"content": "a rule", "key": "rule"}),
            Action("go", {"to": f"place {day}"}),
        ]


class Teller:
    """The first agent tells the second one something in tick 2, and both go somewhere."""

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> list[Action]:
        acts = [Action("go", {"to": f"place {observation.tick}"})]
        if observation.agent_id == AGENTS[0] and observation.tick == 2:
            own = next(each.memory.id for each in memories if each.memory.content == "went place 1")
            acts.append(Action("tell", {"to": AGENTS[1], "memory_id": own}))
        return acts


class Keeper:
    """Stores what ends after two ticks, and then only looks at the well."""

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> list[Action]:
        if observation.tick > 1:
            return []
        return [Action("store_memory", {"content": "the clean well", "ttl": 2})]


def ran(folder: Path, policy: str, **settings: Any) -> Path:
    """A run of four ticks."""
    simulation = {"world": f"{HERE}:Well", "policy": f"{HERE}:{policy}", "agents": 2, "ticks": 4}
    values = {"seed": 1, "storage": {"sync": "manual"}, "simulation": simulation, **settings}
    with Run.create(folder, load_settings(values), scenario=Path(__file__).parent) as run:
        list(run.advance(4))
    return folder
