"""SQLite's files and the disk, for the journal and for checkpoints."""

import contextlib
import os
import sqlite3
import struct
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from .files import new_file

# SQLite does not notice a flipped bit. A value may come back as another type, a column not at all.
DAMAGE = (
    sqlite3.Error,
    zlib.error,
    struct.error,
    ValueError,  # broken JSON and broken UTF-8 are ValueErrors
    TypeError,
    AttributeError,
    LookupError,
    OverflowError,
    RecursionError,  # JSON of a thousand brackets
)
"""The errors that reading a damaged file can lead to."""


def is_of_the_system(error: sqlite3.Error) -> bool:
    """Whether the system is at fault and not the file: a full disk is no damage."""
    code = getattr(error, "sqlite_errorcode", 0)
    return code != sqlite3.SQLITE_IOERR_SHORT_READ and code & 0xFF in (
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    )


def as_it_was(path: Path) -> Callable[[], object]:
    """A function that undoes the making of a database, if there is none yet or an empty file."""
    log = log_of(path)
    if not path.exists():
        return partial(discard, path, log, path.with_name(f"{path.name}-shm"))
    if not path.stat().st_size and not log.exists():
        return partial(path.write_bytes, b"")
    return lambda: None


def log_of(path: Path) -> Path:
    """The write-ahead log of a database."""
    return path.with_name(f"{path.name}-wal")


def make_private(path: Path) -> None:
    """Make a database's file, unless it exists; SQLite gives its log and its index the same mode.

    A file that exists is not opened here: to close it would end SQLite's own locks on it. If the
    file can't be made, SQLite says why.
    """
    with contextlib.suppress(OSError, ValueError):
        os.close(new_file(path))


Pages = Callable[[int, int], object]
"""Takes how many pages are copied, and of how many."""
_PAGES_AT_ONCE = 4096


def copy_database(path: Path, target: sqlite3.Connection, progress: Pages | None = None) -> None:
    """Copy a database, which another process may have open, into an empty one.

    Where no process had it open and one opened it meanwhile, a part of the copy may be older than
    the rest. Then it is copied once more.
    """
    is_quiet, before = not log_of(path).exists(), looks_of(path)
    try:
        _copy(path, target, progress)
    except sqlite3.Error:
        if not is_quiet or looks_of(path) == before:
            raise
    else:
        if not is_quiet or looks_of(path) == before:
            return
    _copy(path, target, progress)


def _copy(path: Path, target: sqlite3.Connection, progress: Pages | None) -> None:
    source = open_to_read(path)
    try:
        if progress is None:
            source.backup(target)
            return
        # Between two steps SQLite begins anew if the database has changed, unless somebody reads.
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_master").fetchone()

        def show(_: int, left: int, of: int) -> None:
            progress(of - left, of)

        source.backup(target, pages=_PAGES_AT_ONCE, progress=show)
    finally:
        source.close()


def looks_of(path: Path) -> tuple[object, ...]:
    """What tells whether another process opened a database, or wrote to it."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return log_of(path).exists(), found.st_ino, found.st_size, found.st_mtime_ns


def open_to_read(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing to a database that another process may have open.

    Where no process has it open, and one opens and changes it later, what is read may not fit
    together: :func:`looks_of` tells.
    """
    # Without a log no process has it open, and SQLite need not make a log.
    quiet = "" if log_of(path).exists() else "&immutable=1"
    uri = f"{path.absolute().as_uri()}?mode=ro{quiet}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


def sync_file(path: Path) -> None:
    """Make a file's bytes durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names of a folder's new files durable: for the system, a folder is a file."""
    sync_file(folder)


def discard(*paths: Path) -> None:
    """Delete files; a file that can't be deleted stays."""
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except (OSError, ValueError):  # the caller tells what went wrong before
            continue
