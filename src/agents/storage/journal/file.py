"""A journal's SQLite file: its tables, and reads and writes.

It tells damage from a full disk, and a write is whole or not there.
"""

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import BankDamaged, BankError, BankTooNew, BankTooOld, CommitFailed, CommitUnknown
from ..shelf import SHELF_SCHEMA
from ..sqlite import (
    DAMAGE,
    copy_database,
    is_of_the_system,
    log_of,
    make_private,
    open_to_read,
    sync_folder,
)

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, digest BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE commits (
    id INTEGER PRIMARY KEY,
    tick INTEGER NOT NULL,   -- after the commit
    -- These two first: SQLite reads a row up to the last column that is asked for.
    note BLOB NOT NULL,      -- digest of the row in ticks, if the commit has an attachment
    hash BLOB NOT NULL,      -- over the hash before it and all of the others
    events TEXT NOT NULL,    -- JSON array of events
    vectors BLOB NOT NULL    -- int8, one vector per added memory, in order
);
-- Attachments of commits: what a simulation keeps of each tick, beside the memories.
CREATE TABLE ticks (
    tick INTEGER PRIMARY KEY,
    commit_id INTEGER NOT NULL,
    record TEXT NOT NULL,     -- JSON: state hash, counts, metrics
    retrieved BLOB NOT NULL,  -- uint32: how many memories each agent got, then which
    state_hash BLOB NOT NULL,
    state BLOB                -- the world's state after the tick: JSON, deflated
);
CREATE TABLE decisions (
    tick INTEGER PRIMARY KEY, commit_id INTEGER NOT NULL, data BLOB NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE snapshots (
    agent TEXT PRIMARY KEY,
    next_sequence INTEGER NOT NULL,
    columns BLOB NOT NULL,
    contents BLOB NOT NULL,
    extras TEXT NOT NULL,     -- JSON: metadata, kinds and tags, recalls
    vectors BLOB NOT NULL,
    digest BLOB NOT NULL
);
-- A commit that lost purged texts no longer fits its hash; this hash covers what is left of it.
CREATE TABLE redactions (commit_id INTEGER PRIMARY KEY, digest BLOB NOT NULL);
CREATE TABLE embeddings (hash BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
-- For people who look at the file with a database tool.
CREATE VIEW events AS
    SELECT commits.id AS commit_id, commits.tick AS tick,
           json_extract(e.value, '$[0]') AS kind, json_extract(e.value, '$[1]') AS agent,
           json_extract(e.value, '$[2]') AS sequence, json_extract(e.value, '$[3]') AS tier,
           json_extract(e.value, '$[4]') AS content, json_extract(e.value, '$[5]') AS metadata
    FROM commits, json_each(commits.events) AS e;
"""
SCHEMA = _TABLES + SHELF_SCHEMA


class Commit(NamedTuple):
    """What one transaction recorded."""

    id: int
    tick: int
    note: bytes
    hash: bytes
    events: str
    vectors: bytes


class Snapshot(NamedTuple):
    """The commit after which the snapshots were made, and the number of their agents."""

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
    extras: str
    vectors: bytes
    digest: bytes


# The file


_APPLICATION_ID = 0x746D656D  # "tmem": tells our files from other SQLite databases
_FORMAT = 6
_UNSURE = (sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC)
"""The commit is written, and whether it is on disk is not known."""


class JournalFile:
    """The file at ``path``; for ``path`` None, a database that ends with this object.

    The database begins as a copy of ``copied``, a journal that another process may have open. With
    ``seen``, it is that journal itself as it is now, to be read and never written.
    """

    def __init__(
        self, path: Path | None, copied: Path | None = None, seen: Path | None = None
    ) -> None:
        self.name = str(path or copied or seen or "in memory")
        self._path = path and path.absolute()  # the process may go to another folder
        self._had_log = self._path is not None and log_of(self._path).exists()
        self._file: tuple[int, int] | None = None
        if seen:
            self._see(seen)
            return
        with self.reading():
            if path:
                make_private(path)
            self.db = sqlite3.connect(
                # A copy may be large: SQLite keeps it in a file without a name.
                path or ("" if copied else ":memory:"),
                isolation_level=None,
                check_same_thread=False,
            )
        try:
            with self.reading():
                if copied:
                    copy_database(copied, self.db)
                self._open(path)
        except BaseException:
            self.leave()  # or SQLite would remember the file for the next to open it
            raise
        self._file = _identity(path) if path else None

    def _see(self, path: Path) -> None:
        with self.reading():
            self.db = open_to_read(path)
            try:
                self.db.execute("BEGIN")  # what is read is of one moment, until it is closed
                self._check_format()
            except BaseException:
                self.db.close()
                raise

    def _open(self, path: Path | None) -> None:
        is_new = not self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not is_new:  # before anything is written to another program's file
            self._check_format()
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")
        if is_new:  # or a process was killed while it made the file
            self.db.executescript(
                f"BEGIN; PRAGMA application_id = {_APPLICATION_ID};"
                f"PRAGMA user_version = {_FORMAT}; {SCHEMA} COMMIT;"
            )
            if path:
                sync_folder(path.parent)
                sync_folder(path.parent.parent)  # the bank's folder may be new as well

    def _check_format(self) -> None:
        if self.db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            raise ValueError("it is another program's database")
        version = self.db.execute("PRAGMA user_version").fetchone()[0]
        if version == _FORMAT:
            return
        if version < 1:
            raise ValueError(f"it has format {version}, and there is no format of that number")
        error, which = (BankTooNew, "a later") if version > _FORMAT else (BankTooOld, "an earlier")
        raise error(
            f"the journal {self.name} has format {version}, and this version of TierMem reads "
            f"format {_FORMAT}: {which} version wrote it; nothing was changed"
        )

    def close(self) -> None:
        """Fold the write-ahead log into the file and close it."""
        self.db.close()

    def leave(self) -> None:
        """Close the file as it is: a refused opening leaves its write-ahead log as it was."""
        with ExitStack() as last:
            if self._path is not None and self._had_log:
                # Only the last connection folds the log, and one that may not write can't.
                with suppress(sqlite3.Error):
                    keeper = sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True)
                    last.callback(keeper.close)
                    keeper.execute("SELECT count(*) FROM sqlite_master").fetchone()
            self.db.close()

    # Settings and cursors

    def get(self, key: str) -> Any:
        """The value kept under ``key``, or None."""
        with self.reading():
            row = self.db.execute("SELECT value, digest FROM meta WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            if _digest(key, row[0]) != row[1]:
                raise self.damaged(f"what it keeps as {key} is not what was written")
            return json.loads(row[0])

    def set(self, **values: object) -> None:
        """Keep JSON values under their keys, in a transaction of their own."""
        with self.writing():
            self.put(values)

    def put(self, values: Mapping[str, object]) -> None:
        """Keep JSON values under their keys, in the transaction that is open."""
        for key, value in values.items():
            text = _to_json(value)
            self.db.execute("REPLACE INTO meta VALUES (?, ?, ?)", (key, text, _digest(key, text)))

    # Reading and writing

    def is_there(self) -> bool:
        """Whether the file is where it was opened; True for one in memory."""
        return self._path is None or _identity(self._path) == self._file

    def check_there(self) -> None:
        """Raise :class:`CommitFailed` if the file is gone: SQLite would write to nowhere."""
        if not self.is_there():
            raise CommitFailed(
                f"the journal {self.name} is gone, or another file is in its place; nothing of "
                "this commit was kept",
                hint="put the bank's folder back, and open it again",
            )

    def writing(self) -> "_Writing":
        """A transaction: all that is written inside is durable at its end, or nothing is."""
        return _Writing(self)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn into :class:`BankDamaged` whatever reading a damaged file can lead to."""
        try:
            yield
        except DAMAGE as error:
            if isinstance(error, sqlite3.Error) and is_of_the_system(error):
                raise BankError(
                    f"the journal {self.name} can't be opened now: {error}; nothing is wrong with "
                    "the journal itself",
                    hint="look for a full disk or missing permissions",
                ) from error
            raise self.damaged(f"{type(error).__name__}: {error}") from error

    def damaged(self, why: str) -> BankDamaged:
        """The error that says what is wrong with this file."""
        return BankDamaged(f"the journal {self.name} can't be read: {why}; nothing was changed")


class _Writing:
    """A transaction of a file.

    It is not a generator: where an error came at the very call of its end, a program may keep that
    error, and a generator would end later, in the middle of another transaction.
    """

    def __init__(self, file: JournalFile) -> None:
        self._file = file

    def __enter__(self) -> None:
        self._file.check_there()
        try:
            self._roll_back()  # an error may have come before an earlier one was ended
            self._file.db.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._commit()
            elif isinstance(error, sqlite3.Error):
                raise self._failed(error) from error
        finally:
            self._roll_back()

    def _commit(self) -> None:
        try:
            self._file.db.execute("COMMIT")
        except sqlite3.Error as error:
            if error.sqlite_errorcode in _UNSURE:
                raise CommitUnknown(
                    f"the journal {self._file.name} could not be made durable ({error}); whether "
                    "this commit was kept is known when the bank is opened again"
                ) from error
            raise self._failed(error) from error

    def _roll_back(self) -> None:
        if self._file.db.in_transaction:
            self._file.db.execute("ROLLBACK")

    def _failed(self, error: sqlite3.Error) -> CommitFailed:
        return CommitFailed(
            f"the journal {self._file.name} could not be written ({error}); nothing of this commit "
            "was kept"
        )


_to_json = json.JSONEncoder(sort_keys=True).encode


def _digest(key: str, value: str) -> bytes:
    """The hash over a value that is kept under a key."""
    return hashlib.sha256(f"{key}\0{value}".encode()).digest()


def _identity(path: Path) -> tuple[int, int] | None:
    """The device and the number of the file at a path; None if there is no file."""
    try:
        found = os.stat(path)  # before each commit: path.stat() takes twice as long
    except OSError:
        return None
    return found.st_dev, found.st_ino


def chained(before: bytes, tick: int, events: str, vectors: bytes, note: bytes) -> bytes:
    """The hash of a commit: over the hash before it and all that the commit recorded."""
    text = events.encode()
    digest = hashlib.sha256(before)
    digest.update(f"{tick} {len(text)} {len(vectors)} ".encode())
    digest.update(text)
    digest.update(vectors)
    digest.update(note)
    return digest.digest()
