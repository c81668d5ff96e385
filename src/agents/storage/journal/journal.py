"""The journal: every change to a bank, in SQLite. It is the truth; all else is rebuilt from it."""

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from ...errors import (
    BankDamaged,
    BankError,
    BankTooNew,
    BankTooOld,
    CommitFailed,
    CommitUnknown,
    TickNotKept,
)
from ...memory.events import EVENTS, Added, Event, Keep, Row, Start
from ...memory.requests import KeptMetadata
from ...memory.tiers import Temperature
from ...version import __version__
from .. import formats
from ..beside_journal import Found, HeadRecord, doubt, find_records, records_of
from ..interrupts import first
from ..shelf import Changes, ShelfTable
from ..sqlite import (
    DAMAGE,
    Pages,
    copy_database,
    is_of_the_system,
    log_of,
    make_private,
    open_to_read,
    sync_folder,
)
from .attachments import Attachment, AttachmentRow
from .redaction import Redaction, redact, redacted_digest
from .tables import SCHEMA, Commit, Snapshot, SnapshotRow

# The file


_APPLICATION_ID = 0x746D656D  # "tmem": tells our files from other SQLite databases
_WRITER = "tiermem"
"""What keeps the version of TierMem that gave the file its format."""
_UNSURE = (sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC)
"""The commit is written, and whether it is on disk is not known."""


