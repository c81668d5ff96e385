"""Going back: a bank's earlier states, from its journal or from a checkpoint.

Each function takes the folder of a bank that is not open; only :func:`past` may copy an open bank.
"""

from os import PathLike
from pathlib import Path
from shlex import quote
from typing import Any

from ..errors import BankError, BankNotFound, InvalidInput
from ..memory.requests import check_whole
from ..storage.bank_mark import lost_journal, mark
from ..storage.checkpoint import file as checkpoint
from ..storage.checkpoint import restore as restoring
from ..storage.identity import with_new_id
from ..storage.journal.journal import Journal
from ..storage.lock import BankLock, lock_folder
from ..storage.private_files import make_folder
from ..storage.store_sync import stale_store


def restore(path: Path, folder: Path, *, same_bank: bool = False) -> BankLock:
    """Give the bank in ``folder`` the state of a checkpoint, or make it with that state.

    An existing bank must be the bank that the checkpoint was made of. ``same_bank`` asserts this
    for a bank that lost its journal. The result is the bank's lock, held: until it is released,
    no other process can restore or open the bank.
    """
    found = checkpoint.read(path)
    lock = lock_folder(folder)
    try:
        restoring.restore(found, folder, same_bank=same_bank)
    except BaseException:
        lock.release()
        raise
    return lock


def rewind(folder: Path, tick: int) -> None:
    """Remove everything after ``tick`` from a bank, for good."""
    lock = lock_folder(folder)
    try:
        journal = Journal(journal_of(folder))
        try:
            commit = journal.commit_of(check_whole("tick", tick))
            values = stale_store(journal, commit)
            journal.rewind(commit, notes_unwritten=True, **values)
        finally:
            journal.close()
    finally:
        lock.release()


def branch(folder: Path, tick: int, into: Path) -> None:
    """Make a new bank in ``into``: the bank in ``folder`` as it was after ``tick``."""
    source = journal_of(folder)
    if into.exists():
        raise BankError(f"{into} exists already", hint="a branch needs a folder of its own")
    make_folder(into)
    journal = Journal(into / "journal.db", copied=source)
    try:
        commit = journal.commit_of(check_whole("tick", tick))
        identity = with_new_id(journal.get("bank"))
        journal.rewind(commit, bank=identity, store=None, notes_unwritten=True)
    finally:
        journal.close()
    mark(into, identity["id"])


def past(folder: Path, tick: int | None) -> Journal:
    """A copy in memory of a bank's journal, as it was after ``tick`` or as it is now."""
    journal = Journal(None, copied=journal_of(folder))
    try:
        if journal.get("bank") is None:
            raise BankError(
                f"the journal in {folder} is empty: a bank was begun there, and never made",
                hint="if it held memories, restore it from a backup; else delete journal.db and "
                f"make the bank with: tiermem init {quote(str(folder))}",
            )
        if tick is not None:
            if check_whole("tick", tick) > journal.tick:
                raise BankError(
                    f"the bank in {folder} is at tick {journal.tick}, not at {tick} yet",
                    hint=f"name a tick up to {journal.tick}",
                )
            journal.rewind(journal.commit_of(tick))
    except BaseException:
        journal.close()
        raise
    return journal


def check_unused(folder: Path) -> None:
    """Raise :class:`BankLocked` while another process has the bank in ``folder`` open."""
    lock_folder(folder).release()


def no_bank(folder: str | PathLike[str], hint: str = "") -> BankError:
    """The error for a folder without a bank, or with a bank that lost its journal."""
    if lost := lost_journal(Path(folder)):
        return lost
    hint = hint or f"make one with: tiermem init {quote(str(folder))}"
    if (Path(folder) / "bank" / "journal.db").is_file():
        hint = f"the run's bank is {Path(folder) / 'bank'}"
    return BankNotFound(f"there is no bank in {folder}", hint=hint)


def journal_of(folder: Path) -> Path:
    """The journal of the bank in a folder; an error if there is none, or if it was lost."""
    if not str(folder):
        raise InvalidInput("a bank needs a folder; got an empty path", hint="name a folder")
    path = folder / "journal.db"
    if lost := lost_journal(folder):
        raise lost
    if not path.is_file():
        raise no_bank(folder)
    return path


def checkpoint_extra(path: str | PathLike[str]) -> dict[str, Any]:
    """What :meth:`MemoryBank.checkpoint` was given as ``extra`` when it wrote this file.

    The whole file is checked: :class:`CheckpointError` if it is not a checkpoint or is damaged.
    """
    return checkpoint.read(Path(path)).extra
