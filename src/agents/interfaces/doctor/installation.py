"""The doctor's checks of an installation: Python, packages, SQLite, disks, the offline embedder."""

import importlib
import importlib.util
import os
import platform
import shutil
import sqlite3
import sys
import tempfile
import warnings
from functools import partial
from importlib import metadata
from pathlib import Path
from shlex import quote
from typing import Any

from ..packages import install, module_of, purpose, requirements
from .checks import Check, Finding, Findings

_LEAST_SQLITE = (3, 35, 0)
_LITTLE_SPACE, _NO_SPACE = 1 << 30, 50 << 20


def installation_checks() -> list[Check]:
    """The checks without a bank; the packages come first, because other checks need them."""
    temporary = Path(tempfile.gettempdir())
    return [
        Check("python", _python),
        Check("packages", _packages),
        Check("sqlite", _sqlite),
        Check("disk", partial(space, temporary, "temporary files")),
    ]


def _python() -> Findings:
    version = platform.python_version()
    yield Finding("ok", "python", f"{version} in {sys.prefix}")


# Packages


def _packages() -> Findings:
    from ... import __version__

    yield Finding("ok", "tiermem", __version__)
    sound = []
    own = {module_of(each.name) for each, extra in requirements() if extra is None}
    unused = {extra for each, extra in requirements() if extra and _version(each.name) is None}
    for wanted, extra in requirements():
        if extra in unused:  # an extra that lacks a package: its bounds bind nobody
            continue
        name, bounds = wanted.name, wanted.specifier
        version, todo = _version(name), f"pip install '{name}{bounds}'"
        if extra is None and version is None:
            yield Finding("problem", name, "is not installed", todo)
        elif version is not None and not bounds.contains(version, prereleases=True):
            state = "problem" if extra is None else "warning"
            yield Finding(state, name, f"{version}, and {bounds} is needed", todo)
        elif extra is None and (error := _tried(module_of(name))):
            lacking = (error.name or module_of(name)).partition(".")[0]
            if lacking == module_of(name) or lacking not in own:  # else it is a finding itself
                use = purpose(module_of(name)) or "all of TierMem"
                said = f"can't be imported ({error}); it is for {use}"
                yield Finding("problem", name, said, install(lacking))
        elif extra is None:
            sound.append(f"{name} {version}")
    if sound:
        yield Finding("ok", "packages", ", ".join(sound))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _tried(module: str) -> ImportError | None:
    """The error of importing a package, which can be installed and yet not load."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _import(module)
    except ImportError as error:
        return error
    return None


def _import(module: str) -> None:
    if module == "wordllama":  # only its files are used; its code would set up logging
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError(f"No module named '{module}'", name=module)
    elif module == "mem0":
        from ...storage.mem0.package import import_store

        import_store(None)
    else:
        importlib.import_module(module)


# The machine


def _sqlite() -> Findings:
    if sqlite3.sqlite_version_info < _LEAST_SQLITE:
        todo = "use a Python that was built with SQLite 3.35 or newer"
        yield Finding("warning", "sqlite", sqlite3.sqlite_version, todo)
    else:
        yield Finding("ok", "sqlite", sqlite3.sqlite_version)


def space(place: Path, what: str) -> Findings:
    """Whether a folder has room, and the user may write to it."""
    free = shutil.disk_usage(place).free
    said = f"{free / 1e9:,.1f} GB free for {what} in {place}"
    if free < _NO_SPACE:
        yield Finding("problem", "disk", said, "make room: nothing more can be stored soon")
    elif free < _LITTLE_SPACE:
        yield Finding("warning", "disk", said, "make room before it runs out")
    else:
        yield Finding("ok", "disk", said)
    if not os.access(place, os.W_OK | os.X_OK):
        todo = f"give yourself the right to write: chmod u+rwx {quote(str(place))}"
        yield Finding("problem", "disk", f"{place} can't be written to", todo)


def embedding(embedder: Any = None) -> Findings:
    """Whether an embedder, by default the offline one, gives two texts different vectors."""
    from ...storage.embedding.cache import CachedEmbedder
    from ...storage.embedding.embedders import OfflineEmbedder

    embedder = embedder or OfflineEmbedder()
    one, other = CachedEmbedder(embedder, 0, lambda _: {}).encode(["the sea", "a tax form"])
    said = f"{embedder.name}, {embedder.dims} dimensions"
    if embedder.name != "none" and (one == other).all():
        todo = "searches find by words alone; check embedder.* in the settings"
        yield Finding("warning", "embedder", f"{said}: the same vector for two texts", todo)
    else:
        yield Finding("ok", "embedder", said)
