"""Memories leave an agent's rows as records, and come back from records."""

from collections.abc import Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from ..embedding import norms
from ..record import Record
from .agent_columns import AgentColumns
from .hashes import number_of

_MANY = 64
"""From this many leaving memories on, to hash the memories that stay may cost less."""


def take_out(
    block: AgentColumns, rows: Sequence[int], temperature: int | None = None
) -> list[Record]:
    """Remove memories, and give back all there is of them, with a temperature if given."""
    taken = records_of(block, rows, temperature)
    if block.has_extras:
        for record in taken:
            block.recalls.pop(record.sequence, None)
    _forget_hashes(block, rows)
    kept = np.ones(block.size, bool)
    kept[rows] = False
    leave_out(block, kept)
    return taken


def records_of(
    block: AgentColumns, rows: Sequence[int], temperature: int | None = None
) -> list[Record]:
    """All there is of the memories in these rows, with a temperature if given."""
    places, cells = np.asarray(rows, np.intp), block.cells
    sequences, created, entered, expires, counts, last = cells.numbers[places].T.tolist()
    zeros = [0] * len(rows)
    if temperature is None:
        temperatures = cells.temperatures[places].tolist()
    else:
        temperatures = [temperature] * len(rows)
    recalls: list[tuple[int, ...]] = [()] * len(rows)
    if block.has_extras:
        recalls = [block.recalls.get(each, ()) for each in sequences]
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
    return list(map(tuple.__new__, repeat(Record), fields))  # Record(…), at half its cost


def leave_out(block: AgentColumns, kept: NDArray[np.bool_]) -> None:
    """Only these memories are left; the hashes over the others are no concern of this."""
    _reorder(block, kept)
    block.rows_left(kept)


def put_back(block: AgentColumns, records: Sequence[Record]) -> None:
    """Take memories back, each into its place."""
    first, last = block.size, block.size + len(records)
    block.table.make_room([(block, len(records))])
    cells = block.cells
    vectors = np.frombuffer(b"".join([each.vector for each in records]), np.int8)
    cells.vectors[first:last] = vectors.reshape(len(records), -1)
    cells.norms[first:last] = norms(cells.vectors[first:last])
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
    if block.is_hashed:
        block.table.sums.add(block.slot, _sum_of(block, range(first, last)))
    block.size = last
    order = np.argsort(block.figures[:, 0], kind="stable")
    _reorder(block, order)
    block.rows_came([(record.content, record.metadata) for record in records], order)


def _reorder(block: AgentColumns, rows: NDArray[np.bool_] | NDArray[np.intp]) -> None:
    """Keep these rows, in this order."""
    for column in block.columns():
        kept = column[rows]
        column[: len(kept)] = kept
        if column.dtype == object:
            column[len(kept) :] = None
    block.size = len(kept)


def _sum_of(block: AgentColumns, rows: Sequence[int]) -> int:
    """The sum of the hashes over the memories in these rows, and over their use."""
    where = np.array(rows, np.intp) + block.start
    return block.hash_of(rows) + number_of(block.table.use_sums(where, [len(rows)])[0])


def _forget_hashes(block: AgentColumns, rows: Sequence[int]) -> None:
    """Take memories that leave out of the sums of hashes."""
    if not block.is_hashed:
        return
    sums = block.table.sums
    if len(rows) >= _MANY and 2 * len(rows) > block.size:
        sums.forget(block.slot)  # fewer memories stay than leave: they are hashed anew
        return
    sums.add(block.slot, -_sum_of(block, rows))
