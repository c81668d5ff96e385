"""The resident memories of all agents in one table.

A tick searches, uses and stores memories of every agent. One call of NumPy for all agents takes a
fraction of the time that a call for each agent takes. So all memories are rows of one table. The
rows of an agent lie together, with room to spare; :class:`AgentColumns` is its window on them. An
agent that nobody looks at has no window: :class:`Population` knows its rows.
"""

import math
import mmap
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, repeat
from typing import Any, NamedTuple, Protocol, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ...memory.events import Added, Row, Start
from ...memory.records import (
    NEVER,
    NEW_RELEVANCE,
    PLAIN,
    UNUSED,
    Memory,
    Traits,
    traits,
)
from ...memory.requests import KeptMetadata, SharedMetadata, memories_of
from ...memory.tiers import Temperature, Tier
from ...rules.ranking import relevances
from ..embedding import Quantised
from .hashes import Limbs, Sums, of_activities, of_memories, sums_of

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]
Spots = Sequence[int] | Rows

_LARGE = 50_000
_SPARE = 2
"""Rows that an agent with few memories has to spare."""
_AT_ONCE = 1 << 16
"""Rows that are copied at once, which bounds the memory that copying takes."""
_PAGED = 1 << 20
_WORTH_GIVING = 1 << 17
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
WIDTH = 6
"""Whole numbers per memory: sequence, created, entered its tier, expires, accesses, last access."""

_SHOWN = [0, 1, 2, 4, 5]
"""The numbers that most records need: all but when a memory expires."""

_TIERS = np.array(tuple(Tier), object)
_TEMPERATURES = np.array(tuple(Temperature), object)
# NumPy asks an enum a dozen questions before it takes it for the number it is.
_HOT, _WARM = int(Temperature.HOT), int(Temperature.WARM)
_PINNED = int(Tier.PINNED)
_PLAIN = Start(_WARM, PLAIN.kind, PLAIN.tags, None)


def begun(tier: int, start: Start | None) -> tuple[int, Traits | None, int]:
    """The temperature, the traits and the end of a new memory with this start in this tier."""
    temperature, kind, tags, expires = start or _PLAIN
    return (
        _HOT if tier == _PINNED else temperature,
        traits(kind, tags) if kind != "fact" or tags else None,
        NEVER if expires is None else expires,
    )


class Additions(NamedTuple):
    """The events of new memories, column by column: a tick has thousands of them."""

    agents: Sequence[str]
    sequences: Sequence[int]
    """Empty until the ledger numbers the memories."""
    tiers: Sequence[int]
    contents: Sequence[str]
    metadata: Sequence[KeptMetadata | None]
    starts: Sequence[Start | None]

    @classmethod
    def of(cls, events: Sequence[Added]) -> Self:
        """The columns of these events; none of the memories is purged."""
        return cls(*list(zip(*events, strict=True))[1:])

    def part(self, places: slice) -> "Additions":
        """The events at these places."""
        return Additions._make(column[places] for column in self)

    def rows(self) -> list["Row"]:
        """The events as plain tuples."""
        return list(zip(repeat("add"), *self, strict=False))


class Window(Protocol):
    """The rows of one agent."""

    slot: int
    """The agent's number among the agents of the table."""
    start: int
    """The first row."""
    size: int
    """How many rows hold a memory."""
    room: int
    """How many rows there are."""

    def look_at(self, start: int, room: int, /) -> None:
        """The agent has ``room`` rows of the table now, from ``start`` on."""


class Windows(Protocol):
    """The rows of all agents, by their slots."""

    def spans(self) -> tuple[Rows, Rows]:
        """The first row of each agent, and how many rows hold a memory."""

    def rooms(self) -> Rows:
        """How many rows each agent has."""

    def move(self, starts: Rows, rooms: Rows, /) -> None:
        """The agents have ``rooms`` rows of the table now, from ``starts`` on."""


class Columns(NamedTuple):
    """One row per memory."""

    vectors: Quantised
    norms: Floats
    tiers: NDArray[np.int8]
    temperatures: NDArray[np.int8]
    numbers: NDArray[np.int64]
    use_records: Floats
    """What the uses of memories came to: :mod:`tiermem.rules.ranking`."""
    contents: NDArray[Any]
    metadata: NDArray[Any]
    """None for a memory without metadata."""
    traits: NDArray[Any]
    """None for a plain fact."""

    @classmethod
    def make(cls, rows: int, dims: int) -> "Columns":
        return cls(
            _array((rows, dims), np.int8),
            _array((rows,), np.float64),
            _array((rows,), np.int8),
            _array((rows,), np.int8),
            _array((rows, WIDTH), np.int64),
            _array((rows,), np.float64),
            np.empty(rows, object),
            np.empty(rows, object),
            np.empty(rows, object),
        )

    def copy(self, to: Spots, origins: Spots, sizes: Spots, others: "Columns") -> None:
        """Copy runs of rows of ``others``: where each goes, where it comes from, and its size."""
        pairs: list[tuple[NDArray[Any], NDArray[Any]]] = list(zip(self, others, strict=True))
        for part in portions(sizes):
            new, old = rows_of(to[part], sizes[part]), rows_of(origins[part], sizes[part])
            for column, other in pairs:
                column[new] = other[old]


