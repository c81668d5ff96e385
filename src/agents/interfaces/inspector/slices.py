"""A journal sorted by agent: the temporary file, and what requests read of it.

A process of its own (``sorting.py``) reads the journal and writes the file, a transaction for all
that it read meanwhile: a request sees whole ticks, and waits for nobody.
"""

import os
import sqlite3
import zlib
from array import array
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from heapq import merge
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ...errors import RunError
from ...simulation.runs.why import RESULTS
from ...simulation.tick.decision_log import LoggedDecision
from ...simulation.workers.carriers import ProcessLink, WorkerLost
from ...storage.files import TemporaryFolder, new_file

_SCHEMA = """
CREATE TABLE progress (
    generation INTEGER, purges INTEGER, number INTEGER, hash BLOB, tick INTEGER,
    has_decisions INTEGER, damaged TEXT
);
CREATE TABLE lost (tick INTEGER PRIMARY KEY, why TEXT NOT NULL);
CREATE TABLE agents (place INTEGER PRIMARY KEY, name TEXT NOT NULL);
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
    name TEXT, tick INTEGER, low REAL, high REAL, data BLOB NOT NULL, PRIMARY KEY (name, tick)
) WITHOUT ROWID;
CREATE TABLE records (tick INTEGER PRIMARY KEY, data BLOB NOT NULL);
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
_SORTING = "tiermem.interfaces.inspector.sorting"
AGAIN = "start tiermem inspect again; it may need more memory than there is"
_TRIGRAM = 3
"""Letters that the index of words needs."""
MATTER = "pinned or critical"
"""The number of an agent that says which share of its memories is that."""
QUERY, ASKED, DID = "query", "asked", "did"
WHATS = (QUERY, ASKED, DID, *RESULTS[1:])


class Progress(NamedTuple):
    """How far the sorting is."""

    generation: int = 0
    """How often the run went back to an earlier tick, and all was read anew."""
    purges: int = 0
    """How many memories were purged since the reading began."""
    number: int = 0
    """The last commit that is read."""
    hash: bytes = bytes(32)
    tick: int = -1
    """The tick at which that commit left the bank."""
    has_decisions: int = 0
    damaged: str | None = None
    """What is wrong with the journal; None while nothing is."""


class Item(NamedTuple):
    """What a commit has of one agent."""

    commit: int
    tick: int
    events: list[list[Any]]
    """The agent's events, each as a list of its fields."""
    kept: list[Any] | None
    """The fields of what the decision log has of the agent; None if it has nothing."""


class Occurrence(NamedTuple):
    """What an agent asked or did in a tick, by the numbers of agent and text."""

    tick: int
    agent: int
    what: str
    text: int


def deeds_of(logged: LoggedDecision) -> Iterator[tuple[str, str]]:
    """An agent's query, its questions and its actions in a tick: what it is, and its text.

    A query that was the text of the observation is left out: the observation is a memory.
    """
    if logged.query is not None:
        yield QUERY, logged.query
    for query, *_ in logged.asked:
        yield ASKED, query
    for place, (name, arguments, result, _) in enumerate(logged.did):
        text = name or "no action"
        if arguments:
            text += " " + orjson.dumps(arguments).decode()
        if reason := logged.reason(place):
            text += f", because: {reason}"
        yield RESULTS[result] if result else DID, text
    if logged.idle:
        yield DID, f"nothing, because: {logged.idle}"


