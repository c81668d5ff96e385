"""The mark of a bank in its folder. It tells a journal that was lost from one that never was.

The file ``bank.id`` holds the id of the bank, and is written when the bank has its journal on disk.
A folder with the mark and without a journal has lost it, and so has one with a record of the last
commit. A folder without any may hold notes that a person wrote before there is a bank.
"""

import os
from contextlib import suppress
from pathlib import Path
from shlex import quote

from ..errors import BankDamaged
from .found_checkpoints import checkpoints_of
from .head_record import records_of
from .sqlite import discard, log_of, sync_folder

_FILE = "bank.id"
_MOST_NAMED = 3


def mark(folder: Path, bank_id: str) -> None:
    """Say that the folder holds this bank; its journal is on disk.

    A full disk is not an error: the bank can be used, and the next opening marks it.
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
    found = checkpoints_of(folder, bank_id)
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
