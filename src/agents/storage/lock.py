"""One writer at a time."""

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Any, NoReturn
from weakref import WeakSet

from ..errors import BankError, BankLocked
from .private_files import FILE_MODE, make_folder

_held = WeakSet["BankLock"]()
_of_the_parent = set[tuple[int, int]]()
"""The lock files that the parent of this process held when it forked, by device and number."""


class OneWriter:
    """Is neither copied nor pickled: a copy of an open bank would write to the same journal."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise BankError(
            "an open bank can't be copied or pickled, nor what refers to it: it has one writer",
            hint="MemoryBank.at(folder) opens a copy; checkpoint(file) writes all to a file",
        )


class BankLock:
    """An exclusive lock on a bank's folder, held until released or until the process ends.

    The operating system releases the lock when the process ends, even by a kill. The file holds
    the owner's pid, which the error in another process names. A forked process does not hold the
    lock of its parent, and can't get it: SQLite would take the parent's locks for its own.
    """

    def __init__(self, folder: Path, name: str = "bank.lock") -> None:
        path = folder / name
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(path, flags, FILE_MODE)
        if _identity(self._file) in _of_the_parent:
            os.close(self._file)
            raise BankLocked(
                f"this process was forked from one that had {folder} open",
                pid=None,
                hint="open it in a process that is not forked, or before it is open there",
            )
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid = _read_pid(self._file)
            os.close(self._file)
            holder = f"process {pid}" if pid != os.getpid() else f"this process ({pid})"
            raise BankLocked(
                f"{folder} is open in {holder if pid else 'another process'}; there is one writer "
                "at a time",
                pid=pid,
                hint="close it there first",
            ) from None
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            os.close(self._file)  # and with it the lock
            raise
        _held.add(self)

    def release(self) -> None:
        """Let other processes open the bank."""
        if self._file >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, 0)
            self._close()

    def leave_to_parent(self) -> None:
        """In a forked process: the lock is the parent's, as if this process never had it."""
        if self._file >= 0:
            _of_the_parent.add(_identity(self._file))
            self._close()

    def _close(self) -> None:
        os.close(self._file)
        self._file = -1


def _leave_to_parent() -> None:
    for lock in _held:
        lock.leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parent)


def lock_folder(folder: Path, name: str = "bank.lock") -> BankLock:
    """Lock a folder, which is made if there is none; by default with a bank's lock."""
    try:
        make_folder(folder)
        return BankLock(folder, name)
    except (FileExistsError, NotADirectoryError) as error:
        file = next(
            each for each in (folder, *folder.parents) if each.exists() or each.is_symlink()
        )
        what = "a file" if file.exists() else "a link to nothing"
        raise BankError(
            f"{str(folder)!r} can't hold a bank: {file} is {what}, not a folder",
            hint="name another folder",
        ) from error
    except (OSError, ValueError) as error:  # a NUL in a path is a ValueError
        raise BankError(
            f"{str(folder)!r} can't hold a bank: {error}",
            hint="name another folder, or let your user write there",
        ) from error


def _identity(file: int) -> tuple[int, int]:
    found = os.fstat(file)
    return found.st_dev, found.st_ino


def _read_pid(file: int) -> int | None:
    text = os.pread(file, 32, 0).decode("ascii", "replace").strip()
    return int(text) if text.isdecimal() else None
