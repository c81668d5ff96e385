"""Randomness: one seed, and from it a generator for each agent, the world and the order of acting.

A generator is seeded anew for every tick from the seed, its name and the tick. So the seed and the
tick are all there is to know of every random state, and to resume is to seed.
"""

import hashlib
from collections.abc import Sequence
from random import Random

__all__ = ["Streams"]


class Streams:
    """The generators of one run."""

    def __init__(self, seed: int, agent_ids: Sequence[str]) -> None:
        self._seed = seed
        self.world = Random()  # noqa: S311 - a simulation, not a secret
        self._order = Random()  # noqa: S311
        self.agents = {agent: Random() for agent in agent_ids}  # noqa: S311

    def begin(self, tick: int) -> None:
        """Seed all of them for a tick."""
        start = hashlib.sha256(f"tiermem\0{self._seed}\0{tick}\0".encode())
        _seed(self.world, start, "world")
        _seed(self._order, start, "order")
        for agent, stream in self.agents.items():
            _seed(stream, start, f"agent\0{agent}")

    def order(self) -> list[str]:
        """The agents in the order in which they act in this tick."""
        agents = list(self.agents)
        self._order.shuffle(agents)
        return agents


def _seed(stream: Random, start: "hashlib._Hash", name: str) -> None:
    own = start.copy()
    own.update(name.encode())
    stream.seed(int.from_bytes(own.digest()[:16], "big"))