class JournalFile:
    """The file at ``path``; for ``path`` None, a database that ends with this object.

    The database begins as a copy of ``copied``, a journal that another process may have open;
    ``progress`` is told of its pages. With ``seen``, it is that journal itself as it is now, to be
    read and never written.
    """

    def __init__(
        self,
        path: Path | None,
        copied: Path | None = None,
        seen: Path | None = None,
        progress: Pages | None = None,
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
                    copy_database(copied, self.db, progress)
                self._open(path, is_copy=copied is not None)
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

    def _open(self, path: Path | None, is_copy: bool) -> None:
        is_new = not self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if is_copy and not is_new:
            self._migrate()
        if not is_new:  # before anything is written to another program's file
            self._check_format()
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")
        if is_new:  # or a process was killed while it made the file
            self.db.executescript(
                f"BEGIN; PRAGMA application_id = {_APPLICATION_ID};"
                f"PRAGMA user_version = {formats.JOURNAL}; {SCHEMA}"
            )
            self.put({_WRITER: __version__})
            self.db.execute("COMMIT")
            if path:
                sync_folder(path.parent)
                sync_folder(path.parent.parent)  # the bank's folder may be new as well

    @staticmethod
    def format_of(path: Path) -> int | None:
        """The number of the format of a journal; None if the file is none, or is damaged."""
        try:
            with closing(open_to_read(path)) as database:
                if database.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
                    return None
                return int(database.execute("PRAGMA user_version").fetchone()[0])
        except DAMAGE:
            return None

    def _migrate(self) -> None:
        """Bring a copy of a journal to the present format, if its format is an earlier one."""
        version = self.db.execute("PRAGMA user_version").fetchone()[0]
        if not formats.steps("journal", version):
            return
        self.db.execute("BEGIN")
        formats.migrate("journal", version, self.db)
        self.db.execute(f"PRAGMA user_version = {formats.JOURNAL}")
        self.put({_WRITER: __version__})
        self.db.execute("COMMIT")

    def _check_format(self) -> None:
        if self.db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            raise ValueError("it is another program's database")
        version = self.db.execute("PRAGMA user_version").fetchone()[0]
        if version == formats.JOURNAL:
            return
        if version < 1:
            raise ValueError(f"it has format {version}, and there is no format of that number")
        is_later = version > formats.JOURNAL
        error, which = (BankTooNew, "a later") if is_later else (BankTooOld, "an earlier")
        opened = "open the bank once, as tiermem compact BANK does: that brings it up to date"
        raise error(
            f"the journal {self.name} has format {version}, and this version of TierMem reads "
            f"format {formats.JOURNAL}: {which} version{self._writer()} wrote it; nothing was "
            "changed",
            hint=opened if formats.steps("journal", version) else "",
        )

    def _writer(self) -> str:
        """The version of TierMem that gave a file of another format its format, if it is known."""
        try:
            found = self.get(_WRITER)
        except BankDamaged:  # the format may keep it in another way
            return ""
        is_told = isinstance(found, str) and found.isprintable() and found != __version__
        return f" ({found:.20})" if is_told else ""

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


# The journal itself


_SNAPSHOT = "REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?)"
_EMBEDDING = "INSERT OR IGNORE INTO embeddings VALUES (?, ?)"


class Journal:
    """The journal of a bank, in a file; the arguments say which, as for the file.

    ``head`` is the id of the last commit, ``hash`` the hash over all commits, ``tick`` the tick
    after the last one. ``base`` is the commit before the first commit that is here: 0, unless the
    journal was made from a checkpoint.
    """

    def __init__(
        self,
        path: Path | None,
        copied: Path | None = None,
        seen: Path | None = None,
        progress: Pages | None = None,
    ) -> None:
        source = copied or seen or path
        # They are read first: another process may write more commits while the journal is copied.
        # Who only looks may look again and again: one who copies or writes is warned.
        records = find_records(source) if source else []
        self._records = records_of(path) if path else []
        self._expects_more = False
        self.file = file = JournalFile(path, copied, seen, progress)
        self.get, self.set, self.reading = file.get, file.set, file.reading
        self.check_there = file.check_there
        self._db = file.db
        self.shelf = ShelfTable(file.db, file.reading)
        self.attachments = Attachments(file)
        self.base: int
        self.base_tick: int
        self.head: int
        self.tick: int
        self.hash: bytes
        try:
            with self.reading():
                self.base, self.base_tick = self.get("base") or (0, 0)
                self.head, self.tick, self.hash = self._last()
            self._check_acknowledged(records)
        except BaseException:
            self.leave()
            raise
        for each in () if seen else records:
            each.warn()

    def close(self) -> None:
        """Fold the log into the journal, and close the files."""
        self._close_record()
        self.file.close()

    def leave(self) -> None:
        """Close the files, and leave them as they were before they were opened."""
        self._close_record()
        self.file.leave()

    def _close_record(self) -> None:
        for each in self._records:
            each.close()

    def _check_acknowledged(self, records: Sequence[Found]) -> None:
        """Raise :class:`BankDamaged` if commits are missing that were acknowledged, or may be."""
        last = [each.last for each in records if each.last is not None]
        lost = [each.commit for each in last if not each.is_in(self.head, self.hash)]
        files = " and ".join(str(each.path) for each in records if each.is_there)
        if lost:
            raise self.lost_commits(max(lost), f"delete {files}")
        if why := doubt(records, self.head, self.hash):
            raise BankDamaged(
                f"the journal {self.file.name} may have lost commits: it ends at commit "
                f"{self.head}, and {why}; nothing was changed",
                hint="put the missing files back, or restore a checkpoint or a copy; to go on with "
                f"what is left, delete {files}",
            )

    def lost_commits(self, last: int, go_on: str) -> BankDamaged:
        """The error for a journal that has not the commit ``last``, which was acknowledged."""
        why = f"it ends at commit {self.head}, and {last} were acknowledged"
        if last == self.head:
            why = f"its commit {self.head} is another than was acknowledged"
        return BankDamaged(
            f"the journal {self.file.name} has lost commits: {why}; its log was damaged or lost, "
            "or an older copy is in its place; nothing was changed",
            hint=f"restore a checkpoint or a copy; to go on with what is left, {go_on}",
        )

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
            raise self.file.damaged("its last commit is not what was written")
        return head, tick, digest

    # Commits

    def append(
        self,
        tick: int,
        events: str,
        vectors: bytes,
        embeddings: Mapping[bytes, bytes],
        attachment: Attachment | None = None,
        shelf: Changes | None = None,
        shelf_sum: int = 0,
        redaction: Redaction | None = None,
        purged: bool = False,
        clock: Sequence[int] | None = None,
    ) -> None:
        """Record one commit. When this returns, the commit is on disk.

        :class:`CommitFailed` says that it is not, :class:`CommitUnknown` that it may be. After any
        other error, ``head`` tells.

        ``shelf`` has the changes of the memories that are not resident, ``shelf_sum`` is the sum of
        the hashes over all of these memories after the commit. ``redaction`` takes the texts and
        vectors of purged memories out of the whole journal. ``purged`` says that sequence numbers
        may be missing from now on. ``clock`` says how the wall clock moves the tick from now on.
        """
        row = None if attachment is None else attachment.row(tick, self.head + 1)
        mark = row.digest if row else b""
        digest = chained(self.hash, tick, events, vectors, mark)
        try:
            self._expect_more()
            with self.file.writing():
                self._db.execute(
                    "INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?)",
                    Commit(self.head + 1, tick, mark, digest, events, vectors),
                )
                if attachment and row:
                    self.attachments.write(row, attachment.log, digest)
                if embeddings:
                    self._db.executemany(_EMBEDDING, embeddings.items())
                if shelf:
                    self.shelf.write(self.head + 1, shelf)
                    self.file.put({"shelf_sum": _hex(shelf_sum)})
                if redaction:
                    redact(self._db, self.shelf, self._commit, redaction)
                if redaction or purged:
                    self.file.put({"purged": True, "last_purge": (self.head + 1, digest.hex())})
                if clock:
                    self.file.put({"clock": clock})
                self.file.put({"head": (self.head + 1, tick, digest.hex())})
            self.head, self.tick, self.hash = self.head + 1, tick, digest
            if self._records:
                self._records[0].write(self.head, digest)
        except CommitFailed:
            raise
        except BaseException:  # perhaps it came right after the COMMIT
            self.settle()
            raise

    def _expect_more(self) -> None:
        """Say beside the journal that commits come, before the first one after :meth:`rest`."""
        if self._records and not self._expects_more:
            self.check_there()  # or these may be the records of another journal
            is_recorded = self._records[0].begin(self.head, self.hash)
            for record in self._of_bank():
                record.expect_more(self.head, self.hash, is_recorded=is_recorded)
            self._expects_more = True

    def rest(self) -> None:
        """Keep beside the journal whose it is, what its last commit is, and that none comes now."""
        self._expects_more = False
        for record in self._of_bank():
            record.update(self.head, self.hash, at_rest=True)

    def _of_bank(self) -> list[HeadRecord]:
        """The records that say which bank has this journal."""
        bank = self.get("bank")
        for record in self._records[1:]:
            record.owner = bank["id"] if bank else None
        return self._records[1:]

    def settle(self) -> None:
        """End a transaction that an error left open, and find out what the last commit is."""
        with self.reading():
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            self.head, self.tick, self.hash = self._last()

    def commits(self, after: int) -> Iterator[Commit]:
        """The commits with an id above ``after``, in order, each checked against its hash."""
        with self.reading():
            before, expected = self.hash_of(after) or bytes(32), after + 1
            for raw in self._db.execute("SELECT * FROM commits WHERE id > ? ORDER BY id", (after,)):
                commit = Commit(*raw)
                digest = chained(before, commit.tick, commit.events, commit.vectors, commit.note)
                if commit.id != expected or (commit.hash != digest and not self._is_left(commit)):
                    raise self.file.damaged(f"commit {expected} is not what was written")
                before, expected = commit.hash, expected + 1
                yield commit

    def _is_left(self, commit: Commit) -> bool:
        """Whether this is what a redaction left of a commit."""
        row = self._db.execute(
            "SELECT digest FROM redactions WHERE commit_id = ?", (commit.id,)
        ).fetchone()
        return row is not None and bool(row[0] == redacted_digest(commit))

    def _commit(self, number: int) -> Commit:
        return next(self.commits(after=number - 1))

    def commit_of(self, tick: int) -> int:
        """The last commit that left the bank at this tick or an earlier one."""
        with self.reading():
            row = self._db.execute("SELECT max(id) FROM commits WHERE tick <= ?", (tick,))
            found = row.fetchone()[0]
            if found is None and tick < self.base_tick:
                raise TickNotKept(
                    f"the journal {self.file.name} was made from a checkpoint and begins with tick "
                    f"{self.base_tick}; it does not know tick {tick}",
                    hint=f"name a tick from {self.base_tick} on",
                )
            return self.base if found is None else int(found)

    def hash_of(self, commit: int) -> bytes | None:
        """The hash over all commits up to this one, if it is here."""
        with self.reading():
            if commit == (snapshot := self.snapshot()).commit:
                return bytes.fromhex(snapshot.hash)
            row = self._db.execute("SELECT hash FROM commits WHERE id = ?", (commit,)).fetchone()
            return row[0] if row else None

    def rewind(self, commit: int, **values: object) -> None:
        """Delete every commit after this one, for good, and keep ``values`` as :meth:`set` does.

        :class:`TickNotKept` for a commit before the checkpoint that the journal was made from.
        """
        snapshot = self.snapshot()
        with self.file.writing():
            row = self._db.execute(
                "SELECT id, tick, hash FROM commits WHERE id = ?", (commit,)
            ).fetchone()
            if snapshot.commit == commit:
                row = (commit, snapshot.tick, bytes.fromhex(snapshot.hash))
            elif snapshot.commit > commit and self.base == 0:
                self._db.execute("DELETE FROM snapshots")
                # The next opening replays all commits, and finds what was not resident.
                self.file.put({"snapshot": None, "rebuild_shelf": True})
            elif snapshot.commit > commit:
                row = None
            if row is None and (commit or self.base):
                raise TickNotKept(
                    f"the journal {self.file.name} can't go back to commit {commit}: it was made "
                    f"from a checkpoint, and has commits from {snapshot.commit} on"
                )
            for each in reversed(self._records):
                each.forget()
            self._expects_more = False
            self._db.execute("DELETE FROM commits WHERE id > ?", (commit,))
            self._db.execute("DELETE FROM redactions WHERE commit_id > ?", (commit,))
            self.attachments.rewind(commit)
            self.shelf.rewind(commit)
            head, tick, digest = row or (0, 0, bytes(32))
            own = {"head": (head, tick, digest.hex()) if head else None, "shelf_sum": None}
            self.file.put({**own, **values})
        self.head, self.tick, self.hash = head, tick, digest

    def adopt(
        self,
        head: tuple[int, int, str],
        snapshots: Iterable[SnapshotRow],
        attachments: Iterable[AttachmentRow],
        embeddings: Mapping[bytes, bytes],
        shelf: Iterable[Sequence[Any]] = (),
        **values: object,
    ) -> None:
        """Begin with the state after another journal's commit ``head``: an id, a tick, a hash."""
        if self.head or self.get("bank"):
            raise BankError(f"the journal {self.file.name} has a history of its own")
        with self.file.writing():
            self._db.executemany(_SNAPSHOT, snapshots)
            self.attachments.adopt(attachments)
            self._db.executemany(_EMBEDDING, embeddings.items())
            self.shelf.adopt(shelf)
            agents = self._db.execute("SELECT count(*) FROM snapshots").fetchone()[0]
            if head[0]:
                values |= {"snapshot": Snapshot(*head, agents), "head": head, "base": head[:2]}
            self.file.put(values)
        self.base, self.base_tick = head[:2]
        self.head, self.tick, self.hash = self._last()

    # Embeddings

    def save_embeddings(self, vectors: Mapping[bytes, bytes]) -> None:
        """Keep vectors by the hash of their text, in a transaction of their own."""
        with self.file.writing():
            self._db.executemany(_EMBEDDING, vectors.items())

    def embeddings(self, hashes: Sequence[bytes] | None = None) -> dict[bytes, bytes]:
        """The kept vectors, of all texts or of the texts with these hashes, by hash."""
        one = "SELECT * FROM embeddings WHERE hash = ?"
        with self.reading():
            if hashes is None:
                found = dict(self._db.execute("SELECT * FROM embeddings ORDER BY hash"))
            else:
                found = dict(chain.from_iterable(self._db.execute(one, (each,)) for each in hashes))
            if found:
                dims = self.get("bank")["embedder"]["dims"]
                if any(type(own) is not bytes or len(own) != dims for own in found.values()):
                    raise self.file.damaged("a vector that it keeps is not what was written")
            return found

    # The shelf

    @contextmanager
    def rebuilding_shelf(self) -> Iterator[bool]:
        """Inside, commits are replayed; True if the caller has to write the shelf on the way."""
        if not self.get("rebuild_shelf"):
            yield False
            return
        with self.file.writing():
            self.shelf.clear()
            yield True
            self.file.put({"rebuild_shelf": False})

    def check_shelf(self, shelf_sum: int) -> None:
        """Raise :class:`BankDamaged` if a replay came to another sum than the last commit.

        A memory is then missing on the shelf that was not purged.
        """
        if self.get("shelf_sum") not in (None, _hex(shelf_sum)):
            raise self.file.damaged("it has lost memories that are not resident")

    def vacuum(self) -> bool:
        """Write the file anew, without deleted rows; False if a reader keeps the old file."""
        with self.reading():
            self._db.execute("VACUUM")
            is_busy, *_ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not is_busy

    def last_purge(self) -> tuple[int, str] | None:
        """The number and the hash of the last commit that purged memories; None if none did.

        In a journal of an earlier version, it looks at every commit. If such a journal was made
        from a checkpoint, the purge may have come as late as the checkpoint.
        """
        with self.reading():
            kept = self.get("last_purge")
            if kept is None:
                purge = "SELECT id, hex(hash) FROM commits WHERE instr(events, '[\"purge\",')"
                kept = self._db.execute(f"{purge} ORDER BY id DESC LIMIT 1").fetchone()
            if kept is None and self.base and self.get("purged"):
                kept = self.base, self.snapshot().hash
            return None if kept is None else (int(kept[0]), str(kept[1]).lower())

    # Snapshots

    def write_snapshots(self, rows: Iterable[SnapshotRow]) -> None:
        """Replace the snapshots of these agents; from now on, opening starts at this commit."""
        with self.file.writing():
            self._db.executemany(_SNAPSHOT, rows)
            agents = self._db.execute("SELECT count(*) FROM snapshots").fetchone()[0]
            self.file.put({"snapshot": Snapshot(self.head, self.tick, self.hash.hex(), agents)})
            self.shelf.forget_versions(self.head)

    def snapshot(self) -> Snapshot:
        """The commit of the snapshots; commit 0 if there are none."""
        kept = self.get("snapshot")
        return Snapshot(*kept) if kept else Snapshot(0, 0, bytes(32).hex(), 0)

    def snapshot_size(self) -> int:
        """The bytes of the numbers in all snapshots: as many for each memory."""
        with self.reading():
            row = self._db.execute("SELECT total(length(columns)) FROM snapshots").fetchone()
            return int(row[0])

    def snapshots(self, agents: Iterable[str] | None = None) -> Iterator[SnapshotRow]:
        """The snapshots of all agents, or of these."""
        with self.reading():
            if agents is not None:
                one = "SELECT * FROM snapshots WHERE agent = ?"
                for agent in agents:
                    yield from map(SnapshotRow._make, self._db.execute(one, (agent,)))
                return
            count = 0
            for row in self._db.execute("SELECT * FROM snapshots ORDER BY agent"):
                count += 1
                yield SnapshotRow(*row)
            if count != self.snapshot().agents:
                raise self.file.damaged(f"it has the snapshots of {count} agents, and not of all")


# What callers attach to commits


class Attachments:
    """The attachments of a journal's commits. The caller opens and ends transactions."""

    def __init__(self, file: JournalFile) -> None:
        self._file = file
        self._db = file.db

    def exist(self) -> bool:
        """Whether there are any: who attaches to commits moves the ticks of the bank."""
        with self._file.reading():
            return self._db.execute("SELECT 1 FROM ticks LIMIT 1").fetchone() is not None

    def write(self, row: AttachmentRow, log: bytes, commit_hash: bytes) -> None:
        """Keep the attachment of a commit."""
        self.adopt([row])
        if log:
            kept = (row.tick, row.commit, log, _log_digest(commit_hash, log))
            self._db.execute("INSERT INTO decisions VALUES (?, ?, ?, ?)", kept)

    def adopt(self, rows: Iterable[AttachmentRow]) -> None:
        """Keep rows of another journal or a checkpoint."""
        self._db.executemany("INSERT INTO ticks VALUES (?, ?, ?, ?, ?, ?)", rows)

    def rewind(self, commit: int) -> None:
        """Delete the attachments of later commits."""
        self._db.execute("DELETE FROM ticks WHERE commit_id > ?", (commit,))
        self._db.execute("DELETE FROM decisions WHERE commit_id > ?", (commit,))

    def rows(self, after: int = -1) -> Iterator[AttachmentRow]:
        """The rows of the ticks after this one, in order, each checked."""
        with self._file.reading():
            base, _ = self._file.get("base") or (0, 0)
            for *raw, mark in self._db.execute(
                "SELECT ticks.*, note FROM ticks LEFT JOIN commits ON commits.id = commit_id "
                "WHERE ticks.tick > ? ORDER BY ticks.tick",
                (after,),
            ):
                row = AttachmentRow(*raw)
                # The older rows of a journal that was made from a checkpoint have no commits.
                if mark != row.digest and (mark is not None or row.commit > base):
                    raise self._file.damaged(
                        f"what it keeps of tick {row.tick} is not what was written"
                    )
                yield row
            (without,) = self._db.execute(
                "SELECT count(*) FROM commits LEFT JOIN ticks ON commits.id = commit_id "
                "WHERE note != x'' AND record IS NULL"
            ).fetchone()
            if without:
                raise self._file.damaged(f"it has lost what it kept of {without} ticks")

    def last(self) -> AttachmentRow | None:
        """The row of the last tick that has one."""
        with self._file.reading():
            last = self._db.execute("SELECT max(tick) FROM ticks").fetchone()[0]
            return None if last is None else first(self.rows(last - 1))

    def logs(self, after: int = -1) -> Iterator[tuple[int, bytes]]:
        """The log of each tick after this one that has one: tick and bytes, in order."""
        with self._file.reading():
            for tick, log, digest, commit_hash in self._db.execute(
                "SELECT decisions.tick, data, digest, hash FROM decisions "
                "JOIN commits ON commits.id = commit_id "
                "WHERE decisions.tick > ? ORDER BY decisions.tick",
                (after,),
            ):
                if digest != _log_digest(commit_hash, log):
                    raise ValueError(f"the decisions of tick {tick} are not what was written")
                yield tick, log


def _log_digest(commit_hash: bytes, log: bytes) -> bytes:
    digest = hashlib.sha256(commit_hash)
    digest.update(log)
    return digest.digest()


def _hex(total: int) -> str:
    return f"{total % (1 << 256):064x}"


# Events as JSON


def encode(events: Sequence[Row]) -> str:
    """The JSON text of ``events``; the same events give the same text, byte for byte."""
    return orjson.dumps(events, default=tuple).decode()


def decode(text: str, keep: Keep = KeptMetadata) -> list[Event]:
    """The events of a text that :func:`encode` made; ValueError for any other text.

    ``keep`` makes the metadata objects of the events.
    """
    try:
        rows = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"not a list of events: {error}") from None
    if not isinstance(rows, list):
        raise ValueError(f"not a list of events: {text:.40}")
    return parsed(rows, keep)


def parsed(rows: Sequence[Any], keep: Keep = KeptMetadata) -> list[Event]:
    """The events of the parsed JSON that :func:`encode` made; ValueError for any other JSON."""
    try:
        events: list[Event] = [EVENTS[row[0]]._make(row) for row in rows]
        return [_whole(each, keep) if isinstance(each, Added) else each for each in events]
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"not a list of events: {error!r}") from None


def _whole(event: Added, keep: Keep) -> Added:
    """The event with its metadata and start as the types that JSON lacks."""
    metadata: object = event.metadata
    if metadata is not None:
        if not isinstance(metadata, dict):
            raise ValueError(f"not metadata: {metadata!r:.40}")
        event = event._replace(metadata=keep(metadata))
    if event.start is None:
        return event
    temperature, kind, tags, expires = event.start
    start = Start(int(Temperature(temperature)), kind, tuple(tags), expires)
    return event._replace(start=start)
