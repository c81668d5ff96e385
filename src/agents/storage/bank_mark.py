"""The mark of a bank in its folder. It tells a journal that was lost from one that never was.

The file ``bank.id`` holds the id of the bank, and is written when the bank has its journal on disk.
A folder with the mark and without a journal has lost it, and so has one with a record of the last
commit. A folder without any may hold notes that a person wrote before there is a bank.
"""

import json
import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from shlex import quote

from ..errors import BankDamaged
from .head_record import records_of
from .sqlite import DAMAGE, discard, log_of, sync_folder

__all__ = ["checkpoints_before", "lost_journal", "mark", "marked"]

_FILE = "bank.id"
_MOST_NAMED = 3


def mark(folder: Path, bank_id: str) -> None:
    """Say that the folder holds this bank; its journal is on disk.

    A full disk is no error: the bank can be used, and the next opening marks it.
    """
    if marked(folder) == bank_id:
        return
    temporary = folder / f".{_FILE}.{os.getpid()}.tmp"
    with suppress(OSError):
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(f"{bank_id}\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(folder / _FILE)
        sync_folder(folder)
    discard(temporary)


def marked(folder: Path) -> str | None:
    """The id of the bank that was made in this folder; None if none was."""
    try:
        return (folder / _FILE).read_text("ascii", "replace").strip()
    except OSError:
        return None


def lost_journal(folder: Path) -> BankDamaged | None:
    """The error for a folder whose journal is gone or empty although a bank was made there.

    The mark says so, or a record of the last commit, or a log. An empty journal beside checkpoints
    is lost as well, without any of them.
    """
    path, bank_id = folder / "journal.db", marked(folder)
    is_there = path.is_file()
    if is_there and path.stat().st_size:
        return None
    left = [log_of(path), *[each.path for each in records_of(path)]]
    was_bank = bank_id is not None or any(map(_has_bytes, left))
    if not was_bank and not is_there:
        return None
    found = _checkpoints(folder, bank_id)
    if not was_bank and not any(each.is_relative_to(folder) for each in found):
        return None
    named = ", ".join(map(str, found[:_MOST_NAMED]))
    help_of = "restore journal.db from a backup"
    if found:
        call = f"MemoryBank.restore({str(found[0])!r}, {str(folder)!r})"
        help_of += f", or a checkpoint ({named}) with {call}"
    return BankDamaged(
        f"the journal {path} is {'empty' if is_there else 'missing'}, and a bank was made in "
        f"{folder}: the journal was lost; nothing was changed",
        hint=f"{help_of}; to start anew, use another folder, or delete {quote(str(folder))}",
    )


def _has_bytes(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _checkpoints(folder: Path, bank_id: str | None) -> list[Path]:
    """The checkpoints of the bank in its folder and beside it, the latest tick first."""
    places = (folder, folder / "checkpoints", folder.parent, folder.parent / "checkpoints")
    found: dict[Path, int] = {}
    paths: list[Path] = []
    for place in places:
        with suppress(OSError):  # a folder that can't be listed
            paths += place.glob("*.tmck")
    for path in paths:
        with suppress(OSError, *DAMAGE):  # a damaged checkpoint can't help
            owner, _, tick = _about(path)
            if bank_id in (None, owner):
                found[path] = tick
    return sorted(found, key=lambda path: (-found[path], path))


def checkpoints_before(folder: Path, commit: int) -> list[Path]:
    """The checkpoints of the bank, in its folder and beside it, that a commit came after."""
    return [path for path in _checkpoints(folder, marked(folder)) if _about(path)[1] < commit]


def _about(path: Path) -> tuple[str, int, int]:
    """The bank of a checkpoint, its last commit, and its tick."""
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as database:
        meta = dict(database.execute("SELECT key, value FROM meta WHERE key IN ('bank', 'head')"))
    commit, tick, *_ = json.loads(meta["head"])
    return str(json.loads(meta["bank"])["id"]), int(commit), int(tick)
