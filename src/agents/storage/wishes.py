"""What settings want that only the user's own, or trusted ones, may have.

Settings that a bank remembers, or that are in a run's folder, may be somebody else's. Each function
says what such settings want to do beyond reading and searching offline; None if nothing.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from ..config.settings import EmbedderSettings, LlmSettings, StoreSettings, without_password

_OFFLINE = ("offline", "none")
_PICKLED = ("qdrant", "faiss")
"""The local stores whose files are pickles: to open them can run code that is in them."""
_PLAIN_OPTIONS = {"collection_name", "path"}


def embedder_wish(embedder: EmbedderSettings) -> str | None:
    """What an embedder other than ours does with texts."""
    if embedder.provider in _OFFLINE:
        return None
    return f"give texts and your API key to {_named('the embedder', embedder)}"


def llm_wish(llm: LlmSettings) -> str | None:
    """What a language model does with conversations."""
    if llm.provider is None:
        return None
    return f"give texts and your API key to {_named('the LLM', llm)}"


def store_wish(store: StoreSettings, folder: Path) -> str | None:
    """What a store does, unless it is Chroma in the bank's folder."""
    path = PurePath(str(store.config.get("path", store.provider)))
    if store.provider == "chroma" and not store.config.keys() - _PLAIN_OPTIONS:
        inside = not path.is_absolute() and ".." not in path.parts
        if inside and not _has_link(folder, path):
            return None
        return f"write a store outside its folder, in {folder / path}"
    return f"write to {_named('the store', store)}"


def notes_wish(extra_paths: Sequence[str]) -> str | None:
    """What notes outside the bank's folder mean."""
    return f"read your files in {', '.join(map(repr, extra_paths))}" if extra_paths else None


def has_pickles(store: StoreSettings, folder: Path) -> bool:
    """Whether a store is local, in the bank's folder, and of pickles."""
    return store.provider in _PICKLED and lies_inside(store, folder)


def lies_inside(store: StoreSettings, folder: Path) -> bool:
    """Whether the files of a store, or a link to them, are in the bank's folder."""
    if store.config.keys() & {"host", "url", "api_key"}:
        return False
    path = folder / str(store.config.get("path", store.provider))
    written = Path(os.path.normpath(path))
    return written.is_relative_to(folder) or path.resolve().is_relative_to(folder.resolve())


def _named(kind: str, section: EmbedderSettings | LlmSettings | StoreSettings) -> str:
    address = _address(section.config)
    return f"{kind} {section.provider}" + (f" at {address}" if address else "")


def _address(config: Mapping[str, object]) -> str:
    """The options that say where a provider is."""
    found = [
        without_password(value)
        for key, value in config.items()
        if key.endswith(("url", "host", "path", "endpoint", "connection_string"))
        and isinstance(value, str)
    ]
    return ", ".join(found)[:200]


def _has_link(folder: Path, path: PurePath) -> bool:
    """Whether a link leads out of the folder, on the way to the store or in it."""
    steps = [folder / part for part in (path, *path.parents) if part.parts]
    return any(step.is_symlink() for step in (*steps, *(folder / path).rglob("*")))
