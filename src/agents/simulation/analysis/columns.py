"""All memories of a journal as columns: when they began, who told them, when they were gone."""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from ...memory.events import USES
from ...memory.records import NEVER, id_prefix, memory_id, sequence_of
from ...memory.sources import HEARD, SOURCE
from ...memory.tiers import Retention, Tier
from ...rules.tiers import end_after
from ...storage.interrupts import gc_paused, once
from ...storage.journal.journal import Journal
from ...storage.journal.tables import Commit
from ...telling.groups import is_board

NOT_GONE = -1
"""Stands for the tick in which a memory was gone, for a memory that is there."""
SEQUENCE_BITS = 32
"""A memory's agent and sequence number make one number: the agent's place has the bits above."""
PREFIX = 24
"""Letters of a memory's id that name its agent."""

Numbers = NDArray[np.int64]


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
        self.text: Sequence[str | None] = []
        """None for a text that was purged."""
        self.words: Numbers | None = None
        """A number for each text, equal for equal texts; see :meth:`same_words`."""
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
        self._keys: Numbers | None = None
        self._order: Numbers

    def __len__(self) -> int:
        return len(self.agent)

    @once
    def _prefixes(self) -> dict[str, int]:
        """The place of each agent, by the first part of the ids of its memories."""
        return {id_prefix(self.seed, agent): place for place, agent in enumerate(self.agents)}

    @once
    def _prefix(self) -> list[str]:
        return list(self._prefixes)

    def id_of(self, row: int) -> str:
        """The id of a memory."""
        return memory_id(self._prefix[int(self.agent[row])], int(self.sequence[row]))

    def ids(self) -> list[str]:
        """The ids of all memories."""
        prefix, agents = self._prefix, self.agent.tolist()
        return [
            memory_id(prefix[agent], number)
            for agent, number in zip(agents, self.sequence.tolist(), strict=True)
        ]

    def row_of(self, identifier: str) -> int | None:
        """The row of the memory with an id; None if there is none."""
        place = self._prefixes.get(identifier[:PREFIX])
        number = None if place is None else sequence_of(self._prefix[place], identifier)
        if number is None:
            return None
        (row,) = self.rows(np.array([place]), np.array([number])).tolist()
        return None if row < 0 else int(row)

    def rows(self, agents: Numbers, sequences: Numbers) -> Numbers:
        """The rows of memories by agent and sequence number; -1 for one that is not here."""
        return self.rows_of_keys((agents << SEQUENCE_BITS) | sequences)

    def rows_of_keys(self, wanted: Numbers) -> Numbers:
        """The rows of memories by one number for agent and sequence; -1 for one not here."""
        if self._keys is None:
            keys = (self.agent << SEQUENCE_BITS) | self.sequence
            self._order = np.argsort(keys, kind="stable")
            self._keys = keys[self._order]
        if not len(self._keys):
            return np.full(len(wanted), -1)
        places = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where(self._keys[places] == wanted, self._order[places], -1)

    def same_words(self) -> Numbers:
        """A number for each text: memories with the same text have the same one."""
        if self.words is None:
            known: dict[str | None, int] = {}
            numbers = [known.setdefault(text, len(known)) for text in self.text]
            self.words = np.array(numbers, np.int64)
        return self.words

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


# Reading a journal, up to any tick


_SPEAKERS = ("speaker", "source")
"""The keys of metadata that may say who told a memory, where no source does."""
_EXPIRED = "expire"
_NOBODY = -1
"""Stands for a memory that is not here, and for the place of a board, which is not an agent."""
_ACTIVE_AGAIN, _GONE, _TIER, _LASTS = range(4)
"""What may happen to a memory, in the table of changes."""
_LEAVE_ALL = frozenset((*USES, "move"))
"""Kinds of events after which the same agents have the same memories."""


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


