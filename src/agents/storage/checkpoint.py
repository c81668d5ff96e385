"""A checkpoint: one portable file with the whole state of a bank after a commit, and back.

It is a SQLite database with tables of its own. A SHA-256 covers every row, so a file that was cut
short or changed is told from a whole one.
"""

import hashlib
import json
import os
import platform
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import (
    BankDamaged,
    BankError,
    BankTooNew,
    BankTooOld,
    CheckpointDamaged,
    CheckpointError,
    InvalidInput,
)
from ..version import __version__
from . import formats
from .beside_journal import APPLICATION_ID, bank_of, is_ours, records_of
from .columns.agent_columns import AgentColumns
from .files import make_folder, sweep_files
from .journal.attachments import AttachmentRow
from .journal.journal import Journal
from .journal.tables import SnapshotRow
from .shelf import SHELF_SCHEMA, ShelfTable
from .sqlite import DAMAGE, discard, is_of_the_system, log_of, make_private, sync_file, sync_folder
from .state import snapshots
from .state.ledger import Ledger, hold_signals, let_signals_come, whole
from .state.state import State
from .trust import with_new_id

_AT_ONCE = 4_000_000
"""Bytes that are inserted together: with an agent at a time, threads would wait for each other."""
_TO_DISK = 8_000_000
"""Bytes that are inserted before the file is synced, while more are inserted."""

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
_MADE_UP = """
SELECT 1 FROM sqlite_master WHERE type NOT IN ('table', 'index') OR rootpage = 0
UNION ALL
SELECT 1 FROM sqlite_master AS master, pragma_table_xinfo(master.name) AS own WHERE own.hidden
"""
"""Finds views, virtual tables and generated columns: what they hold is in no file."""


class Checkpoint(NamedTuple):
    """What a checkpoint holds."""

    bank: dict[str, Any]
    """The bank's identity: id, seed, settings, embedder."""
    head: tuple[int, int, str]
    """The commit after which it was made: its id, the tick, the journal's hash."""
    agents: list[SnapshotRow]
    attachments: list[AttachmentRow]
    embeddings: dict[bytes, bytes]
    purged: bool
    """Whether sequence numbers may be missing, because memories are gone for good."""
    last_purge: list[Any] | None
    """The number and the hash of the last commit that purged memories, if one did."""
    clock: list[int] | None
    """How the wall clock moves the tick, if it does."""
    shelf: list[tuple[Any, ...]]
    """The memories that are not resident, as rows of the journal."""
    versions: dict[str, str]
    extra: dict[str, Any]
    """What the caller of :func:`write` added to it."""

    @property
    def tick(self) -> int:
        """The tick after which it was made."""
        return self.head[1]


def write(path: Path, ledger: Ledger, version: str, extra: Mapping[str, object]) -> None:
    """Write the state after the last commit.

    The file gets its name when all of its bytes are on disk: there is a whole checkpoint or none.
    """
    if not path.name:
        raise InvalidInput("a checkpoint needs a file; got an empty path", hint="name a file")
    journal, state = ledger.journal, ledger.state
    meta = {
        "bank": journal.get("bank"),
        "head": [journal.head, journal.tick, journal.hash.hex()],
        "purged": bool(journal.get("purged")),
        **({"last_purge": purge} if (purge := journal.get("last_purge")) else {}),
        **({"clock": clock} if (clock := journal.get("clock")) else {}),
        # Every generator is seeded from these two in each tick: no other random state exists.
        "random": {"seed": state.seed, "tick": journal.tick},
        "versions": {
            "tiermem": version,
            "format": str(formats.CHECKPOINT),
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        "extra": dict(extra),
    }
    try:
        meta = json.loads(_json(meta))  # JSON turns keys into text; the hash covers that
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"what goes with a checkpoint must be JSON: {error}") from None
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        make_folder(path.parent)
        if path.exists() and not is_ours(path):
            raise CheckpointError(
                f"{path} is not a checkpoint, so none takes its place", hint="name another file"
            )
        own = re.escape(path.name)
        sweep_files(path.parent, re.compile(rf"\.(?:.+\.tmck|{own})\.(\d+)\.tmp"))
        temporary.unlink(missing_ok=True)
        make_private(temporary)
        # One thread inserts while this thread packs; only one of them uses the database at a time.
        database = sqlite3.connect(temporary, isolation_level=None, check_same_thread=False)
        inserting = ThreadPoolExecutor(1, "tiermem-checkpoint")
        syncing = ThreadPoolExecutor(1, "tiermem-sync")
        hold_signals()
        try:
            _fill(database, temporary, inserting, syncing, journal, state, meta)
        finally:
            try:
                _end(database, inserting, syncing)
            finally:
                let_signals_come()
        sync_file(temporary)
        temporary.replace(path)
        sync_folder(path.parent)
    except (OSError, sqlite3.Error, ValueError) as error:  # a NUL in a path is a ValueError
        raise CheckpointError(
            f"the checkpoint {str(path)!r} can't be written: {error}; nothing was changed",
        ) from error
    finally:
        discard(temporary)


