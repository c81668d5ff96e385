"""What a bank keeps from its beginning: its id, its seed, its settings and its embedder.

Its settings may do all if the bank is trusted, and little if it is not: the guard says what.
"""

import hmac
import os
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

from ..config.settings import Settings, StoreSettings
from ..errors import BankDamaged, EmbedderError, Untrusted
from .embedding import Embedder, NoEmbedder, OfflineEmbedder, as_embedder
from .files import new_file, replace_file
from .journal.journal import Journal
from .mem0.models import Mem0Embedder
from .once import once
from .trust import (
    embedder_wish,
    has_pickles,
    is_listed,
    lies_inside,
    llm_wish,
    notes_wish,
    place_seal,
    refusal,
    sealed,
    store_wish,
)

_MOST_DIMS = 65_536


def prepare(
    journal: Journal,
    settings: Settings,
    given: Embedder | None,
    refused: Untrusted | None = None,
) -> Embedder:
    """The embedder to use: ``given``, or the configured one, which raises ``refused`` when used.

    A new journal keeps its name and its dimensions; with an old journal they must be the same.
    """
    identity: dict[str, Any] | None = journal.get("bank")
    if identity is None and journal.head:
        raise BankDamaged(
            "the journal does not say which bank it is of", hint="restore it from a backup"
        )
    kept = identity["embedder"] if identity else None
    embedder = checked_embedder(settings, given, kept["dims"] if kept else None, refused)
    if kept is None:
        journal.set(
            bank=sealed(
                {
                    "id": _new_id(),
                    "seed": settings.seed,
                    "settings": settings.to_dict(redact=True),
                    "embedder": {"name": embedder.name, "dims": embedder.dims},
                }
            )
        )
    elif (embedder.name, embedder.dims) != (kept["name"], kept["dims"]):
        raise EmbedderError(
            f"this bank's vectors come from {kept['name']} ({kept['dims']} dimensions) and can't "
            f"be mixed with those of {embedder.name} ({embedder.dims})",
            hint="open it with the embedder it was made with, or give it the other one with: "
            "tiermem store reembed BANK",
        )
    return embedder


def checked_embedder(
    settings: Settings,
    given: object,
    dims: int | None = None,
    refused: Untrusted | None = None,
) -> Embedder:
    """``given`` as an embedder, or the configured one; ``dims`` is what the bank knows of it."""
    embedder = _configured(settings, dims, refused) if given is None else as_embedder(given)
    if not isinstance(embedder.dims, int) or not 1 <= embedder.dims <= _MOST_DIMS:
        raise EmbedderError(
            f"the embedder {embedder.name} has {embedder.dims!r} dimensions",
            hint=f"a whole number from 1 to {_MOST_DIMS:,} is needed",
        )
    return embedder


def with_embedder(
    identity: dict[str, Any], embedder: Embedder, settings: Settings
) -> dict[str, Any]:
    """The identity of a bank whose vectors come from another embedder from now on."""
    section = settings.to_dict(redact=True)["embedder"]
    changed = {
        **identity,
        "settings": {**identity["settings"], "embedder": section},
        "embedder": {"name": embedder.name, "dims": embedder.dims},
    }
    return sealed(changed) if is_trusted(identity) else changed


def is_trusted(identity: dict[str, Any]) -> bool:
    """Whether this user made the bank of this identity, or trusts it.

    The seal covers the settings and not the memories: what the settings may do is theirs to say.
    """
    right = sealed(identity)["seal"]
    found = identity.get("seal")
    return (isinstance(found, str) and _same(found, right)) or is_listed(right)


def with_new_id(identity: dict[str, Any]) -> dict[str, Any]:
    """The identity of a copy, which must not write to the store of the first bank."""
    copy = {**identity, "id": _new_id()}
    return sealed(copy) if is_trusted(identity) else copy


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _new_id() -> str:
    """A random id, which tells the stores of banks apart. No result or hash depends on it."""
    return str(uuid.uuid4())


class _RefusedEmbedder(Mem0Embedder):
    """The embedder of an untrusted bank: it has a name, and embeds nothing."""

    def __init__(self, settings: Settings, dims: int | None, refused: Untrusted) -> None:
        super().__init__(settings.embedder, dims)
        self._refused = refused

    def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        raise self._refused