class _Table:
    """Rows of whole numbers, in little memory."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._numbers = array("q")

    def __len__(self) -> int:
        return len(self._numbers) // self._width

    def add(self, *rows: Sequence[int]) -> None:
        self._numbers.extend(chain.from_iterable(rows))

    def first(self, count: int) -> Numbers:
        """The columns of the first rows."""
        table = np.array(self._numbers[: count * self._width], np.int64)
        return np.ascontiguousarray(table.reshape(-1, self._width).T)


class _Mark(NamedTuple):
    """How much was collected when a tick was over."""

    tick: int
    agents: int
    memories: int
    ends: int
    told: int
    changes: int
    again: int


class Collection:
    """What is in the commits of a journal, one after the other, but for the boards of groups.

    One thread may take commits while another one makes columns.
    """

    def __init__(self, seed: int, agents: Iterable[str]) -> None:
        self._seed = seed
        self._is_whole = True
        self._tick = 0
        self.has_boards = False
        """Whether events of a board came, which were left out."""
        self._agents: list[str] = []
        self._places: dict[str, int] = {}
        self._prefixes: dict[str, int] = {}
        """The place of the agent, by the first letters of the ids of its memories."""
        for agent in agents:
            self._place(agent)
        self._memories = _Table(4)
        """Agent, sequence, tick and tier."""
        self._kinds: list[str] = []
        self._texts: list[str | None] = []
        self._ends = _Table(2)
        """Memories with an end, and the end."""
        self._told = _Table(5)
        """Memories that were told: row, teller, parent, origin, hands; hands of 0 are not known."""
        self._names: list[str] = []
        self._tellers: dict[str, int] = {}
        """The place of a teller in the names: a world's own voice is not an agent."""
        self._origins: dict[str, int] = {}
        self._origin_keys = array("q")
        self._changes = _Table(6)
        """Agent, sequence, tick, what happened, value, cause."""
        self._causes = {"": 0, "forget": 1}
        self._again = _Table(4)
        """Agent, sequence, tick and teller of what was told again."""
        self._marks = [self._mark(-1)]

    def before(self, earlier: Iterable[Earlier], *, is_whole: bool) -> None:
        """Take the memories that are older than the first commit."""
        self._is_whole = is_whole
        for agent, sequence, tick, tier, text, metadata, kind, expires in earlier:
            self._tick = tick
            start = [0, kind, [], expires]
            self._add([["add", agent, sequence, tier, text, metadata or None, start]])
        self._marks = [self._mark(-1)]

    def take(self, events: Iterable[list[Any]], tick: int) -> None:
        """Take the events of a commit that left the bank at a tick."""
        new: list[list[Any]] = []
        for event in events:
            kind = event[0]
            if kind in _LEAVE_ALL:
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
        if self._marks[-1].tick == tick:
            self._marks[-1] = self._mark(tick)
        else:
            self._marks.append(self._mark(tick))

    def keep_texts(self, texts: Sequence[str | None]) -> None:
        """Keep the texts of new memories."""
        self._texts += texts

    def columns(self, last_tick: int) -> Columns:
        """The memories up to a tick, as a journal has them that ends there."""
        mark = self._marks[bisect_right(self._marks, last_tick, key=lambda each: each.tick) - 1]
        columns = Columns(self._seed, self._agents[: mark.agents], last_tick)
        columns.is_whole = self._is_whole
        table = self._memories.first(mark.memories)
        columns.agent, columns.sequence, columns.born, columns.tier = table
        columns.kind = self._kinds[: mark.memories]
        columns.text = self._texts[: mark.memories]
        columns.cause = [""] * len(columns)
        self._end_lives(columns, mark)
        self._end_chains(columns, mark)
        return columns

    def _mark(self, tick: int) -> _Mark:
        memories, ends, told = len(self._memories), len(self._ends), len(self._told)
        changes, again = len(self._changes), len(self._again)
        return _Mark(tick, len(self._agents), memories, ends, told, changes, again)

    # Taking events

    def _add(self, new: list[list[Any]]) -> None:
        if not new:
            return
        first = len(self._memories)
        _, agents, sequences, tiers, texts, metadata, starts = zip(*new, strict=True)
        places = list(map(self._place, agents))
        if self.has_boards and _NOBODY in places:
            self._add([event for event in new if not is_board(event[1])])
            return
        self._memories.add(*zip(places, sequences, repeat(self._tick), tiers, strict=False))
        self._kinds += ["fact" if start is None else start[1] for start in starts]
        self.keep_texts(texts)
        for row, start in enumerate(starts, first):
            if start is not None and start[3] is not None:
                self._ends.add((row, start[3]))
        for row, (agent, own) in enumerate(zip(agents, metadata, strict=True), first):
            if own:
                self._told.add(*self._told_row(row, agent, own))

    def _told_row(
        self, row: int, agent: str, metadata: Mapping[str, Any]
    ) -> Iterator[Sequence[int]]:
        """The row of a memory in the table of what was told, if it was."""
        source = metadata.get(SOURCE)
        if source is not None:
            teller, _, parent, _, origin, hands = orjson.loads(source)
            if origin not in self._origins:
                self._origins[origin] = len(self._origin_keys)
                self._origin_keys.append(self._key(origin))
            yield row, self._teller(teller), self._key(parent), self._origins[origin], hands
            return
        teller = next(
            (metadata[key] for key in _SPEAKERS if isinstance(metadata.get(key), str)), None
        )
        if teller is not None and teller != agent:
            yield row, self._teller(teller), _NOBODY, _NOBODY, 0

    def _place(self, agent: str) -> int:
        place = self._places.get(agent)
        return self._new_place(agent) if place is None else place

    def _new_place(self, agent: str) -> int:
        if is_board(agent):
            self.has_boards = True
            place = _NOBODY
        else:
            place = len(self._agents)
            self._prefixes[id_prefix(self._seed, agent)] = place
            self._agents.append(agent)
        self._places[agent] = place
        return place

    def _teller(self, name: str) -> int:
        if name not in self._tellers:
            self._tellers[name] = len(self._names)
            self._names.append(name)
        return self._tellers[name]

    def _key(self, identifier: str) -> int:
        """One number for the agent and the sequence number of a memory's id."""
        place = self._prefixes.get(identifier[:PREFIX])
        return _NOBODY if place is None else place << SEQUENCE_BITS | int(identifier[PREFIX:], 16)

    def _change(self, kind: str, event: list[Any]) -> None:
        agent = self._place(event[1])
        if agent == _NOBODY:
            return
        if kind == "hold":
            _, _, topic, name, value = event
            if topic == HEARD and value is not None:
                self._again.add((agent, int(name), self._tick, self._teller(value[1])))
        elif kind == "retain":
            what = _ACTIVE_AGAIN if event[3] == Retention.ACTIVE else _GONE
            self._changed(agent, event[2], what, 0, event[4] if len(event) > 4 else "")
        elif kind == "purge":
            self._changed(agent, event[2], _GONE, 0, "forget")
        elif kind == "last":
            self._changed(agent, event[2], _LASTS, event[3])
        elif kind == "tier":
            self._changed(agent, (event[2],), _TIER, event[3])

    def _changed(
        self, agent: int, sequences: Iterable[int], what: int, value: int, cause: str = ""
    ) -> None:
        why = self._causes.setdefault(cause, len(self._causes))
        self._changes.add(*((agent, each, self._tick, what, value, why) for each in sequences))

    # Making columns

    def _end_lives(self, columns: Columns, mark: _Mark) -> None:
        """Say when each memory was gone, in the order of what happened."""
        gone, tiers = [NOT_GONE] * len(columns), columns.tier.tolist()
        ends = np.full(len(columns), NEVER)
        rows, given = self._ends.first(mark.ends)
        ends[rows] = given
        causes = list(self._causes)
        agents, sequences, *rest = self._changes.first(mark.changes)
        changed = columns.rows(agents, sequences).tolist()
        for row, tick, what, value, cause in zip(
            changed, *(each.tolist() for each in rest), strict=True
        ):
            if row < 0:
                continue
            if what == _LASTS:
                ends[row] = value
                continue
            if what == _TIER:
                if tiers[row] == Tier.PINNED:  # what was pinned past its end ends with that
                    ends[row] = max(ends[row], tick)
                tiers[row] = value
            if what == _ACTIVE_AGAIN or (what == _TIER and value == Tier.PINNED):
                gone[row], columns.cause[row] = NOT_GONE, ""
            if what == _ACTIVE_AGAIN:
                ends[row] = end_after(Retention.ACTIVE, int(ends[row]), tick)
            elif what == _GONE and gone[row] == NOT_GONE:
                gone[row], columns.cause[row] = tick, causes[cause]
                if ends[row] <= tick and tiers[row] != Tier.PINNED:
                    # The journal says so when somebody looks after the agent, which may be later.
                    gone[row], columns.cause[row] = int(ends[row]), _EXPIRED
        columns.gone = np.array(gone, np.int64)
        is_over = (columns.gone == NOT_GONE) & (ends <= columns.last_tick)
        is_over &= np.array(tiers, np.int64) != Tier.PINNED
        columns.gone[is_over] = ends[is_over]
        for row in np.flatnonzero(is_over).tolist():
            columns.cause[row] = _EXPIRED

    def _end_chains(self, columns: Columns, mark: _Mark) -> None:
        """Say who told each memory, and of which memory it is a copy."""
        columns.origin = np.arange(len(columns))
        columns.parent = np.full(len(columns), -1)
        columns.hands = np.zeros(len(columns), np.int64)
        rows, tellers, parents, origins, hands = self._told.first(mark.told)
        columns.hands[rows] = hands
        has_source = hands > 0
        copies, origins = rows[has_source], origins[has_source]
        columns.parent[copies] = columns.rows_of_keys(parents[has_source])
        columns.parent[columns.parent >= np.arange(len(columns))] = -1  # a source can be made up
        keys = np.array(self._origin_keys[:], np.int64)
        _, first, which = np.unique(origins, return_index=True, return_inverse=True)
        found = columns.rows_of_keys(keys[origins])
        columns.origin[copies] = np.where(found < 0, copies[first][which], found)

        agents, sequences, ticks, again = self._again.first(mark.again)
        held = columns.rows(agents, sequences)
        is_here = held >= 0
        ticks = np.concatenate([columns.born[rows], ticks[is_here]])
        order = np.argsort(ticks, kind="stable")
        rows = np.concatenate([rows, held[is_here]])[order]
        tellers = np.concatenate([tellers, again[is_here]])[order]
        names = [self._names[teller] for teller in tellers.tolist()]
        is_new = order < mark.told
        columns.told = Told(ticks[order], names, columns.agent[rows], rows, is_new)


