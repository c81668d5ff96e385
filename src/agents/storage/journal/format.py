"""What makes a file a journal of today: its marks, its tables, and the hashes over its rows."""

import hashlib
import sqlite3

from ...errors import BankTooNew
from .schema import SCHEMA
from .upgrade import add_packs, upgrade_journal

__all__ = ["chain", "check_format", "create", "digest_of_value"]

_APPLICATION_ID = 0x746D656D  # "tmem": tells our files from other SQLite databases
_FORMAT = 5
_WITH_SHELF = (3, 4)
"""Formats that lack no more than packs; format 3 never has notes, and differs in nothing else."""
_WITHOUT_SHELF = 2


def create(database: sqlite3.Connection) -> None:
    """Make the tables."""
    database.executescript(
        f"BEGIN; PRAGMA application_id = {_APPLICATION_ID}; PRAGMA user_version = {_FORMAT};"
        f"{SCHEMA} COMMIT;"
    )


def check_format(database: sqlite3.Connection, name: str) -> None:
    """Upgrade a journal of an earlier version; ValueError for what is none.

    :class:`BankTooNew` for a journal that a later version wrote.
    """
    if database.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise ValueError("it is another program's database")
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version > _FORMAT:
        raise BankTooNew(
            f"the journal {name} has format {version}, and this version of TierMem reads "
            f"format {_FORMAT}: a later version wrote it; nothing was changed"
        )
    if version == _FORMAT:
        return
    if version not in (_WITHOUT_SHELF, *_WITH_SHELF):
        raise ValueError(
            f"it has format {version}, and this version of TierMem reads format {_FORMAT}"
        )
    database.execute("BEGIN IMMEDIATE")
    try:
        if version == _WITHOUT_SHELF:
            upgrade_journal(database)
            database.execute(
                "INSERT INTO meta VALUES ('purged', 'true', ?)",
                (digest_of_value("purged", "true"),),
            )
        add_packs(database)
        database.execute(f"PRAGMA user_version = {_FORMAT}")
        database.execute("COMMIT")
    finally:
        if database.in_transaction:
            database.execute("ROLLBACK")


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
