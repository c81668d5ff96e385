"""One agent's resident memories, as columns."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.memory.caps import age
from agents.memory.records import NO_METADATA, Memory, MemoryDraft, Scalar, id_prefix
from agents.memory.tiers import Tier
from agents.storage.vectors import Quantised, norms

__all__ = ["AgentColumns"]

_TIERS = tuple(Tier)


class AgentColumns:
    """One agent's memories from the oldest to the newest: a row each, in columns.

    A :class:`Memory` is made for whoever asks for one and not kept: a million of them would be a
    million objects for Python's garbage collector to walk through, and most are never asked for.
    """

    __slots__ = (
        "_norms",
        "_numbers",
        "_pinned",
        "_tiers",
        "_vectors",
        "agent_id",
        "contents",
        "digest",
        "metadata",
        "next_sequence",
        "prefix",
    )

    def __init__(self, agent_id: str, seed: int, dims: int) -> None:
        self.agent_id = agent_id
        self.prefix = id_prefix(seed, agent_id)
        self.next_sequence = 1
        self.contents: list[str] = []
        self.metadata: dict[int, dict[str, Scalar]] = {}
        """By sequence number, for the memories that have any."""
        self.digest: bytes | None = None
        """A cached digest of the state, for whoever computes one; any change clears it."""
        # Sequence number, tick of creation and tick of entering its tier, row after row: what is
        # read together lies together.
        self._numbers = array("q")
        # These three have room to spare; their first len(self) rows are in use.
        self._vectors = np.empty((0, dims), np.int8)
        self._norms = np.empty(0)
        self._tiers = np.empty(0, np.int8)
        self._pinned: tuple[tuple[int, ...], tuple[Memory, ...]] | None = ((), ())

    def __len__(self) -> int:
        return len(self.contents)

    # Reading

    def memory(self, row: int) -> Memory:
        """The memory in a row."""
        (memory,) = self.memories((row,))
        return memory

    def memories(self, rows: Iterable[int]) -> list[Memory]:
        """The memories in these rows."""
        agent_id, prefix, contents, metadata = (
            self.agent_id, self.prefix, self.contents, self.metadata,
        )  # fmt: skip
        tiers, numbers = self._tiers, self._numbers
        result: list[Memory] = []
        for row in rows:
            sequence, created, entered = numbers[3 * row : 3 * row + 3]
            extra = metadata.get(sequence) if metadata else None
            draft: Any = MemoryDraft(
                f"{prefix}{sequence:012x}",
                agent_id,
                contents[row],
                _TIERS[tiers[row]],
                created,
                entered,
                sequence,
                NO_METADATA if extra is None else MappingProxyType(extra),
            )
            draft.__class__ = Memory
            result.append(draft)
        return result

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

    @property
    def pinned(self) -> tuple[tuple[int, ...], tuple[Memory, ...]]:
        """The rows and the records of the pinned memories, oldest pin first."""
        if self._pinned is None:
            memories = tuple(sorted(self.in_tier(Tier.PINNED), key=age))
            rows = tuple(row for m in memories if (row := self.row_of(m.sequence)) is not None)
            self._pinned = rows, memories
        return self._pinned

    @property
    def tiers(self) -> NDArray[np.int8]:
        """The tier of each memory."""
        return self._tiers[: len(self)]

    @property
    def norms(self) -> NDArray[np.float64]:
        """The length of each vector."""
        return self._norms[: len(self)]

    def vectors(self, rows: slice | Sequence[int] = slice(None)) -> Quantised:
        """The vectors of all memories, or of these rows."""
        return self._vectors[: len(self)][rows]

    # Changing

    def append(
        self,
        content: str,
        tier: int,
        tick: int,
        metadata: dict[str, Scalar] | None,
        vector: Quantised,
        norm: float,
    ) -> None:
        """Add the newest memory; its sequence number is the next one."""
        row = len(self.contents)
        if row == len(self._norms):
            self._resize(row + max(8, row // 8))
        self._vectors[row] = vector
        self._norms[row] = norm
        self._tiers[row] = tier
        self.contents.append(content)
        self._numbers.extend((self.next_sequence, tick, tick))
        if metadata:
            self.metadata[self.next_sequence] = metadata
        self.next_sequence += 1
        if tier == 0:
            self._pinned = None
        self.digest = None

    def change_tier(self, row: int, tier: int, tick: int) -> None:
        """Move a memory to a tier that it enters in ``tick``."""
        self._tiers[row] = tier
        self._numbers[3 * row + 2] = tick
        self._pinned = None
        self.digest = None

    def remove(self, row: int) -> None:
        """Delete a memory; the newer ones move up."""
        last = len(self)
        for column in (self._vectors, self._norms, self._tiers):
            column[row : last - 1] = column[row + 1 : last]
        self.metadata.pop(self._numbers[3 * row], None)
        del self._numbers[3 * row : 3 * row + 3]
        del self.contents[row]
        self._pinned = None
        self.digest = None

    def load(
        self,
        numbers: NDArray[np.int64],
        contents: list[str],
        metadata: dict[int, dict[str, Scalar]],
        vectors: Quantised,
        next_sequence: int,
    ) -> None:
        """Take over a whole state; ``numbers`` has columns sequence, tier, created, entered."""
        self.contents = contents
        self.metadata = metadata
        self.next_sequence = next_sequence
        self._numbers = array("q", numbers[:, [0, 2, 3]].astype(np.int64).tobytes())
        self._tiers = numbers[:, 1].astype(np.int8)
        self._vectors = vectors.copy()
        self._norms = norms(vectors)
        self._pinned = None
        self.digest = None

    def numbers(self) -> NDArray[np.int64]:
        """What :meth:`load` takes."""
        table = np.empty((len(self), 4), np.int64)
        table[:, [0, 2, 3]] = np.array(self._numbers, np.int64).reshape(-1, 3)
        table[:, 1] = self.tiers
        return table

    def _resize(self, capacity: int) -> None:
        rows = len(self)
        for name in ("_vectors", "_norms", "_tiers"):
            old = getattr(self, name)
            new = np.empty((capacity, *old.shape[1:]), old.dtype)
            new[:rows] = old[:rows]
            setattr(self, name, new)