class Slices:
    """The file, as it is read."""

    def __init__(self, file: Path, dims: int) -> None:
        self._dims = dims
        self._agents: list[str] = []
        self._places: dict[str, int] = {}
        self._db = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._db.create_function("holds", 2, _holds, deterministic=True)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def ask(self, sql: str, values: Sequence[object] = ()) -> list[Any]:
        """The rows that a query gives."""
        return self._db.execute(sql, values).fetchall()

    # What is there

    def progress(self) -> Progress:
        """How far the sorting is now."""
        return Progress(*self.ask("SELECT * FROM progress")[0])

    def agents(self) -> list[str]:
        """Agents and boards by their places; more may come with any tick."""
        for (name,) in self.ask(
            "SELECT name FROM agents WHERE place >= ? ORDER BY place", (len(self._agents),)
        ):
            self._places[name] = len(self._agents)
            self._agents.append(name)
        return self._agents

    def place(self, agent: str) -> int:
        """The place of an agent; -1 for one that is not known yet."""
        if agent not in self._places:
            self.agents()
        return self._places.get(agent, -1)

    def lost(self) -> dict[int, str]:
        """By tick, why what was kept of its decisions can't be read: all else of it is whole."""
        return dict(self.ask("SELECT tick, why FROM lost ORDER BY tick"))

    # Memories

    def text(self, agent: int, sequence: int) -> str | None:
        """The text of a memory; None if it was purged, or is not read yet."""
        rows = self.ask(
            "SELECT text FROM memories WHERE agent = ? AND sequence = ?", (agent, sequence)
        )
        return rows[0][0] if rows else None

    def texts(self, memories: Sequence[tuple[int, int]]) -> dict[tuple[int, int], str | None]:
        """The texts of memories by agent and sequence number, as :meth:`text` gives each."""
        rows = self.ask(
            "SELECT agent, sequence, text FROM json_each(?) CROSS JOIN memories ON "
            "agent = json_extract(value, '$[0]') AND sequence = json_extract(value, '$[1]')",
            (orjson.dumps(memories).decode(),),
        )
        return {(agent, sequence): text for agent, sequence, text in rows}

    # The commits of an agent

    def items(self, agent: int) -> Iterator[Item]:
        """What all commits have of an agent."""
        for items, _ in self._blocks(agent, -1, 1 << 60):
            yield from items

    def items_in(self, agent: int, tick: int) -> Iterator[Item]:
        """What the commits that left the bank at a tick have of an agent."""
        for items, _ in self._blocks(agent, tick - 1, tick):
            yield from (item for item in items if item.tick == tick)

    def item(self, agent: int, tick: int) -> Item | None:
        """What the commit that ended a tick has of an agent, with its decision."""
        return next((item for item in self.items_in(agent, tick) if item.kept is not None), None)

    def between(self, agent: int, after: int, last: int) -> tuple[list[Any], bytes]:
        """An agent's events after one tick and up to another, and the vectors of its memories."""
        events: list[Any] = []
        vectors: list[bytes] = []
        for items, packed in self._blocks(agent, after, last):
            start = 0
            for item in items:
                end = start + sum(event[0] == "add" for event in item.events) * self._dims
                if after < item.tick <= last:
                    events += item.events
                    vectors.append(packed[start:end])
                start = end
        return events, b"".join(vectors)

    def _blocks(self, agent: int, after: int, last: int) -> Iterator[tuple[list[Item], bytes]]:
        """The blocks that hold what commits after a tick and up to another have of an agent."""
        for items, vectors in self.ask(
            "SELECT items, vectors FROM blocks WHERE agent = ?1 AND tick <= ?3 AND first >= "
            "ifnull((SELECT max(first) FROM blocks WHERE agent = ?1 AND tick <= ?2), 0) "
            "ORDER BY first",
            (agent, after, last),
        ):
            yield [Item(*fields) for fields in orjson.loads(zlib.decompress(items))], vectors

    # What agents asked and did: each text once, with who had it when

    def memories_with(self, words: Sequence[str], most: int) -> list[int]:
        """The ids of the first memories that hold all words."""
        return list(islice(self._with("memories", "words", words), most))

    def deeds_with(self, words: Sequence[str], most: int) -> list[Occurrence]:
        """The first deeds that hold all words, in the order of ticks and agents."""
        # A text's number tells when it came first, so texts with higher ones come later.
        texts = islice(self._with("deed_texts", "deed_words", words), most)
        rows = merge(*(self._said(text) for text in texts))
        return [_deed(row) for row in islice(rows, most)]

    def deeds_in(self, ticks: Collection[int]) -> list[Occurrence]:
        """All deeds of some ticks, in the order of ticks and agents."""
        wanted = frozenset(ticks)
        rows = self.ask("SELECT text, tick, who FROM deeds")
        there = (_each(text, tick, who) for text, tick, who in rows if tick in wanted)
        return [_deed(row) for row in sorted(chain.from_iterable(there))]

    def deed_texts(self, numbers: Collection[int]) -> dict[int, str]:
        """The texts of deeds by their numbers."""
        return dict(
            self.ask(
                "SELECT id, text FROM deed_texts WHERE id IN (SELECT value FROM json_each(?))",
                (orjson.dumps(list(numbers)).decode(),),
            )
        )

    def about_board(self, board: int, number: int) -> list[tuple[int, int]]:
        """The ticks in which agents found a memory of a board, and who did, in this order."""
        return self.ask(
            "SELECT tick, agent FROM on_boards WHERE board = ? AND sequence = ? "
            "ORDER BY tick, agent",
            (board, number),
        )

    def _said(self, text: int) -> Iterator["_Row"]:
        sql = "SELECT text, tick, who FROM deeds WHERE text = ? ORDER BY tick"
        for row in self._db.execute(sql, (text,)):
            yield from _each(*row)

    def _with(self, texts: str, index: str, words: Sequence[str]) -> Iterator[int]:
        """The ids of a table of texts that hold all words, in any order.

        The ``index`` finds words of three letters and more; shorter ones are looked for in the
        texts.
        """
        long = ['"' + word.replace('"', '""') + '"' for word in words if len(word) >= _TRIGRAM]
        short = [word.lower() for word in words if len(word) < _TRIGRAM]
        tables, tests, values = texts, [f"{texts}.text IS NOT NULL"], list[str]()
        if long:
            tables = f"{index} CROSS JOIN {texts} ON {texts}.id = {index}.rowid"
            tests.append(f"{index} MATCH ?")
            values.append(" AND ".join(long))
        tests += [f"holds({texts}.text, ?)"] * len(short)
        key = f"{index}.rowid" if long else f"{texts}.id"
        sql = f"SELECT {key} FROM {tables} WHERE {' AND '.join(tests)} ORDER BY {key}"  # noqa: S608
        return (number for (number,) in self._db.execute(sql, (*values, *short)))


