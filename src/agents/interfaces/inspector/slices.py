"""A journal sorted by agent, in a temporary file; and what agents hold, for studies at any tick."""

import sqlite3
import threading
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from itertools import chain
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np
import orjson
from numpy.typing import NDArray

from ...simulation.analysis.columns import Collection, Columns, Earlier

T = TypeVar("T")
_LONGEST = 0.5
"""Seconds that the reading waits at most: requests that never end do not stop it."""
_SCHEMA = """
CREATE TABLE blocks (
    agent INTEGER, first INTEGER, tick INTEGER NOT NULL, items BLOB NOT NULL,
    vectors BLOB NOT NULL, PRIMARY KEY (agent, first)
) WITHOUT ROWID;
CREATE TABLE memories (
    id INTEGER PRIMARY KEY, agent INTEGER NOT NULL, sequence INTEGER NOT NULL,
    tick INTEGER NOT NULL, tier INTEGER NOT NULL, temperature INTEGER NOT NULL, expires INTEGER,
    gone INTEGER, kind TEXT NOT NULL, text TEXT, UNIQUE (agent, sequence)
);
CREATE TABLE numbers (
    name TEXT, tick INTEGER, data BLOB NOT NULL, PRIMARY KEY (name, tick)
) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='trigram');
CREATE TABLE deed_texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE deeds (
    text INTEGER, tick INTEGER, who BLOB NOT NULL, PRIMARY KEY (text, tick)
) WITHOUT ROWID;
CREATE TABLE on_boards (
    board INTEGER, sequence INTEGER, tick INTEGER, agent INTEGER,
    PRIMARY KEY (board, sequence, tick, agent)
) WITHOUT ROWID;
CREATE VIRTUAL TABLE deed_words USING fts5(text, content='', tokenize='trigram');
"""
_MOST_WAITING = 16 << 20
"""Bytes that wait in memory before they are written."""
_MOST_COMMITS = 64
_MOST_AT_ONCE = 100
"""Agents or memories that are written without a pause."""
_MOST_READ = 4 << 20
"""Bytes of the blocks that stay in memory: 2,000 ticks of eight agents."""


class RequestsFirst:
    """Python runs one thread at a time, and changes between two of them slowly.

    A request that asks a database 200 times beside a busy thread would wait 200 times.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._answering = 0

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Inside, the reading waits."""
        self._add(1)
        try:
            yield
        finally:
            self._add(-1)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Inside, a request waits for the reading."""
        with self._changed:
            own = min(1, self._answering)
        self._add(-own)
        try:
            yield
        finally:
            self._add(own)

    def after_requests(self) -> None:
        """Wait until no request is answered, but not for long."""
        if self._answering:
            with self._changed:
                self._changed.wait_for(lambda: not self._answering, _LONGEST)

    def _add(self, number: int) -> None:
        with self._changed:
            self._answering += number
            self._changed.notify_all()


class Item(NamedTuple):
    """What a commit has of one agent."""

    commit: int
    tick: int
    events: list[list[Any]]
    """The agent's events, each as a list of its fields."""
    kept: list[Any] | None
    """The fields of what the decision log has of the agent; None if it has nothing."""


class _Part(NamedTuple):
    """A block of an agent.

    Its items are kept as JSON: as lists they would be thousands of objects, through which Python's
    collector goes while somebody waits.
    """

    data: bytes
    vectors: bytes
    gone: frozenset[int]
    """Memories that were purged since."""

    @property
    def size(self) -> int:
        return len(self.data) + len(self.vectors)

    def items(self) -> list[Any]:
        """The fields of its items, without the texts of memories that were purged since."""
        found: list[Any] = orjson.loads(self.data)
        for event in chain.from_iterable(raw[2] for raw in found if self.gone):
            if event[0] == "add" and event[2] in self.gone:
                event[4:] = [None, None, None]
        return found


class NewRow(NamedTuple):
    """A new memory, for the table of memories."""

    agent: int
    sequence: int
    tick: int
    tier: int
    temperature: int
    expires: int | None
    kind: str
    text: str | None


