"""The state of a bank in memory: its agents, and how events change them. Nothing else does."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import chain, compress, repeat
from operator import add, attrgetter, gt
from typing import Any, NamedTuple, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ...errors import BankDamaged
from ...memory.events import (
    Change,
    LifetimeSet,
    Moved,
    NoteWritten,
    Retained,
    Row,
    TierChanged,
    ValueSet,
    VersionReplaced,
)
from ...memory.records import NEVER, Memory, Traits
from ...memory.requests import KeptMetadata
from ...memory.tiers import Retention, Temperature, Tier
from ...rules.ranking import after_use
from ...rules.tiers import axes_of, end_after, entered
from ..columns.agent_columns import AgentColumns
from ..columns.extras import Holdings
from ..columns.hashes import DIGEST, sums_of
from ..columns.records import put_back, take_out
from ..columns.table import WIDTH, Additions, ResidentTable, Rows, portions, rows_of
from ..embedding import Quantised, norms
from ..journal.journal import Journal
from ..note import Note
from ..record import MOST_RECALLS, Record
from ..shelf import Shelf

_COLD = int(Temperature.COLD)
# NumPy asks an enum a dozen questions before it takes it for the number it is.
_HOT = int(Temperature.HOT)
_CAPPED = (int(Tier.PINNED), int(Tier.CRITICAL))
_Value = TypeVar("_Value")


class Accesses(NamedTuple):
    """The memories that a group of searches gave, as columns, search after search."""

    members: list[int]
    """The number of each search."""
    counts: NDArray[np.intp]
    """How many memories each search gave."""
    sequences: NDArray[np.int64]
    scores: NDArray[np.float64]
    rows: NDArray[np.intp] | None = None
    """The row of each memory in the table; None where a memory may be cold or given twice."""

    @classmethod
    def of(cls, results: Sequence[tuple[Sequence[int], Sequence[float]]]) -> Self:
        """From the sequence numbers and the scores that each search gave."""
        return cls(
            list(range(len(results))),
            np.array([len(sequences) for sequences, _ in results], np.intp),
            np.array(list(chain.from_iterable([sequences for sequences, _ in results])), np.int64),
            np.array(list(chain.from_iterable([scores for _, scores in results])), np.float64),
        )

    def at_least(self, least: float) -> "Accesses":
        """The accesses with at least this score; a search that has none is left out."""
        enough = self.scores >= least
        if enough.all() and self.counts.all():
            return self
        whose = np.arange(len(self.members)).repeat(self.counts)
        counts = np.bincount(whose[enough], minlength=len(self.members))
        members = list(compress(self.members, counts.tolist()))
        rows = None if self.rows is None else self.rows[enough]
        return Accesses(
            members, counts[counts > 0], self.sequences[enough], self.scores[enough], rows
        )

    def events(self, agents: Sequence[str], kind: str) -> list[Row]:
        """An event for each search; ``agents`` has the agent of each number of a search."""
        owners = [agents[member] for member in self.members]
        sequences = split_by_count(self.sequences.tolist(), self.counts)
        scores = split_by_count(self.scores.tolist(), self.counts)
        return list(zip(repeat(kind), owners, sequences, scores, strict=False))


def split_by_count(values: list[_Value], counts: NDArray[np.intp]) -> Iterable[Sequence[_Value]]:
    """The values cut into one tuple or list for each search, which has as many as its count."""
    most = int(counts.max(initial=0))
    if 0 < len(counts) * most == len(values):  # as many for each search: tuples are faster
        return zip(*[iter(values)] * most, strict=True)
    stops = counts.cumsum()
    return map(values.__getitem__, map(slice, (stops - counts).tolist(), stops.tolist()))


# The agents of a bank. An agent that no call was about yet is a row of numbers, not an object

_START, _SIZE, _ROOM, _FOLLOWING, _EXPIRY = range(5)
"""The numbers of an agent that has no object yet; :class:`AgentColumns` explains them."""
_NUMBERS = 5
_SLOT_OF, _START_OF, _SIZE_OF, _ROOM_OF = map(attrgetter, ("slot", "start", "size", "room"))


@final
class Population(Mapping[str, AgentColumns]):
    """Every agent's columns, by the agent's id, in the order in which the agents came.

    An agent has a slot: the number of its row in all that has a row per agent. Its object is made
    for the first caller that looks at the agent. From then on, the object has the agent's numbers.
    """

    def __init__(self, seed: int, dims: int) -> None:
        self._seed = seed
        self._dims = dims
        self.clear()

    def clear(self) -> None:
        """No agents are left. Nothing of the table is read: it may be half written."""
        self.table = ResidentTable(self._dims, self)
        self._slots: dict[str, int] = {}
        self._ids: list[str] = []
        """By slot; empty for a slot that is free."""
        self._objects: list[AgentColumns | None] = []
        self._numbers = np.zeros((0, _NUMBERS), np.int64)
        self._free: list[int] = []
        self._parts: list[bytes | None] = []
        """By slot, what an agent adds to the hash over all agents; None if that is to be made."""
        self._order: list[int] | None = None
        """The slots of all agents in the order of their ids; None after agents came or went."""

    # One agent

    def __getitem__(self, agent_id: str) -> AgentColumns:
        slot = self._slots[agent_id]
        block = self._objects[slot]
        return self._load(agent_id, slot) if block is None else block

    def get(self, agent_id: str, default: Any = None) -> Any:
        """The agent's columns, or the default for an agent that is not there."""
        slot = self._slots.get(agent_id)
        if slot is None:
            return default
        block = self._objects[slot]
        return self._load(agent_id, slot) if block is None else block

    def __contains__(self, agent_id: object) -> bool:
        return agent_id in self._slots

    def __iter__(self) -> Iterator[str]:
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)

    def peek(self, agent_id: str) -> AgentColumns:
        """The agent's columns, to be read only; an object made for this call is not kept."""
        slot = self._slots[agent_id]
        block = self._objects[slot]
        return self._read(agent_id, slot) if block is None else block

    def own(self, agent_id: str) -> AgentColumns:
        """The agent's columns; an agent that was not there comes now."""
        there: AgentColumns | None = self.get(agent_id)
        if there is not None:
            return there
        (slot,) = self._take_slots([agent_id])
        block = self._objects[slot] = AgentColumns(agent_id, self._seed, self.table, slot)
        return block

    def remove(self, agent_id: str) -> None:
        """The agent goes."""
        slot = self._slots.pop(agent_id)
        self._order = None
        self._ids[slot], self._objects[slot], self._parts[slot] = "", None, None
        self._numbers[slot] = 0
        self.table.sums.forget(slot)
        self.table.shelf_sums.forget(slot)
        self._free.append(slot)

    def _load(self, agent_id: str, slot: int) -> AgentColumns:
        block = self._objects[slot] = self._read(agent_id, slot)
        return block

    def _read(self, agent_id: str, slot: int) -> AgentColumns:
        block = AgentColumns(agent_id, self._seed, self.table, slot)
        start, block.size, room, block.next_sequence, block.next_expiry = self._numbers[
            slot
        ].tolist()
        block.look_at(start, room)
        return block

    # Many agents

    def add(
        self,
        counts: Mapping[str, int],
        new: Additions,
        tick: int,
        vectors: Quantised,
        lengths: NDArray[np.float64],
    ) -> None:
        """Add new memories of this tick, as many of each agent as ``counts`` says.

        Each agent's memories have the next sequence numbers. ``lengths`` has the vectors' lengths.
        """
        table, blocks = self.table, {agent: self.own(agent) for agent in counts}
        table.make_room([(block, counts[agent]) for agent, block in blocks.items()])
        to_row = {}
        """What makes a row of the table from a sequence number, by agent."""
        for agent, block in blocks.items():
            to_row[agent] = block.start + block.size - block.next_sequence
            block.size += counts[agent]
            block.next_sequence += counts[agent]
        rows = list(map(add, map(to_row.__getitem__, new.agents), new.sequences))
        table.write(rows, new, tick, vectors, lengths)
        if 0 in new.tiers or new.starts.count(None) < len(new.starts):
            for agent, tier, start in zip(new.agents, new.tiers, new.starts, strict=True):
                block = blocks[agent]
                if start is not None and start.expires_tick is not None:
                    block.next_expiry = min(block.next_expiry, start.expires_tick)
                if tier == 0 or (start is not None and start.temperature == _HOT):
                    block.front_changed()
        if table.sums.known:
            self._hash_new(new.agents, rows)

    def _hash_new(self, agents: Sequence[str], rows: Sequence[int]) -> None:
        """Add the hashes over new memories to the sums of the agents that are hashed."""
        sums, slots = self.table.sums, self.slots_of(agents)
        unknown = set(sums.unknown(slots))
        # The memories of an agent have to lie together.
        new = sorted([pair for pair in zip(slots, rows, strict=True) if pair[0] not in unknown])
        if not new:
            return
        owners, places = zip(*new, strict=True)
        counts = Counter(owners)
        hashes = self.table.hashes_of(np.array(places, np.intp))
        sums.add_all(list(counts), sums_of(hashes, list(counts.values())))

    def load(
        self,
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

        ``following`` has their next sequence numbers. ``numbers`` is what the columns' method of
        that name gives. ``metadata`` and ``kinds`` are None if no memory has any. Nobody looks at
        the agents yet.
        """
        table = self.table
        starts, rooms = table.admit(sizes)
        rows = rows_of(starts, sizes)
        table.vectors[rows], table.norms[rows] = vectors, norms(vectors)
        table.tiers[rows], table.temperatures[rows] = numbers[:, 6], numbers[:, 7]
        table.numbers[rows] = numbers[:, :WIDTH]
        table.use_records[rows] = np.ascontiguousarray(numbers[:, 8]).view(np.float64)
        table.contents[rows], table.metadata[rows], table.traits[rows] = contents, metadata, kinds
        table.all_plain = table.all_plain and metadata is None and kinds is None
        expiries = _first_expiries(numbers[:, 3], np.array(sizes, np.intp))
        loaded = np.empty((len(agents), _NUMBERS), np.int64)
        loaded[:, _START], loaded[:, _SIZE], loaded[:, _ROOM] = starts, sizes, rooms
        loaded[:, _FOLLOWING], loaded[:, _EXPIRY] = following, expiries
        slots = self._take_slots(agents)
        self._numbers[slots] = loaded

    def of(self, agents: Collection[str]) -> list[AgentColumns]:
        """The columns of agents that are all there."""
        objects, slots = self._objects, map(self._slots.__getitem__, agents)
        return [
            self._load(agent, slot) if (block := objects[slot]) is None else block
            for agent, slot in zip(agents, slots, strict=True)
        ]

    def slots_of(self, agents: Iterable[str]) -> list[int]:
        """The slots of agents that are all there."""
        return list(map(self._slots.__getitem__, agents))

    def may_end(self, agents: Iterable[str], tick: int) -> list[str]:
        """Those of these agents of whom a memory may have expired by a tick."""
        slots, objects, ending = self._slots, self._objects, []
        for agent in agents:
            slot = slots.get(agent)
            if slot is None:
                continue
            block = objects[slot]
            if block is None:
                if self._numbers[slot, _EXPIRY] <= tick:
                    ending.append(agent)
            elif block.next_expiry <= tick or block.has_extras:
                ending.append(agent)
        return ending

    def touch(self, agents: Iterable[str]) -> None:
        """These agents change now; those that are not there do not."""
        parts = self._parts
        for slot in map(self._slots.get, agents):
            if slot is not None:
                parts[slot] = None

    def known(self, slots: Sequence[int]) -> tuple[list[str], list[int], list[AgentColumns | None]]:
        """Ids and next sequence numbers of agents; the columns of those that have an object."""
        objects = list(map(self._objects.__getitem__, slots))
        numbers: Iterable[int] = repeat(0)
        if None in objects:
            numbers = self._numbers[slots, _FOLLOWING].tolist()
        following = [
            number if block is None else block.next_sequence
            for number, block in zip(numbers, objects, strict=False)
        ]
        return list(map(self._ids.__getitem__, slots)), following, objects

    def following(self) -> Iterator[tuple[str, int]]:
        """All agents with their next sequence numbers."""
        ids, numbers, _ = self.known(list(self._slots.values()))
        return zip(ids, numbers, strict=True)

    def loaded(self) -> list[AgentColumns]:
        """The columns of the agents that have an object."""
        return [block for block in self._objects if block is not None]

    def are_all_loaded(self) -> bool:
        """Whether each agent has an object, as in a small bank after a while.

        It may say no where agents went.
        """
        return None not in self._objects

    def which(self, is_wanted: NDArray[np.bool_]) -> list[str]:
        """The ids of the agents at these slots, sorted."""
        return sorted(filter(None, compress(self._ids, is_wanted.tolist())))

    def due(self, tick: int) -> list[AgentColumns]:
        """The columns of the agents that may have a memory which expires up to this tick."""
        blocks = [block for block in self.loaded() if block.next_expiry <= tick]
        if not self.are_all_loaded():
            due = self._numbers[: len(self._ids), _EXPIRY] <= tick
            asleep = [slot for slot in np.flatnonzero(due).tolist() if self._objects[slot] is None]
            blocks += self.of([self._ids[slot] for slot in asleep if self._ids[slot]])
        return sorted(blocks, key=_SLOT_OF)

    def with_expiry(self, tick: int) -> set[str]:
        """The agents of :meth:`due`, and those that have :class:`Extras`."""
        rare = [block for block in self.loaded() if block.has_extras]
        return {block.agent_id for block in (*rare, *self.due(tick))}

    # The hash over all agents

    def hash(self, head: str) -> str:
        """The hash over ``head`` and all agents; a change costs as much as the agents it changed.

        The hash is over all bytes, of which the first are the tick's: so no hash over a part of
        them is of use for the next hash.
        """
        if self._order is None:
            self._order = [self._slots[agent] for agent in sorted(self._slots)]
        stale = [slot for slot in self._order if self._parts[slot] is None]
        if stale:
            self._make_parts(stale)
        whole = sha256(head.encode())
        whole.update(b"".join([self._parts[slot] or b"" for slot in self._order]))
        return whole.hexdigest()

    def _make_parts(self, slots: Sequence[int]) -> None:
        """Make what these agents add to the hash: id, next sequence number and fingerprint."""
        table, parts = self.table, self._parts
        if unknown := table.sums.unknown(slots):
            new, (starts, sizes) = np.array(unknown, np.intp), self.spans()
            for part in portions(sizes[new]):
                table.make_sums(unknown[part], starts[new[part]], sizes[new[part]])
        digests = table.sums.digests(slots, table.shelf_sums)
        cut = [digests[place : place + DIGEST] for place in range(0, len(digests), DIGEST)]
        ids, following, objects = self.known(slots)
        for place, block in enumerate(objects):
            if block is not None and not block.is_bare:
                cut[place] += block.hashed_beside()
        made = map(b"\0%s\0%d\0%s".__mod__, zip(map(str.encode, ids), following, cut, strict=True))
        for slot, whole in zip(slots, made, strict=True):  # an interrupt leaves whole parts or none
            parts[slot] = whole

    # The rows of the table

    def spans(self) -> tuple[Rows, Rows]:
        """By slot, the first row of each agent, and how many rows hold a memory."""
        return self._column(_START, _START_OF), self._column(_SIZE, _SIZE_OF)

    def rooms(self) -> Rows:
        """By slot, how many rows each agent has."""
        return self._column(_ROOM, _ROOM_OF)

    def _column(self, column: int, of: Callable[[AgentColumns], int]) -> Rows:
        blocks = self.loaded()
        if len(blocks) == len(self._ids):
            return np.array(list(map(of, blocks)), np.intp)
        values: Rows = self._numbers[: len(self._ids), column].astype(np.intp)
        values[list(map(_SLOT_OF, blocks))] = list(map(of, blocks))
        return values

    def memories(self) -> int:
        """How many memories all agents have."""
        if self.are_all_loaded():
            return sum(map(_SIZE_OF, self.loaded()))
        return int(self._column(_SIZE, _SIZE_OF).sum())

    def move(self, starts: Rows, rooms: Rows) -> None:
        """The agents have ``rooms`` rows of the table now, from ``starts`` on."""
        self._numbers[: len(starts), _START], self._numbers[: len(starts), _ROOM] = starts, rooms
        for block in self.loaded():
            block.look_at(int(starts[block.slot]), int(rooms[block.slot]))

    def _take_slots(self, agents: Collection[str]) -> list[int]:
        """Give slots to agents that come."""
        slots = []
        for agent in agents:
            if self._free:
                slot = self._free.pop()
                self._ids[slot] = agent
            else:
                slot = len(self._ids)
                self._ids.append(agent)
                self._objects.append(None)
                self._parts.append(None)
            self._slots[agent] = slot
            slots.append(slot)
        if len(self._ids) > len(self._numbers):
            larger = np.zeros((len(self._ids) + len(self._ids) // 4, _NUMBERS), np.int64)
            larger[: len(self._numbers)] = self._numbers
            self._numbers = larger
        self._order = None
        return slots


def _first_expiries(expires: NDArray[np.int64], sizes: NDArray[np.intp]) -> NDArray[np.int64]:
    """When the first memory of each agent expires."""
    first = np.full(len(sizes), NEVER, np.int64)
    if (expires < NEVER).any():
        some = sizes > 0
        first[some] = np.minimum.reduceat(expires, (sizes.cumsum() - sizes)[some])
    return first


class State:
    """Every agent's columns, the shelf with the memories that are not in them, and the tick."""

    def __init__(self, seed: int, dims: int, journal: Journal) -> None:
        self.seed = seed
        self.dims = dims
        self.tick = 0
        self.blocks = Population(seed, dims)
        self.table = self.blocks.table
        self.changed: set[str] = set()
        """The agents that changed since their snapshot."""
        self.shelf = Shelf(journal.shelf, journal.head + 1)
        self._cold: dict[int, int] | None = None
        self._has_purged = bool(journal.get("purged"))

    def __len__(self) -> int:
        return self.blocks.memories()

    @property
    def cold(self) -> int:
        """How many memories are cold and active, also those that a sweep will find expired."""
        return sum(self._cold_by_tier().values())

    def _cold_by_tier(self) -> dict[int, int]:
        """How many memories of each tier are cold and active; counted when first asked for."""
        if self._cold is None:
            cold = dict.fromkeys(map(int, Tier), 0)
            for (_, retention, _, tier), (number, _) in self.shelf.counts().items():
                if retention == Retention.ACTIVE:
                    cold[tier] += number
            self._cold = cold
        return self._cold

    def forget(self, agents: Collection[str] | None) -> None:
        """Drop the resident memories of all agents or of some, to be read again."""
        self._cold = None
        if agents is None:
            self.blocks.clear()
            self.table = self.blocks.table
            return
        for agent in agents:
            if agent in self.blocks:
                self.blocks.remove(agent)

    def block(self, agent_id: str) -> AgentColumns:
        """The agent's columns; for an agent without memories, empty ones that are not kept."""
        block = self.blocks.get(agent_id)
        return AgentColumns(agent_id, self.seed, self.table) if block is None else block

    def blocks_of(self, agents: Collection[str]) -> list[AgentColumns]:
        """The columns of many agents."""
        try:
            return self.blocks.of(agents)  # as in most ticks
        except KeyError:
            return list(map(self.block, agents))

    def with_more(self, rows: NDArray[np.bool_], than: int) -> list[str]:
        """The agents that have more than so many of these rows of the table, sorted."""
        before = np.append(0, rows.cumsum())
        starts, sizes = self.blocks.spans()
        return self.blocks.which(before[starts + sizes] - before[starts] > than)

    def with_hot(self) -> list[AgentColumns]:
        """The columns of all agents that may have a hot memory, pinned ones included."""
        if not self.blocks.are_all_loaded():
            self.blocks.of(self.with_more(self.table.is_hot(), 0))
        return self.blocks.loaded()

    def touch(self, agents: Collection[str]) -> None:
        """These agents change now."""
        self.changed.update(agents)
        self.blocks.touch(agents)

    def hash(self) -> str:
        """The hash over all memories, the same for equal states however they came about."""
        return self.blocks.hash(f"{self.seed} {self.dims} {self.tick}")

    def tier_counts(self) -> dict[Tier, int]:
        """How many memories are in each tier: active ones, cold ones too, no expired ones."""
        in_use, tiers = self.table.in_use(), self.table.tiers
        cold, over = self._cold_by_tier(), Counter(memory.tier for memory in self.expired())
        # NumPy asks an enum a dozen questions before it takes it for the number it is.
        return {
            tier: int(np.count_nonzero(in_use & (tiers == int(tier)))) + cold[tier] - over[tier]
            for tier in Tier
        }

    def temperature_counts(self) -> dict[Temperature, int]:
        """How many of the memories that :meth:`tier_counts` counts have each temperature."""
        if self.blocks.are_all_loaded():
            hot = sum([len(block.pinned) + len(block.hot) for block in self.blocks.loaded()])
        else:
            hot = int(np.count_nonzero(self.table.in_use() & self.table.is_hot()))
        counts = {
            Temperature.HOT: hot,
            Temperature.WARM: len(self) - hot,
            Temperature.COLD: self.cold,
        }
        over = Counter(memory.temperature for memory in self.expired())
        return {heat: number - over[heat] for heat, number in counts.items()}

    def expired(self, agent_id: str | None = None) -> list[Memory]:
        """The memories of all agents, or of one, that the next sweep will delete as expired.

        No view counts them or shows them.
        """
        expired: list[Memory] = []
        for block in self.blocks.due(self.tick) if agent_id is None else [self.block(agent_id)]:
            if block.next_expiry <= self.tick:
                expired += block.memories(np.flatnonzero(block.expired(self.tick)).tolist())
        if self.cold:
            for owner, (sequences, _) in self.shelf.due(self.tick, -1, agent_id).items():
                expired += self.memories(owner, sequences)
        return expired

    def went_back(self) -> None:
        """The tick is an earlier one: what sweeps of later ticks found out does not hold."""
        for block in self.blocks.loaded():  # nobody swept the others
            block.next_decay = 0

    def shelf_sum(self) -> int:
        """The sum of the hashes over all memories that are not resident."""
        return self.table.shelf_sums.total()

    def check_shelf(self, agent_id: str) -> None:
        """Raise :class:`BankDamaged` if memories of an agent that are not resident are gone."""
        self.shelf.check(agent_id, self.block(agent_id).shelf_sum)

    # Events

    def add(self, new: Additions, vectors: Quantised, lengths: NDArray[np.float64]) -> None:
        """Apply events that add memories, with their vectors and the lengths of these."""
        # To count one, Counter asks what it is, for as long as one row is written.
        counts = Counter(new.agents) if len(new.agents) > 1 else dict.fromkeys(new.agents, 1)
        self.blocks.add(counts, new, self.tick, vectors, lengths)
        self.touch(counts)
        if new.starts.count(None) == len(new.starts):
            return
        cold: dict[str, list[int]] = {}
        for agent_id, sequence, tier, _, _, start in zip(*new, strict=True):
            if start is not None and start.temperature == _COLD and tier != Tier.PINNED:
                cold.setdefault(agent_id, []).append(sequence)
        for agent_id, sequences in cold.items():
            block = self.blocks[agent_id]
            self._shelve(block, take_out(block, block.rows_of(sequences)[0], _COLD))

    def count_uses(
        self, agents: Sequence[str], accesses: Sequence[Accesses], kind: str
    ) -> list[Row]:
        """Count the memories that searches gave; the events, in the order of the searches."""
        events: list[Row] = []
        for group in accesses:
            if not group.members:
                continue
            rows = group.events(agents, kind)
            if group.rows is None or kind == "recall":
                self.access(rows)
            else:
                owners = [event[1] for event in rows]
                self.use(owners, group.counts.tolist(), group.rows, group.scores)
            events += rows
        members = [member for group in accesses for member in group.members]
        if any(map(gt, members, members[1:])):
            order = sorted(range(len(members)), key=members.__getitem__)
            events = [events[place] for place in order]
        return events

    def access(self, events: Sequence[Row]) -> None:
        """Apply the events of searches; their memories may be resident or not."""
        waiting: dict[str, Row] = {}
        for event in events:
            if event[1] in waiting:  # two searches may give one memory
                self._access(list(waiting.values()))
                waiting.clear()
            waiting[event[1]] = event
        if waiting:
            self._access(list(waiting.values()))

    def _access(self, events: Sequence[Row]) -> None:
        """Apply events of searches, one for each agent."""
        agents, counts, rows, scores = list[str](), list[int](), list[int](), list[float]()
        for kind, agent, sequences, similar in events:
            block = self.blocks.own(agent)
            self.touch([agent])
            before = len(rows)
            for sequence, score in zip(sequences, similar, strict=True):
                row = block.row_of(sequence)
                if row is None:
                    self._change(block, [sequence], partial(self._used, kind, score))
                    continue
                rows.append(block.start + row)
                scores.append(score)
                if kind == "recall":
                    block.recalled(sequence, self.tick)
            if len(rows) > before:
                agents.append(agent)
                counts.append(len(rows) - before)
        if agents:
            self.use(agents, counts, np.array(rows, np.intp), np.array(scores, np.float64))

    def use(
        self,
        agents: Sequence[str],
        counts: Sequence[int],
        rows: NDArray[np.intp],
        scores: NDArray[np.float64],
    ) -> None:
        """Count the use of the memories in these rows of the table, each of which is there once.

        ``counts`` says how many of the memories each agent got: at least one.
        """
        table, slots = self.table, self.blocks.slots_of(agents)
        is_hashed = bool(table.sums.known) and table.sums.knows_any(slots)
        before = table.use_sums(rows, counts) if is_hashed else None
        # A view, by the number of a cell: two thirds of the time that rows and columns take.
        numbers = table.numbers.reshape(-1)
        cells = rows * WIDTH + 4
        numbers[cells] += 1
        numbers[cells + 1] = self.tick
        table.use_records[rows] = after_use(table.use_records[rows], scores)
        self.touch(agents)
        if before is not None:
            table.sums.add_all(slots, table.use_sums(rows, counts) - before)

    def apply(self, event: Change) -> None:
        """Apply an event."""
        block = self.blocks.own(event.agent_id)
        self.touch([event.agent_id])
        if isinstance(event, TierChanged):
            self._change_tier(block, event)
        elif isinstance(event, Moved):
            self._move(block, event)
        elif isinstance(event, Retained):
            self._change(block, event.sequences, partial(self._retained, event))
        elif isinstance(event, LifetimeSet):
            end = event.expires_tick
            self._change(block, event.sequences, lambda record: record._replace(expires_tick=end))
        elif isinstance(event, VersionReplaced):
            self._succeed(block, event)
        elif isinstance(event, NoteWritten):
            self._note(block, event)
        elif isinstance(event, ValueSet):
            _hold(block, event.topic, event.name, event.value)
        else:
            self._take(block, event.sequences)
            block.forget(event.sequences)
            self._has_purged = True

    @staticmethod
    def _note(block: AgentColumns, event: NoteWritten) -> None:
        old = block.notes.pop(event.path, None)
        if event.text is not None:
            start = "" if old is None else old.text[: event.kept]
            block.notes[event.path] = Note.of(start + event.text, event.chunks)

    def _change_tier(self, block: AgentColumns, event: TierChanged) -> None:
        has_cap = event.tier <= Tier.CRITICAL
        block.tier_order.enter(event.sequence, block.next_sequence - 1 if has_cap else None)
        row = block.row_of(event.sequence)
        if row is not None:
            block.change_tier(row, event.tier, self.tick)
            return

        def change(record: Record) -> Record:
            old = axes_of(record.tier, record.temperature, record.retention)
            _, heat, kept = entered(old, event.tier)
            return record._replace(
                tier=event.tier, tier_tick=self.tick, temperature=int(heat), retention=int(kept)
            )

        self._change(block, [event.sequence], change)

    def _succeed(self, block: AgentColumns, event: VersionReplaced) -> None:
        if event.place is not None:
            tick, *turn = event.place
            block.tier_order.take(event.sequence, turn[0], turn[1])
            self._change(block, [event.sequence], lambda record: record._replace(tier_tick=tick))

    def _move(self, block: AgentColumns, event: Moved) -> None:
        to = event.temperature
        rows, others = block.rows_of(event.sequences)
        if rows and to == Temperature.COLD:
            self._shelve(block, take_out(block, rows, _COLD))
        elif rows:
            block.set_temperature(rows, to)
        if others:
            self._change(block, others, lambda record: record._replace(temperature=to))

    def _retained(self, event: Retained, record: Record) -> Record:
        return record._replace(
            retention=event.retention,
            retained_tick=self.tick,
            expires_tick=end_after(Retention(event.retention), record.expires_tick, self.tick),
        )

    def _used(self, kind: str, score: float, record: Record) -> Record:
        recalls = record.recalls
        if kind == "recall":
            recalls = (*recalls, self.tick)[-MOST_RECALLS:]
        return record._replace(
            access_count=record.access_count + 1,
            last_access_tick=self.tick,
            use_record=after_use(record.use_record, score),
            recalls=recalls,
        )

    # Between the columns and the shelf

    def memory(self, agent_id: str, sequence: int) -> Memory | None:
        """A memory, wherever it is."""
        block = self.block(agent_id)
        row = block.row_of(sequence)
        if row is not None:
            return block.memory(row)
        if not 0 < sequence < block.next_sequence:
            return None
        stored = self.shelf.get((agent_id, sequence))
        if stored is None and not self._has_purged:  # a row that a flipped bit hides
            raise BankDamaged(
                f"the journal has lost memory {sequence} of {agent_id}; nothing was changed",
            )
        return stored.record.memory(agent_id, block.prefix) if stored else None

    def memories(self, agent_id: str, sequences: Sequence[int]) -> list[Memory]:
        """Memories that exist, wherever they are, oldest first."""
        block = self.block(agent_id)
        rows, others = block.rows_of(sequences)
        memories = block.memories(rows)
        if others:
            stored = self.shelf.many(agent_id, others)
            memories += [row.record.memory(agent_id, block.prefix) for row in stored]
            memories.sort(key=lambda memory: memory.sequence)
        return memories

    def deleted_tick(self, agent_id: str, sequence: int) -> int | None:
        """When a memory was deleted, if it is not purged yet."""
        stored = self.shelf.get((agent_id, sequence))
        if stored is None or stored.record.retention != Retention.DELETED:
            return None
        return stored.record.retained_tick

    def use_record(self, agent_id: str, sequence: int) -> float:
        """What the uses of a memory that exists came to."""
        block = self.block(agent_id)
        row = block.row_of(sequence)
        if row is not None:
            return float(block.use_records[row])
        (stored,) = self.shelf.many(agent_id, [sequence])
        return stored.record.use_record

    def vector(self, agent_id: str, sequence: int) -> Quantised:
        """The vector of a memory that exists."""
        block = self.block(agent_id)
        row = block.row_of(sequence)
        if row is not None:
            vector: Quantised = block.vectors()[row]
            return vector
        (stored,) = self.shelf.many(agent_id, [sequence])
        return np.frombuffer(stored.record.vector, np.int8)

    def recalls(self, agent_id: str, sequence: int) -> tuple[int, ...]:
        """The ticks in which a memory was last recalled."""
        block = self.block(agent_id)
        if block.row_of(sequence) is not None:
            return () if not block.has_extras else block.recalls.get(sequence, ())
        stored = self.shelf.get((agent_id, sequence))
        return stored.record.recalls if stored else ()

    def _change(
        self, block: AgentColumns, sequences: Sequence[int], change: Callable[[Record], Record]
    ) -> None:
        """Change memories wherever they are, and put each where it belongs now."""
        self._place(block, [change(record) for record in self._take(block, sequences)])

    def _take(self, block: AgentColumns, sequences: Sequence[int]) -> list[Record]:
        rows, others = block.rows_of(sequences)
        records = []
        for sequence in others:
            stored = self.shelf.take(block.agent_id, sequence)
            if stored is None:
                if self._has_purged:  # the journal still has its earlier events
                    continue
                raise BankDamaged(f"the journal changes a memory {block.agent_id} doesn't have")
            records.append(stored.record)
            block.shelf_sum -= int.from_bytes(stored.digest, "big")
            if block.has_extras:
                block.critical_elsewhere.pop(sequence, None)
            self._count_cold(stored.record, -1)
        if rows:
            records += take_out(block, rows)
        return records

    def _place(self, block: AgentColumns, records: Sequence[Record]) -> None:
        coming = [record for record in records if record.is_resident]
        if coming:
            put_back(block, coming)
        if len(coming) < len(records):
            self._shelve(block, [record for record in records if not record.is_resident])

    def _shelve(self, block: AgentColumns, records: Sequence[Record]) -> None:
        block.shelf_sum += self.shelf.put(block.agent_id, records)
        for record in records:
            self._count_cold(record, 1)
            if record.tier == Tier.CRITICAL:
                self.note_critical(block, record)

    def note_critical(self, block: AgentColumns, record: Record) -> None:
        """Count an active critical memory that is not resident for the cap."""
        if record.retention == Retention.ACTIVE:
            memory = record.memory(block.agent_id, block.prefix)
            block.critical_elsewhere[record.sequence] = memory

    def _count_cold(self, record: Record, change: int) -> None:
        if self._cold is not None and record.retention == Retention.ACTIVE:
            self._cold[record.tier] += change


def _hold(block: AgentColumns, topic: str, name: str, value: object) -> None:
    if block.holdings is None:
        block.holdings = Holdings()
    block.holdings.hold(topic, name, value)


def needs_room(new: Additions) -> list[int]:
    """The places of new memories that are hot or in a capped tier: other memories may make room."""
    if not any(map(new.tiers.count, _CAPPED)) and new.starts.count(None) == len(new.starts):
        return []  # as in most batches
    return [
        place
        for place, (tier, start) in enumerate(zip(new.tiers, new.starts, strict=True))
        if tier in _CAPPED or (start is not None and start.temperature == _HOT)
    ]
