"""What the journal and checkpoints ask of SQLite and of the disk."""

import os
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

__all__ = [
    "as_it_was",
    "copy_database",
    "discard",
    "is_of_the_system",
    "sync_file",
    "sync_folder",
]


def is_of_the_system(error: sqlite3.Error) -> bool:
    """Whether the system is at fault, and not the file: a full disk makes no journal damaged."""
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
    """What undoes the making of a database where there is none yet, or an empty file."""
    if not path.exists():
        return partial(path.unlink, missing_ok=True)
    if not path.stat().st_size and not path.with_name(f"{path.name}-wal").exists():
        return partial(path.write_bytes, b"")
    return lambda: None


def copy_database(path: Path, target: sqlite3.Connection) -> None:
    """Copy a database, which somebody may have open, into an empty one."""
    # Without a log nobody has it open, and SQLite need not leave one behind.
    quiet = "" if path.with_name(f"{path.name}-wal").exists() else "&immutable=1"
    source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro{quiet}", uri=True)
    try:
        source.backup(target)
    finally:
        source.close()


def sync_folder(folder: Path) -> None:
    """Make a new file's name durable, not only its bytes."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make a file's bytes durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def discard(*paths: Path) -> None:
    """Delete files, if that can be done."""
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except (OSError, ValueError):  # a disk that can't delete; what matters was said already
            continue
