"""A world as small as can be, that never changes: the checkpoint beside it was made in it."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from agents import InvalidAction
from agents.memory.records import Hits
from agents.simulation.protocols import Action, Observation, Outcome, Remark

__all__ = ["Coins"]


class Coins:
    """Coins go around. Who has none and gives is refused, and told so in the next tick."""

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        self._rng = rng
        self._coins = dict.fromkeys(agent_ids, 2)
        self._given = 0

    def observe(self, agent_id: str) -> Observation:
        coins = self._coins[agent_id]
        weather = self._rng.choice(["sun", "rain", "fog “über” allem"])
        heard = [Remark(f"{agent_id} hears {weather}", metadata={"weather": weather})]
        others = [agent for agent in self._coins if agent != agent_id]
        return Observation(f"I have {coins} coins", "who gave me coins?", {"others": others}, heard)

    def apply(self, agent_id: str, action: Action) -> Outcome:
        if not self._coins[agent_id]:
            raise InvalidAction("no coin left to give")
        other = action.arguments["to"]
        self._coins[agent_id] -= 1
        self._coins[other] += 1
        self._given += 1
        return Outcome(f"gave a coin to {other}", metadata={"given": self._given, "half": 0.5})

    def end_tick(self) -> None:
        self._given += self._rng.randrange(2)

    def metrics(self) -> Mapping[str, float]:
        return {"given": self._given, "richest": max(self._coins.values())}

    def get_state(self) -> Any:
        return {"coins": self._coins, "given": self._given}

    def set_state(self, state: Any) -> None:
        self._coins = dict(state["coins"])
        self._given = state["given"]

    @staticmethod
    def rules() -> "Habits":
        return Habits()


class Habits:
    """Gives, remembers in every tier, pins, and forgets."""

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> Sequence[Action]:
        actions = [Action("give", {"to": rng.choice(observation.facts["others"])})]
        if rng.random() < 0.5:
            tier = rng.choice(["pinned", "critical", "important", "low"])
            content = f"tick {observation.tick}: {len(observation.errors)} mistakes"
            actions.append(Action("store_memory", {"content": content, "tier": tier}))
        if memories and rng.random() < 0.3:
            name = rng.choice(["pin_memory", "unpin_memory"])
            actions.append(Action(name, {"memory_id": memories[-1].memory.id}))
        return actions
