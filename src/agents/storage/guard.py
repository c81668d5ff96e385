"""What a bank's remembered settings may do: all if the bank is trusted, little if it is not."""

import contextlib
import os
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

from ..config.settings import Settings, StoreSettings
from ..errors import Untrusted
from .identity import is_trusted
from .private_files import new_file, replace_file
from .trust import place_seal, refusal
from .wishes import embedder_wish, has_pickles, llm_wish, notes_wish, store_wish

__all__ = ["Guard", "claim_store"]

_PLACE, _SEAL = "store.place", "store.seal"


class Guard:
    """Compares the settings of a bank with those that its user gives now.

    What the user names now is the user's own, and needs no trust. A section that is only in part
    the user's own is not.
    """

    def __init__(
        self, folder: Path, identity: dict[str, Any] | None, settings: Settings, own: Settings
    ) -> None:
        self.is_trusted = identity is None or is_trusted(identity)
        self._folder = folder
        self._settings = settings
        self._own = own

    def embedder(self) -> Untrusted | None:
        """Why the remembered embedder may not be used."""
        now, own = self._settings.embedder, self._own.embedder
        is_own = (now.provider, now.config) == (own.provider, own.config)
        return self._refused(is_own, embedder_wish(now), "or name an embedder yourself")

    def llm(self) -> Untrusted | None:
        """Why the remembered LLM may not be asked."""
        is_own = self._settings.llm == self._own.llm
        return self._refused(is_own, llm_wish(self._settings.llm), "or name an LLM yourself")

    def check_files(self) -> None:
        """Refuse to open a store, or notes elsewhere, that an untrusted bank remembers."""
        store, notes = self._settings.store, self._settings.notes.extra_paths
        # The files in the folder are a stranger's, whoever names the store.
        is_own = store == self._own.store and not has_pickles(store, self._folder)
        for refused in (
            self._refused(
                is_own, store_wish(store, self._folder), "or name another store yourself"
            ),
            self._refused(
                notes == self._own.notes.extra_paths,
                notes_wish(notes),
                "or name notes.extra_paths yourself",
            ),
        ):
            if refused is not None:
                raise refused
        if has_pickles(store, self._folder):
            _check_place(self._folder, store)

    def without_files(self) -> Settings:
        """The settings of a copy, which neither has a store nor reads notes elsewhere."""
        if self.is_trusted:
            return self._settings
        notes = replace(self._settings.notes, extra_paths=self._own.notes.extra_paths)
        return replace(self._settings, store=self._own.store, notes=notes)

    def _refused(self, is_own: bool, wish: str | None, instead: str) -> Untrusted | None:
        if self.is_trusted or is_own or wish is None:
            return None
        return refusal(self._folder, wish, instead)


def claim_store(folder: Path) -> None:
    """Say that the files of a bank's store, which lie in this place, are the user's own."""
    place = folder / _PLACE
    place.unlink(missing_ok=True)
    os.close(new_file(place))
    replace_file(folder / _SEAL, place_seal(place))


def _check_place(folder: Path, store: StoreSettings) -> None:
    """Refuse pickles that came from elsewhere: a bank's seal says nothing of its store's files."""
    with contextlib.suppress(OSError, ValueError):
        if (folder / _SEAL).read_text() == place_seal(folder / _PLACE):
            return
    files = folder / str(store.config.get("path", store.provider))
    if files.exists():
        raise refusal(
            folder,
            f"open the files of its {store.provider} store, which can hold code",
            f"or delete {files}, and rebuild it with: tiermem repair {quote(str(folder))}",
        )
    claim_store(folder)