def _fill(
    database: sqlite3.Connection,
    path: Path,
    inserting: Executor,
    syncing: Executor,
    journal: Journal,
    state: State,
    meta: Mapping[str, object],
) -> None:
    # No process reads the file before it is whole, so SQLite need not protect it. Large pages suit
    # large blobs.
    for pragma in (
        "page_size = 65536",
        "journal_mode = OFF",
        "synchronous = OFF",
        f"application_id = {APPLICATION_ID}",
        f"user_version = {formats.CHECKPOINT}",
    ):
        database.execute(f"PRAGMA {pragma}")
    database.executescript(_SCHEMA)
    digest = _Digest(meta)
    database.execute("BEGIN")
    blocks = map(state.blocks.peek, sorted(state.blocks))
    inserted: Future[None] | None = None
    synced: Future[None] | None = None
    written = 0
    for rows in _packed(blocks):  # a thread inserts rows while the next rows are packed
        for row in rows:
            digest.add(row.digest)
        _check(inserted)
        inserted = inserting.submit(_insert, database, rows)
        written += sum(map(_size, rows))
        if written >= _TO_DISK and (synced is None or synced.done()):
            _check(synced)
            synced, written = syncing.submit(sync_file, path), 0
    _check(inserted)
    _check(synced)
    attachments = list(journal.attachments.rows())
    older = [each._replace(packed_state=None) for each in attachments[:-1]]
    for attached in (*older, *attachments[-1:]):
        digest.add_attachment(attached)
        database.execute("INSERT INTO ticks VALUES (?, ?, ?, ?, ?, ?)", attached)
    vectors = journal.embeddings()
    digest.add_embeddings(vectors)
    database.executemany("INSERT INTO embeddings VALUES (?, ?)", vectors.items())
    ShelfTable(database).adopt(map(digest.add_shelved, journal.shelf.all_now()))
    texts = {key: _json(value) for key, value in meta.items()}
    database.executemany(
        "INSERT INTO meta VALUES (?, ?)", [*texts.items(), ("sha256", digest.hexdigest())]
    )
    database.execute("COMMIT")


@whole
def _end(database: sqlite3.Connection, inserting: Executor, syncing: Executor) -> None:
    """Close the database after the last insert, and wait until no thread is left.

    Signals wait, too: a second Ctrl-C would let the process end while a thread uses SQLite.
    """
    with inserting, syncing:
        inserting.submit(database.close).result()


def _insert(database: sqlite3.Connection, rows: list[SnapshotRow]) -> None:
    # The cursor dies here, in the thread that used it: its death resets the statement, which the
    # next insert uses as well.
    database.executemany("INSERT INTO agents VALUES (?, ?, ?, ?, ?, ?, ?)", rows)


def _packed(blocks: Iterable[AgentColumns]) -> Iterator[list[SnapshotRow]]:
    """The states of the agents, in lists of about ``_AT_ONCE`` bytes."""
    rows: list[SnapshotRow] = []
    size = 0
    for block in blocks:
        rows.append(snapshots.pack(block))
        size += _size(rows[-1])
        if size >= _AT_ONCE:
            yield rows
            rows, size = [], 0
    yield rows


def _size(row: SnapshotRow) -> int:
    return sum(map(len, row[2:6]))


def _check(done: "Future[None] | None") -> None:
    """Wait, and raise what went wrong: a disk reports a failed write only once."""
    if done is not None:
        done.result()


def read(path: Path) -> Checkpoint:
    """The checkpoint in a file; every row is checked, and the file is not changed."""
    if not path.is_file():
        raise CheckpointError(f"there is no checkpoint {path}", hint="check the path")
    if not path.stat().st_size:
        raise CheckpointDamaged(
            f"{path} is empty: it was never written whole", hint="use another one"
        )
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            return _read(database, path)
        finally:
            database.close()
    except MemoryError as error:
        raise CheckpointError(f"{path} can't be read now: it needs more memory") from error
    except (*DAMAGE, RecursionError, BankDamaged) as error:
        if isinstance(error, sqlite3.Error) and is_of_the_system(error):
            raise CheckpointError(f"{path} can't be read now: {error}") from error
        raise CheckpointDamaged(
            f"{path} is not a whole checkpoint: {error}; it was not changed",
            hint="use another one",
        ) from error


