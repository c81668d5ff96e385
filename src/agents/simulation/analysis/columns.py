"""All memories of a journal as columns: when they began, who told them, when they were gone."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from ...memory.records import NEVER, id_prefix, memory_id, sequence_of
from ...memory.retention import Retention
from ...memory.sources import HEARD, SOURCE
from ...memory.tiers import Tier
from ...rules.transitions import end_after
from ...storage.journal.journal import Journal

__all__ = ["NOT_GONE", "Columns", "Earlier", "read_columns"]

NOT_GONE = -1
"""Stands for the tick in which a memory was gone, for a memory that is there."""
_SPEAKERS = ("speaker", "source")
"""The keys of metadata that may say who told a memory, where no source does."""
_EXPIRED = "expire"
_SEQUENCE_BITS = 32

Numbers = NDArray[np.int64]


class Earlier(NamedTuple):
    """A memory that is older than the first commit of a journal."""

    agent: str
    sequence: int
    tick: int
    tier: int
    text: str
    metadata: Mapping[str, Any]
    kind: str
    expires: int | None


class Told(NamedTuple):
    """Everything that was told, one place for each time, in the order of the journal."""

    tick: Numbers
    teller: list[str]
    agent: Numbers
    """The listener."""
    row: Numbers
    """The listener's memory."""
    is_new: NDArray[np.bool_]
    """Whether the listener had no memory of it before."""


class Columns:
    """The memories of a journal up to a tick, in the order of the journal.

    An agent is the place of its id in ``agents``. A memory is its place in the columns, a row.
    """

    def __init__(self, seed: int, agents: Iterable[str], last_tick: int) -> None:
        self.agents = list(agents)
        self.last_tick = last_tick
        self.agent: Numbers
        self.sequence: Numbers
        self.born: Numbers
        """The tick in which each memory began."""
        self.tier: Numbers
        """The tier with which it began."""
        self.kind: list[str] = []
        self.text: list[str | None] = []
        """None for a text that was purged."""
        self.gone: Numbers
        """The tick in which it was archived, deleted, expired or purged."""
        self.cause: list[str] = []
        """Why it was gone; empty for a memory that is there."""
        self.origin: Numbers
        """The row of the first memory of its chain that is here; its own row, if nobody told it."""
        self.parent: Numbers
        """The row of the memory that its teller told; -1 if nobody told it, or it is not here."""
        self.hands: Numbers
        """Through how many hands it came: 0 for an agent's own memory."""
        self.told: Told
        self.is_whole = True
        """Whether the journal has everything since tick 0."""
        self.dims = 0
        self.packed: list[bytes] = []
        """The vectors of the memories, commit by commit."""
        self.seed = seed
        self._prefixes: list[str] = []
        self._keys: Numbers | None = None
        self._order: Numbers

    def __len__(self) -> int:
        return len(self.agent)

    def id_of(self, row: int) -> str:
        """The id of a memory."""
        if len(self._prefixes) < len(self.agents):
            self._prefixes = [id_prefix(self.seed, agent) for agent in self.agents]
        return memory_id(self._prefixes[int(self.agent[row])], int(self.sequence[row]))

    def row_of(self, identifier: str) -> int | None:
        """The row of the memory with an id; None if there is none."""
        for place, agent in enumerate(self.agents):
            number = sequence_of(id_prefix(self.seed, agent), identifier)
            if number is not None:
                (row,) = self.rows(np.array([place]), np.array([number])).tolist()
                return None if row < 0 else int(row)
        return None

    def rows(self, agents: Numbers, sequences: Numbers) -> Numbers:
        """The rows of memories by agent and sequence number; -1 for one that is not here."""
        if self._keys is None:
            keys = (self.agent << _SEQUENCE_BITS) | self.sequence
            self._order = np.argsort(keys, kind="stable")
            self._keys = keys[self._order]
        wanted = (agents << _SEQUENCE_BITS) | sequences
        if not len(self._keys):
            return np.full(len(wanted), -1)
        places = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where(self._keys[places] == wanted, self._order[places], -1)

    def vectors(self) -> NDArray[np.int8]:
        """The vector of each memory; zeros where it is not kept."""
        if len(self.packed) != 1:
            self.packed = [b"".join(self.packed)]
        own = np.frombuffer(self.packed[0], np.int8).reshape(-1, max(1, self.dims))
        missing = len(self) - len(own)
        return own if not missing else np.vstack([np.zeros((missing, self.dims), np.int8), own])

    def is_there(self, tick: int | None = None) -> NDArray[np.bool_]:
        """Which memories the agents had after a tick; the default is the last one."""
        if tick is None:
            tick = self.last_tick
        there: NDArray[np.bool_] = (self.gone == NOT_GONE) | (self.gone > tick)
        there &= self.born <= tick
        return there