def read_columns(
    journal: Journal, seed: int, agents: Sequence[str], last_tick: int, earlier: Iterable[Earlier]
) -> Columns:
    """The memories of a journal up to a tick.

    ``agents`` come first, in their order. ``earlier`` are the memories before the first commit.
    """
    collection = Collection(seed, agents)
    collection.before(earlier, is_whole=not journal.base)
    packed, dims = [], journal.get("bank")["embedder"]["dims"]
    for commit in journal.commits(journal.base):
        if commit.tick > last_tick:
            break
        with journal.reading(), gc_paused():  # thousands of lists, which go again
            packed.append(_take(collection, commit, dims))
    with journal.reading(), gc_paused():
        columns = collection.columns(last_tick)
    columns.dims, columns.packed = dims, packed
    return columns


def _take(collection: Collection, commit: Commit, dims: int) -> bytes:
    """Take a commit, and give the vectors of the memories that were taken: boards are left out."""
    events = orjson.loads(commit.events)
    collection.take(events, commit.tick)
    if not collection.has_boards:
        return commit.vectors
    is_taken = [not is_board(event[1]) for event in events if event[0] == "add"]
    if all(is_taken):
        return commit.vectors
    return np.frombuffer(commit.vectors, np.int8).reshape(-1, dims)[is_taken].tobytes()
