"""A backup of a bank that may be in use: a bank of its own, whole and checked, or none."""

import os
from contextlib import closing
from os import PathLike
from os.path import realpath
from pathlib import Path
from typing import NamedTuple

from ..errors import BankDamaged, BankError, InvalidInput
from ..storage.checkpoint import check_all
from ..storage.files import new_file
from ..storage.journal.journal import Journal
from ..storage.sqlite import sync_file, sync_folder
from ..storage.store_sync import Progress
from ..storage.trust import with_new_id
from ..storage.whole_folder import clear_up, whole_folder
from .history import identity_of, journal_of
from .opening import path_of

_TOKENS = "tokens.json"


class Backup(NamedTuple):
    """What a backup holds."""

    folder: str
    tick: int
    commits: int
    """The number of the last commit."""
    hash: str
    """The hash over all commits."""
    bytes: int


def backup(
    folder: str | PathLike[str], to: str | PathLike[str], *, progress: Progress | None = None
) -> Backup:
    """Copy the bank in ``folder`` to a new folder ``to``, which is a bank, too.

    Another process may have the bank open and go on writing. The backup is the bank after a commit:
    the last one that was acknowledged before the call, or a later one. It has all that the journal
    has, and the tokens. Opening it writes the files of the notes, and a sync mem0's store. Its id
    is another one, so that it never writes to the store of the bank.

    The backup gets its name when all of it is on disk and every hash in it is right. After an error
    there is none. :class:`BankError` if ``to`` exists, :class:`BankDamaged` if the bank is damaged.
    ``progress`` is told how many pages of how many are copied.
    """
    if not str(to):
        raise InvalidInput("a backup needs a folder; got an empty path", hint="name a folder")
    source, target = path_of(folder), path_of(to)
    try:
        journal_of(source)
        _check_free(source, target)
        clear_up(target)
        with whole_folder(target, replace=False) as new:
            try:
                made = _copied(source, new, target, progress)
            except BankDamaged:  # maybe the bank was opened, changed and closed while it was copied
                for path in new.iterdir():
                    path.unlink()
                made = _copied(source, new, target, progress)
            sync_folder(new)
        sync_folder(target.parent)
    except (OSError, ValueError) as error:  # a NUL in a path is a ValueError
        _check_new(target)
        raise BankError(
            f"the backup {str(target)!r} can't be made: {error}; nothing was changed",
            hint="make room and let your user write there, or name another folder",
        ) from error
    return made


def _check_new(target: Path) -> None:
    if os.path.lexists(target):
        raise BankError(f"{target} exists already", hint="a backup needs a folder of its own")


def _check_free(source: Path, target: Path) -> None:
    _check_new(target)
    there = realpath(target.parent)  # unlike resolve(), it takes a link that leads to itself
    if target.is_relative_to(source) or Path(there).is_relative_to(realpath(source)):
        raise BankError(f"{target} is in the bank's own folder", hint="name one outside of it")


def _copied(source: Path, new: Path, target: Path, progress: Progress | None) -> Backup:
    """Fill the folder ``new``, which is to be ``target``; errors name ``source`` and ``target``."""
    path, origin = new / "journal.db", source / "journal.db"
    try:
        with closing(Journal(path, copied=origin, progress=progress)) as journal:
            identity = identity_of(journal, source)
            _copy_tokens(source, new)
            journal.set(bank=with_new_id(identity), store=None, notes_unwritten=True)
            journal.rest()
            tick, head, digest = journal.tick, journal.head, journal.hash
        sync_file(path)
        with closing(Journal(None, seen=path)) as written:  # what is on disk, read anew
            check_all(written)
            if (written.head, written.hash) != (head, digest):
                raise written.file.damaged("its last commit is not what was written")
    except BankDamaged as error:  # the copy is what the bank's journal is
        why = error.why.replace(str(path), str(origin))
        raise type(error)(f"{why}; no backup was made", hint=error.hint) from None
    except BankError as error:
        why = error.why.replace(str(new), str(target))
        raise type(error)(f"{why}; no backup was made", hint=error.hint) from None
    size = sum(each.stat().st_size for each in new.iterdir())
    return Backup(str(target), tick, head, digest.hex(), size)


def _copy_tokens(source: Path, new: Path) -> None:
    """Copy the hashes of the tokens, if there are any; a stranger's link leads nowhere."""
    path = source / _TOKENS
    if path.is_symlink() or not path.is_file():
        return
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(opened, "rb") as file, os.fdopen(new_file(new / _TOKENS), "wb") as copy:
        copy.write(file.read())
        copy.flush()
        os.fsync(copy.fileno())