def _read(database: sqlite3.Connection, path: Path) -> Checkpoint:
    if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise ValueError("it is another program's file")
    version = database.execute("PRAGMA user_version").fetchone()[0]
    size = path.stat().st_size
    if formats.steps("checkpoint", version):
        database = _migrated(database, version)
        size = len(database.serialize())
    elif version != formats.CHECKPOINT:
        raise CheckpointDamaged(
            f"{path} has format {version}, and this version of TierMem reads format "
            f"{formats.CHECKPOINT}{_writer(database, version)}; it was not changed",
            hint="upgrade with: pip install -U tiermem"
            if version > formats.CHECKPOINT
            else "use another one, or the version of TierMem that wrote it",
        )
    rows = _Rows(database, size)
    texts = dict(rows("SELECT key, value FROM meta"))
    expected = texts.pop("sha256")
    meta = {key: json.loads(text) for key, text in texts.items()}
    digest = _Digest(meta)
    agents = [SnapshotRow(*row) for row in rows("SELECT * FROM agents ORDER BY agent")]
    for agent in agents:
        snapshots.check(agent)
        digest.add(agent.digest)
    attachments = [AttachmentRow(*row) for row in rows("SELECT * FROM ticks ORDER BY tick")]
    for attached in attachments:
        digest.add_attachment(attached)
    embeddings = dict(rows("SELECT hash, vector FROM embeddings ORDER BY hash"))
    digest.add_embeddings(embeddings)
    shelf = list(map(digest.add_shelved, rows.counted(ShelfTable(database).all_now())))
    if digest.hexdigest() != expected:
        raise ValueError("its contents are not what was written")
    commit, tick_number, journal_hash = meta["head"]
    return Checkpoint(
        bank=meta["bank"],
        head=(commit, tick_number, journal_hash),
        agents=agents,
        attachments=attachments,
        embeddings=embeddings,
        purged=meta["purged"],
        last_purge=meta.get("last_purge"),
        clock=meta.get("clock"),
        shelf=shelf,
        versions=meta["versions"],
        extra=meta["extra"],
    )


def _migrated(database: sqlite3.Connection, version: int) -> sqlite3.Connection:
    """A copy in memory, in the present format; the file stays as it is."""
    _check_plain(database)
    copy = sqlite3.connect(":memory:", isolation_level=None)
    database.backup(copy)
    copy.execute("BEGIN")
    formats.migrate("checkpoint", version, copy)
    copy.execute("COMMIT")
    return copy


def _writer(database: sqlite3.Connection, version: int) -> str:
    """Which version of TierMem wrote a checkpoint of another format, as far as it is known."""
    which = "a later" if version > formats.CHECKPOINT else "an earlier"
    try:
        (text,) = database.execute("SELECT value FROM meta WHERE key = 'versions'").fetchone()
        found = str(json.loads(text)["tiermem"])
    except DAMAGE:  # the format may keep it in another way
        found = ""
    is_told = found.isprintable() and found not in ("", __version__)
    return f": {which} version ({found:.20}) wrote it" if is_told else ""


def _check_plain(database: sqlite3.Connection) -> None:
    if database.execute(_MADE_UP).fetchone():
        raise ValueError("it has more than plain tables")


