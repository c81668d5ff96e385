"""Worlds whose agents talk with each other, for tests."""

from collections.abc import Sequence
from random import Random
from typing import Any

from agents.memory.records import Hits
from agents.simulation.protocols import Action, Conversation, Observation, Say

MILL = "the mill burned"


class Inn:
    """A place where everybody sits, and those talk whom ``talks`` names."""

    talks: Any = (Conversation(["ann", "bob", "cat"], "the mill", turns=4),)

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        self.rng, self.ids = rng, list(agent_ids)

    def observe(self, agent_id: str) -> Observation:
        return Observation("", query="the mill")

    def conversations(self) -> Any:
        return self.talks

    def apply(self, agent_id: str, action: Action) -> None:
        pass

    def end_tick(self) -> None:
        pass

    def metrics(self) -> dict[str, float]:
        return {}

    def get_state(self) -> None:
        return None

    def set_state(self, state: object) -> None:
        pass


class Pairs(Inn):
    """Each tick others talk in pairs, drawn anew, and the last three."""

    def conversations(self) -> Any:
        ids = list(self.ids)
        self.rng.shuffle(ids)
        return [ids[:2], Conversation(ids[-3:], turns=5, session="trio")]


class Gossip:
    """Tells of the mill who knows of it; greets; is silent at times, as chance wants it."""

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> list[Action]:
        return [Action("sit", {"luck": rng.random(), "heard": len(observation.heard)})]

    def say(
        self, observation: Observation, memories: Hits, rng: Random, talk: Conversation
    ) -> Say | str | None:
        known = [hit.memory for hit in memories if hit.memory.content == MILL]
        if known and not talk.said:
            return Say(memory_id=known[0].id)
        return None if rng.random() < 0.3 else f"after {len(talk.said)}, with {talk.turns} left"