class ResidentTable:
    """Columns with a row per memory; ``windows`` has the rows of each agent.

    The columns are arrays and not lists: Python's garbage collector looks into each list, and would
    walk through a million objects.
    """

    def __init__(self, dims: int, windows: Windows) -> None:
        self._windows = windows
        self._dims = dims
        self.sums = Sums()
        """For each agent that is hashed, the sum of the hashes over its memories and their use."""
        self.shelf_sums = Sums()
        """For each agent, the sum of the hashes over its memories that are not resident."""
        self.all_plain = True
        """Whether no memory with metadata or traits ever came. To look for them takes its time."""
        self.shared_metadata = SharedMetadata()
        """Equal metadata of many memories is one object."""
        self._take(Columns.make(0, dims))

    def _take(self, columns: "Columns", used: int = 0) -> None:
        """These are the columns from now on; agents have the first ``used`` rows."""
        self.columns = columns
        self.vectors, self.norms, self.tiers, self.temperatures = columns[:4]
        self.numbers, self.use_records = columns[4:6]
        self.contents, self.metadata, self.traits = columns[6:]
        # Single numbers are read from these: they are Python's own, which takes half the time.
        self.flat_numbers = self.numbers.reshape(-1).data
        self.flat_records = cast("memoryview[float]", self.use_records.data)
        self._used = used

    # Room

    def expect(self, memories: int, agents: int) -> None:
        """Make an empty table large enough for this many memories of this many agents."""
        self._take(Columns.make(memories + memories // 2 + _SPARE * agents, self._dims))

    def admit(self, sizes: Sequence[int]) -> tuple[Rows, Rows]:
        """Rows for agents that come with this many memories each: their starts and rooms.

        They get little room to spare. Most agents of a large population do nothing for long.
        """
        counts = np.array(sizes, np.intp)
        rooms = counts + np.minimum(counts // 2, _SPARE + counts // 16)
        more = int(rooms.sum())
        if self._used + more > len(self.norms):
            self._enlarge((), more)
        starts = self._used + rooms.cumsum() - rooms
        self._used += more
        return starts, rooms

    def make_room(self, wanted: Sequence[tuple[Window, int]]) -> None:
        """Make room for more memories: for each window, how many come."""
        moving = [pair for pair in wanted if pair[0].size + pair[1] > pair[0].room]
        if not moving:
            return
        rooms = _rooms(np.array([window.size + count for window, count in moving])).tolist()
        if self._used + sum(rooms) <= len(self.norms):
            self._move_to_the_end([window for window, _ in moving], rooms)
        else:
            self._enlarge(wanted, 0)

    def _enlarge(self, wanted: Sequence[tuple[Window, int]], more: int) -> None:
        """All agents move to a larger table, which has this many rows more for others.

        The rows that agents gave up stay behind. An agent for which no memories come gets no more
        room than it has.
        """
        origins, sizes = self._windows.spans()
        rooms = np.minimum(np.maximum(self._windows.rooms(), sizes), _rooms(sizes))
        if wanted:
            slots = [window.slot for window, _ in wanted]
            rooms[slots] = _rooms(np.array([window.size + count for window, count in wanted]))
        used = int(rooms.sum())
        rows = used + more
        # Rows given up later are lost until all agents move again: a large table spares few.
        columns = Columns.make(rows + rows // (2 if rows < _LARGE else 8), self._dims)
        starts = rooms.cumsum() - rooms
        columns.copy(starts, origins, sizes, self.columns)

        def move() -> None:
            self._take(columns, used)
            self._windows.move(starts, rooms)

        try:
            move()
        except BaseException:  # an interrupt; no agent may be left between two tables
            move()
            raise

    def _move_to_the_end(self, windows: Sequence[Window], rooms: Sequence[int]) -> None:
        """Give each window so many rows that nobody had."""
        *starts, self._used = accumulate(rooms, initial=self._used)
        left = [(window.start, window.size, window.room) for window in windows]
        firsts, sizes, former = zip(*left, strict=True)
        self.columns.copy(starts, firsts, sizes, self.columns)
        for window, start, room in zip(windows, starts, rooms, strict=True):
            window.look_at(start, room)
        rows = rows_of(firsts, sizes)
        for column in (self.contents, self.metadata, self.traits):
            column[rows] = None  # a text that is forgotten must not stay here
        widest = max(self._dims, WIDTH * 8)
        for first, room in zip(firsts, former, strict=True):
            if room * widest >= _WORTH_GIVING:
                self._give_back(slice(first, first + room))

    def _give_back(self, rows: slice) -> None:
        """Give the pages of rows that nobody has to the system, if they are more than a few."""
        columns: tuple[NDArray[Any], ...] = self.columns
        for column in columns:
            pages, width = _pages_of(column), column[:1].nbytes
            first = -(-rows.start * width // mmap.PAGESIZE) * mmap.PAGESIZE
            size = rows.stop * width // mmap.PAGESIZE * mmap.PAGESIZE - first
            if pages is not None and size >= _WORTH_GIVING:
                pages.madvise(mmap.MADV_DONTNEED, first, size)

    def in_use(self) -> NDArray[np.bool_]:
        """Which rows hold a memory of an agent."""
        edges = np.zeros(len(self.norms) + 1, np.int8)
        starts, sizes = self._windows.spans()
        there = sizes > 0
        edges[starts[there]] += 1
        edges[(starts + sizes)[there]] -= 1
        return edges[:-1].cumsum(dtype=np.int8).view(np.bool_)

    def is_hot(self) -> NDArray[np.bool_]:
        """Which rows hold a hot memory or a pinned one; rows that nobody has may seem to."""
        hot: NDArray[np.bool_] = (self.tiers == _PINNED) | (self.temperatures == _HOT)
        return hot

    # Many agents at once

    def memories(
        self,
        rows: Rows,
        numbers: NDArray[np.int64],
        agents: Iterable[str],
        prefixes: Iterable[str],
    ) -> list[Memory]:
        """The memories in these rows, with their agents and the prefixes of their ids.

        ``numbers`` are the same rows of ``self.numbers``.
        """
        sequences, created, entered, counts, last = numbers[:, _SHOWN].T.tolist()
        expires = numbers[:, 3]
        return memories_of(
            prefixes=prefixes,
            agents=agents,
            contents=self.contents[rows].tolist(),
            tiers=_TIERS[self.tiers[rows]].tolist(),
            created=created,
            entered=entered,
            sequences=sequences,
            temperatures=_TEMPERATURES[self.temperatures[rows]].tolist(),
            metadata=None if self.all_plain else self.metadata[rows].tolist(),
            traits=None if self.all_plain else self.traits[rows].tolist(),
            expires=expires.tolist() if (expires < NEVER).any() else None,
            counts=counts,
            last=last,
            relevance=relevances(self.use_records[rows], numbers[:, 4]).tolist(),
        )

    def hashes_of(self, rows: slice | Rows) -> list[bytes]:
        """The hash over what the memory in each of these rows is."""
        return of_memories(
            self.numbers[rows],
            self.tiers[rows],
            self.temperatures[rows],
            self.contents[rows].tolist(),
            self.vectors[rows],
            self.metadata[rows].tolist(),
            self.traits[rows].tolist(),
        )

    def make_sums(self, slots: Sequence[int], starts: Spots, sizes: Spots) -> None:
        """Hash all memories of agents with these windows; their sums are kept from now on."""
        rows = rows_of(starts, sizes)
        sums = sums_of(self.hashes_of(rows), sizes) + self.use_sums(rows, sizes)
        self.sums.put_all(slots, sums)

    def use_sums(self, rows: slice | Rows, counts: Spots) -> Limbs:
        """The sum of the hashes over the use of the memories in these rows, for each run of them.

        ``counts`` has the length of each run. A memory that was never used has no such hash.
        """
        numbers = self.numbers[rows]
        used = numbers[:, 4] > 0
        numbers, records = numbers[used], self.use_records[rows][used]
        hashes = of_activities(numbers[:, 0], numbers[:, 4], numbers[:, 5], records)
        before, stops = np.append(0, used.cumsum()), np.cumsum(counts)
        return sums_of(hashes, before[stops] - before[stops - counts])

    def write(
        self, rows: list[int], new: Additions, tick: int, vectors: Quantised, norms: Floats
    ) -> None:
        """Write this tick's new memories to these rows; ``norms`` has the vectors' lengths."""
        if len(rows) == 1:
            self._write_one(rows[0], new, tick, vectors[0], norms[0])
            return
        # Rows that lie together are written in a tenth of the time.
        together = rows[-1] - rows[0] == len(rows) - 1 and rows == sorted(rows)
        where = slice(rows[0], rows[0] + len(rows)) if together else np.array(rows)
        _, sequences, tiers, contents, metadata, starts = new
        self.vectors[where] = vectors
        self.norms[where] = norms
        self.tiers[where] = tiers
        self.numbers[where] = (0, tick, tick, NEVER, 0, UNUSED)
        self.numbers[where, 0] = sequences
        self.use_records[where] = NEW_RELEVANCE
        self.contents[where] = _objects(contents)
        if metadata.count(None) == len(metadata):
            self.metadata[where] = None
        else:
            self.metadata[where] = _objects(metadata)
            self.all_plain = False
        if starts.count(None) == len(starts) and 0 not in tiers:
            self.temperatures[where], self.traits[where] = _WARM, None
        else:
            keys = list(zip(tiers, starts, strict=True))
            known = {key: begun(*key) for key in set(keys)}  # most memories of a tick begin alike
            heats, kinds, expires = zip(*map(known.__getitem__, keys), strict=True)
            self.temperatures[where], self.traits[where] = heats, _objects(kinds)
            self.all_plain = self.all_plain and kinds.count(None) == len(kinds)
            self.numbers[where, 3] = expires

    def _write_one(
        self, row: int, new: Additions, tick: int, vector: Quantised, length: float
    ) -> None:
        """:meth:`write` for one memory, in a third of the time."""
        _, (sequence,), (tier,), (content,), (metadata,), (start,) = new
        heat, kind, expires = begun(tier, start)
        self.vectors[row], self.norms[row], self.tiers[row] = vector, length, tier
        self.numbers[row] = (sequence, tick, tick, expires, 0, UNUSED)
        self.use_records[row], self.temperatures[row] = NEW_RELEVANCE, heat
        self.contents[row], self.metadata[row], self.traits[row] = content, metadata, kind
        self.all_plain = self.all_plain and metadata is None and kind is None


def _array(shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
    """A new array; a large one has pages of its own.

    The array takes no more memory than is written to it, and gives all of it back. Memory that
    NumPy takes from the heap leaves holes there when a table moves to a larger one.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < _PAGED:
        return np.empty(shape, dtype)
    # Private: a forked process has its own copy.
    pages = mmap.mmap(-1, size, **_PRIVATE)
    return np.frombuffer(pages, dtype).reshape(shape)


def _pages_of(array: Any) -> mmap.mmap | None:
    """The pages of an array of :func:`_array`, if they can be given back in parts."""
    while isinstance(array, np.ndarray):
        array = array.base
    if isinstance(array, memoryview):
        array = array.obj
    return array if isinstance(array, mmap.mmap) and hasattr(array, "madvise") else None


def _rooms(sizes: Rows) -> Rows:
    """How many rows windows with these sizes get when they move."""
    rooms: Rows = sizes + np.maximum(_SPARE, np.minimum(sizes // 2, 128 + sizes // 16))
    return rooms


def portions(sizes: Spots) -> Iterator[slice]:
    """Cuts windows of these sizes into groups of few rows, so that a copy takes little memory."""
    first = rows = 0
    for place, size in enumerate(map(int, sizes)):
        if rows and rows + size > _AT_ONCE:
            yield slice(first, place)
            first, rows = place, 0
        rows += size
    yield slice(first, len(sizes))


def rows_of(starts: Spots, sizes: Spots) -> slice | Rows:
    """The rows that hold a memory, of windows that begin at these rows and have these sizes."""
    if len(starts) == 1:  # a slice is copied in a fraction of the time
        return slice(int(starts[0]), int(starts[0] + sizes[0]))
    counts = np.array(sizes, np.intp)
    rows: Rows = np.array(starts, np.intp)
    rows -= counts.cumsum() - counts
    rows = rows.repeat(counts)
    rows += np.arange(len(rows))
    return rows


def _objects(values: Sequence[str | KeptMetadata | Traits | None]) -> NDArray[Any]:
    """An array of these values, as they are."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


_Cell = TypeVar("_Cell", np.int32, np.int64, np.float32, np.float64)


def with_room(column: NDArray[_Cell], used: int, needed: int) -> NDArray[_Cell]:
    """The column, of which so much is used; a larger one if it has less room than is needed."""
    if needed <= len(column):
        return column
    larger = np.empty(needed + needed // 4, column.dtype)
    larger[:used] = column[:used]
    return larger
