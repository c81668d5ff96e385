"""Going back: a bank's earlier states, from its journal or from a checkpoint.

All of it works on folders of banks that are not open; only :func:`past` may look at one that is.
"""

from pathlib import Path

from agents.errors import BankError, BankNotFound, InvalidInput
from agents.memory.records import check_whole
from agents.storage import checkpoint
from agents.storage.identity import with_new_id
from agents.storage.journal import Journal
from agents.storage.lock import lock_folder
from agents.storage.sync import stale_store

__all__ = ["branch", "check_unused", "past", "restore", "rewind"]


def restore(path: Path, folder: Path, *, same_bank: bool = False) -> None:
    """Give the bank in ``folder`` the state of a checkpoint, or make it with that state.

    A bank that is there must be the one that the checkpoint was made of. ``same_bank`` says that it
    is, though its journal is lost.
    """
    found = checkpoint.read(path)
    lock = lock_folder(folder)
    try:
        checkpoint.restore(found, folder, same_bank=same_bank)
    finally:
        lock.release()


def rewind(folder: Path, tick: int) -> None:
    """Let a bank forget, for good, everything after ``tick``."""
    lock = lock_folder(folder)
    try:
        journal = Journal(_journal_of(folder))
        try:
            commit = journal.commit_of(check_whole("tick", tick))
            values = stale_store(journal, commit)
            journal.rewind(commit, notes_unwritten=True, **values)
        finally:
            journal.close()
    finally:
        lock.release()


def branch(folder: Path, tick: int, into: Path) -> None:
    """Make a bank of its own: the one in ``folder`` as it was after ``tick``."""
    source = _journal_of(folder)
    if into.exists():
        raise BankError(f"{into} exists already; a branch needs a folder of its own")
    into.mkdir(parents=True)
    journal = Journal(into / "journal.db", copied=source)
    try:
        commit = journal.commit_of(check_whole("tick", tick))
        identity = with_new_id(journal.get("bank"))
        journal.rewind(commit, bank=identity, store=None, notes_unwritten=True)
    finally:
        journal.close()


def past(folder: Path, tick: int | None) -> Journal:
    """A copy of a bank's journal as it was after ``tick``, or as it is; gone when closed."""
    journal = Journal(None, copied=_journal_of(folder))
    try:
        if journal.get("bank") is None:
            raise BankError(f"the bank in {folder} was never opened")
        if tick is not None:
            if check_whole("tick", tick) > journal.tick:
                raise BankError(
                    f"the bank in {folder} is at tick {journal.tick}, not at {tick} yet"
                )
            journal.rewind(journal.commit_of(tick))
    except BaseException:
        journal.close()
        raise
    return journal


def check_unused(folder: Path) -> None:
    """Raise :class:`BankLocked` while somebody has the bank in ``folder`` open."""
    lock_folder(folder).release()


def _journal_of(folder: Path) -> Path:
    if not str(folder):
        raise InvalidInput("a bank needs a folder; got an empty path")
    path = folder / "journal.db"
    if not path.is_file():
        inside = (folder / "bank" / "journal.db").is_file()
        hint = f"; the run's bank is {folder / 'bank'}" if inside else ""
        raise BankNotFound(f"there is no bank in {folder}{hint}")
    return path
