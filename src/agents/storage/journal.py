"""The journal: every change to a bank, in SQLite. It is the truth; all else is rebuilt from it."""

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agents.errors import BankDamaged, BankError, BankTooNew, CommitFailed, TickNotKept
from agents.storage.journal_tables import SCHEMA, Commit, Snapshot, SnapshotRow
from agents.storage.sqlite_files import copy_database, is_of_the_system, sync_folder
from agents.storage.ticks import TickNote, TickRow

__all__ = ["Journal"]

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


class Journal:
    """A bank's journal file, or one that goes with this object for ``path`` None.

    ``copied`` is a journal's file to begin with: whoever has it open may go on writing to it.

    ``head`` is the id of the last commit, ``hash`` the hash over all of them, ``tick`` the tick
    after it. ``base`` is the commit before the first that is here: 0, unless the journal was made
    from a checkpoint.
    """

    def __init__(self, path: Path | None, copied: Path | None = None) -> None:
        self._name = str(path) if path else "this bank"
        self.base: int
        self.base_tick: int
        self.head: int
        self.tick: int
        self.hash: bytes
        try:
            self._db = sqlite3.connect(
                # A copy may be large: SQLite keeps it in a file of its own, with no name.
                path or ("" if copied else ":memory:"),
                isolation_level=None,
                check_same_thread=False,
            )
        except sqlite3.Error as error:
            raise self._damaged(str(error)) from error
        try:
            with self.reading():
                if copied:
                    copy_database(copied, self._db)
                self._open(path)
                self.base, self.base_tick = self.get("base") or (0, 0)
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
                sync_folder(path.parent)
                sync_folder(path.parent.parent)  # the bank's folder may be new as well

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
        row = None if note is None else note.row(tick, self.head + 1)
        mark = row.digest if row else b""
        digest = _chain(self.hash, tick, events, vectors, mark)
        try:
            with self._writing():
                self._db.execute(
                    "INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?)",
                    Commit(self.head + 1, tick, mark, digest, events, vectors),
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

    def commit_of(self, tick: int) -> int:
        """The last commit that left the bank at this tick or an earlier one."""
        with self.reading():
            row = self._db.execute("SELECT max(id) FROM commits WHERE tick <= ?", (tick,))
            found = row.fetchone()[0]
            if found is None and tick < self.base_tick:
                raise TickNotKept(
                    f"{self._name} was made from a checkpoint and begins with tick "
                    f"{self.base_tick}; it does not know tick {tick}"
                )
            return self.base if found is None else int(found)

    def hash_of(self, commit: int) -> bytes | None:
        """The hash over all commits up to this one, if it is here."""
        with self.reading():
            row = self._db.execute("SELECT hash FROM commits WHERE id = ?", (commit,)).fetchone()
            if row is None and commit == (snapshot := self.snapshot()).commit:
                return bytes.fromhex(snapshot.hash)
            return row[0] if row else None

    def rewind(self, commit: int, **values: object) -> None:
        """Forget every commit after this one, for good; and keep ``values``, as :meth:`set` does.

        :class:`BankError` for what lies before a checkpoint that the journal was made from.
        """
        snapshot = self.snapshot()
        with self._writing():
            row = self._db.execute(
                "SELECT id, tick, hash FROM commits WHERE id = ?", (commit,)
            ).fetchone()
            if snapshot.commit == commit:
                row = (commit, snapshot.tick, bytes.fromhex(snapshot.hash))
            elif snapshot.commit > commit and self.base == 0:
                self._db.execute("DELETE FROM snapshots")
                self._set({"snapshot": None})
            elif snapshot.commit > commit:
                row = None
            if row is None and (commit or self.base):
                raise TickNotKept(
                    f"{self._name} can't go back to commit {commit}: it was made from a "
                    f"checkpoint, and has commits from {snapshot.commit} on"
                )
            self._db.execute("DELETE FROM commits WHERE id > ?", (commit,))
            self._db.execute("DELETE FROM ticks WHERE commit_id > ?", (commit,))
            head, tick, digest = row or (0, 0, bytes(32))
            self._set({"head": (head, tick, digest.hex()) if head else None, **values})
        self.head, self.tick, self.hash = head, tick, digest

    def adopt(
        self,
        head: tuple[int, int, str],
        snapshots: Iterable[SnapshotRow],
        ticks: Iterable[TickRow],
        embeddings: Mapping[bytes, bytes],
        **values: object,
    ) -> None:
        """Begin with the state after another journal's commit ``head``: its id, tick and hash."""
        if self.head or self.get("bank"):
            raise BankError(f"{self._name} has a history of its own")
        with self._writing():
            self._db.executemany("INSERT INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?)", snapshots)
            self._db.executemany("INSERT INTO ticks VALUES (?, ?, ?, ?, ?, ?)", ticks)
            self._set_embeddings(embeddings)
            agents = self._db.execute("SELECT count(*) FROM snapshots").fetchone()[0]
            if head[0]:
                values |= {"snapshot": Snapshot(*head, agents), "head": head, "base": head[:2]}
            self._set(values)
        self.base, self.base_tick = head[:2]
        self.head, self.tick, self.hash = self._last()

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
                # The older ticks of a journal that was made from a checkpoint have no commits.
                if raw[-1] != row.digest and (raw[-1] is not None or row.commit > self.base):
                    raise self._damaged(f"what it keeps of tick {row.tick} is not what was written")
                yield row
            (without,) = self._db.execute(
                "SELECT count(*) FROM commits LEFT JOIN ticks ON commits.id = commit_id "
                "WHERE note != x'' AND record IS NULL"
            ).fetchone()
            if without:
                raise self._damaged(f"it has lost what it kept of {without} ticks")

    def last_tick(self) -> TickRow | None:
        """What is kept of the last tick, if any is."""
        with self.reading():
            last = self._db.execute("SELECT max(tick) FROM ticks").fetchone()[0]
            return None if last is None else next(self.tick_rows(last - 1))

    def save_embeddings(self, vectors: Mapping[bytes, bytes]) -> None:
        """Keep vectors by the hash of their text, in a transaction of their own."""
        with self._writing():
            self._set_embeddings(vectors)

    def _set_embeddings(self, vectors: Mapping[bytes, bytes]) -> None:
        self._db.executemany("INSERT OR IGNORE INTO embeddings VALUES (?, ?)", vectors.items())

    def all_embeddings(self) -> dict[bytes, bytes]:
        """All vectors that are kept, by the hash of their text."""
        with self.reading():
            return dict(self._db.execute("SELECT * FROM embeddings ORDER BY hash"))

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
            f"{SCHEMA} COMMIT;"
        )

    def _check_format(self) -> None:
        if self._db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            raise self._damaged("it is another program's database")
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > _FORMAT:
            raise BankTooNew(
                f"the journal {self._name} has format {version}, and this version of TierMem reads "
                f"format {_FORMAT}: a later version wrote it. Nothing was changed"
            )
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
            if isinstance(error, sqlite3.Error) and is_of_the_system(error):
                raise BankError(
                    f"the journal {self._name} can't be opened now: {error}. Nothing is wrong with "
                    "the journal itself; look for a full disk or missing permissions"
                ) from error
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


def _digest(key: str, value: str) -> bytes:
    return hashlib.sha256(f"{key}\0{value}".encode()).digest()