class Slices:
    """The file. One thread writes; any thread reads what is written and what waits."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.turns = RequestsFirst()
        self.agents: list[str] = []
        self.places: dict[str, int] = {}
        self.purged: dict[int, set[int]] = {}
        """By agent, the memories that were purged: their texts are not shown."""
        self.generation = 0
        """How often everything was forgotten."""
        self.dims = 0
        """Bytes of one vector."""
        self._open()

    def _open(self) -> None:
        # A file without a name: it ends with the process, even if the process is killed.
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute("PRAGMA cache_size = -32000")
        self._db.create_function("holds", 2, _holds, deterministic=True)
        self._db.executescript(_SCHEMA)
        self._waiting: dict[int, list[tuple[int, int, bytes, bytes]]] = {}
        self._read: dict[tuple[int, ...], _Part] = {}
        """The block that was used last is at the end."""
        self._read_size = 0
        self._size = self._commits = 0

    def close(self) -> None:
        """Delete the file."""
        with self._lock:
            self._db.close()

    def clear(self) -> None:
        """Forget everything: the journal went back."""
        with self._lock:
            self._db.close()
            self.purged.clear()
            self.generation += 1
            self._open()

    def place(self, agent: str) -> int:
        """The number of an agent; a new agent gets the next one."""
        found = self.places.get(agent)
        if found is None:
            found = self.places[agent] = len(self.agents)
            self.agents.append(agent)
        return found

    # Writing

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Inside, the caller writes to the tables, and no other thread uses them."""
        with self._lock:
            yield self._db

    def put(self, agent: int, item: Item, vectors: bytes) -> None:
        """Keep what a commit has of an agent; ``vectors`` are those of its new memories."""
        data = bytes(memoryview(orjson.dumps(tuple(item))))  # else with up to 4 kB of room
        with self._lock:
            waiting = self._waiting.setdefault(agent, [])
            waiting.append((item.commit, item.tick, data, vectors))
            self._size += len(data) + len(vectors)

    def end_commit(self) -> None:
        """Write what waits, if it is much: some agents at a time, so that nobody waits long."""
        self._commits += 1
        if self._commits < _MOST_COMMITS and self._size <= _MOST_WAITING:
            return
        for agents in batched(list(self._waiting), _MOST_AT_ONCE):
            self.turns.after_requests()
            rows = [
                (agent, *items[0][:2], zlib.compress(_listed(items), 1), _joined(items))
                for agent, items in ((agent, self._waiting[agent]) for agent in agents)
            ]
            with self._lock:
                self._db.execute("BEGIN")
                self._db.executemany("INSERT INTO blocks VALUES (?, ?, ?, ?, ?)", rows)
                self._db.execute("COMMIT")
                for agent in agents:
                    del self._waiting[agent]
        self._size = self._commits = 0

    def add_rows(self, rows: Sequence[NewRow]) -> None:
        """Keep new memories, and their words."""
        for some in batched(rows, _MOST_AT_ONCE):
            self.turns.after_requests()
            self._add_rows(some)

    def _add_rows(self, rows: Sequence[NewRow]) -> None:
        with self._lock:
            db = self._db
            db.execute("BEGIN")
            for row in rows:
                cursor = db.execute(
                    "INSERT INTO memories VALUES (NULL, ?, ?, ?, ?, ?, ?, NULL, ?, ?)", row
                )
                if row.text is not None:
                    db.execute(
                        "INSERT INTO words (rowid, text) VALUES (?, ?)",
                        (cursor.lastrowid, row.text),
                    )
            db.execute("COMMIT")

    def add_numbers(self, tick: int, numbers: dict[str, NDArray[np.float64]]) -> None:
        """Keep numbers of a tick, one for each agent."""
        with self._lock:
            self._db.executemany(
                "REPLACE INTO numbers VALUES (?, ?, ?)",
                [(name, tick, each.tobytes()) for name, each in numbers.items()],
            )

    # Reading

    def size(self) -> int:
        """The bytes of the file."""
        ((pages,),), ((each,),) = self.ask("PRAGMA page_count"), self.ask("PRAGMA page_size")
        return int(pages) * int(each)

    def ask(self, sql: str, values: Sequence[object] = ()) -> list[Any]:
        """The rows that a query gives."""
        with self._lock:
            return self._db.execute(sql, values).fetchall()

    def text(self, agent: int, sequence: int) -> str | None:
        """The text of a memory; None if it was purged, or is not read yet."""
        found = self.ask(
            "SELECT text FROM memories WHERE agent = ? AND sequence = ?", (agent, sequence)
        )
        return found[0][0] if found else None

    def texts(self, memories: Sequence[tuple[int, int]]) -> dict[tuple[int, int], str | None]:
        """The texts of memories by agent and sequence number, as :meth:`text` gives each."""
        wanted = orjson.dumps(memories).decode()
        found = self.ask(
            "SELECT agent, sequence, text FROM json_each(?) CROSS JOIN memories ON "
            "agent = json_extract(value, '$[0]') AND sequence = json_extract(value, '$[1]')",
            (wanted,),
        )
        return {(agent, sequence): text for agent, sequence, text in found}

    def newest(self, agent: int) -> int:
        """The sequence number of an agent's newest memory; 0 if it has none."""
        found = self.ask("SELECT max(sequence) FROM memories WHERE agent = ?", (agent,))
        return found[0][0] or 0

    def items(self, agent: int, last: int | None = None) -> Iterator[Item]:
        """What the commits that left the bank at a tick up to ``last`` have of an agent."""
        for part in self._parts(agent, -1, last):
            for raw in part.items():
                if last is not None and raw[1] > last:
                    return
                yield Item(*raw)

    def between(self, agent: int, after: int, last: int) -> tuple[list[Any], bytes]:
        """An agent's events after one tick and up to another, and the vectors of its memories."""
        events: list[Any] = []
        vectors: list[bytes] = []
        for part in self._parts(agent, after, last):
            skipped, start = 0, len(events)
            for raw in part.items():
                if raw[1] > last:
                    break
                if raw[1] <= after:
                    skipped += sum(event[0] == "add" for event in raw[2])
                else:
                    events += raw[2]
            end = skipped + sum(event[0] == "add" for event in events[start:])
            vectors.append(part.vectors[skipped * self.dims : end * self.dims])
        return events, b"".join(vectors)

    def item(self, agent: int, tick: int) -> Item | None:
        """What the commit that ended a tick has of an agent, with its decision."""
        return next((item for item in self.items_in(agent, tick) if item.kept is not None), None)

    def items_in(self, agent: int, tick: int) -> Iterator[Item]:
        """What the commits that left the bank at a tick have of an agent."""
        for part in self._parts(agent, tick - 1, tick):
            yield from (Item(*raw) for raw in part.items() if raw[1] == tick)

    def _parts(self, agent: int, after: int, last: int | None) -> Iterator[_Part]:
        """The blocks that hold what commits after a tick and up to another have of an agent."""
        with self._lock:
            firsts = self._db.execute(
                "SELECT first FROM blocks WHERE agent = ?1 AND tick <= ?3 AND first >= "
                "ifnull((SELECT max(first) FROM blocks WHERE agent = ?1 AND tick <= ?2), 0) "
                "ORDER BY first",
                (agent, after, 1 << 60 if last is None else last),
            ).fetchall()
            waiting = list(self._waiting.get(agent, ()))
            own = self.generation, agent
        for (first,) in firsts:
            yield self._part((*own, first, 0), partial(self._block, agent, first))
        if waiting:
            key = (*own, waiting[0][0], len(waiting))
            yield self._part(key, lambda: (_listed(waiting), _joined(waiting)))

    def _block(self, agent: int, first: int) -> tuple[bytes, bytes]:
        """A block that is written, as it was before."""
        rows = self.ask(
            "SELECT items, vectors FROM blocks WHERE agent = ? AND first = ?", (agent, first)
        )
        return (zlib.decompress(rows[0][0]), rows[0][1]) if rows else (b"[]", b"")

    def _part(self, own: tuple[int, ...], made: Callable[[], tuple[bytes, bytes]]) -> _Part:
        """A block, as it is kept."""
        gone = self.purged.get(own[1], ())
        key = (*own, len(gone))
        with self._lock:
            found = self._read.pop(key, None)
            if found is None:
                found = _Part(*made(), frozenset(gone))
                self._read_size += found.size
            self._read[key] = found
            while self._read_size > _MOST_READ:
                oldest = next(iter(self._read))
                self._read_size -= self._read.pop(oldest).size
        return found


