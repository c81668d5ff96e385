"""The providers that mem0 has, found without importing mem0."""

import difflib
import functools
import importlib.util
from pathlib import Path

from ...config.settings import Settings
from ...errors import ConfigError

_STORES = "configs/vector_stores"


def check_providers(settings: Settings) -> None:
    """Raise :class:`ConfigError` for a provider that mem0 does not have; mem0 is not imported."""
    for key, name, folder, ours in (
        ("store.provider", settings.store.provider, _STORES, {"none"}),
        ("embedder.provider", settings.embedder.provider, "embeddings", {"offline", "none"}),
        ("llm.provider", settings.llm.provider, "llms", set()),
    ):
        if name is None or name in ours or (folder == _STORES and not _is_installed()):
            continue
        known = _known(folder) | ours
        if name not in known:
            raise ConfigError(
                f"{key}: mem0 has no provider {name!r:.40}", hint=_instead(name, known)
            )


def check_installed(settings: Settings) -> None:
    """Raise :class:`ConfigError` if the settings write a store and mem0 is not installed."""
    if settings.storage.sync != "manual" and not _is_installed():
        raise ConfigError(
            f"mem0's store ({settings.store.provider}) needs the package mem0ai, which is not "
            "installed",
            hint="pip install 'mem0ai>=2.2,<3', or go without a store: store.provider=none",
        )


def _is_installed() -> bool:
    return importlib.util.find_spec("mem0") is not None


def check_vector_store(provider: str, place: str) -> None:
    """Raise :class:`ConfigError` for a store that mem0 lacks; ``place`` is where it is named."""
    known = _known(_STORES)
    if provider not in known:
        raise ConfigError(
            f"{place}: there is no vector store {provider!r:.40}", hint=_instead(provider, known)
        )


def _known(folder: str) -> set[str]:
    """The names of mem0's modules in a folder: mem0 itself finds a provider by its module."""
    spec = importlib.util.find_spec("mem0")
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise ConfigError(
            "the package mem0ai is not installed", hint="pip install 'mem0ai>=2.2,<3'"
        )
    return set(_modules_in(Path(places[0], folder)))


@functools.cache
def _modules_in(folder: Path) -> frozenset[str]:
    found = {file.stem for file in folder.glob("[a-z]*.py")}
    return frozenset(found - {"base", "configs", "mock"})


def _instead(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else f"it has {', '.join(sorted(known))}"
