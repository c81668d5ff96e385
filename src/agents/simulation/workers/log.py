"""The log of the ticks: what a tick decided, on disk before any cell commits it.

The file is a header, then one entry after another: its length, its checksum, its bytes. An entry
is appended and synced in one go; half an entry at the end, which a kill left, is cut off.
"""

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import RunError
from ...storage.files import FILE_MODE
from .wire import packed, unpacked

_MAGIC = b"tiermem ticks 1\n"
_HEAD = struct.Struct("<QI")


class Frames(NamedTuple):
    """What one cell was told and said in a tick, as JSON."""

    seen: bytes
    """What its agents saw, from the driver."""
    decided: bytes
    """What they asked and wanted to do, from the worker."""
    deeds: bytes
    """What came of it, from the driver."""


class Entry(NamedTuple):
    """All that cells need to do a tick again, without the world and the policy."""

    tick: int
    metrics: dict[str, float]
    state: str
    """The world's state after the tick: JSON."""
    cells: list[Frames]
    boards: Sequence[Any] = ()
    """What happened to the boards of groups, which all cells have: :meth:`Boards.plain`."""

    def packed(self) -> bytes:
        """The entry as bytes."""
        parts = [part for frames in self.cells for part in frames]
        head = [self.tick, self.metrics, self.state]
        return packed([*head, self.boards] if self.boards else head, parts)

    @classmethod
    def of(cls, data: bytes) -> "Entry":
        """The entry in these bytes."""
        (tick, metrics, state, *boards), parts = unpacked(data)
        cells = list(map(Frames, parts[::3], parts[1::3], parts[2::3]))
        return cls(tick, metrics, state, cells, *boards)


def read_log(path: Path, after: int = -1) -> Iterator[Entry]:
    """The whole entries of a log with a tick above ``after``, in order."""
    for _, data in _whole(path):
        entry = Entry.of(data)
        if entry.tick > after:
            yield entry


def _whole(path: Path) -> Iterator[tuple[int, bytes]]:
    """The end and the bytes of each whole entry."""
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise RunError(
                f"{path} is not a log of ticks, or of another version",
                hint="use the version of TierMem that made it",
            )
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            size, check = _HEAD.unpack(head)
            if size > os.fstat(file.fileno()).st_size - file.tell():
                return
            data = file.read(size)
            if zlib.crc32(data) != check:
                return
            yield file.tell(), data


class TickLog:
    """A log that is written. One process has it open at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.last: Entry | None = None
        """The last whole entry."""
        self._end = len(_MAGIC)
        for end, data in _whole(path):
            self._end, last = end, data
            self.last = Entry.of(last)
        self._file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        os.ftruncate(self._file, self._end)

    @staticmethod
    def create(path: Path) -> None:
        """Make an empty log."""
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "wb") as new:
            new.write(_MAGIC)
            new.flush()
            os.fsync(new.fileno())

    def append(self, entry: Entry) -> None:
        """Write an entry; when this returns, it is on disk. After an error, nothing of it is."""
        data = entry.packed()
        whole = memoryview(_HEAD.pack(len(data), zlib.crc32(data)) + data)
        try:
            written = 0
            while written < len(whole):
                written += os.pwrite(self._file, whole[written:], self._end + written)
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, self._end)
            raise RunError(
                f"tick {entry.tick} can't be written to {self.path}: {error}; the run is as it was "
                "after the tick before",
                hint="make room on the disk, and resume the run",
            ) from error
        self._end += len(whole)
        self.last = entry

    def entries(self, after: int) -> Iterator[Entry]:
        """The entries with a tick above ``after``."""
        return read_log(self.path, after)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