class Beliefs(Collection):
    """The events of a journal, without the texts of memories: the slices have them."""

    def __init__(self, seed: int, agents: Sequence[str]) -> None:
        self._words = array("q")
        self._earlier: list[str | None] = []
        """The texts of memories that are older than the journal: the slices lack them."""
        super().__init__(seed, agents)

    def before(self, earlier: Iterable[Earlier], *, is_whole: bool) -> None:
        """Take the memories that are older than the first commit, with their texts."""
        memories = list(earlier)
        self._earlier = [each.text for each in memories]
        super().before(memories, is_whole=is_whole)

    def keep_texts(self, texts: Sequence[str | None]) -> None:
        """Keep a number for each text."""
        self._words.extend(map(_number_of, texts))

    def up_to(self, tick: int, slices: Slices) -> Columns:
        """The columns up to a tick; the slices give the texts that are asked for."""
        columns = self.columns(tick)
        columns.words = np.array(self._words[: len(columns)], np.int64)
        columns.text = _Texts(columns, slices, self._earlier)
        return columns


def _number_of(text: str | None) -> int:
    """A number for a text: equal texts have equal numbers."""
    data = b"" if text is None else text.encode()
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little", signed=True)


class _Texts(Sequence[str | None]):
    """The texts of memories, read when they are asked for."""

    def __init__(self, columns: Columns, slices: Slices, earlier: Sequence[str | None]) -> None:
        self._columns = columns
        self._slices = slices
        self._earlier = earlier

    def __len__(self) -> int:
        return len(self._columns)

    @overload
    def __getitem__(self, row: int) -> str | None: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[str | None]: ...
    def __getitem__(self, row: int | slice) -> str | Sequence[str | None] | None:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        if row < len(self._earlier):
            return self._earlier[row]
        columns = self._columns
        place = self._slices.places.get(columns.agents[int(columns.agent[row])], -1)
        return self._slices.text(place, int(columns.sequence[row]))

    def __iter__(self) -> Iterator[str | None]:
        return (self[row] for row in range(len(self)))


def batched(values: Sequence[T], count: int) -> Iterator[Sequence[T]]:
    """The values, ``count`` at a time."""
    return (values[at : at + count] for at in range(0, len(values), count))


def _holds(text: str, lower: str) -> bool:
    """Whether a text has a word in either case; SQLite's own ``lower`` knows only a to z."""
    return lower in text.lower()


def _listed(items: Sequence[tuple[int, int, bytes, bytes]]) -> bytes:
    return b"[" + b",".join([data for *_, data, _ in items]) + b"]"


def _joined(items: Sequence[tuple[int, int, bytes, bytes]]) -> bytes:
    return b"".join([vectors for *_, vectors in items])
