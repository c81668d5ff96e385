"""A journal's file: opened, read and written so that damage and a full disk are told apart."""

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...errors import BankDamaged, BankError, CommitFailed
from ..sqlite import copy_database, identity, is_of_the_system, sync_folder
from .format import check_format, create, digest_of_value

__all__ = ["JournalFile"]

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


class JournalFile:
    """A bank's journal file, or one that goes with this object for ``path`` None.

    ``copied`` is a journal's file to begin with: whoever has it open may go on writing to it.
    """

    def __init__(self, path: Path | None, copied: Path | None = None) -> None:
        self._name = str(path or copied or "in memory")
        self._path = path and path.absolute()  # the process may go to another folder
        with self.reading():
            self._db = sqlite3.connect(
                # A copy may be large: SQLite keeps it in a file of its own, with no name.
                path or ("" if copied else ":memory:"),
                isolation_level=None,
                check_same_thread=False,
            )
        try:
            with self.reading():
                if copied:
                    copy_database(copied, self._db)
                self._open(path)
        except BaseException:
            self.close()  # or SQLite would remember the file for the next to open it
            raise
        self._file = identity(path) if path else None

    def _open(self, path: Path | None) -> None:
        is_new = not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not is_new:  # before anything is written to another program's file
            check_format(self._db, self._name)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        if is_new:  # or a process was killed while it made the file
            create(self._db)
            if path:
                sync_folder(path.parent)
                sync_folder(path.parent.parent)  # the bank's folder may be new as well

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
            if digest_of_value(key, row[0]) != row[1]:
                raise self._damaged(f"what it keeps as {key} is not what was written")
            return json.loads(row[0])

    def set(self, **values: object) -> None:
        """Keep JSON values under their keys, in a transaction of their own."""
        with self._writing():
            self._set(values)

    def _set(self, values: Mapping[str, object]) -> None:
        texts = {key: _to_json(value) for key, value in values.items()}
        self._db.executemany(
            "REPLACE INTO meta VALUES (?, ?, ?)",
            [(key, text, digest_of_value(key, text)) for key, text in texts.items()],
        )

    # Reading and writing

    def check_there(self) -> None:
        """Raise :class:`CommitFailed` if the file is gone: SQLite would write to nowhere."""
        if self._path is not None and identity(self._path) != self._file:
            raise CommitFailed(
                f"the journal {self._name} is gone, or another file is in its place; nothing of "
                "this commit was kept",
                hint="put the bank's folder back, and open it again",
            )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self.check_there()
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise CommitFailed(
                f"the journal {self._name} could not be written ({error}); nothing of this commit "
                "was kept"
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
                    f"the journal {self._name} can't be opened now: {error}; nothing is wrong with "
                    "the journal itself",
                    hint="look for a full disk or missing permissions",
                ) from error
            raise self._damaged(f"{type(error).__name__}: {error}") from error

    def _damaged(self, why: str) -> BankDamaged:
        return BankDamaged(
            f"the journal {self._name} can't be read: {why}; nothing was changed",
            hint="restore it from a backup",
        )


_to_json = json.JSONEncoder(sort_keys=True).encode
