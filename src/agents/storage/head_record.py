"""The last commit is recorded beside the journal, where damage to the journal's log can't reach it.

SQLite reads its write-ahead log up to the first frame that is not whole, and takes the rest for
never written. So damage in the log looks like a bank that ended earlier. The record tells. It is
kept at three places, since one may be lost with the log, or be replaced by an older copy:
``journal.db-head`` has each commit, ``bank.head`` the last one when the bank was opened or closed,
and ``tiermem.head`` in the folder of a local store the one up to which the store was written.
"""

import contextlib
import logging
import os
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

from ..errors import CommitFailed
from .private_files import FILE_MODE

__all__ = ["STORE_RECORD", "Acknowledged", "HeadRecord", "bank_record", "records_of"]

logger = logging.getLogger(__name__)

STORE_RECORD = "tiermem.head"
"""The name of the record in the folder of a store."""
_RECORD = struct.Struct("<4sQ32s")
_START = _RECORD.size
_SIZE = _START + 4
_MAGIC = b"tmhd"
# A bank from somebody else may have a link there, to a file that is not its own.
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class Acknowledged(NamedTuple):
    """A commit that was acknowledged, and the record that says so."""

    commit: int
    hash: bytes
    path: Path

    def is_in(self, commit: int, digest: bytes) -> bool:
        """Whether a journal has it that ends with this commit, as far as its end shows."""
        return self.commit < commit or (self.commit, self.hash) == (commit, digest)


class HeadRecord:
    """The record in the file at ``path``, of the bank ``owner`` if it says so. Written in place.

    The commit is on disk before the record is written, and the record is not synced: after a power
    cut it may be old, and never ahead. It costs one system call and no wait.
    """

    def __init__(self, path: Path, owner: str = "") -> None:
        self.path = path
        self._owner = owner.encode()
        self._file = -1

    def read(self) -> Acknowledged | None:
        """What the file says; None if there is none, if it is not whole, or another bank's."""
        try:
            return self._read()
        except (OSError, ValueError):
            return None

    def _read(self) -> Acknowledged | None:
        data = self.path.read_bytes()
        record, check, owner = data[:_START], data[_START:_SIZE], data[_SIZE:]
        if len(data) < _SIZE or not data.startswith(_MAGIC) or check != _check(record + owner):
            raise ValueError("the record is not whole")
        _, commit, digest = _RECORD.unpack(record)
        return Acknowledged(commit, digest, self.path) if owner == self._owner else None

    def check(self) -> Acknowledged | None:
        """:meth:`read`; the log has a warning for a file that is not whole."""
        with contextlib.suppress(OSError):
            try:
                return self._read()
            except ValueError:
                logger.warning(
                    "the record %s is damaged: it can't say whether the journal has lost commits",
                    self.path,
                )
        return None

    def update(self, commit: int, digest: bytes) -> None:
        """:meth:`write`, if the file says something else; then close it."""
        found = self.read()
        if commit and (found is None or found[:2] != (commit, digest)):
            self.write(commit, digest)
            self.close()

    def write(self, commit: int, digest: bytes) -> None:
        """Record a commit. The commit is safe already, so a failure is logged and no error."""
        record = _RECORD.pack(_MAGIC, commit, digest)
        try:
            is_first = self._file < 0
            if is_first:
                self._file = os.open(self.path, _FLAGS, FILE_MODE)
            data = record + _check(record + self._owner) + self._owner
            os.pwrite(self._file, data, 0)
            if is_first:
                os.ftruncate(self._file, len(data))  # it may have been longer, and damaged
        except OSError as error:
            logger.warning("the last commit could not be recorded in %s: %s", self.path, error)

    def forget(self) -> None:
        """The journal is about to go back."""
        self.close()
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise CommitFailed(
                f"{self.path} could not be deleted ({error}), and so the journal can't go back; "
                "nothing was changed"
            ) from error

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = -1


def records_of(path: Path) -> list[HeadRecord]:
    """The records of the journal at ``path``; the first one is written with each commit."""
    records = [HeadRecord(path.with_name(f"{path.name}-head"))]
    if path.name == "journal.db":  # and not one that will replace it
        records.append(bank_record(path.parent))
    return records


def bank_record(folder: Path) -> HeadRecord:
    """The record of the bank in a folder."""
    return HeadRecord(folder / "bank.head")


def _check(record: bytes) -> bytes:
    return zlib.crc32(record).to_bytes(4, "little")
