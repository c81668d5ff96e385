"""A checkpoint: one portable file with the whole state of a bank after a commit.

It is a SQLite database of its own format. Every row is covered by a SHA-256 over the contents, so
that a file which is cut short, changed or swapped for another is told from a whole one.
"""

import hashlib
import json
import os
import platform
import queue
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agents.errors import (
    BankDamaged,
    BankError,
    BankTooNew,
    CheckpointDamaged,
    CheckpointError,
    InvalidInput,
)
from agents.storage import snapshots
from agents.storage.identity import with_new_id
from agents.storage.journal import Journal
from agents.storage.journal_tables import SnapshotRow
from agents.storage.ledger import Ledger
from agents.storage.resident import Resident
from agents.storage.shelf_table import SHELF_SCHEMA, ShelfTable
from agents.storage.sqlite_files import is_of_the_system, sync_file, sync_folder
from agents.storage.ticks import TickRow
from agents.storage.upgrade import upgrade_snapshot

__all__ = ["Checkpoint", "read", "restore", "write"]

_APPLICATION_ID = 0x746D636B  # "tmck"
_FORMAT = 3
_READ = (1, 2, 3)
"""Format 2 differs only in what it never has: notes."""

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE agents (
    agent TEXT PRIMARY KEY, next_sequence INTEGER NOT NULL, columns BLOB NOT NULL,
    contents BLOB NOT NULL, extras TEXT NOT NULL, vectors BLOB NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE ticks (
    tick INTEGER PRIMARY KEY, commit_id INTEGER NOT NULL, record TEXT NOT NULL,
    retrieved BLOB NOT NULL, state_hash BLOB NOT NULL, state BLOB
);
CREATE TABLE embeddings (hash BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
"""
# The indexes are for a bank that is used.
_SCHEMA += SHELF_SCHEMA[: SHELF_SCHEMA.index("CREATE UNIQUE INDEX")]

_DAMAGE = (
    sqlite3.Error,
    zlib.error,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    OverflowError,
    RecursionError,
)


class Checkpoint(NamedTuple):
    """What a checkpoint holds."""

    bank: dict[str, Any]
    """The bank's identity: id, seed, settings, embedder."""
    head: tuple[int, int, str]
    """The commit it was made after: its id, the tick, the journal's hash."""
    agents: list[SnapshotRow]
    ticks: list[TickRow]
    embeddings: dict[bytes, bytes]
    purged: bool
    """Whether sequence numbers may be missing, because memories are gone for good."""
    shelf: list[tuple[Any, ...]]
    """The memories that are not resident, as rows of the journal."""
    versions: dict[str, str]
    extra: dict[str, Any]
    """What the caller of :func:`write` added."""

    @property
    def tick(self) -> int:
        """The tick after which it was made."""
        return self.head[1]


def write(path: Path, ledger: Ledger, version: str, extra: Mapping[str, object]) -> None:
    """Write the state after the last commit.

    The file gets its name when all of it is on disk: there is a whole checkpoint or none.
    """
    if not path.name:
        raise InvalidInput("a checkpoint needs a file; got an empty path")
    journal, resident = ledger.journal, ledger.resident
    meta = {
        "bank": journal.get("bank"),
        "head": [journal.head, journal.tick, journal.hash.hex()],
        "purged": bool(journal.get("purged")),
        # Every generator is seeded from these two for each tick, so they are all random states.
        "random": {"seed": resident.seed, "tick": journal.tick},
        "versions": {
            "tiermem": version,
            "format": str(_FORMAT),
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        "extra": dict(extra),
    }
    try:
        meta = json.loads(_json(meta))  # as it will be read: JSON has text for keys
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"what goes with a checkpoint must be JSON: {error}") from None
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not _is_ours(path):
            raise CheckpointError(f"{path} is no checkpoint, so none takes its place")
        temporary.unlink(missing_ok=True)
        database = sqlite3.connect(temporary, isolation_level=None)
        try:
            _fill(database, journal, resident, meta)
        finally:
            database.close()
        sync_file(temporary)
        temporary.replace(path)
        sync_folder(path.parent)
    except (OSError, sqlite3.Error, ValueError) as error:  # a NUL in a path is a ValueError
        raise CheckpointError(
            f"the checkpoint {str(path)!r} can't be written: {error}; nothing was changed"
        ) from error
    finally:
        _discard(temporary)


def _is_ours(path: Path) -> bool:
    """Whether a file looks like a checkpoint, a damaged one perhaps."""
    with path.open("rb") as file:
        head = file.read(72)
    return not head or head[68:72] == _APPLICATION_ID.to_bytes(4, "big")


def _fill(
    database: sqlite3.Connection, journal: Journal, resident: Resident, meta: Mapping[str, object]
) -> None:
    # Nobody reads the file before it is whole, so SQLite need not protect it; large pages suit
    # large blobs.
    for pragma in ("page_size = 65536", "journal_mode = OFF", "synchronous = OFF",
                   f"application_id = {_APPLICATION_ID}", f"user_version = {_FORMAT}"):  # fmt: skip
        database.execute(f"PRAGMA {pragma}")
    database.executescript(_SCHEMA)
    digest = _Digest(meta)
    database.execute("BEGIN")
    for row in _ahead(snapshots.pack(block) for _, block in sorted(resident.blocks.items())):
        digest.add(row.digest)
        database.execute("INSERT INTO agents VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    ticks = list(journal.tick_rows())
    for tick in [*(each._replace(packed_state=None) for each in ticks[:-1]), *ticks[-1:]]:
        digest.add_tick(tick)
        database.execute("INSERT INTO ticks VALUES (?, ?, ?, ?, ?, ?)", tick)
    vectors = journal.all_embeddings()
    digest.add_embeddings(vectors)
    database.executemany("INSERT INTO embeddings VALUES (?, ?)", vectors.items())
    marks = ",".join("?" * 22)
    database.executemany(
        f"INSERT INTO shelf VALUES ({marks})",  # noqa: S608
        map(digest.add_shelved, journal.shelf.all_now()),
    )
    texts = {key: _json(value) for key, value in meta.items()}
    database.executemany(
        "INSERT INTO meta VALUES (?, ?)", [*texts.items(), ("sha256", digest.hexdigest())]
    )
    database.execute("COMMIT")


def _ahead(rows: Iterator[SnapshotRow]) -> Iterator[SnapshotRow]:
    """The same rows, made in another thread while SQLite writes those before.

    Both hashing and writing let other threads run.
    """
    made: queue.Queue[SnapshotRow | BaseException | None] = queue.Queue(maxsize=16)
    stopped = threading.Event()

    def put(row: SnapshotRow | BaseException | None) -> None:
        while not stopped.is_set():
            try:
                made.put(row, timeout=0.1)
            except queue.Full:
                continue
            return

    def make() -> None:
        try:
            for row in rows:
                put(row)
                if stopped.is_set():
                    return
            put(None)
        except BaseException as error:  # noqa: BLE001 - raised again where the rows are taken
            put(error)

    maker = threading.Thread(target=make, daemon=True)
    maker.start()
    try:
        while (row := made.get()) is not None:
            if isinstance(row, BaseException):
                raise row
            yield row
    finally:
        stopped.set()
        maker.join()


def read(path: Path) -> Checkpoint:
    """The checkpoint in a file, all that it holds checked; the file is not changed."""
    if not path.is_file():
        raise CheckpointError(f"there is no checkpoint {path}")
    if not path.stat().st_size:
        raise CheckpointDamaged(f"{path} is empty: it was never written whole. Use another one")
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            return _read(database)
        finally:
            database.close()
    except (*_DAMAGE, BankDamaged) as error:
        if isinstance(error, sqlite3.Error) and is_of_the_system(error):
            raise CheckpointError(f"{path} can't be read now: {error}") from error
        raise CheckpointDamaged(
            f"{path} is not a whole checkpoint: {error}. It was not changed; use another one"
        ) from error


def _read(database: sqlite3.Connection) -> Checkpoint:
    if database.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise ValueError("it is another program's file")
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version not in _READ:
        raise ValueError(f"it has format {version}, and this version of TierMem reads {_FORMAT}")
    texts = dict(database.execute("SELECT key, value FROM meta"))
    expected = texts.pop("sha256")
    meta = {key: json.loads(text) for key, text in texts.items()}
    digest = _Digest(meta)
    agents = [SnapshotRow(*row) for row in database.execute("SELECT * FROM agents ORDER BY agent")]
    for agent in agents:
        if version > 1:
            snapshots.check(agent)
        digest.add(agent.digest)
    ticks = [TickRow(*row) for row in database.execute("SELECT * FROM ticks ORDER BY tick")]
    for tick in ticks:
        digest.add_tick(tick)
    embeddings = dict(database.execute("SELECT hash, vector FROM embeddings ORDER BY hash"))
    digest.add_embeddings(embeddings)
    shelf = []
    if version > 1:
        shelf = list(map(digest.add_shelved, ShelfTable(database).all_now()))
    if digest.hexdigest() != expected:
        raise ValueError("its contents are not what was written")
    if version == 1:
        agents = list(map(upgrade_snapshot, agents))
    commit, tick_number, journal_hash = meta["head"]
    head = (commit, tick_number, journal_hash)
    return Checkpoint(
        meta["bank"],
        head,
        agents,
        ticks,
        embeddings,
        meta.get("purged", True),
        shelf,
        meta["versions"],
        meta["extra"],
    )


def restore(checkpoint: Checkpoint, folder: Path, *, same_bank: bool = False) -> None:
    """Give the bank in ``folder`` the state of a checkpoint, or make one; its lock is the caller's.

    The new journal takes the old one's place when it is whole. The old one is gone then, unless it
    can't be read: that is moved aside. ``same_bank``: it is this bank, though its journal is lost.
    """
    path, temporary = folder / "journal.db", folder / "journal.db.restoring"
    parts = [temporary.with_name(temporary.name + end) for end in ("", "-wal", "-shm")]
    bank, store = _replaced(path, checkpoint.bank, same_bank)
    try:
        _discard(*parts)
        journal = Journal(temporary)
        try:
            journal.adopt(
                checkpoint.head,
                checkpoint.agents,
                checkpoint.ticks,
                checkpoint.embeddings,
                checkpoint.shelf,
                bank=bank,
                store=store,
                purged=checkpoint.purged,
                notes_unwritten=True,
            )
        finally:
            journal.close()
        sync_file(temporary)
        # The log of a journal that is gone must not be taken for the new one's.
        _discard(path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm"))
        temporary.replace(path)
        sync_folder(folder)
    except OSError as error:
        raise CheckpointError(
            f"the checkpoint can't be restored into {folder}: {error}; nothing was changed"
        ) from error
    finally:
        _discard(*parts)


def _replaced(
    path: Path, bank: dict[str, Any], same_bank: bool
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The identity that the restored bank gets, and where the store of the bank in its place is.

    A copy elsewhere is a bank of its own: two that write to one store would not notice each other.
    """
    if not path.exists():
        # Beside a store there was a bank, and most likely this one, whose journal is lost.
        lost = any(each.is_dir() and each.name != "notes" for each in path.parent.iterdir())
        return bank if same_bank or lost else with_new_id(bank), None
    try:
        old = Journal(path)
    except BankTooNew:
        raise
    except BankDamaged:
        _move_aside(path)
        return bank, None
    try:
        identity, store = old.get("bank"), old.get("store")
        _read_all(old)
    except BankDamaged:  # what can't be read is not replaced, but kept
        old.close()
        _move_aside(path)
        return bank, None
    finally:
        old.close()  # which also folds its log, that must not be taken for the new one's
    if identity and identity["id"] != bank["id"]:
        raise BankError(
            f"{path.parent} holds another bank than the one the checkpoint was made of; "
            "restore it into a new folder"
        )
    return bank, {**store, "stale": True} if store else None


def _read_all(journal: Journal) -> None:
    """Raise :class:`BankDamaged` if anything in a journal is not what was written."""
    for row in journal.snapshots():
        snapshots.check(row)
    first = journal.snapshot().commit if journal.base else 0
    for _ in journal.commits(after=first):
        pass
    with journal.reading():
        for _ in journal.shelf.all_now():
            pass
        for tick in journal.tick_rows():
            if tick.packed_state is not None:
                tick.state()


def _move_aside(path: Path) -> None:
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    try:
        for end in ("-wal", ""):
            part = path.with_name(path.name + end)
            if part.exists():
                part.rename(aside.with_name(aside.name + end))
    except OSError as error:
        raise CheckpointError(f"the damaged {path} can't be moved aside: {error}") from error


class _Digest:
    """The SHA-256 over a checkpoint's contents."""

    def __init__(self, meta: Mapping[str, object]) -> None:
        text = _json({key: meta[key] for key in sorted(meta)})
        self._hash = hashlib.sha256(text.encode())
        self.hexdigest = self._hash.hexdigest

    def add(self, part: bytes) -> None:
        self._hash.update(b"%d\0" % len(part))
        self._hash.update(part)

    def add_tick(self, row: TickRow) -> None:
        self.add(row.digest)
        self.add(b"%d" % row.commit)
        if row.packed_state is not None:
            row.state()  # is covered by the digest if it is what its own hash says
            self.add(b"state")

    def add_shelved(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        self.add(b"%d %d " % (row[4], row[6]) + row[5])  # its seal, tokens and digest
        return row

    def add_embeddings(self, vectors: Mapping[bytes, bytes]) -> None:
        for key, vector in vectors.items():
            self.add(key)
            self.add(vector)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)


def _discard(*paths: Path) -> None:
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except (OSError, ValueError):  # a disk that can't delete; what matters was said already
            continue