def read_columns(
    journal: Journal, seed: int, agents: Sequence[str], last_tick: int, earlier: Iterable[Earlier]
) -> Columns:
    """The memories of a journal up to a tick.

    ``agents`` come first, in their order. ``earlier`` are the memories before the first commit.
    """
    columns = Columns(seed, agents, last_tick)
    reading = _Reading(columns)
    reading.before(earlier, is_whole=not journal.base)
    columns.dims = journal.get("bank")["embedder"]["dims"]
    for commit in journal.commits(journal.base):
        if commit.tick > last_tick:
            break
        with journal.reading():
            reading.take(orjson.loads(commit.events))
            columns.packed.append(commit.vectors)
    with journal.reading():
        return reading.end()


class _Reading:
    """Collects events as lists, and makes columns of them at the end."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._places = {agent: place for place, agent in enumerate(columns.agents)}
        self._tick = 0
        self._agents: list[int] = []
        self._sequences: list[int] = []
        self._born: list[int] = []
        self._tiers: list[int] = []
        self._expires: list[tuple[int, int]] = []
        """Rows with an end, and the end."""
        self._metadata: list[tuple[int, Mapping[str, Any]]] = []
        self._changes: list[tuple[int, int, int, str, int, str]] = []
        """Agent, sequence, tick, kind of event, value, cause."""
        self._again: list[tuple[int, int, int, str]] = []
        """Agent, sequence, tick and teller of what was told again."""

    def before(self, earlier: Iterable[Earlier], *, is_whole: bool) -> None:
        self._columns.is_whole = is_whole
        for agent, sequence, tick, tier, text, metadata, kind, expires in earlier:
            self._tick = tick
            start = [0, kind, [], expires]
            self._add([["add", agent, sequence, tier, text, metadata or None, start]])

    def take(self, events: list[list[Any]]) -> None:
        new: list[list[Any]] = []
        for event in events:
            kind = event[0]
            if kind == "access" or kind == "recall":
                continue
            if kind == "add":
                new.append(event)
                continue
            if kind == "tick":
                self._add(new)
                new = []
                self._tick = event[1]
            else:
                self._change(kind, event)
        self._add(new)

    def _add(self, new: list[list[Any]]) -> None:
        if not new:
            return
        first, columns = len(self._agents), self._columns
        _, agents, sequences, tiers, texts, metadata, starts = zip(*new, strict=True)
        self._agents += map(self._place, agents)
        self._sequences += sequences
        self._born += repeat(self._tick, len(new))
        self._tiers += tiers
        columns.text += texts
        columns.kind += ["fact" if start is None else start[1] for start in starts]
        for row, start in enumerate(starts, first):
            if start is not None and start[3] is not None:
                self._expires.append((row, start[3]))
        for row, own in enumerate(metadata, first):
            if own:
                self._metadata.append((row, own))

    def _place(self, agent: str) -> int:
        place = self._places.get(agent)
        if place is None:
            place = self._places[agent] = len(self._places)
            self._columns.agents.append(agent)
        return place

    def _change(self, kind: str, event: list[Any]) -> None:
        agent = self._place(event[1])
        if kind == "hold":
            _, _, topic, name, value = event
            if topic == HEARD and value is not None:
                self._again.append((agent, int(name), self._tick, value[1]))
            return
        if kind in ("retain", "purge", "last"):
            value, cause = (*event[3:5], "")[:2] if kind == "retain" else (0, "forget")
            if kind == "last":
                value = event[3]
            self._changes += [(agent, each, self._tick, kind, value, cause) for each in event[2]]
        elif kind == "tier":
            self._changes.append((agent, event[2], self._tick, kind, event[3], ""))

    def end(self) -> Columns:
        columns = self._columns
        columns.agent, columns.sequence = np.array([self._agents, self._sequences], np.int64)
        columns.born, columns.tier = np.array([self._born, self._tiers], np.int64)
        columns.cause = [""] * len(columns)
        self._end_lives()
        self._end_chains()
        return columns

    def _end_lives(self) -> None:
        """Say when each memory was gone, in the order of what happened."""
        columns = self._columns
        columns.gone = np.full(len(columns), NOT_GONE)
        tier, ends = columns.tier.copy(), np.full(len(columns), NEVER)
        if self._expires:
            rows, given = np.array(self._expires).T
            ends[rows] = given
        changed = [each[:2] for each in self._changes]
        rows = columns.rows(*np.array(changed, np.int64).reshape(-1, 2).T)
        for row, (_, _, tick, kind, value, cause) in zip(rows.tolist(), self._changes, strict=True):
            if row < 0:
                continue
            if kind == "last":
                ends[row] = value
            elif kind == "tier":
                tier[row] = value
                if value == Tier.PINNED:
                    columns.gone[row], columns.cause[row] = NOT_GONE, ""
            elif kind == "retain" and value == Retention.ACTIVE:
                columns.gone[row], columns.cause[row] = NOT_GONE, ""
                ends[row] = end_after(Retention.ACTIVE, int(ends[row]), tick)
            elif columns.gone[row] == NOT_GONE:
                columns.gone[row], columns.cause[row] = tick, cause
        over = (columns.gone == NOT_GONE) & (ends <= columns.last_tick) & (tier != Tier.PINNED)
        columns.gone[over] = ends[over]
        for row in np.flatnonzero(over).tolist():
            columns.cause[row] = _EXPIRED

    def _end_chains(self) -> None:
        """Say who told each memory, and of which memory it is a copy."""
        columns = self._columns
        columns.origin = np.arange(len(columns))
        columns.parent = np.full(len(columns), -1)
        columns.hands = np.zeros(len(columns), np.int64)
        prefixes = {id_prefix(columns.seed, agent): place for agent, place in self._places.items()}
        tells = list(self._told_first(prefixes))
        columns.parent[columns.parent >= np.arange(len(columns))] = -1  # a source can be made up
        again = columns.rows(
            *np.array([each[:2] for each in self._again], np.int64).reshape(-1, 2).T
        )
        for row, (agent, _, tick, teller) in zip(again.tolist(), self._again, strict=True):
            if row >= 0:
                tells.append((tick, teller, agent, row, False))
        tells.sort(key=lambda each: each[0])
        ticks, tellers, agents, rows, new = zip(*tells, strict=True) if tells else ((),) * 5
        columns.told = Told(
            np.array(ticks, np.int64),
            list(tellers),
            np.array(agents, np.int64),
            np.array(rows, np.int64),
            np.array(new, np.bool_),
        )

    def _told_first(self, prefixes: Mapping[str, int]) -> Iterator[tuple[int, str, int, int, bool]]:
        """The first time that each told memory was told; notes parents and origins on the way."""
        columns, agents = self._columns, self._agents
        rows, parents, origins, first = [], [], [], dict[str, int]()
        for row, own in self._metadata:
            source = own.get(SOURCE)
            if source is None:
                teller = next(
                    (own[key] for key in _SPEAKERS if isinstance(own.get(key), str)), None
                )
                if teller is not None and teller != columns.agents[agents[row]]:
                    yield self._born[row], teller, agents[row], row, True
                continue
            teller, _, parent, _, origin, hands = orjson.loads(source)
            columns.hands[row] = hands
            rows.append(row)
            parents.append(_key(prefixes, parent))
            origins.append((*_key(prefixes, origin), first.setdefault(origin, row)))
            yield self._born[row], teller, agents[row], row, True
        if rows:
            columns.parent[rows] = columns.rows(*np.array(parents, np.int64).T)
            agent, sequence, earliest = np.array(origins, np.int64).T
            found = columns.rows(agent, sequence)
            columns.origin[rows] = np.where(found < 0, earliest, found)


def _key(prefixes: Mapping[str, int], identifier: str) -> tuple[int, int]:
    """The agent and the sequence number of a memory's id; an unknown id is nobody's memory."""
    place = prefixes.get(identifier[:24])
    return (0, 0) if place is None else (place, int(identifier[24:], 16))