class _Rows:
    """Reads rows, and at most as many bytes as the file has.

    A file that somebody made can have views that make rows, and rows that share pages.
    """

    def __init__(self, database: sqlite3.Connection, size: int) -> None:
        _check_plain(database)
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, size)
        self._database = database
        self._left = size

    def __call__(self, query: str) -> Iterator[tuple[Any, ...]]:
        return self.counted(self._database.execute(query))

    def counted(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        for row in rows:
            self._left -= sum(len(value) for value in row if isinstance(value, bytes | str))
            if self._left < 0:
                raise ValueError("its rows have more bytes than the file")
            yield row


class _Digest:
    """The SHA-256 over a checkpoint's contents."""

    def __init__(self, meta: Mapping[str, object]) -> None:
        text = _json({key: meta[key] for key in sorted(meta)})
        self._hash = hashlib.sha256(text.encode())
        self.hexdigest = self._hash.hexdigest

    def add(self, part: bytes) -> None:
        self._hash.update(b"%d\0" % len(part))
        self._hash.update(part)

    def add_attachment(self, row: AttachmentRow) -> None:
        self.add(row.digest)
        self.add(b"%d" % row.commit)
        if row.packed_state is not None:
            row.state()  # checks the state against its hash, which the digest covers
            self.add(b"state")

    def add_shelved(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        self.add(b"%d %d " % (row[4], row[6]) + row[5])  # seal, tokens, digest
        return row

    def add_embeddings(self, vectors: Mapping[bytes, bytes]) -> None:
        for key, vector in vectors.items():
            self.add(key)
            self.add(vector)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)


# Restoring


def restore(checkpoint: Checkpoint, folder: Path, *, same_bank: bool = False) -> None:
    """Give the bank in ``folder``, or a new bank, the state of a checkpoint.

    The caller holds the folder's lock. The new journal replaces the old journal when it is whole;
    an old journal that can't be read is moved aside. ``same_bank`` says that the folder is the
    checkpoint's bank, whose journal is lost.
    """
    path, temporary = folder / "journal.db", folder / "journal.db.restoring"
    parts = [temporary.with_name(temporary.name + end) for end in ("", "-wal", "-shm")]
    head, _, digest = checkpoint.head
    try:
        bank, store = _replaced(path, checkpoint.bank, same_bank)
        discard(*parts)
        with closing(Journal(temporary)) as journal:
            journal.adopt(
                checkpoint.head,
                checkpoint.agents,
                checkpoint.attachments,
                checkpoint.embeddings,
                checkpoint.shelf,
                bank=bank,
                store=store,
                purged=checkpoint.purged,
                last_purge=checkpoint.last_purge,
                clock=checkpoint.clock,
                notes_unwritten=True,
            )
        sync_file(temporary)
        # SQLite must not take the log of the old journal for the log of the new one.
        discard(*[path.with_name(path.name + end) for end in ("-wal", "-shm")])
        records = records_of(path)
        for record in reversed(records):
            record.forget()
        temporary.replace(path)
        sync_folder(folder)
        records[-1].owner = bank["id"]
        records[-1].update(head, bytes.fromhex(digest), at_rest=True)
    except OSError as error:
        raise CheckpointError(
            f"the checkpoint can't be restored into {folder}: {error}; nothing was changed"
        ) from error
    finally:
        discard(*parts)


def _replaced(
    path: Path, bank: dict[str, Any], same_bank: bool
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The identity of the restored bank, and the cursor of the old bank's store.

    A copy gets another id, because two banks that write to one store would not notice each other.
    """
    if path.exists() and not path.stat().st_size and log_of(path).exists():
        _move_aside(path)  # SQLite would delete the log of an empty journal
    if not path.exists():
        # A store without a journal: most likely this is the bank, and its journal is lost.
        lost = any(each.is_dir() and each.name != "notes" for each in path.parent.iterdir())
        same_bank = same_bank or lost or bank_of(path.parent) == bank["id"]
        return bank if same_bank else with_new_id(bank), None
    try:
        with closing(Journal(path)) as old:  # closing it also folds its log into the file
            identity, store = old.get("bank"), old.get("store")
            read_all(old)
    except (BankTooNew, BankTooOld):
        raise
    except BankDamaged:  # a journal that can't be read is kept
        _move_aside(path)
        return bank, None
    if identity and identity["id"] != bank["id"]:
        raise BankError(
            f"{path.parent} holds another bank than the one the checkpoint was made of",
            hint="restore it into a new folder",
        )
    return bank, {**store, "stale": True} if store else None


def read_all(journal: Journal) -> None:
    """Raise :class:`BankDamaged` if something in a journal is not what was written."""
    for row in journal.snapshots():
        snapshots.check(row)
    first = journal.snapshot().commit if journal.base else 0
    for _ in journal.commits(after=first):
        pass
    with journal.reading():
        for _ in journal.shelf.all_now():
            pass
        for attached in journal.attachments.rows():
            if attached.packed_state is not None:
                attached.state()


def check_all(journal: Journal) -> None:
    """Raise :class:`BankDamaged` if a page, a row or a hash in a journal is not as written."""
    with journal.reading():
        (found,) = journal.file.db.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise journal.file.damaged(" ".join(found.split()))
        read_all(journal)
        for _ in journal.attachments.logs():
            pass


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
