"""The folder of a bank that is not open: restored, rewound, branched, given another embedder.

Only :func:`past` may copy an open bank.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from ..config.load import load_settings
from ..errors import BankError, BankNotFound, InvalidInput
from ..memory.records import Reembedding
from ..memory.requests import check_whole
from ..storage import checkpoint
from ..storage.beside_journal import lost_journal
from ..storage.embedding import Embedder
from ..storage.files import BankLock, lock_folder, make_folder
from ..storage.journal.journal import Journal
from ..storage.mem0.store import check_providers
from ..storage.reembedding import FILE, agreement, new_vectors, survey, switch
from ..storage.store_sync import Progress, stale_store
from ..storage.trust import checked_embedder, with_embedder, with_new_id


def restore(path: Path, folder: Path, *, same_bank: bool = False) -> BankLock:
    """Give the bank in ``folder`` the state of a checkpoint, or make it with that state.

    An existing bank must be the bank that the checkpoint was made of. ``same_bank`` asserts this
    for a bank that lost its journal. The result is the bank's lock, held: until it is released,
    no other process can restore or open the bank.
    """
    found = checkpoint.read(path)
    lock = lock_folder(folder)
    try:
        checkpoint.restore(found, folder, same_bank=same_bank)
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
        journal.rest()
    finally:
        journal.close()


def past(folder: Path, tick: int | None) -> Journal:
    """A copy in memory of a bank's journal, as it was after ``tick`` or as it is now."""
    journal = Journal(None, copied=journal_of(folder))
    try:
        identity_of(journal, folder)
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


def identity_of(journal: Journal, folder: Path) -> dict[str, Any]:
    """The identity of the bank in a folder; an error if its making was never finished."""
    identity = journal.get("bank")
    if identity is None:
        raise BankError(
            f"the journal in {folder} is empty: a bank was begun there, and never made",
            hint="if it held memories, restore it from a backup; else delete journal.db and "
            f"make the bank with: tiermem init {quote(str(folder))}",
        )
    if not isinstance(identity, dict):
        raise journal.file.damaged("it does not say which bank it is of")
    return identity


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


def reembed(
    folder: str | PathLike[str],
    embedder: Embedder | Mapping[str, object] | str,
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Reembedding:
    """Give the bank in ``folder`` another embedder; all its texts are embedded anew.

    ``embedder`` is an embedder of your own, a model with ``encode`` as sentence-transformers has
    it, the settings' section ``embedder``, or a provider's name. Ids, tiers and history stay. All
    vectors change at once at the end: a process that is killed before leaves the bank as it was,
    and the next call goes on where it was. mem0's store is made anew by the next sync. A
    ``dry_run`` changes nothing, and embeds 500 texts at most, which it compares.

    The bank must not be open. :class:`BankError` for the bank of a run: its records say what its
    agents found with the old vectors.
    """
    path = Path(folder).absolute()
    with ExitStack() as last:
        source = journal_of(path)
        if dry_run:
            journal = Journal(None, copied=source)
        else:
            last.callback(lock_folder(path).release)
            journal = Journal(source)
        last.callback(journal.close)
        return _reembed(path, journal, embedder, dry_run, progress)


def _reembed(
    folder: Path, journal: Journal, wanted: Any, dry_run: bool, progress: Progress | None
) -> Reembedding:
    identity = journal.get("bank")
    if identity is None:
        raise BankError(f"the journal in {folder} is empty: it has no embedder yet")
    if journal.attachments.exist():
        raise BankError(
            f"{folder} is the bank of a run: its records say what was found with its vectors",
            hint="run the scenario anew with the other embedder",
        )
    section = {"provider": wanted} if isinstance(wanted, str) else wanted
    named = {"embedder": section} if isinstance(section, Mapping) else {}
    kept = {key: own for key, own in identity["settings"].items() if key != "embedder" or not named}
    settings = load_settings(None, base=kept, overrides=named)
    check_providers(settings)
    chosen = checked_embedder(settings, None if named else wanted)
    before = identity["embedder"]
    if (chosen.name, chosen.dims) == (before["name"], before["dims"]):
        (folder / FILE).unlink(missing_ok=True)
        return Reembedding(before["name"], chosen.name, 0, None, 0)
    surveyed = survey(journal)
    with new_vectors(None if dry_run else folder, chosen) as new:
        texts = list(surveyed.sample) if dry_run else surveyed.texts
        for done in new.embed(texts):
            if progress:
                progress(done, len(texts))
        same = agreement(
            _table(b"".join(surveyed.sample.values()), before["dims"]),
            _table(new.of(list(surveyed.sample)), chosen.dims),
        )
        if not dry_run:
            store = journal.get("store")
            values = {} if store is None else {"store": {**store, "stale": True}}
            values["bank"] = with_embedder(identity, chosen, settings)
            is_same_again = getattr(chosen, "reproducible", False)
            vectors = {} if is_same_again else new.by_hash(surveyed.texts)
            switch(journal, journal_of(folder), new, vectors, **values)
    if not dry_run:
        (folder / FILE).unlink(missing_ok=True)
    return Reembedding(before["name"], chosen.name, len(surveyed.texts), same, len(surveyed.sample))


def _table(vectors: bytes, dims: int) -> Any:
    return np.frombuffer(vectors, np.int8).reshape(-1, dims)
