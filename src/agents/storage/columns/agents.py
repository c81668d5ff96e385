"""The agents of a bank. An agent that nobody looks at is a row of numbers, and no object."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress, repeat
from operator import attrgetter
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from .agent_columns import AgentColumns
from .table import ResidentTable, Rows

_START, _SIZE, _ROOM, _FOLLOWING, _EXPIRY = range(5)
"""Columns of the numbers of an agent that nobody looked at; :class:`AgentColumns` says more."""
_NUMBERS = 5
_SEAT_OF, _START_OF, _SIZE_OF, _ROOM_OF = map(attrgetter, ("seat", "start", "size", "room"))


@final
class Population(Mapping[str, AgentColumns]):
    """Every agent's columns, by the agent's id, in the order in which the agents came.

    An agent has a seat: the number of its row in all that has a row per agent. Its object is made
    for the first caller that looks at the agent. From then on, the object has the agent's numbers.
    """

    def __init__(self, seed: int, dims: int) -> None:
        self._seed = seed
        self._dims = dims
        self.changes = 0
        """How often agents came or went."""
        self.clear()

    def clear(self) -> None:
        """No agents are left. Nothing of the table is read: it may be half written."""
        self.table = ResidentTable(self._dims, self)
        self._seats: dict[str, int] = {}
        self._ids: list[str] = []
        """By seat; empty where nobody sits."""
        self._objects: list[AgentColumns | None] = []
        self._numbers = np.zeros((0, _NUMBERS), np.int64)
        self._free: list[int] = []
        self.parts: list[bytes | None] = []
        """By seat, what an agent adds to the hash over all agents; None if that is to be made."""
        self.changes += 1

    # One agent

    def __getitem__(self, agent_id: str) -> AgentColumns:
        seat = self._seats[agent_id]
        own = self._objects[seat]
        return self._wake(agent_id, seat) if own is None else own

    def get(self, agent_id: str, default: Any = None) -> Any:
        """The agent's columns, or the default for an agent that is not there."""
        seat = self._seats.get(agent_id)
        if seat is None:
            return default
        own = self._objects[seat]
        return self._wake(agent_id, seat) if own is None else own

    def __contains__(self, agent_id: object) -> bool:
        return agent_id in self._seats

    def __iter__(self) -> Iterator[str]:
        return iter(self._seats)

    def __len__(self) -> int:
        return len(self._seats)

    def glance(self, agent_id: str) -> AgentColumns:
        """The agent's columns, to be read only, and not kept if nobody looked at them before."""
        seat = self._seats[agent_id]
        own = self._objects[seat]
        return self._read(agent_id, seat) if own is None else own

    def own(self, agent_id: str) -> AgentColumns:
        """The agent's columns; an agent that was not there comes now."""
        there: AgentColumns | None = self.get(agent_id)
        if there is not None:
            return there
        (seat,) = self._take_seats([agent_id])
        block = self._objects[seat] = AgentColumns(agent_id, self._seed, self.table, seat)
        return block

    def remove(self, agent_id: str) -> None:
        """The agent goes."""
        seat = self._seats.pop(agent_id)
        self.changes += 1
        self._ids[seat], self._objects[seat], self.parts[seat] = "", None, None
        self._numbers[seat] = 0
        self.table.sums.forget(seat)
        self.table.shelf_sums.forget(seat)
        self._free.append(seat)

    def _wake(self, agent_id: str, seat: int) -> AgentColumns:
        block = self._objects[seat] = self._read(agent_id, seat)
        return block

    def _read(self, agent_id: str, seat: int) -> AgentColumns:
        block = AgentColumns(agent_id, self._seed, self.table, seat)
        start, block.size, room, block.next_sequence, block.next_expiry = self._numbers[
            seat
        ].tolist()
        block.look_at(start, room)
        return block

    # Many agents

    def admit(
        self,
        agents: Sequence[str],
        spans: tuple[Rows, Sequence[int], Rows],
        following: Sequence[int],
        expiries: NDArray[np.int64] | int,
    ) -> None:
        """Agents come, with their rows of the table; nobody looks at them yet."""
        seats = self._take_seats(agents)
        rows = np.empty((len(seats), _NUMBERS), np.int64)
        rows[:, _START], rows[:, _SIZE], rows[:, _ROOM] = spans
        rows[:, _FOLLOWING], rows[:, _EXPIRY] = following, expiries
        self._numbers[seats] = rows

    def of(self, agents: Collection[str]) -> list[AgentColumns]:
        """The columns of agents that are all there."""
        objects, seats = self._objects, map(self._seats.__getitem__, agents)
        return [
            self._wake(agent, seat) if (own := objects[seat]) is None else own
            for agent, seat in zip(agents, seats, strict=True)
        ]

    def seats_of(self, agents: Iterable[str]) -> list[int]:
        """The seats of agents that are all there."""
        return list(map(self._seats.__getitem__, agents))

    def may_end(self, agents: Iterable[str], tick: int) -> list[str]:
        """Those of these agents of whom a memory may have expired by a tick."""
        seats, objects, found = self._seats, self._objects, []
        for agent in agents:
            seat = seats.get(agent)
            if seat is None:
                continue
            own = objects[seat]
            if own is None:
                if self._numbers[seat, _EXPIRY] <= tick:
                    found.append(agent)
            elif own.next_expiry <= tick or not own.is_common:
                found.append(agent)
        return found

    def touch(self, agents: Iterable[str]) -> None:
        """These agents change now; those that are not there do not."""
        parts = self.parts
        for seat in map(self._seats.get, agents):
            if seat is not None:
                parts[seat] = None

    def in_order(self) -> list[int]:
        """The seats of all agents, in the order of the agents' ids."""
        return [self._seats[agent] for agent in sorted(self._seats)]

    def known(self, seats: Sequence[int]) -> tuple[list[str], list[int], list[AgentColumns | None]]:
        """Ids and next sequence numbers of agents; the columns of those that were looked at."""
        objects = list(map(self._objects.__getitem__, seats))
        numbers: Iterable[int] = repeat(0)
        if None in objects:
            numbers = self._numbers[seats, _FOLLOWING].tolist()
        following = [
            number if own is None else own.next_sequence
            for number, own in zip(numbers, objects, strict=False)
        ]
        return list(map(self._ids.__getitem__, seats)), following, objects

    def following(self) -> Iterator[tuple[str, int]]:
        """All agents with their next sequence numbers."""
        ids, numbers, _ = self.known(list(self._seats.values()))
        return zip(ids, numbers, strict=True)

    def looked_at(self) -> list[AgentColumns]:
        """The columns of the agents that somebody looked at."""
        return [own for own in self._objects if own is not None]

    def are_all_looked_at(self) -> bool:
        """Whether somebody looked at each agent, as in a small bank after a while.

        It may say no where agents went.
        """
        return None not in self._objects

    def which(self, is_wanted: NDArray[np.bool_]) -> list[str]:
        """The ids of the agents at these seats, sorted."""
        return sorted(filter(None, compress(self._ids, is_wanted.tolist())))

    def due(self, tick: int) -> list[AgentColumns]:
        """The columns of the agents that may have a memory which expires up to this tick."""
        found = [own for own in self.looked_at() if own.next_expiry <= tick]
        if not self.are_all_looked_at():
            due = self._numbers[: len(self._ids), _EXPIRY] <= tick
            asleep = [seat for seat in np.flatnonzero(due).tolist() if self._objects[seat] is None]
            found += self.of([self._ids[seat] for seat in asleep if self._ids[seat]])
        return sorted(found, key=_SEAT_OF)

    def with_expiry(self, tick: int) -> set[str]:
        """The agents of :meth:`due`, and those that have what few agents have."""
        rare = [own for own in self.looked_at() if not own.is_common]
        return {own.agent_id for own in (*rare, *self.due(tick))}

    # The rows of the table

    def spans(self) -> tuple[Rows, Rows]:
        """By seat, the first row of each agent, and how many rows hold a memory."""
        return self._column(_START, _START_OF), self._column(_SIZE, _SIZE_OF)

    def rooms(self) -> Rows:
        """By seat, how many rows each agent has."""
        return self._column(_ROOM, _ROOM_OF)

    def _column(self, column: int, of: Callable[[AgentColumns], int]) -> Rows:
        own = self.looked_at()
        if len(own) == len(self._ids):
            return np.array(list(map(of, own)), np.intp)
        values: Rows = self._numbers[: len(self._ids), column].astype(np.intp)
        values[list(map(_SEAT_OF, own))] = list(map(of, own))
        return values

    def memories(self) -> int:
        """How many memories all agents have."""
        if self.are_all_looked_at():
            return sum(map(_SIZE_OF, self.looked_at()))
        return int(self._column(_SIZE, _SIZE_OF).sum())

    def move(self, starts: Rows, rooms: Rows) -> None:
        """The agents have ``rooms`` rows of the table now, from ``starts`` on."""
        self._numbers[: len(starts), _START], self._numbers[: len(starts), _ROOM] = starts, rooms
        for own in self.looked_at():
            own.look_at(int(starts[own.seat]), int(rooms[own.seat]))

    def _take_seats(self, agents: Collection[str]) -> list[int]:
        """Give seats to agents that come."""
        seats = []
        for agent in agents:
            if self._free:
                seat = self._free.pop()
                self._ids[seat] = agent
            else:
                seat = len(self._ids)
                self._ids.append(agent)
                self._objects.append(None)
                self.parts.append(None)
            self._seats[agent] = seat
            seats.append(seat)
        if len(self._ids) > len(self._numbers):
            larger = np.zeros((len(self._ids) + len(self._ids) // 4, _NUMBERS), np.int64)
            larger[: len(self._numbers)] = self._numbers
            self._numbers = larger
        self.changes += 1
        return seats
