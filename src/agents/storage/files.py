"""Our files and folders: private ones, what killed processes left, and the lock of one writer."""

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
import weakref
from pathlib import Path
from typing import Any, NoReturn, final
from weakref import WeakSet

from ..errors import BankError, BankLocked

# What killed processes left behind: temporary files and folders that name their process

_TEMPORARY = re.compile(r"(?:tiermem-[a-z0-9]+|tm-ray)-(\d+)-[a-z0-9_]{8}")
_LOCK = ".in-use"

_HALF_MADE = re.compile(r"\..+\.\d+(?:\.old|\.[0-9a-f]+)?\.tmp")
_OF_A_BANK = re.compile(
    r"\.(?:.+\.tmck|tokens\.json|bank\.head|journal\.db-head)\.(\d+)(?:\.[0-9a-f]+)?\.tmp"
)


def is_temporary(name: str) -> bool:
    """Whether this is how files and folders are called while a process of ours makes them."""
    return _HALF_MADE.fullmatch(name) is not None


def sweep_bank(folder: Path) -> None:
    """Remove what dead processes left in a bank's folder. The caller holds the bank's lock."""
    sweep_files(folder, _OF_A_BANK)
    for end in ("", "-wal", "-shm"):  # of a restore, which needs the lock too
        _remove(folder / f"journal.db.restoring{end}")
        _remove(folder / f"journal.db.upgrading{end}")


def sweep_files(folder: Path, name: re.Pattern[str]) -> None:
    """Remove the files and folders with a name of this form, if their process is dead.

    The first group of the form is the process.
    """
    try:
        found = [(path, name.fullmatch(path.name)) for path in folder.iterdir()]
    except OSError:
        return  # it can't be listed: what is in it stays
    for path, match in found:
        if match is not None and not is_alive(int(match[1])):
            _remove(path)


def sweep_beside(path: Path) -> None:
    """Remove what dead processes left when they wrote this file."""
    sweep_files(path.parent, re.compile(rf"\.{re.escape(path.name)}\.(\d+)(?:\.[0-9a-f]+)?\.tmp"))


@final
class TemporaryFolder(tempfile.TemporaryDirectory[str]):
    """A new folder that names this process, and is removed after its ``with`` block.

    What killed processes left of such folders, whatever they were for, is removed. A lock on a file
    in it says that it is in use: the number of a process says nothing to another container.
    """

    def __init__(self, purpose: str, begin: str = "tiermem-") -> None:
        _sweep_folders()
        super().__init__(prefix=f"{begin}{purpose}-{os.getpid()}-", ignore_cleanup_errors=True)
        with contextlib.suppress(OSError):  # no lock is better than no folder
            held = os.open(Path(self.name, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._held = weakref.finalize(self, os.close, held)
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def cleanup(self) -> None:
        """Remove the folder."""
        super().cleanup()
        if held := getattr(self, "_held", None):
            held()


def is_alive(pid: int) -> bool:
    """Whether there is a process with this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _remove(path: Path) -> None:
    """Remove our own file or folder; one that can't be removed stays."""
    try:
        if path.lstat().st_uid != os.getuid():
            return
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    except OSError:
        return


def _sweep_folders() -> None:
    """Remove the temporary folders of dead processes that no process uses.

    One without our file may be the user's own, with a name like ours: it goes only if it is empty.
    """
    place = Path(tempfile.gettempdir())
    try:
        found = [(path, _TEMPORARY.fullmatch(path.name)) for path in place.iterdir()]
    except OSError:
        return
    for path, match in found:
        if match is None or not _is_own_folder(path) or is_alive(int(match[1])):
            continue
        with contextlib.suppress(OSError):
            used = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                fcntl.flock(used, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path)
            finally:
                os.close(used)
        with contextlib.suppress(OSError):
            path.rmdir()


def _is_own_folder(path: Path) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


# Files and folders that only their owner can read, whatever the umask


FILE_MODE, FOLDER_MODE = 0o600, 0o700
SHARED_MODE = 0o666
"""For a file that the user names: the umask says who else may read it."""


def make_folder(folder: Path) -> None:
    """Make a folder, unless it exists. Folders that are made above it have the umask's mode."""
    folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)


def make_folders(top: Path, inside: Path) -> None:
    """Make a folder that is inside another, and all between them."""
    for each in (*reversed(inside.relative_to(top).parents), inside.relative_to(top)):
        make_folder(top / each)


def new_file(path: Path, mode: int = FILE_MODE) -> int:
    """Create an empty file, and open it; FileExistsError if anything has this name, even a link."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)


def replace_file(path: Path, content: str | bytes, mode: int = FILE_MODE) -> None:
    """Write a file of a few megabytes; the content is on disk before the file gets its name."""
    data = content.encode() if isinstance(content, str) else content
    sweep_beside(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        with os.fdopen(new_file(temporary, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def copy_file(source: Path, target: Path) -> None:
    """Copy the content of a file, and not its mode, to a new file."""
    with source.open("rb") as content, os.fdopen(new_file(target), "wb") as file:
        shutil.copyfileobj(content, file)


# One writer at a time


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
