"""Randomness: one seed gives a generator to each agent, to the world and to the order of acting.

For every tick, a generator is seeded from the run's seed, its own name and the tick. So a run that
resumes needs no saved random state.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from ...errors import InvalidInput
from ..protocols import WorldRandom
from .branch_rules import NO_RULES, BranchRules


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
        seed = begin.copy()
        seed.update(self._name)
        self._begin = None
        self.seed(int.from_bytes(seed.digest()[:16], "big"))


class NamedStream(Random):
    """A generator whose numbers are hashes of its name, the tick and a counter.

    A world may have one for each agent, and draws a few numbers from it in a tick: this takes less
    time than seeding a :class:`Stream`.
    """

    def __init__(self, name: str) -> None:
        self._name = name.encode()
        super().__init__(0)

    def begin(self, tick: "hashlib._Hash") -> None:
        """Begin the tick of this hash."""
        self._tick, self._key = tick, b""
        self._drawn, self._words = 0, list[int]()
        self.gauss_next = None

    def random(self) -> float:
        """The next number from 0 to 1."""
        return (self._word() >> 11) * 2.0**-53

    def getrandbits(self, k: int, /) -> int:
        """The next ``k`` bits."""
        if k < 0:
            raise ValueError("number of bits must be non-negative")
        value, words = 0, -(-k // 64)
        for _ in range(words):
            value = value << 64 | self._word()
        return value >> 64 * words - k

    def getstate(self) -> tuple[Any, ...]:
        """The state, for :meth:`setstate`."""
        return self._own_key(), self._drawn, tuple(self._words), self.gauss_next

    def setstate(self, state: tuple[Any, ...]) -> None:
        """Go on from a state."""
        self._key, self._drawn, words, self.gauss_next = state
        self._words = list(words)

    def seed(self, a: Any = None, version: int = 2) -> None:
        """Use the caller's own seed until the tick ends."""
        self.begin(hashlib.sha256(repr(a).encode()))

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedStream, (self._name.decode(),), self.getstate()

    def _own_key(self) -> bytes:
        if not self._key:
            key = self._tick.copy()
            key.update(self._name)
            self._key = key.digest()
        return self._key

    def _word(self) -> int:
        if not self._words:
            self._drawn += 1
            made = hashlib.sha256(self._own_key() + self._drawn.to_bytes(8, "big")).digest()
            self._words = [int.from_bytes(made[at : at + 8], "big") for at in (24, 16, 8, 0)]
        return self._words.pop()


class WorldStream(Stream, WorldRandom):
    """The world's generator, and its named ones."""

    def __init__(self) -> None:
        self._streams: dict[tuple[str, str | None], NamedStream] = {}
        self._tick = hashlib.sha256()
        super().__init__("world")

    def begin(self, tick: "hashlib._Hash") -> None:
        """Begin the tick of this hash, also for the named generators."""
        super().begin(tick)
        self._tick = tick
        for stream in self._streams.values():
            stream.begin(tick)

    def stream(self, name: str, agent_id: str | None = None) -> Random:
        """The generator of this name, or of this name and agent."""
        stream = self._streams.get((name, agent_id))
        return self._made(name, agent_id) if stream is None else stream

    def _made(self, name: str, agent_id: str | None) -> Random:
        if not isinstance(name, str) or not name or "\0" in name:
            raise InvalidInput(
                f"{name!r:.60} is not a name of a stream",
                hint='name it by a text, such as "weather"',
            )
        made = NamedStream(f"named\0{name}\0{'' if agent_id is None else agent_id}")
        made.begin(self._tick)
        self._streams[name, agent_id] = made
        return made


class AgentStreams(Mapping[str, Stream]):
    """The generator of each agent, made when it is first asked for: it takes 2.5 kB.

    The driver of a run over workers asks for none.
    """

    def __init__(self, agent_ids: Sequence[str], name: str = "agent") -> None:
        self._name = name
        self._made: dict[str, Stream | None] = dict.fromkeys(agent_ids)
        self._tick = hashlib.sha256()

    def begin(self, tick: "hashlib._Hash") -> None:
        """Begin the tick of this hash."""
        self._tick = tick
        for stream in self._made.values():
            if stream is not None:
                stream.begin(tick)

    def __getitem__(self, agent_id: str) -> Stream:
        stream = self._made[agent_id]
        if stream is None:
            stream = self._made[agent_id] = Stream(f"{self._name}\0{agent_id}")
            stream.begin(self._tick)
        return stream

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


class Streams:
    """The generators of one run; ``rules`` may give a branch another future."""

    def __init__(self, seed: int, agent_ids: Sequence[str], rules: BranchRules = NO_RULES) -> None:
        self._seed = seed
        self._rules = rules
        self.world = WorldStream()
        self._order = Stream("order")
        self._agent_ids = agent_ids
        self.agents = AgentStreams(agent_ids)
        self.talks = AgentStreams(agent_ids, "talk")
        """Those by which agents talk: what they decide draws from others."""

    def begin(self, tick: int) -> None:
        """Seed all generators for a tick."""
        name = f"tiermem\0{self._seed}\0{tick}\0{self._rules.future(tick)}"
        begin = hashlib.sha256(name.encode())
        for stream in (self.world, self._order, self.agents, self.talks):
            stream.begin(begin)

    def order(self) -> list[str]:
        """The agents in this tick's order of acting."""
        agents = list(self._agent_ids)
        self._order.shuffle(agents)
        return agents
