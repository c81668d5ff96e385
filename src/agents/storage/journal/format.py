"""What makes a file a journal of today: its marks, its tables, and the hashes over its rows."""

import hashlib
import sqlite3

from ...errors import BankTooNew, BankTooOld
from .schema import SCHEMA

__all__ = ["chain", "check_format", "create", "digest_of_value"]

_APPLICATION_ID = 0x746D656D  # "tmem": tells our files from other SQLite databases
_FORMAT = 6


def create(database: sqlite3.Connection) -> None:
    """Make the tables."""
    database.executescript(
        f"BEGIN; PRAGMA application_id = {_APPLICATION_ID}; PRAGMA user_version = {_FORMAT};"
        f"{SCHEMA} COMMIT;"
    )


def check_format(database: sqlite3.Connection, name: str) -> None:
    """ValueError for what is no journal.

    :class:`BankTooNew` or :class:`BankTooOld` for a journal of another format.
    """
    if database.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise ValueError("it is another program's database")
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version == _FORMAT:
        return
    if version < 1:
        raise ValueError(f"it has format {version}, and there is no format of that number")
    error, which = (BankTooNew, "a later") if version > _FORMAT else (BankTooOld, "an earlier")
    raise error(
        f"the journal {name} has format {version}, and this version of TierMem reads format "
        f"{_FORMAT}: {which} version wrote it; nothing was changed"
    )


def chain(before: bytes, tick: int, events: str, vectors: bytes, note: bytes) -> bytes:
    """The hash of a commit: over the hash before it and all that it recorded."""
    text = events.encode()
    digest = hashlib.sha256(before)
    digest.update(f"{tick} {len(text)} {len(vectors)} ".encode())
    digest.update(text)
    digest.update(vectors)
    digest.update(note)
    return digest.digest()


def digest_of_value(key: str, value: str) -> bytes:
    """The hash over a value that is kept under a key."""
    return hashlib.sha256(f"{key}\0{value}".encode()).digest()
