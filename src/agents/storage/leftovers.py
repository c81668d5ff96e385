"""What killed processes left behind: temporary files and folders that name their process."""

import os
import re
import shutil
import tempfile
from pathlib import Path

__all__ = ["is_alive", "sweep_bank", "sweep_files", "temporary_folder"]

_OF_A_BANK = re.compile(r"\.(?:.+\.tmck|tokens\.json|bank\.id)\.(\d+)(?:\.[0-9a-f]+)?\.tmp")


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


def temporary_folder(prefix: str) -> str:
    """A new folder that names this process; those of dead processes are removed."""
    place = Path(tempfile.gettempdir())
    sweep_files(place, re.compile(rf"{re.escape(prefix)}(\d+)-\w+"))
    return tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-")


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
