"""The resident memories: one block of columns per agent, searched exactly."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from agents.memory.caps import age
from agents.memory.ranking import EXCLUDED
from agents.memory.records import Memory, id_prefix
from agents.memory.tiers import Tier
from agents.storage.vectors import Quantised, norms, product_dtype

__all__ = ["AgentColumns", "Scored", "score"]

_Number = TypeVar("_Number", np.float64, np.int8)

_GROUP_CELLS = 2_000_000
"""Agents are scored together up to this many cells, which bounds the memory of a batch."""

_CHUNK_ROWS = 512
"""Vectors are widened for a product in chunks that stay in the processor's cache."""


class AgentColumns:
    """One agent's memories from the oldest to the newest, and their vectors beside them."""

    __slots__ = (
        "_norms",
        "_pinned",
        "_tiers",
        "_vectors",
        "agent_id",
        "digest",
        "next_sequence",
        "prefix",
        "records",
    )

    def __init__(self, agent_id: str, seed: int, dims: int) -> None:
        self.agent_id = agent_id
        self.prefix = id_prefix(seed, agent_id)
        self.next_sequence = 1
        self.records: list[Memory] = []
        self.digest: bytes | None = None
        """A cached digest of the state, for whoever computes one; any change clears it."""
        self._vectors = np.empty((0, dims), np.int8)
        self._norms = np.empty(0)
        self._tiers = np.empty(0, np.int8)
        self._pinned: tuple[tuple[int, ...], tuple[Memory, ...]] | None = ((), ())

    def __len__(self) -> int:
        return len(self.records)

    def append(self, memory: Memory, vector: Quantised, norm: float) -> None:
        """Add the newest memory."""
        row = len(self.records)
        if row == len(self._norms):
            self._resize(row + max(8, row // 8))
        self._vectors[row] = vector
        self._norms[row] = norm
        self._tiers[row] = memory.tier
        self.records.append(memory)
        self.next_sequence = memory.sequence + 1
        if memory.tier is Tier.PINNED:
            self._pinned = None
        self.digest = None

    def load(self, records: list[Memory], vectors: Quantised, next_sequence: int) -> None:
        """Take over a whole state."""
        self.records = records
        self.next_sequence = next_sequence
        self._vectors = vectors.copy()
        self._norms = norms(vectors)
        self._tiers = np.fromiter((memory.tier for memory in records), np.int8, len(records))
        self._pinned = None
        self.digest = None

    def replace(self, row: int, memory: Memory) -> None:
        """Put the changed record of the same memory in its place."""
        self.records[row] = memory
        self._tiers[row] = memory.tier
        self._pinned = None
        self.digest = None

    def remove(self, row: int) -> None:
        """Delete a memory; the newer ones move up."""
        last = len(self.records)
        for column in (self._vectors, self._norms, self._tiers):
            column[row : last - 1] = column[row + 1 : last]
        del self.records[row]
        self._pinned = None
        self.digest = None

    def row_of(self, sequence: int) -> int | None:
        """The row of the memory with this sequence number."""
        row = bisect_left(self.records, sequence, key=_sequence)
        if row < len(self.records) and self.records[row].sequence == sequence:
            return row
        return None

    def in_tier(self, tier: Tier) -> list[Memory]:
        """The memories of a tier, oldest memory first."""
        records = self.records
        return [records[row] for row in np.flatnonzero(self.tiers == tier).tolist()]

    @property
    def pinned(self) -> tuple[tuple[int, ...], tuple[Memory, ...]]:
        """The rows and the records of the pinned memories, oldest pin first."""
        if self._pinned is None:
            memories = tuple(sorted(self.in_tier(Tier.PINNED), key=age))
            rows = tuple(bisect_left(self.records, m.sequence, key=_sequence) for m in memories)
            self._pinned = rows, memories
        return self._pinned

    @property
    def tiers(self) -> NDArray[np.int8]:
        """The tier of each memory."""
        return self._tiers[: len(self.records)]

    @property
    def norms(self) -> NDArray[np.float64]:
        """The length of each vector."""
        return self._norms[: len(self.records)]

    def quantised(self, rows: slice | Sequence[int] = slice(None)) -> Quantised:
        """Vectors as they came in; all of them, or those of ``rows``."""
        return self._vectors[: len(self.records)][rows]

    def _resize(self, capacity: int) -> None:
        rows = len(self.records)
        for name in ("_vectors", "_norms", "_tiers"):
            old = getattr(self, name)
            new = np.empty((capacity, *old.shape[1:]), old.dtype)
            new[:rows] = old[:rows]
            setattr(self, name, new)


def _sequence(memory: Memory) -> int:
    return memory.sequence


class Scored(NamedTuple):
    """A group of searches: for each, a row of scores and tiers, oldest memory first."""

    members: list[int]
    """Which of the searches these are."""
    scores: NDArray[np.float64]
    """Cosine similarities; pinned memories and padding are EXCLUDED."""
    tiers: NDArray[np.int8]
    pinned: list[list[float]]
    """The scores of each search's pinned memories, oldest pin first."""


def score(blocks: Sequence[AgentColumns], queries: Quantised) -> Iterator[Scored]:
    """Score every memory of ``blocks[i]`` against ``queries[i]``, in groups of similar size."""
    wide: NDArray[np.floating] = queries.astype(product_dtype(queries.shape[1]))
    lengths = norms(queries)
    sizes = [len(block.records) for block in blocks]
    order = sorted(range(len(blocks)), key=sizes.__getitem__)
    start = 0
    while start < len(order):
        stop = start + 1
        smallest = sizes[order[start]]
        while stop < len(order):
            width = sizes[order[stop]]
            if width > smallest * 1.25 + 8 or (stop - start + 1) * width > _GROUP_CELLS:
                break
            stop += 1
        yield _score_group(blocks, wide, lengths, order[start:stop])
        start = stop


def _score_group(
    blocks: Sequence[AgentColumns],
    queries: NDArray[np.floating],
    lengths: NDArray[np.float64],
    members: list[int],
) -> Scored:
    group = [blocks[i] for i in members]
    sizes = [len(block.records) for block in group]
    width = sizes[-1]
    shape = len(group), width
    products = np.zeros(shape, queries.dtype)
    scratch = np.empty((min(width, _CHUNK_ROWS), queries.shape[1]), queries.dtype)
    for query, block, size, row in zip(queries[members], group, sizes, products, strict=True):
        # Bytes widened on the way are faster than floats from memory: a quarter is read.
        vectors = block._vectors
        for start in range(0, size, _CHUNK_ROWS):
            stop = min(start + _CHUNK_ROWS, size)
            wide = scratch[: stop - start]
            np.copyto(wide, vectors[start:stop])
            np.dot(wide, query, out=row[start:stop])
    scale = _padded(
        [block._norms[:size] for block, size in zip(group, sizes, strict=True)], sizes, 1.0
    )
    tiers = _padded(
        [block._tiers[:size] for block, size in zip(group, sizes, strict=True)], sizes, Tier.NORMAL
    )
    scale *= lengths[members, None]
    scores = products / scale
    # Below 0 means unrelated; a root rounded down can lift a perfect match above 1.
    np.clip(scores, 0.0, 1.0, out=scores)
    if sizes[0] != width:
        scores[np.arange(width) >= np.asarray(sizes)[:, None]] = EXCLUDED
    pinned = _take_pinned(group, scores)
    return Scored(members, scores, tiers, pinned)


def _padded(columns: list[NDArray[_Number]], sizes: list[int], fill: float) -> NDArray[_Number]:
    flat = np.concatenate(columns)
    width = sizes[-1]
    if sizes[0] == width:
        return flat.reshape(len(columns), width)
    padded = np.full((len(columns), width), fill, flat.dtype)
    padded[np.arange(width) < np.asarray(sizes)[:, None]] = flat
    return padded


def _take_pinned(group: list[AgentColumns], scores: NDArray[np.float64]) -> list[list[float]]:
    """Read the scores of pinned memories, and exclude these from the ranking."""
    rows = [block.pinned[0] for block in group]
    agent = [index for index, own in enumerate(rows) for _ in own]
    column = [row for own in rows for row in own]
    values = iter(scores[agent, column].tolist() if agent else ())
    result = [[next(values) for _ in own] for own in rows]
    if agent:
        scores[agent, column] = EXCLUDED
    return result
