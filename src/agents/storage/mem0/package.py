"""The package mem0, imported without its telemetry and its file in the home folder."""

import atexit
import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

from ..files import TemporaryFolder


def import_mem0(module: str) -> Any:
    """A module of mem0, imported without telemetry and without a file in the home folder."""
    if "mem0" not in sys.modules:
        with _environment(MEM0_TELEMETRY="False", MEM0_DIR=_folder().name):
            importlib.import_module("mem0")
    return importlib.import_module(module)


def import_store(provider: str | None) -> None:
    """Import mem0 and the package of a provider: a store that lacks a package is not damaged."""
    import_mem0("mem0")
    if provider == "chroma":
        importlib.import_module("chromadb")


def remove_folder() -> None:
    """Remove the folder of mem0's file, in a process that needs only stores and will be killed."""
    if _folder.cache_info().currsize:
        _folder().cleanup()


@cache
def _folder() -> TemporaryFolder:
    """The folder that mem0 takes for its own in this process, until the process ends."""
    folder = TemporaryFolder("mem0")
    atexit.register(folder.cleanup)
    return folder


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
