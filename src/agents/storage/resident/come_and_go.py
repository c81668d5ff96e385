"""Memories leave the columns of their agents, and come back into them."""

from collections.abc import Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from ...memory.kinds import Traits
from ...memory.metadata import KeptMetadata
from ...memory.records import NEVER
from ...memory.temperature import Temperature
from ..full_record import Shelved
from ..vectors import Quantised, norms
from .agent_columns import AgentColumns
from .fingerprint import forget_uses, keep_uses
from .table import WIDTH

__all__ = ["load", "put", "take"]

# NumPy asks an enum a dozen questions before it takes it for the number it is.
_HOT = int(Temperature.HOT)
_MANY = 64
"""From this many leaving memories on, to hash the memories that stay may cost less."""


def take(block: AgentColumns, rows: Sequence[int], temperature: int | None = None) -> list[Shelved]:
    """Remove memories, and give back all there is of them, with another temperature if given."""
    places, cells = np.asarray(rows, np.intp), block.cells
    sequences, created, entered, expires, counts, last = cells.numbers[places].T.tolist()
    zeros = [0] * len(rows)
    if temperature is None:
        temperatures = cells.temperatures[places].tolist()
    else:
        temperatures = [temperature] * len(rows)
    recalls: list[tuple[int, ...]] = [()] * len(rows)
    if not block.is_common:
        recalls = [block.recalls.pop(each, ()) for each in sequences]
    data, dims = cells.vectors[places].tobytes(), cells.vectors.shape[1]
    fields = zip(
        sequences,
        cells.tiers[places].tolist(),
        temperatures,
        zeros,
        zeros,
        created,
        entered,
        expires,
        counts,
        last,
        cells.use_records[places].tolist(),
        recalls,
        cells.traits[places].tolist(),
        cells.metadata[places].tolist(),
        cells.contents[places].tolist(),
        [data[start : start + dims] for start in range(0, len(data), dims)],
        strict=True,
    )
    taken = list(map(tuple.__new__, repeat(Shelved), fields))  # Shelved(…), at half its cost
    _forget_hashes(block, rows)
    kept = np.ones(block.size, bool)
    kept[rows] = False
    _reorder(block, kept)
    block.rows_left(kept)
    return taken


def put(block: AgentColumns, records: Sequence[Shelved]) -> None:
    """Take memories back, each into its place."""
    first, last = block.size, block.size + len(records)
    block.table.make_room([(block, len(records))])
    cells = block.cells
    vectors = np.frombuffer(b"".join([each.vector for each in records]), np.int8)
    cells.vectors[first:last] = vectors.reshape(len(records), -1)
    cells.norms[first:last] = norms(cells.vectors[first:last])
    cells.places[first:last] = 0
    for row, record in enumerate(records, first):
        cells.contents[row] = record.content
        cells.metadata[row] = record.metadata
        cells.traits[row] = record.traits
        if record.metadata is not None or record.traits is not None:
            block.table.all_plain = False
        cells.tiers[row] = record.tier
        cells.temperatures[row] = record.temperature
        cells.numbers[row] = (
            record.sequence, record.created_tick, record.tier_tick, record.expires_tick,
            record.access_count, record.last_access_tick,
        )  # fmt: skip
        cells.use_records[row] = record.use_record
        if record.recalls:
            block.recalls[record.sequence] = record.recalls
        block.next_expiry = min(block.next_expiry, record.expires_tick)
    if block.memory_sum is not None:
        block.memory_sum += sum(map(block.hash_of, range(first, last)))
        keep_uses(block, [row for row, each in enumerate(records, first) if each.access_count])
    block.size = last
    order = np.argsort(block.figures[:, 0], kind="stable")
    _reorder(block, order)
    block.rows_came([record.content for record in records], order)


def load(
    blocks: Sequence[AgentColumns],
    sizes: Sequence[int],
    numbers: NDArray[np.int64],
    contents: list[str],
    metadata: list[KeptMetadata | None] | None,
    kinds: list[Traits | None] | None,
    vectors: Quantised,
) -> None:
    """Give new blocks of one table these memories, block after block, as many as its size says.

    ``numbers`` is what the blocks' method of that name gives. ``metadata`` and ``kinds`` are None
    if no memory has any.
    """
    table = blocks[0].table
    table.make_room(list(zip(blocks, sizes, strict=True)))
    for block, size in zip(blocks, sizes, strict=True):
        block.size = size
    rows = table.rows_of(blocks)
    table.vectors[rows], table.norms[rows] = vectors, norms(vectors)
    table.tiers[rows], table.temperatures[rows] = numbers[:, 6], numbers[:, 7]
    table.numbers[rows] = numbers[:, :WIDTH]
    table.use_records[rows] = np.ascontiguousarray(numbers[:, 8]).view(np.float64)
    table.places[rows] = 0
    table.contents[rows], table.metadata[rows], table.traits[rows] = contents, metadata, kinds
    table.all_plain = table.all_plain and metadata is None and kinds is None
    if (numbers[:, 3] < NEVER).any():
        for block in blocks:
            block.next_expiry = int(block.figures[:, 3].min(initial=NEVER))


def _forget_hashes(block: AgentColumns, rows: Sequence[int]) -> None:
    """Take memories that leave out of the sums of hashes."""
    if block.memory_sum is None:
        return
    if len(rows) >= _MANY and 2 * len(rows) > block.size:
        block.memory_sum = None  # fewer memories stay than leave: they are hashed anew
        forget_uses(block, slice(block.size))
        return
    block.use_sum -= forget_uses(block, rows)
    block.memory_sum -= sum(map(block.hash_of, rows))


def _reorder(block: AgentColumns, rows: NDArray[np.bool_] | NDArray[np.intp]) -> None:
    """Keep these rows, in this order."""
    for column in block.columns():
        kept = column[rows]
        column[: len(kept)] = kept
        if column.dtype == object:
            column[len(kept) :] = None
    block.size = len(kept)
