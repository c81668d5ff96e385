"""The last commit is recorded beside the journal, where damage to the journal's log can't reach it.

SQLite reads its write-ahead log up to the first frame that is not whole, and takes the rest for
never written. So damage in the log looks like a bank that ended earlier. The record tells.
"""

import contextlib
import logging
import os
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

from ...errors import CommitFailed
from ..private_files import FILE_MODE

__all__ = ["Acknowledged", "HeadRecord"]

logger = logging.getLogger(__name__)

_RECORD = struct.Struct("<4sQ32s")
_MAGIC = b"tmhd"
# A bank from somebody else may have a link there, to a file that is not its own.
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class Acknowledged(NamedTuple):
    """The last commit that was acknowledged."""

    commit: int
    hash: bytes


class HeadRecord:
    """The file beside the journal at ``path``. It is written after each commit, in place.

    The commit is on disk before the record is written, and the record is not synced: after a power
    cut it may be old, and never ahead. It costs one system call and no wait.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(f"{path.name}-head")
        self._file = -1

    def read(self) -> Acknowledged | None:
        """What the file says; None if there is none, or if it is not whole."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return None
        record, check = data[: _RECORD.size], data[_RECORD.size :]
        if len(record) < _RECORD.size or check != _check(record):
            return None
        magic, commit, digest = _RECORD.unpack(record)
        return Acknowledged(commit, digest) if magic == _MAGIC else None

    def write(self, commit: int, digest: bytes) -> None:
        """Record a commit. The commit is safe already, so a failure is logged and no error."""
        record = _RECORD.pack(_MAGIC, commit, digest)
        try:
            if self._file < 0:
                self._file = os.open(self.path, _FLAGS, FILE_MODE)
            os.pwrite(self._file, record + _check(record), 0)
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


def _check(record: bytes) -> bytes:
    return zlib.crc32(record).to_bytes(4, "little")
