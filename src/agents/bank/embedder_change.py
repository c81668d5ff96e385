"""Giving a bank another embedder."""

from collections.abc import Mapping
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..config.load import load_settings
from ..errors import BankError
from ..memory.results import Reembedding
from ..storage.embedding.embedders import Embedder
from ..storage.identity import checked_embedder, with_embedder
from ..storage.journal.journal import Journal
from ..storage.lock import lock_folder
from ..storage.mem0.store import check_providers
from ..storage.reembedding import FILE, agreement, new_vectors, survey, switch
from ..storage.store_sync import Progress
from .history import journal_of


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
    folder: Path, journal: Journal, given: Any, dry_run: bool, progress: Progress | None
) -> Reembedding:
    identity = journal.get("bank")
    if identity is None:
        raise BankError(f"the journal in {folder} is empty: it has no embedder yet")
    if journal.last_tick() is not None:
        raise BankError(
            f"{folder} is the bank of a run: its records say what was found with its vectors",
            hint="run the scenario anew with the other embedder",
        )
    section = {"provider": given} if isinstance(given, str) else given
    named = {"embedder": section} if isinstance(section, Mapping) else {}
    kept = {key: own for key, own in identity["settings"].items() if key != "embedder" or not named}
    settings = load_settings(None, base=kept, overrides=named)
    check_providers(settings)
    chosen = checked_embedder(settings, None if named else given)
    before = identity["embedder"]
    if (chosen.name, chosen.dims) == (before["name"], before["dims"]):
        (folder / FILE).unlink(missing_ok=True)
        return Reembedding(before["name"], chosen.name, 0, None, 0)
    found = survey(journal)
    with new_vectors(None if dry_run else folder, chosen) as new:
        texts = list(found.sample) if dry_run else found.texts
        for done in new.embed(texts):
            if progress:
                progress(done, len(texts))
        same = agreement(
            _table(b"".join(found.sample.values()), before["dims"]),
            _table(new.of(list(found.sample)), chosen.dims),
        )
        if not dry_run:
            store = journal.get("store")
            values = {} if store is None else {"store": {**store, "stale": True}}
            values["bank"] = with_embedder(identity, chosen, settings)
            is_same_again = getattr(chosen, "reproducible", False)
            vectors = {} if is_same_again else new.by_hash(found.texts)
            switch(journal, journal_of(folder), new, vectors, **values)
    if not dry_run:
        (folder / FILE).unlink(missing_ok=True)
    return Reembedding(before["name"], chosen.name, len(found.texts), same, len(found.sample))


def _table(vectors: bytes, dims: int) -> Any:
    return np.frombuffer(vectors, np.int8).reshape(-1, dims)
