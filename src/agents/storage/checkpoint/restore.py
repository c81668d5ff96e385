"""A bank gets the state of a checkpoint."""

from contextlib import closing
from pathlib import Path
from typing import Any

from ...errors import BankDamaged, BankError, BankTooNew, BankTooOld, CheckpointError
from ..beside_journal import mark, marked, records_of
from ..identity import with_new_id
from ..journal.journal import Journal
from ..sqlite import discard, log_of, sync_file, sync_folder
from ..state import snapshots
from .file import Checkpoint


def restore(checkpoint: Checkpoint, folder: Path, *, same_bank: bool = False) -> None:
    """Give the bank in ``folder``, or a new bank, the state of a checkpoint.

    The caller holds the folder's lock. The new journal replaces the old journal when it is whole;
    an old journal that can't be read is moved aside. ``same_bank`` says that the folder is the
    checkpoint's bank, whose journal is lost.
    """
    path, temporary = folder / "journal.db", folder / "journal.db.restoring"
    parts = [temporary.with_name(temporary.name + end) for end in ("", "-wal", "-shm")]
    try:
        bank, store = _replaced(path, checkpoint.bank, same_bank)
        discard(*parts)
        with closing(Journal(temporary)) as journal:
            journal.adopt(
                checkpoint.head,
                checkpoint.agents,
                checkpoint.ticks,
                checkpoint.embeddings,
                checkpoint.shelf,
                bank=bank,
                store=store,
                purged=checkpoint.purged,
                last_purge=checkpoint.last_purge,
                clock=checkpoint.clock,
                notes_unwritten=True,
            )
        sync_file(temporary)
        # SQLite must not take the log of the old journal for the log of the new one.
        discard(*[path.with_name(path.name + end) for end in ("-wal", "-shm")])
        discard(*[each.path for each in reversed(records_of(path))])
        temporary.replace(path)
        sync_folder(folder)
        mark(folder, bank["id"])
    except OSError as error:
        raise CheckpointError(
            f"the checkpoint can't be restored into {folder}: {error}; nothing was changed"
        ) from error
    finally:
        discard(*parts)


def _replaced(
    path: Path, bank: dict[str, Any], same_bank: bool
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The identity of the restored bank, and the cursor of the old bank's store.

    A copy gets another id, because two banks that write to one store would not notice each other.
    """
    if path.exists() and not path.stat().st_size and log_of(path).exists():
        _move_aside(path)  # SQLite would delete the log of an empty journal
    if not path.exists():
        # A store without a journal: most likely this is the bank, and its journal is lost.
        lost = any(each.is_dir() and each.name != "notes" for each in path.parent.iterdir())
        same_bank = same_bank or lost or marked(path.parent) == bank["id"]
        return bank if same_bank else with_new_id(bank), None
    try:
        with closing(Journal(path)) as old:  # closing it also folds its log into the file
            identity, store = old.get("bank"), old.get("store")
            read_all(old)
    except (BankTooNew, BankTooOld):
        raise
    except BankDamaged:  # a journal that can't be read is kept
        _move_aside(path)
        return bank, None
    if identity and identity["id"] != bank["id"]:
        raise BankError(
            f"{path.parent} holds another bank than the one the checkpoint was made of",
            hint="restore it into a new folder",
        )
    return bank, {**store, "stale": True} if store else None


def read_all(journal: Journal) -> None:
    """Raise :class:`BankDamaged` if something in a journal is not what was written."""
    for row in journal.snapshots():
        snapshots.check(row)
    first = journal.snapshot().commit if journal.base else 0
    for _ in journal.commits(after=first):
        pass
    with journal.reading():
        for _ in journal.shelf.all_now():
            pass
        for tick in journal.tick_rows():
            if tick.packed_state is not None:
                tick.state()


def _move_aside(path: Path) -> None:
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    try:
        for end in ("-wal", ""):
            part = path.with_name(path.name + end)
            if part.exists():
                part.rename(aside.with_name(aside.name + end))
    except OSError as error:
        raise CheckpointError(f"the damaged {path} can't be moved aside: {error}") from error
