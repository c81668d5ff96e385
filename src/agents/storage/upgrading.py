"""A bank's journal of an earlier format is replaced by one of the present format."""

import logging
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from ..errors import BankError
from . import formats
from .checkpoint import check_all
from .files import copy_file
from .journal.journal import Journal, JournalFile
from .sqlite import discard, sync_file, sync_folder

logger = logging.getLogger(__name__)


def upgrade(path: Path) -> Path | None:
    """Bring the journal at ``path`` to the present format, if its format is an earlier one.

    The caller holds the bank's lock. A copy is changed, and read again from its first byte to its
    last; then it takes the journal's place at once. The former journal is kept under another name,
    which is the result. A process that is killed at any step leaves the one or the other.
    """
    version = _format_of(path)
    if version is None or not formats.steps("journal", version):
        return None
    new = path.with_name(f"{path.name}.upgrading")
    parts = [new.with_name(new.name + end) for end in ("", "-wal", "-shm")]
    discard(*parts)
    try:
        with closing(Journal(new, copied=path)) as journal:
            head, digest = journal.head, journal.hash
        sync_file(new)
        with closing(Journal(None, seen=new)) as written:  # what is on disk, read anew
            check_all(written)
            if (written.head, written.hash) != (head, digest):
                raise written.file.damaged("its last commit is not what was written")
        _fold_log(path)
        kept = _keep(path)
        # SQLite must not take the log of the old journal for the log of the new one.
        discard(*[path.with_name(path.name + end) for end in ("-wal", "-shm")])
        new.replace(path)
        sync_folder(path.parent)
    except BankError as error:  # the copy is what the journal is
        raise type(error)(error.why.replace(str(new), str(path)), hint=error.hint) from None
    except (OSError, sqlite3.Error) as error:
        raise BankError(
            f"{path} can't be brought to format {formats.JOURNAL}: {error}; nothing was changed",
            hint="make room on the disk: a copy of the journal is needed",
        ) from error
    finally:
        discard(*parts)
    logger.warning(
        "%s had format %d and has format %d now; the former journal is %s: delete it when all is "
        "well",
        path, version, formats.JOURNAL, kept,
    )  # fmt: skip
    return kept


def _format_of(path: Path) -> int | None:
    """The number of a journal's format; None if there is nothing to upgrade."""
    if not any(each.kind == "journal" for each in formats.MIGRATIONS) or not path.is_file():
        return None
    return JournalFile.format_of(path)


def _fold_log(path: Path) -> None:
    """Bring what is in the log into the file, which is then whole without it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        is_busy, *_ = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if is_busy:
        raise BankError(
            f"another process reads {path}, which has to be brought to format {formats.JOURNAL}",
            hint="try again when it has ended",
        )


def _keep(path: Path) -> Path:
    """Give the journal a second name, by which it stays, or a copy."""
    name, number = f"{path.name}.before-{formats.JOURNAL}", 1
    kept = path.with_name(name)
    while kept.exists() and not kept.samefile(path):
        number += 1
        kept = path.with_name(f"{name}-{number}")
    if not kept.exists():
        try:
            os.link(path, kept)
        except OSError:  # a file system where a file has one name
            copy_file(path, kept)
            sync_file(kept)
        sync_folder(path.parent)
    return kept
