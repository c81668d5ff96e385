"""The journal: every change to a bank, in SQLite. It is the truth; all else is rebuilt from it."""

import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from agents.errors import BankDamaged, BankError, CommitFailed

__all__ = ["Commit", "Journal", "Snapshot", "SnapshotRow", "TickNote", "TickRow"]

_APPLICATION_ID = 0x746D656D  # "tmem": tells our files from other SQLite databases
_FORMAT = 2

# SQLite does not notice a flipped bit. A value may come back as another type, a column not at all.
_DAMAGE = (
    sqlite3.Error,
    zlib.error,
    ValueError,  # among them broken JSON and UTF-8
    TypeError,
    AttributeError,
    LookupError,
    OverflowError,
)

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, digest BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE commits (
    id INTEGER PRIMARY KEY,
    tick INTEGER NOT NULL,   -- after the commit
    events TEXT NOT NULL,    -- JSON array of events
    vectors BLOB NOT NULL,   -- int8, one vector per added memory, in order
    note BLOB NOT NULL,      -- digest of the row in ticks, if the commit ends a tick
    hash BLOB NOT NULL       -- over the hash before it and all of the above
);
-- What a simulation keeps of each tick, beside the memories.
CREATE TABLE ticks (
    tick INTEGER PRIMARY KEY,
    commit_id INTEGER NOT NULL,
    record TEXT NOT NULL,     -- JSON: state hash, counts, metrics
    retrieved BLOB NOT NULL,  -- uint32: how many memories each agent got, then which
    state_hash BLOB NOT NULL,
    state BLOB                -- the world's state after the tick: JSON, deflated
);
CREATE TABLE snapshots (
    agent TEXT PRIMARY KEY,
    next_sequence INTEGER NOT NULL,
    columns BLOB NOT NULL,
    contents BLOB NOT NULL,
    metadata TEXT NOT NULL,
    vectors BLOB NOT NULL,
    digest BLOB NOT NULL
);
CREATE TABLE embeddings (hash BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
-- For people who look at the file with a database tool.
CREATE VIEW events AS
    SELECT commits.id AS commit_id, commits.tick AS tick,
           json_extract(e.value, '$[0]') AS kind, json_extract(e.value, '$[1]') AS agent,
           json_extract(e.value, '$[2]') AS sequence, json_extract(e.value, '$[3]') AS tier,
           json_extract(e.value, '$[4]') AS content, json_extract(e.value, '$[5]') AS metadata
    FROM commits, json_each(commits.events) AS e;
"""


class Commit(NamedTuple):
    """What one transaction recorded."""

    id: int
    tick: int
    events: str
    vectors: bytes
    note: bytes
    hash: bytes


class Snapshot(NamedTuple):
    """Which commit the snapshots were made after, and of how many agents."""

    commit: int
    tick: int
    hash: str
    agents: int


class SnapshotRow(NamedTuple):
    """One agent's whole state, as a row."""

    agent: str
    next_sequence: int
    columns: bytes
    contents: bytes
    metadata: str
    vectors: bytes
    digest: bytes


class TickNote(NamedTuple):
    """What a simulation keeps of a tick, on its way into the journal."""

    record: str
    retrieved: bytes
    state: str


class TickRow(NamedTuple):
    """What the journal has of a tick. The state is deflated, or None where only later ones are."""

    tick: int
    commit: int
    record: str
    retrieved: bytes
    state_hash: bytes
    state: bytes | None

    @property
    def digest(self) -> bytes:
        """Over all that the commit's hash covers."""
        digest = hashlib.sha256(f"{self.tick} {len(self.retrieved)} ".encode())
        digest.update(self.retrieved)
        digest.update(self.state_hash)
        digest.update(self.record.encode())
        return digest.digest()


class Journal:
    """A bank's journal file, or one in memory for ``path`` None.

    ``head`` is the id of the last commit, ``hash`` the hash over all of them, ``tick`` the tick
    after it. ``base`` is the commit before the first that is here: 0, unless the journal was made
    from a checkpoint.
    """

    def __init__(self, path: Path | None) -> None:
        self._name = str(path) if path else "this bank"
        self.base: int
        self.head: int
        self.tick: int
        self.hash: bytes
        try:
            self._db = sqlite3.connect(
                path or ":memory:", isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise self._damaged(str(error)) from error
        try:
            with self.reading():
                self._open(path)
                self.base = self.get("base") or 0
                self.head, self.tick, self.hash = self._last()
        except BaseException:
            self._db.close()  # or SQLite would remember the file for the next to open it
            raise

    def _open(self, path: Path | None) -> None:
        is_new = not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not is_new:
            self._check_format()  # before anything is written to another program's file
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        # A checkpoint of the write-ahead log costs two more fsyncs: every 16 MB, not every 4.
        self._db.execute("PRAGMA wal_autocheckpoint = 4000")
        if is_new:  # or a process was killed while it made the file
            self._create()
            if path:
                _sync_folder(path.parent)
                _sync_folder(path.parent.parent)  # the bank's folder may be new as well

    def _last(self) -> tuple[int, int, bytes]:
        """The last commit; its hash covers all before it, and what is kept of it covers it."""
        row = self._db.execute(
            "SELECT id, tick, hash FROM commits ORDER BY id DESC LIMIT 1"
        ).fetchone()
        if row is None and self.base:
            snapshot = self.snapshot()
            row = (snapshot.commit, snapshot.tick, bytes.fromhex(snapshot.hash))
        head, tick, digest = row or (0, 0, bytes(32))
        if self.get("head") != ([head, tick, digest.hex()] if row else None):
            raise self._damaged("its last commit is not what was written")
        return head, tick, digest

    def close(self) -> None:
        """Fold the write-ahead log into the file and close it."""
        self._db.close()

    # Settings and cursors

    def get(self, key: str) -> Any:
        """The value kept under ``key``, or None."""
        with self.reading():
            row = self._db.execute(
                "SELECT value, digest FROM meta WHERE key = ?", (key,)
            ).fetchone()
            if row is None:
                return None
            if _digest(key, row[0]) != row[1]:
                raise self._damaged(f"what it keeps as {key} is not what was written")
            return json.loads(row[0])

    def set(self, **values: object) -> None:
        """Keep JSON values under their keys, in a transaction of their own."""
        with self._writing():
            self._set(values)

    def _set(self, values: Mapping[str, object]) -> None:
        texts = {key: json.dumps(value, sort_keys=True) for key, value in values.items()}
        self._db.executemany(
            "REPLACE INTO meta VALUES (?, ?, ?)",
            [(key, text, _digest(key, text)) for key, text in texts.items()],
        )

    # Commits

    def append(
        self,
        tick: int,
        events: str,
        vectors: bytes,
        embeddings: Mapping[bytes, bytes],
        note: TickNote | None = None,
    ) -> None:
        """Record one commit. When this returns, it is on disk; when it raises, nothing is."""
        row = None if note is None else _tick_row(tick, self.head + 1, note)
        mark = row.digest if row else b""
        digest = _chain(self.hash, tick, events, vectors, mark)
        try:
            with self._writing():
                self._db.execute(
                    "INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?)",
                    (self.head + 1, tick, events, vectors, mark, digest),
                )
                if row:
                    self._db.execute("INSERT INTO ticks VALUES (?, ?, ?, ?, ?, ?)", row)
                self._set_embeddings(embeddings)
                self._set({"head": (self.head + 1, tick, digest.hex())})
            self.head, self.tick, self.hash = self.head + 1, tick, digest
        except KeyboardInterrupt:  # it may have come right after the commit
            self.head, self.tick, self.hash = self._last()
            raise

    def commits(self, after: int) -> Iterator[Commit]:
        """The commits with an id above ``after``, in order, each checked against its hash."""
        with self.reading():
            snapshot = self.snapshot()
            if after == snapshot.commit:
                before = bytes.fromhex(snapshot.hash)
            else:
                row = self._db.execute("SELECT hash FROM commits WHERE id = ?", (after,)).fetchone()
                before = row[0] if row else bytes(32)
            expected = after + 1
            for raw in self._db.execute("SELECT * FROM commits WHERE id > ? ORDER BY id", (after,)):
                commit = Commit(*raw)
                digest = _chain(before, commit.tick, commit.events, commit.vectors, commit.note)
                if commit.id != expected or commit.hash != digest:
                    raise self._damaged(f"commit {expected} is not what was written")
                before, expected = commit.hash, expected + 1
                yield commit

    def rewind(self, commit: int) -> None:
        """Forget every commit after this one, for good."""
        if self.snapshot().commit > commit and self.base:
            raise BankError(
                f"{self._name} was made from a checkpoint and can't go back to what was before it"
            )
        with self._writing():
            row = self._db.execute(
                "SELECT id, tick, hash FROM commits WHERE id = ?", (commit,)
            ).fetchone()
            if row is None and commit != self.snapshot().commit:
                raise BankError(f"{self._name} has no commit {commit}")
            if self.snapshot().commit > commit:
                self._db.execute("DELETE FROM snapshots")
                self._set({"snapshot": None})
            self._db.execute("DELETE FROM commits WHERE id > ?", (commit,))
            self._db.execute("DELETE FROM ticks WHERE commit_id > ?", (commit,))
            snapshot = self.snapshot()
            head, tick, digest = row or (commit, snapshot.tick, bytes.fromhex(snapshot.hash))
            self._set({"head": (head, tick, digest.hex()) if head else None})
        self.head, self.tick, self.hash = head, tick, digest

    # Ticks

    def tick_rows(self, after: int = -1) -> Iterator[TickRow]:
        """What is kept of the ticks after this one, in order, each checked."""
        with self.reading():
            for raw in self._db.execute(
                "SELECT ticks.*, note FROM ticks LEFT JOIN commits ON commits.id = commit_id "
                "WHERE ticks.tick > ? ORDER BY ticks.tick",
                (after,),
            ):
                row = TickRow(*raw[:-1])
                # A journal made from a checkpoint has older ticks without their commits.
                if raw[-1] != row.digest and (raw[-1] is not None or row.commit > self.base):
                    raise self._damaged(f"what it keeps of tick {row.tick} is not what was written")
                yield row

    def last_tick(self) -> TickRow | None:
        """What is kept of the last tick, if any is."""
        with self.reading():
            last = self._db.execute("SELECT max(tick) FROM ticks").fetchone()[0]
            return None if last is None else next(self.tick_rows(last - 1))

    def tick_state(self, row: TickRow) -> Any:
        """The world's state after a tick; None where it is not kept."""
        if row.state is None:
            return None
        with self.reading():
            text = zlib.decompress(row.state)
            if hashlib.sha256(text).digest() != row.state_hash:
                raise self._damaged(f"the world's state of tick {row.tick} is not what was written")
            return json.loads(text)

    def save_embeddings(self, vectors: Mapping[bytes, bytes]) -> None:
        """Keep vectors by the hash of their text, in a transaction of their own."""
        with self._writing():
            self._set_embeddings(vectors)

    def _set_embeddings(self, vectors: Mapping[bytes, bytes]) -> None:
        self._db.executemany("INSERT OR IGNORE INTO embeddings VALUES (?, ?)", vectors.items())

    def embeddings(self, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
        """Those of the vectors that are kept, by the hash of their text."""
        with self.reading():
            found: dict[bytes, bytes] = {}
            for start in range(0, len(hashes), 500):
                part = hashes[start : start + 500]
                marks = ",".join("?" * len(part))
                found.update(
                    self._db.execute(
                        f"SELECT hash, vector FROM embeddings WHERE hash IN ({marks})",  # noqa: S608
                        part,
                    )
                )
            return found

    # Snapshots

    def write_snapshots(self, rows: Iterable[SnapshotRow]) -> None:
        """Replace the snapshots of these agents; from now on, opening starts at this commit."""
        with self._writing():
            self._db.executemany("REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            agents = self._db.execute("SELECT count(*) FROM snapshots").fetchone()[0]
            self._set({"snapshot": Snapshot(self.head, self.tick, self.hash.hex(), agents)})

    def snapshot(self) -> Snapshot:
        """What the snapshots hold; a snapshot of nothing if there are none."""
        kept = self.get("snapshot")
        return Snapshot(*kept) if kept else Snapshot(0, 0, bytes(32).hex(), 0)

    def snapshots(self, agents: Iterable[str] | None = None) -> Iterator[SnapshotRow]:
        """The snapshots of all agents, or of some."""
        with self.reading():
            if agents is not None:
                for agent in agents:
                    for row in self._db.execute(
                        "SELECT * FROM snapshots WHERE agent = ?", (agent,)
                    ):
                        yield SnapshotRow(*row)
                return
            count = 0
            for row in self._db.execute("SELECT * FROM snapshots ORDER BY agent"):
                count += 1
                yield SnapshotRow(*row)
            if count != self.snapshot().agents:
                raise self._damaged(f"it has the snapshots of {count} agents, and not of all")

    # Inside

    def _create(self) -> None:
        self._db.executescript(
            f"BEGIN; PRAGMA application_id = {_APPLICATION_ID}; PRAGMA user_version = {_FORMAT};"
            f"{_SCHEMA} COMMIT;"
        )

    def _check_format(self) -> None:
        if self._db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            raise self._damaged("it is another program's database")
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version != _FORMAT:
            raise self._damaged(
                f"it has format {version}, and this version of TierMem reads format {_FORMAT}"
            )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise CommitFailed(
                f"{self._name} could not be written ({error}); nothing of this commit was kept"
            ) from error
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn into :class:`BankDamaged` whatever reading a damaged file can lead to."""
        try:
            yield
        except _DAMAGE as error:
            raise self._damaged(f"{type(error).__name__}: {error}") from error

    def _damaged(self, why: str) -> BankDamaged:
        return BankDamaged(
            f"the journal {self._name} can't be read: {why}. Restore it from a backup; "
            "nothing was changed"
        )


def _chain(before: bytes, tick: int, events: str, vectors: bytes, note: bytes) -> bytes:
    text = events.encode()
    digest = hashlib.sha256(before)
    digest.update(f"{tick} {len(text)} {len(vectors)} ".encode())
    digest.update(text)
    digest.update(vectors)
    digest.update(note)
    return digest.digest()


def _tick_row(tick: int, commit: int, note: TickNote) -> TickRow:
    state = note.state.encode()
    # Its hash is over the text: another version of zlib may deflate it to other bytes.
    return TickRow(
        tick, commit, note.record, note.retrieved,
        hashlib.sha256(state).digest(), zlib.compress(state, 1),
    )  # fmt: skip


def _digest(key: str, value: str) -> bytes:
    return hashlib.sha256(f"{key}\0{value}".encode()).digest()


def _sync_folder(folder: Path) -> None:
    """Make a new file's name durable, not only its bytes."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
