"""What a memory is."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from operator import add
from types import MappingProxyType
from typing import NamedTuple

from .ids import digits
from .retention import Retention
from .temperature import Temperature
from .tiers import Tier

__all__ = [
    "NEVER",
    "NEW_RELEVANCE",
    "NO_METADATA",
    "UNUSED",
    "Explanation",
    "Hit",
    "Hits",
    "Memory",
    "Metadata",
    "Scalar",
    "memories_of",
]

Scalar = str | int | float | bool | None
Metadata = Mapping[str, Scalar]

NEVER = 1 << 62
"""The tick in which a memory expires that doesn't."""
UNUSED = -1
"""The tick of last access of a memory that no search gave yet."""
NO_METADATA: Metadata = MappingProxyType({})
NEW_RELEVANCE = 0.5
"""How relevant a memory is that no search has given yet: nobody knows."""
NEVER = 1 << 62
"""The tick in which a memory expires that doesn't."""
UNUSED = -1
"""The tick of last access of a memory that no search gave yet."""


# Records are named tuples and not dataclasses: a tick makes thousands, and these take a fifth of
# the time.
class Memory(NamedTuple):
    """One memory of one agent, as it was when asked for. It can't be changed.

    Two are equal that say the same of a memory; how often it was used is not compared.
    """

    id: str
    agent_id: str
    content: str
    tier: Tier
    created_tick: int
    tier_tick: int
    """The tick in which it entered its tier."""
    sequence: int
    """1 for the agent's first memory, 2 for its second, and so on; never given twice."""
    metadata: Metadata
    kind: str = "fact"
    tags: tuple[str, ...] = ()
    temperature: Temperature = Temperature.WARM
    retention: Retention = Retention.ACTIVE
    expires_tick: int | None = None
    """The tick from which on nobody sees it."""
    access_count: int = 0
    """How many searches gave it to the agent."""
    last_access_tick: int | None = None
    relevance: float = NEW_RELEVANCE
    """The mean of what it was before and of its score, search after search; from 0 to 1."""

    @property
    def session(self) -> Scalar:
        """The conversation or episode that it is part of, if its metadata says so."""
        return self.metadata.get("session")

    @property
    def speaker(self) -> Scalar:
        """Who said it, if its metadata says so."""
        return self.metadata.get("speaker")

    def is_expired(self, tick: int) -> bool:
        """Whether its lifetime is over by ``tick``; while pinned or archived, it does not end."""
        return (
            self.expires_tick is not None
            and self.expires_tick <= tick
            and self.tier is not Tier.PINNED
            and self.retention is Retention.ACTIVE
        )

    # A search changes how often a memory was used. The same search again gives equal memories all
    # the same: use is no part of equality. ``tuple(memory)`` has all of it.
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Memory):
            return NotImplemented
        return tuple.__eq__(self[:_UNCOMPARED], other[:_UNCOMPARED])

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.id, self.tier, self.tier_tick))  # metadata has no hash


_UNCOMPARED = Memory._fields.index("access_count")
_PLAIN_TRAITS = ("fact", (), "")


def memories_of(
    *,
    prefixes: Iterable[str],
    agents: Iterable[str],
    contents: Iterable[str],
    tiers: Iterable[Tier],
    created: Iterable[int],
    entered: Iterable[int],
    sequences: Sequence[int],
    temperatures: Iterable[Temperature],
    metadata: Sequence[dict[str, Scalar] | None] | None = None,
    traits: Sequence[tuple[str, tuple[str, ...], str] | None] | None = None,
    retentions: Iterable[Retention] = repeat(Retention.ACTIVE),
    expires: Sequence[int] | None = None,
    counts: Iterable[int] = repeat(0),
    last: Sequence[int] | None = None,
    relevance: Iterable[float] = repeat(NEW_RELEVANCE),
) -> list[Memory]:
    """The records of memories that are given column by column, as storage keeps them.

    An id begins with the memory's prefix. ``entered`` has the ticks in which the memories entered
    their tiers, ``expires`` NEVER for one that stays, ``last`` UNUSED for one that no search gave.
    ``metadata`` and ``traits`` have None for a memory without. A column that is left out says of
    each memory what is true of a new one.
    """
    given: Iterable[Metadata] = repeat(NO_METADATA)
    if metadata is not None and metadata.count(None) < len(metadata):
        given = [NO_METADATA if own is None else MappingProxyType(own) for own in metadata]
    kinds: Iterable[str] = repeat("fact")
    tags: Iterable[tuple[str, ...]] = repeat(())
    if traits is not None and traits.count(None) < len(traits):
        kinds, tags, _ = zip(*[own or _PLAIN_TRAITS for own in traits], strict=True)
    ends: Iterable[int | None] = repeat(None)
    if expires is not None and expires.count(NEVER) < len(expires):
        ends = [None if tick == NEVER else tick for tick in expires]
    used: Iterable[int | None] = repeat(None)
    if last is not None:
        used = [None if tick == UNUSED else tick for tick in last] if UNUSED in last else last
    write, largest = digits, max(sequences, default=0)
    if largest < len(sequences):  # agents have the same numbers: to write each once takes less
        write = list(map(digits, range(largest + 1))).__getitem__
    fields = zip(
        map(add, prefixes, map(write, sequences)),  # memory_id()
        agents,
        contents,
        tiers,
        created,
        entered,
        sequences,
        given,
        kinds,
        tags,
        temperatures,
        retentions,
        ends,
        counts,
        used,
        relevance,
        strict=False,
    )
    # tuple.__new__ is what Memory(…) comes down to, at half its cost.
    return list(map(tuple.__new__, repeat(Memory), fields))


class Hit(NamedTuple):
    """A memory that a search returned, and why it stands where it does."""

    memory: Memory
    score: float
    """How well it matches the query, from 0 to 1; ``explain()`` shows what it is made of."""
    boost: float
    """What its tier adds."""
    boosted_score: float
    """Their sum, by which all but the pinned are ordered."""


class Explanation(NamedTuple):
    """What a search made of one memory."""

    memory: Memory
    score: float
    boost: float
    boosted_score: float
    rank: int | None
    """Its place in the result, from 1; None if it was dropped."""
    reason: str
    """Why it was chosen or dropped."""
    vector: float = 0.0
    """The similarity of its vector to the query's."""
    keyword: float = 0.0
    """How well its words match."""
    fusion: float = 0.0
    """Both, made one."""
    context: float = 0.0
    """What its session and its speaker add or take: the score less ``fusion``."""


class Hits(list[Hit]):
    """A search's result: a list of :class:`Hit`, pinned first.

    ``pinned_left_out`` holds the pinned memories that the token budget had no room for,
    oldest pin first. It is empty unless the pinned alone exceed the budget. ``note`` says what a
    search could not do, such as embed the query; then it was found by words alone.
    """

    pinned_left_out: tuple[Memory, ...] = ()
    note: str = ""
