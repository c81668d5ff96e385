"""What a bank's remembered settings may do: all if the bank is trusted, little if it is not."""

import os
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

from ..config.settings import Settings, StoreSettings
from ..errors import Untrusted
from .identity import is_trusted
from .once import once
from .private_files import new_file, replace_file
from .trust import place_seal, refusal
from .wishes import embedder_wish, has_pickles, lies_inside, llm_wish, notes_wish, store_wish

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
        f"or delete {files}, and rebuild it with: tiermem repair {quote(str(folder))}",
    )
