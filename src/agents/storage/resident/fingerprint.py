"""The hash over one agent's memories: the sum of a hash over each, so a change costs its size."""

from collections.abc import Sequence

from ..digests import of_activity, sums_of
from .agent_columns import AgentColumns

__all__ = ["fingerprint", "forget_uses", "keep_uses"]


def fingerprint(block: AgentColumns) -> bytes:
    """A hash over all memories of an agent, the same for equal memories however they came about.

    The block keeps its sums up to date from the first call on.
    """
    if block.memory_sum is None:
        block.memory_sum = sum(map(block.hash_of, range(block.size)))
        forget_uses(block, slice(block.size))
        block.use_sum = 0
        keep_uses(block, (block.column("accesses") > 0).nonzero()[0].tolist())
    total = (block.memory_sum + block.use_sum + block.shelf_sum) % (1 << 256)
    result = total.to_bytes(32, "big")
    if block.recalls:
        result += repr(sorted(block.recalls.items())).encode()
    for path, note in sorted(block.notes.items()):
        result += b"\0%s\0%s" % (path.encode(), note.digest)
    if block.holdings:
        result += b"\0\0" + (block.holdings.total % (1 << 256)).to_bytes(32, "big")
    return result


def forget_uses(block: AgentColumns, rows: slice | Sequence[int]) -> int:
    """Drop the hashes over the use of the memories in these rows; their sum."""
    places = block.cells.places[rows]
    total = block.table.marks.take(places)
    block.cells.places[rows] = places
    return total


def keep_uses(block: AgentColumns, rows: Sequence[int]) -> None:
    """Keep hashes over the use of the memories in these rows, each of which was used."""
    if not rows:
        return
    hashes = []
    for row in rows:
        sequence, _, _, _, count, last = block.cells.numbers[row].tolist()
        hashes.append(of_activity(sequence, count, last, block.cells.use_records.item(row)))
    places = block.cells.places[rows]
    (more,) = sums_of(hashes, block.table.marks.exchange(places, hashes), [len(hashes)])
    block.cells.places[rows] = places
    block.use_sum += more
