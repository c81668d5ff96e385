"""The hash over one agent's memories: the sum of a hash over each, so a change costs its size."""

from collections.abc import Sequence

import numpy as np

from ..digests import of_activities, of_activity, of_memory, sums_of
from .agent_columns import AgentColumns
from .table import portions

__all__ = ["fingerprint", "forget_uses", "hash_all", "keep_uses"]


def fingerprint(block: AgentColumns) -> bytes:
    """A hash over all memories of an agent, the same for equal memories however they came about.

    The block keeps its sums up to date from the first call on.
    """
    if block.memory_sum is None:
        hash_all([block])
    total = ((block.memory_sum or 0) + block.use_sum + block.shelf_sum) % (1 << 256)
    result = total.to_bytes(32, "big")
    if not block.is_common:
        if block.recalls:
            result += repr(sorted(block.recalls.items())).encode()
        for path, note in sorted(block.notes.items()):
            result += b"\0%s\0%s" % (path.encode(), note.digest)
    if block.holdings:
        result += b"\0\0" + (block.holdings.total % (1 << 256)).to_bytes(32, "big")
    return result


def hash_all(blocks: Sequence[AgentColumns]) -> None:
    """Hash all memories of these blocks, which keep their sums up to date from now on."""
    for part in portions([block.size for block in blocks]):
        _hash(blocks[part])


def _hash(blocks: Sequence[AgentColumns]) -> None:
    if not blocks:
        return
    table, sizes = blocks[0].table, [block.size for block in blocks]
    rows = table.rows_of(blocks)
    numbers, records, places = table.numbers[rows], table.use_records[rows], table.places[rows]
    table.marks.take(places)
    data, width = table.vectors[rows].tobytes(), table.vectors.shape[1]
    hashes = list(
        map(
            of_memory,
            numbers[:, 0].tolist(),
            table.tiers[rows].tolist(),
            table.temperatures[rows].tolist(),
            *numbers[:, 1:4].T.tolist(),
            table.contents[rows].tolist(),
            [data[start : start + width] for start in range(0, len(data), width)],
            table.metadata[rows].tolist(),
            table.traits[rows].tolist(),
        )
    )
    used = numbers[:, 4] > 0
    sequences, counts, last = numbers[used][:, [0, 4, 5]].T
    marks = of_activities(sequences, counts, last, records[used])
    own = places[used]
    old = table.marks.exchange(own, marks)
    places[used] = own
    table.places[rows] = places
    used_of = [int(np.count_nonzero(each)) for each in np.split(used, np.cumsum(sizes)[:-1])]
    sums = iter(sums_of(marks, old, [count for count in used_of if count]) if marks else ())
    first = 0
    for block, size, count in zip(blocks, sizes, used_of, strict=True):
        block.use_sum = next(sums) if count else 0
        block.memory_sum = sum(hashes[first : first + size])
        first += size


def forget_uses(block: AgentColumns, rows: slice | Sequence[int]) -> int:
    """Drop the hashes over the use of the memories in these rows; their sum."""
    own = block.cells.places
    places = own[rows]
    total = block.table.marks.take(places)
    own[rows] = places
    return total


def keep_uses(block: AgentColumns, rows: Sequence[int]) -> None:
    """Keep hashes over the use of the memories in these rows, each of which was used."""
    if not rows:
        return
    hashes, cells = [], block.cells
    for row in rows:
        sequence, _, _, _, count, last = cells.numbers[row].tolist()
        hashes.append(of_activity(sequence, count, last, cells.use_records.item(row)))
    places = cells.places[rows]
    (more,) = sums_of(hashes, block.table.marks.exchange(places, hashes), [len(hashes)])
    cells.places[rows] = places
    block.use_sum += more
