"""The hash over an agent: sums over its memories, so a change costs its own size."""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from .agent_columns import AgentColumns
from .agents import Population
from .hashes import DIGEST, of_activities, sums_of
from .table import ResidentTable, Rows, portions, rows_of


def fingerprint(block: AgentColumns) -> bytes:
    """A hash over all memories of an agent, the same for equal memories however they came about.

    The table keeps its sum up to date from the first call on.
    """
    table, slots = block.table, [block.slot]
    if not block.is_hashed:
        _hash(table, slots, [block.start], [block.size])
    return table.sums.digests(slots, table.shelf_sums) + _beside(block)


def make_parts(agents: Population, slots: Sequence[int]) -> None:
    """Make what these agents add to the hash over all agents: id, next sequence number and hash."""
    table, parts = agents.table, agents.parts
    _hash_all(agents, slots)
    digests = table.sums.digests(slots, table.shelf_sums)
    cut = [digests[place : place + DIGEST] for place in range(0, len(digests), DIGEST)]
    ids, following, objects = agents.known(slots)
    for place, own in enumerate(objects):
        if own is not None and not own.is_bare:
            cut[place] += _beside(own)
    made = map(b"\0%s\0%d\0%s".__mod__, zip(map(str.encode, ids), following, cut, strict=True))
    for slot, part in zip(slots, made, strict=True):  # an interrupt leaves whole parts or none
        parts[slot] = part


def _beside(block: AgentColumns) -> bytes:
    """What the hash over an agent has beside the sum over its memories."""
    result = b""
    if block.has_extras:
        if block.recalls:
            result += repr(sorted(block.recalls.items())).encode()
        for path, note in sorted(block.notes.items()):
            result += b"\0%s\0%s" % (path.encode(), note.digest)
    if block.holdings:
        result += b"\0\0" + (block.holdings.total % (1 << 256)).to_bytes(32, "big")
    return result


def _hash_all(agents: Population, slots: Sequence[int]) -> None:
    """Hash all memories of the agents whose sums nobody made; the table keeps these from now on."""
    unknown = agents.table.sums.unknown(slots)
    if not unknown:
        return
    new, (starts, sizes) = np.array(unknown, np.intp), agents.spans()
    for part in portions(sizes[new]):
        own = new[part]
        _hash(agents.table, own.tolist(), starts[own], sizes[own])


def _hash(
    table: ResidentTable,
    slots: Sequence[int],
    starts: Sequence[int] | Rows,
    sizes: Sequence[int] | Rows,
) -> None:
    rows = rows_of(starts, sizes)
    numbers, records, places = table.numbers[rows], table.use_records[rows], table.places[rows]
    table.places[rows] = 0  # before they are free for others
    table.use_hashes.take(places)
    hashes = table.hashes_of(rows)
    used = numbers[:, 4] > 0
    sequences, counts, last = numbers[used][:, [0, 4, 5]].T
    marks = of_activities(sequences, counts, last, records[used])
    own = places[used]
    old = table.use_hashes.exchange(own, marks)
    places[used] = own
    table.places[rows] = places
    before = np.append(0, used.cumsum())
    stops = np.cumsum(sizes)
    used_of = before[stops] - before[stops - sizes]
    sums = sums_of(hashes, sizes) + sums_of(marks, used_of, old)
    table.sums.put_all(slots, sums)


class StateHash:
    """Joins the bytes that each agent adds to the hash; those of agents that changed are made anew.

    The hash is over all bytes, of which the first are the tick's: so no hash over a part of them is
    of use for the next hash.
    """

    def __init__(self, agents: Population) -> None:
        self._agents = agents
        self._order: list[int] = []
        """The slots of all agents, in the order of their ids."""
        self._changes = -1

    def digest(self, head: str) -> str:
        """The hash over ``head`` and all agents."""
        agents = self._agents
        if self._changes != agents.changes:
            self._order, self._changes = agents.in_order(), agents.changes
        parts = agents.parts
        stale = [slot for slot in self._order if parts[slot] is None]
        if stale:
            make_parts(agents, stale)
        whole = sha256(head.encode())
        whole.update(b"".join([parts[slot] or b"" for slot in self._order]))
        return whole.hexdigest()
