"""The agents of a bank. An agent that no call was about yet is a row of numbers, not an object."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import compress, repeat
from operator import add, attrgetter
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ...memory.events import Additions
from ...memory.metadata import KeptMetadata
from ...memory.records import NEVER, Traits
from ...memory.tiers import Temperature
from ..embedding import Quantised, norms
from .agent_columns import AgentColumns
from .hashes import DIGEST, sums_of
from .table import WIDTH, ResidentTable, Rows, portions, rows_of

# NumPy asks an enum a dozen questions before it takes it for the number it is.
_HOT = int(Temperature.HOT)
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
