"""The packages that TierMem is built on: what each is for, and how to get one that is missing."""

from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.requirements import Requirement

__all__ = ["install", "module_of", "purpose", "requirements"]

_MODULES = {
    "mem0ai": "mem0",
    "opentelemetry-api": "opentelemetry",
    "pystemmer": "Stemmer",
    "pyyaml": "yaml",
}
"""What is imported under another name than it is installed by."""
_PACKAGES = {module: name for name, module in _MODULES.items()} | {"mcp_types": "mcp"}

_PURPOSES = {
    "chromadb": "mem0's store",
    "jsonschema": "checking settings",
    "matplotlib": "plots",
    "mcp": "serving MCP clients",
    "mem0": "the store, and for embedders and LLMs of others",
    "numpy": "everything that computes",
    "opentelemetry": "telemetry",
    "orjson": "writing the journal",
    "packaging": "checking packages",
    "pyarrow": "Parquet files",
    "safetensors": "the offline embedder",
    "simsimd": "searching",
    "starlette": "serving over HTTP",
    "Stemmer": "searching by words",
    "tokenizers": "the offline embedder",
    "uvicorn": "serving over HTTP",
    "watchfiles": "watching notes",
    "wordllama": "the offline embedder",
    "yaml": "reading settings",
}

_FOR_DEVELOPERS = ("bench", "dev")


def requirements() -> "Iterator[tuple[Requirement, str | None]]":
    """What TierMem needs on this machine, and the extra that brings it; None: TierMem itself.

    Nothing where TierMem was not installed but copied.
    """
    from packaging.requirements import Requirement

    try:
        own = metadata.metadata("tiermem")
    except metadata.PackageNotFoundError:
        return
    for line in own.get_all("Requires-Dist") or ():
        wanted = Requirement(line)
        for extra in ("", *(own.get_all("Provides-Extra") or ())):
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                yield wanted, extra or None
                break


def module_of(package: str) -> str:
    """The name that a package is imported by."""
    return _MODULES.get(package.lower(), package)


def purpose(module: str) -> str:
    """What TierMem uses a module for; empty for one that it does not use itself."""
    top = module.partition(".")[0]
    return _PURPOSES.get(module_of(_PACKAGES.get(top, top)), "")


def install(module: str) -> str:
    """The command that brings a module which is missing."""
    top = module.partition(".")[0]
    package = _PACKAGES.get(top, top).lower()
    with suppress(ModuleNotFoundError):  # packaging itself may be what is missing
        for wanted, extra in requirements():
            if wanted.name.lower() == package and extra not in _FOR_DEVELOPERS:
                return f"pip install '{wanted if extra is None else f'tiermem[{extra}]'}'"
    return "pip install tiermem"  # of something that it needs: pip looks for what is missing
