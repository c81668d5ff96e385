"""Randomness: one seed gives a generator to each agent, to the world and to the order of acting.

For every tick, a generator is seeded from the run's seed, its own name and the tick. So a run that
resumes needs no saved random state.
"""

import hashlib
from collections.abc import Sequence
from random import Random
from typing import Any

__all__ = ["Streams"]


class Stream(Random):
    """A generator that is seeded at its first use in a tick.

    Seeding takes longer than most policies take to decide, and many policies draw no number.
    """

    def __init__(self, name: str) -> None:
        self._name = name.encode()
        self._begin: hashlib._Hash | None = None
        super().__init__(0)

    def begin(self, tick: "hashlib._Hash") -> None:
        """Drop the state of the last tick; the next seed comes from this hash."""
        self._begin = tick
        self.gauss_next = None  # the second of the two numbers that gauss() draws

    def random(self) -> float:
        """The next number from 0 to 1."""
        if self._begin is not None:
            self._start(self._begin)
        return super().random()

    def getrandbits(self, k: int, /) -> int:
        """The next ``k`` bits."""
        if self._begin is not None:
            self._start(self._begin)
        return super().getrandbits(k)

    def getstate(self) -> tuple[Any, ...]:
        """The state, for :meth:`setstate`."""
        if self._begin is not None:
            self._start(self._begin)
        return super().getstate()

    def setstate(self, state: tuple[Any, ...]) -> None:
        """Go on from a state."""
        self._begin = None
        super().setstate(state)

    def seed(self, a: Any = None, version: int = 2) -> None:
        """Use the caller's own seed until the tick ends."""
        self._begin = None
        super().seed(a, version)

    def __reduce__(self) -> tuple[Any, ...]:
        return Random, (), self.getstate()  # a copy is a plain generator

    def _start(self, begin: "hashlib._Hash") -> None:
        own = begin.copy()
        own.update(self._name)
        self._begin = None
        self.seed(int.from_bytes(own.digest()[:16], "big"))


class Streams:
    """The generators of one run."""

    def __init__(self, seed: int, agent_ids: Sequence[str]) -> None:
        self._seed = seed
        self.world = Stream("world")
        self._order = Stream("order")
        self.agents = {agent: Stream(f"agent\0{agent}") for agent in agent_ids}

    def begin(self, tick: int) -> None:
        """Seed all generators for a tick."""
        begin = hashlib.sha256(f"tiermem\0{self._seed}\0{tick}\0".encode())
        for stream in (self.world, self._order, *self.agents.values()):
            stream.begin(begin)

    def order(self) -> list[str]:
        """The agents in this tick's order of acting."""
        agents = list(self.agents)
        self._order.shuffle(agents)
        return agents