def _configured(settings: Settings, dims: int | None, refused: Untrusted | None) -> Embedder:
    if settings.embedder.provider == "offline":
        return OfflineEmbedder()
    if settings.embedder.provider == "none":
        return NoEmbedder()
    if refused is not None:
        return _RefusedEmbedder(settings, dims, refused)
    return Mem0Embedder(settings.embedder, dims)


# What a bank's remembered settings may do


_PLACE, _SEAL = "store.place", "store.seal"


class Guard:
    """Compares the settings of a bank with those that its user gives now.

    What the user names now is the user's own, and needs no trust. A section that is only in part
    the user's own is not.
    """

    def __init__(
        self, folder: Path, identity: dict[str, Any] | None, settings: Settings, own: Settings
    ) -> None:
        self._identity = identity
        self._folder = folder
        self._settings = settings
        self._own = own

    @once
    def is_trusted(self) -> bool:
        """Whether this user made the bank, makes it now, or trusts it."""
        return self._identity is None or is_trusted(self._identity)

    def embedder(self) -> Untrusted | None:
        """Why the remembered embedder may not be used."""
        now, own = self._settings.embedder, self._own.embedder
        is_own = (now.provider, now.config) == (own.provider, own.config)
        return self._refused(is_own, embedder_wish(now), "or name an embedder yourself")

    def llm(self) -> Untrusted | None:
        """Why the remembered LLM may not be asked."""
        is_own = self._settings.llm == self._own.llm
        return self._refused(is_own, llm_wish(self._settings.llm), "or name an LLM yourself")

    def files(self) -> Untrusted | None:
        """Why the remembered store, or notes elsewhere, may not be opened."""
        store, notes = self._settings.store, self._settings.notes.extra_paths
        # The files in the folder are a stranger's, whoever names the store.
        refused = None
        if has_pickles(store, self._folder):
            refused = _strange_pickles(self._folder, store)
        is_own = store == self._own.store and not lies_inside(store, self._folder)
        instead = "or name another store yourself"
        refused = refused or self._refused(is_own, store_wish(store, self._folder), instead)
        is_own = notes == self._own.notes.extra_paths
        instead = "or name notes.extra_paths yourself"
        return refused or self._refused(is_own, notes_wish(notes), instead)

    def check_files(self) -> None:
        """Refuse to open what :meth:`files` refuses; otherwise claim the store's place."""
        if refused := self.files():
            raise refused
        if has_pickles(self._settings.store, self._folder) and not _is_claimed(self._folder):
            claim_store(self._folder)

    def without_files(self) -> Settings:
        """The settings of a copy, which neither has a store nor reads notes elsewhere."""
        if self.files() is None:
            return self._settings
        notes = replace(self._settings.notes, extra_paths=self._own.notes.extra_paths)
        return replace(self._settings, store=self._own.store, notes=notes)

    def _refused(self, is_own: bool, wish: str | None, instead: str) -> Untrusted | None:
        if is_own or wish is None or self.is_trusted:
            return None
        return refusal(self._folder, wish, instead)


def claim_store(folder: Path) -> None:
    """Say that the files of a bank's store, which lie in this place, are the user's own."""
    place = folder / _PLACE
    place.unlink(missing_ok=True)
    os.close(new_file(place))
    replace_file(folder / _SEAL, place_seal(place))


def _is_claimed(folder: Path) -> bool:
    try:
        return (folder / _SEAL).read_text() == place_seal(folder / _PLACE)
    except (OSError, ValueError):
        return False


def _strange_pickles(folder: Path, store: StoreSettings) -> Untrusted | None:
    """Why pickles in the bank's folder may not be opened: its seal says nothing of these files."""
    files = folder / str(store.config.get("path", store.provider))
    if _is_claimed(folder) or not files.exists():
        return None
    return refusal(
        folder,
        f"open the files of its {store.provider} store, which can hold code",
        f"or delete {files}, and rebuild it with: tiermem store rebuild {quote(str(folder))}",
    )
