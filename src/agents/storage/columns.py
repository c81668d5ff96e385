"""One agent's resident memories, as columns."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.memory.caps import age
from agents.memory.events import Added
from agents.memory.metadata import KeptMetadata
from agents.memory.records import NO_METADATA, Memory, id_prefix
from agents.memory.tiers import Tier
from agents.storage.vectors import Quantised, norms

__all__ = ["AgentColumns", "Found"]

_TIERS = tuple(Tier)
_MEMORIES_PER_QUERY = 8
"""What is kept of a query takes about as much as two memories do."""
_SPACIOUS = ("_contents", "_metadata", "_vectors", "_norms", "_tiers")


class Found(NamedTuple):
    """What a query found: its candidates among the first ``size`` memories."""

    size: int
    most: int
    """How many candidates were asked for."""
    rows: NDArray[np.intp]
    """Oldest first."""
    scores: NDArray[np.float64]
    pinned: list[float]
    """The scores of the pinned memories, oldest pin first."""


class Pinned(NamedTuple):
    """The pinned memories of an agent, oldest pin first."""

    rows: tuple[int, ...]
    memories: tuple[Memory, ...]
    vectors: Quantised
    norms: NDArray[np.float64]


class AgentColumns:
    """One agent's memories from the oldest to the newest: a row each, in columns.

    A :class:`Memory` is made for whoever asks for one and not kept, and texts lie in an array and
    not in a list: a million memories would be a million objects for Python's garbage collector to
    walk through, and it looks into lists but not into arrays.
    """

    __slots__ = (
        "_contents",
        "_fingerprint",
        "_metadata",
        "_norms",
        "_numbers",
        "_pinned",
        "_tiers",
        "_vectors",
        "agent_id",
        "found",
        "next_sequence",
        "prefix",
        "size",
    )

    def __init__(self, agent_id: str, seed: int, dims: int) -> None:
        self.agent_id = agent_id
        self.prefix = id_prefix(seed, agent_id)
        self.next_sequence = 1
        self.size = 0
        """How many memories there are."""
        self.found: dict[str, Found] = {}
        """What queries found, the latest asked last. Cleared when it would no longer be true."""
        self._fingerprint: int | None = None
        # Sequence number, tick of creation and tick of entering its tier, row after row: what is
        # read together lies together.
        self._numbers = array("q")
        # These have room to spare; their first ``size`` rows are in use.
        self._contents = np.empty(0, object)
        self._metadata = np.empty(0, object)  # None for a memory without
        self._vectors = np.empty((0, dims), np.int8)
        self._norms = np.empty(0)
        self._tiers = np.empty(0, np.int8)
        self._pinned: Pinned | None = None

    def __len__(self) -> int:
        return self.size

    # Reading

    def memories(self, rows: Iterable[int]) -> list[Memory]:
        """The memories in these rows."""
        # A search makes thousands, so everything is at hand, and tuple.__new__ is what Memory(…)
        # comes down to, at half its cost.
        make, tiers, numbers, metadata = tuple.__new__, self._tiers, self._numbers, self._metadata
        prefix, agent_id, contents = self.prefix, self.agent_id, self._contents
        result = []
        for row in rows:
            place = 3 * row
            sequence = numbers[place]
            own = metadata[row]
            result.append(
                make(
                    Memory,
                    (
                        prefix + hex(sequence)[2:].zfill(12),  # memory_id()
                        agent_id,
                        contents[row],
                        _TIERS[tiers.item(row)],
                        numbers[place + 1],
                        numbers[place + 2],
                        sequence,
                        NO_METADATA if own is None else MappingProxyType(own),
                    ),
                )
            )
        return result

    def memory(self, row: int) -> Memory:
        """The memory in a row."""
        return self.memories((row,))[0]

    def contents(self) -> list[str]:
        """The text of each memory."""
        texts: list[str] = self._contents[: self.size].tolist()
        return texts

    def metadata(self) -> list[KeptMetadata | None]:
        """The metadata of each memory."""
        kept: list[KeptMetadata | None] = self._metadata[: self.size].tolist()
        return kept

    def row_of(self, sequence: int) -> int | None:
        """The row of the memory with this sequence number."""
        # Without deletions it is the number less one; deletions only move it up.
        row = min(sequence, len(self)) - 1
        if row < 0 or self._numbers[3 * row] == sequence:
            return row if row >= 0 else None
        row = bisect_left(range(row), sequence, key=lambda row: self._numbers[3 * row])
        return row if self._numbers[3 * row] == sequence else None

    def in_tier(self, tier: Tier) -> list[Memory]:
        """The memories of a tier, oldest memory first."""
        return self.memories(np.flatnonzero(self.tiers == tier).tolist())

    def occupants(self, tier: Tier) -> Sequence[Memory]:
        """The memories of a tier, in any order."""
        return self.pinned.memories if tier is Tier.PINNED else self.in_tier(tier)

    @property
    def pinned(self) -> Pinned:
        """The pinned memories, oldest pin first."""
        if self._pinned is None:
            memories = tuple(sorted(self.in_tier(Tier.PINNED), key=age))
            rows = [row for m in memories if (row := self.row_of(m.sequence)) is not None]
            self._pinned = Pinned(tuple(rows), memories, self._vectors[rows], self._norms[rows])
        return self._pinned

    @property
    def tiers(self) -> NDArray[np.int8]:
        """The tier of each memory."""
        return self._tiers[: self.size]

    @property
    def norms(self) -> NDArray[np.float64]:
        """The length of each vector."""
        return self._norms[: self.size]

    def vectors(self, rows: slice | Sequence[int] = slice(None)) -> Quantised:
        """The vectors of all memories, or of these rows."""
        return self._vectors[: self.size][rows]

    def fingerprint(self) -> bytes:
        """A hash over all memories, the same for equal ones however they came about.

        The sum of a hash over each, so that a change costs as much as what it changed. Kept up to
        date from the first time that it is asked for.
        """
        if self._fingerprint is None:
            self._fingerprint = sum(map(self._fingerprint_of, range(self.size)))
        self._fingerprint %= 1 << 256
        return self._fingerprint.to_bytes(32, "big")

    def _fingerprint_of(self, row: int) -> int:
        sequence, created, entered = self._numbers[3 * row : 3 * row + 3]
        return _fingerprint(
            sequence,
            self._tiers.item(row),
            created,
            entered,
            self._contents[row],
            self._vectors[row].tobytes(),
            self._metadata[row],
        )

    def remember(self, query: str, found: Found) -> None:
        """Keep what a query found, for when it is asked again; more memories, more queries."""
        self.found.pop(query, None)
        self.found[query] = found
        if len(self.found) > self.size // _MEMORIES_PER_QUERY:
            del self.found[next(iter(self.found))]

    # Changing

    def extend(
        self,
        events: Sequence[Added],
        tick: int,
        vectors: Quantised,
        lengths: NDArray[np.float64],
    ) -> None:
        """Add the newest memories, of this tick; their sequence numbers are the next ones."""
        first, count = self.size, len(events)
        last = first + count
        if last > len(self._norms):
            self._resize(last + max(8, last // 4))
        self._vectors[first:last] = vectors
        self._norms[first:last] = lengths
        pinned = False
        for row, (_, _, sequence, tier, content, metadata) in enumerate(events, start=first):
            self._contents[row] = content
            self._tiers[row] = tier
            self._numbers.extend((sequence, tick, tick))
            self._metadata[row] = metadata
            pinned = pinned or tier == 0
        self.size = last
        self.next_sequence += count
        if pinned:
            self._pinned = None
            self.found.clear()
        if self._fingerprint is not None:
            data, size = vectors.tobytes(), vectors.shape[1]
            for index, (_, _, sequence, tier, content, metadata) in enumerate(events):
                vector = data[index * size : (index + 1) * size]
                self._fingerprint += _fingerprint(
                    sequence, tier, tick, tick, content, vector, metadata
                )

    def change_tier(self, row: int, tier: int, tick: int) -> None:
        """Move a memory to a tier that it enters in ``tick``."""
        if self._fingerprint is not None:
            self._fingerprint -= self._fingerprint_of(row)
        if tier == 0 or self._tiers[row] == 0:
            self.found.clear()  # pinned memories are no candidates
        self._tiers[row] = tier
        self._numbers[3 * row + 2] = tick
        self._pinned = None
        if self._fingerprint is not None:
            self._fingerprint += self._fingerprint_of(row)

    def remove(self, row: int) -> None:
        """Delete a memory; the newer ones move up."""
        if self._fingerprint is not None:
            self._fingerprint -= self._fingerprint_of(row)
        last = len(self)
        for name in _SPACIOUS:
            column = getattr(self, name)
            column[row : last - 1] = column[row + 1 : last]
        self._contents[last - 1] = self._metadata[last - 1] = None
        self.size = last - 1
        del self._numbers[3 * row : 3 * row + 3]
        self._pinned = None
        self.found.clear()

    def load(
        self,
        numbers: NDArray[np.int64],
        contents: list[str],
        metadata: list[KeptMetadata | None],
        vectors: Quantised,
        next_sequence: int,
    ) -> None:
        """Take over a whole state; ``numbers`` has columns sequence, tier, created, entered."""
        self.size = len(contents)
        self._contents = np.array(contents, object)
        self._metadata = np.empty(self.size, object)
        self._metadata[:] = metadata
        self.next_sequence = next_sequence
        self._numbers = array("q", numbers[:, [0, 2, 3]].astype(np.int64).tobytes())
        self._tiers = numbers[:, 1].astype(np.int8)
        self._vectors = vectors.copy()
        self._norms = norms(vectors)
        self._pinned = None
        self._fingerprint = None
        self.found.clear()

    def numbers(self) -> NDArray[np.int64]:
        """What :meth:`load` takes."""
        table = np.empty((len(self), 4), np.int64)
        numbers = np.array(self._numbers, np.int64).reshape(-1, 3)
        table[:, 0], table[:, 1] = numbers[:, 0], self.tiers
        table[:, 2:] = numbers[:, 1:]
        return table

    def _resize(self, capacity: int) -> None:
        rows = self.size
        for name in _SPACIOUS:
            old = getattr(self, name)
            new = np.empty((capacity, *old.shape[1:]), old.dtype)
            new[:rows] = old[:rows]
            setattr(self, name, new)


def _fingerprint(
    sequence: int,
    tier: int,
    created: int,
    entered: int,
    content: str,
    vector: bytes,
    metadata: KeptMetadata | None,
) -> int:
    """A hash over one memory."""
    text = content.encode()
    head = f"{sequence} {tier} {created} {entered} {len(text)} ".encode()
    extra = metadata.json.encode() if metadata else b""
    return int.from_bytes(sha256(head + text + vector + extra).digest(), "big")
