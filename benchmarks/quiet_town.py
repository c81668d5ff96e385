"""A world for the benchmark of the inspector: many agents, many ticks, a memory now and then."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from tiermem.simulation import Action, Observation, Outcome, Remark

_PLACES = ("harbour", "mill", "market", "bridge", "chapel", "well", "tower", "forge")
_EVENTS = ("is closed", "smells of smoke", "has new owners", "is crowded", "was flooded")


class QuietTown:
    """In each tick every agent searches its memory; one in ``every`` sees or hears something."""

    actions: ClassVar[Mapping[str, str]] = {"walk": "go to another place"}

    def __init__(self, *, every: int = 20) -> None:
        self._every = every

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        """Everybody is at home."""
        self._rng = rng
        self._names = list(agent_ids)
        self._walks = dict.fromkeys(self._names, 0)
        self._tick = 1

    def observe(self, agent_id: str) -> Observation:
        """Mostly nothing new."""
        place = _PLACES[int(self._rng.random() * len(_PLACES))]
        query = f"what do I know of the {place}?"
        chance = self._rng.random() * self._every
        if chance >= 1:
            return Observation("", query)
        event = _EVENTS[int(self._rng.random() * len(_EVENTS))]
        if chance < 0.5:
            return Observation(f"The {place} {event}, in tick {self._tick}", query)
        friend = self._names[int(self._rng.random() * len(self._names))]
        return Observation("", query, heard=[Remark(f"the {place} {event}", speaker=friend)])

    def apply(self, agent_id: str, action: Action) -> Outcome | None:
        """A walk leaves no memory."""
        self._walks[agent_id] += 1
        return None

    def end_tick(self) -> None:
        """A tick is over."""
        self._tick += 1

    def metrics(self) -> dict[str, float]:
        """All walks so far."""
        return {"walks": sum(self._walks.values())}

    def by_agent(self) -> dict[str, dict[str, float]]:
        """The walks of each agent."""
        return {"walks": dict(self._walks)}

    def get_state(self) -> dict[str, Any]:
        """Walks and the tick."""
        return {"tick": self._tick, "walks": list(self._walks.values())}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._tick = state["tick"]
        self._walks = dict(zip(self._names, state["walks"], strict=True))

    @staticmethod
    def rules() -> "Walker":
        """The policy."""
        return Walker()


class Walker:
    """Walks where a memory speaks of a place."""

    def decide(self, observation: Observation, memories: Any, rng: Random) -> list[Action]:
        """A walk, unless nothing is known."""
        return [Action("walk")] if memories else []