_Row = tuple[int, int, int, int]
"""Tick, agent, place in the decision and kind, text."""


def _each(text: int, tick: int, who: bytes) -> Iterator[_Row]:
    numbers = array("I", who)
    for agent, place in zip(numbers[::2], numbers[1::2], strict=True):
        yield tick, agent, place, text


def _deed(row: _Row) -> Occurrence:
    tick, agent, place, text = row
    return Occurrence(tick, agent, WHATS[place % len(WHATS)], text)


def _holds(text: str, lower: str) -> bool:
    """Whether a text has a word in either case; SQLite's own ``lower`` knows only a to z."""
    return lower in text.lower()


class Sorted:
    """The file, and the process that writes it. It ends with this process, however that ends."""

    def __init__(self, dims: int) -> None:
        self._folder = TemporaryFolder("inspector")
        self._file = Path(self._folder.name, "slices.db")
        self._link: ProcessLink | None = None
        self._ended: str | None = None
        _make(self._file)
        self.slices = Slices(self._file, dims)

    def start(self, **given: object) -> None:
        """Begin to sort: the names are those of :class:`~.sorting.Sorter`."""
        self._link = ProcessLink(_SORTING)
        self._say({"file": str(self._file), **given})

    def close(self) -> None:
        """End the process, and remove the file."""
        if self._link is not None:
            self._link.end()
        self.slices.close()
        self._folder.cleanup()

    def ended(self) -> str | None:
        """Why nothing more is read, if the process has ended."""
        if self._ended is None and self._link and self._link.process.poll() is not None:
            with suppress(RunError):
                self._hear()
        return self._ended

    def study(self, tick: int, agents: Sequence[str]) -> dict[str, Any]:
        """What there is of the population up to a tick; only that process has all of it."""
        self._say([tick, list(agents)])
        answer: dict[str, Any] = orjson.loads(self._hear())
        return answer

    def _say(self, message: object) -> None:
        if self._ended is None and self._link is not None:
            try:
                self._link.send(orjson.dumps(message))
            except WorkerLost as error:
                self._ended = f"the process that reads the journal {error}"

    def _hear(self) -> bytes:
        if self._ended is None and self._link is not None:
            try:
                return self._link.receive()
            except WorkerLost as error:
                self._ended = f"the process that reads the journal {error}"
        raise RunError(str(self._ended), hint=AGAIN)


def _make(file: Path) -> None:
    """Make the file and its tables, for its owner alone."""
    os.close(new_file(file))
    db = sqlite3.connect(file, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = OFF")
        db.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
        db.execute("INSERT INTO progress VALUES (?, ?, ?, ?, ?, ?, ?)", Progress())
    finally:
        db.close()
