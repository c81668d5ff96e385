"""The package mem0, imported without its telemetry and its file in the home folder."""

import atexit
import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from ..leftovers import TemporaryFolder

__all__ = ["import_mem0", "import_store"]


def import_mem0(module: str) -> Any:
    """A module of mem0, imported without telemetry and without a file in the home folder."""
    if "mem0" not in sys.modules:
        folder = TemporaryFolder("mem0")
        atexit.register(folder.cleanup)
        with _environment(MEM0_TELEMETRY="False", MEM0_DIR=folder.name):
            importlib.import_module("mem0")
    return importlib.import_module(module)


def import_store(provider: str | None) -> None:
    """Import mem0 and the package of a provider: a store that lacks a package is not damaged."""
    import_mem0("mem0")
    if provider == "chroma":
        importlib.import_module("chromadb")


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
