"""Memories leave the columns of their agents, and come back into them."""

from collections.abc import Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from ...memory.metadata import KeptMetadata
from ...memory.records import NEVER, Traits
from ...memory.tiers import Temperature
from ..record import Record
from ..vectors import Quantised, norms
from .agent_columns import AgentColumns
from .agents import Population
from .fingerprint import forget_uses, keep_uses
from .table import WIDTH, rows_of

# NumPy asks an enum a dozen questions before it takes it for the number it is.
_HOT = int(Temperature.HOT)
_MANY = 64
"""From this many leaving memories on, to hash the memories that stay may cost less."""


def take(block: AgentColumns, rows: Sequence[int], temperature: int | None = None) -> list[Record]:
    """Remove memories, and give back all there is of them, with another temperature if given."""
    places, cells = np.asarray(rows, np.intp), block.cells
    sequences, created, entered, expires, counts, last = cells.numbers[places].T.tolist()
    zeros = [0] * len(rows)
    if temperature is None:
        temperatures = cells.temperatures[places].tolist()
    else:
        temperatures = [temperature] * len(rows)
    recalls: list[tuple[int, ...]] = [()] * len(rows)
    if block.has_extras:
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
    taken = list(map(tuple.__new__, repeat(Record), fields))  # Record(…), at half its cost
    _forget_hashes(block, rows)
    kept = np.ones(block.size, bool)
    kept[rows] = False
    _reorder(block, kept)
    block.rows_left(kept)
    return taken


def put(block: AgentColumns, records: Sequence[Record]) -> None:
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
    if block.is_hashed:
        block.table.sums.add(block.slot, sum(map(block.hash_of, range(first, last))))
        keep_uses(block, [row for row, each in enumerate(records, first) if each.access_count])
    block.size = last
    order = np.argsort(block.figures[:, 0], kind="stable")
    _reorder(block, order)
    block.rows_came([record.content for record in records], order)


def load(
    population: Population,
    agents: Sequence[str],
    following: Sequence[int],
    sizes: Sequence[int],
    numbers: NDArray[np.int64],
    contents: list[str],
    metadata: list[KeptMetadata | None] | None,
    kinds: list[Traits | None] | None,
    vectors: Quantised,
) -> None:
    """Agents come with these memories, agent after agent, as many as its size says.

    ``following`` has their next sequence numbers. ``numbers`` is what the columns' method of that
    name gives. ``metadata`` and ``kinds`` are None if no memory has any.
    """
    table = population.table
    starts, rooms = table.admit(sizes)
    rows = rows_of(starts, sizes)
    table.vectors[rows], table.norms[rows] = vectors, norms(vectors)
    table.tiers[rows], table.temperatures[rows] = numbers[:, 6], numbers[:, 7]
    table.numbers[rows] = numbers[:, :WIDTH]
    table.use_records[rows] = np.ascontiguousarray(numbers[:, 8]).view(np.float64)
    table.places[rows] = 0
    table.contents[rows], table.metadata[rows], table.traits[rows] = contents, metadata, kinds
    table.all_plain = table.all_plain and metadata is None and kinds is None
    expiries = _first_expiries(numbers[:, 3], np.array(sizes, np.intp))
    population.admit(agents, (starts, sizes, rooms), following, expiries)


def _first_expiries(expires: NDArray[np.int64], sizes: NDArray[np.intp]) -> NDArray[np.int64]:
    """When the first memory of each agent expires."""
    first = np.full(len(sizes), NEVER, np.int64)
    if (expires < NEVER).any():
        some = sizes > 0
        first[some] = np.minimum.reduceat(expires, (sizes.cumsum() - sizes)[some])
    return first


def _forget_hashes(block: AgentColumns, rows: Sequence[int]) -> None:
    """Take memories that leave out of the sums of hashes."""
    if not block.is_hashed:
        return
    sums = block.table.sums
    if len(rows) >= _MANY and 2 * len(rows) > block.size:
        sums.forget(block.slot)  # fewer memories stay than leave: they are hashed anew
        forget_uses(block, slice(block.size))
        return
    sums.add(block.slot, -forget_uses(block, rows) - sum(map(block.hash_of, rows)))


def _reorder(block: AgentColumns, rows: NDArray[np.bool_] | NDArray[np.intp]) -> None:
    """Keep these rows, in this order."""
    for column in block.columns():
        kept = column[rows]
        column[: len(kept)] = kept
        if column.dtype == object:
            column[len(kept) :] = None
    block.size = len(kept)
