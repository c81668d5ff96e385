"""What laws are tried with: an embedder of few directions, and worlds of few words."""

import hashlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from ..errors import InvalidAction
from ..memory.records import Hits
from ..simulation.protocols import Action, Observation, Outcome, Policy, Remark

DIMS = 4


def embed(text: str) -> list[int]:
    """Few directions, so that equal scores are frequent; one text in eight is the zero vector."""
    digest = hashlib.sha256(text.encode()).digest()
    if digest[0] % 8 == 0:
        return [0] * DIMS
    spread = 7 if digest[0] % 8 == 1 else 3
    return [byte % spread - spread // 2 for byte in digest[1 : DIMS + 1]]


class SmallEmbedder:
    """:func:`embed`, as a bank takes it."""

    name = "small/hash-4"
    dims = DIMS

    def __init__(self, *, reproducible: bool = True) -> None:
        self.reproducible = reproducible

    def embed(self, texts: Sequence[str], /) -> list[list[int]]:
        return [embed(text) for text in texts]


class SmallWorld:
    """Agents hear words and carry a load that their actions change."""

    actions: Mapping[str, str] = {"carry": "carry more: by, a whole number"}

    def __init__(self, *, words: Sequence[str], every: int, tier: int, most: int) -> None:
        self._words, self._every, self._tier, self._most = list(words), every, tier, most

    def __repr__(self) -> str:
        """As Hypothesis prints it."""
        return f"SmallWorld(words={self._words}, every={self._every}, most={self._most})"

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        """All loads are empty."""
        self._rng, self._tick, self._loads = rng, 1, dict.fromkeys(agent_ids, 0)

    def observe(self, agent_id: str) -> Observation:
        """A word, and what the others carry; now and then somebody says something."""
        word = self._rng.choice(self._words)
        heard = [Remark(word, tier=self._tier)] if self._tick % self._every == 0 else []
        text = f"{word} {self._rng.randrange(9)}"
        return Observation(text, facts={"loads": dict(self._loads)}, heard=heard)

    def apply(self, agent_id: str, action: Action) -> Outcome:
        """Carry more."""
        by = action.arguments.get("by")
        if action.name != "carry" or not isinstance(by, int):
            raise InvalidAction("the only action is carry, with a whole number: by")
        if self._loads[agent_id] + by > self._most:
            return Outcome("too heavy", success=False)
        self._loads[agent_id] += by
        return Outcome(f"I carry {self._loads[agent_id]}")

    def end_tick(self) -> None:
        """The tick is over."""
        self._tick += 1

    def metrics(self) -> Mapping[str, float]:
        """The load of all."""
        return {"load": float(sum(self._loads.values()))}

    def get_state(self) -> Any:
        """The tick and the loads."""
        return {"tick": self._tick, "loads": dict(self._loads)}

    def set_state(self, state: Any) -> None:
        """Go on from there."""
        self._tick, self._loads = state["tick"], dict(state["loads"])

    def rules(self) -> Policy:
        """The policy of these worlds."""
        return SmallPolicy()


class SmallPolicy:
    """Carries as much as memories and the generator say."""

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> list[Action]:
        """An action that the world may refuse."""
        by = rng.randrange(3) + len(memories) % 2
        return [Action("carry", {"by": by if rng.random() < 0.9 else "much"})]
