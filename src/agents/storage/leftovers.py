"""What killed processes left behind: temporary files and folders that name their process."""

import contextlib
import fcntl
import os
import re
import shutil
import stat
import tempfile
import weakref
from pathlib import Path
from typing import final

_TEMPORARY = re.compile(r"(?:tiermem-[a-z0-9]+|tm-ray)-(\d+)-[a-z0-9_]{8}")
_LOCK = ".in-use"

_HALF_MADE = re.compile(r"\..+\.\d+(?:\.old|\.[0-9a-f]+)?\.tmp")
_OF_A_BANK = re.compile(
    r"\.(?:.+\.tmck|tokens\.json|bank\.id|bank\.head|journal\.db-head)\.(\d+)(?:\.[0-9a-f]+)?\.tmp"
)


def is_temporary(name: str) -> bool:
    """Whether this is how files and folders are called while a process of ours makes them."""
    return _HALF_MADE.fullmatch(name) is not None


def sweep_bank(folder: Path) -> None:
    """Remove what dead processes left in a bank's folder. The caller holds the bank's lock."""
    sweep_files(folder, _OF_A_BANK)
    for end in ("", "-wal", "-shm"):  # of a restore, which needs the lock too
        _remove(folder / f"journal.db.restoring{end}")


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
