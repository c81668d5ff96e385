"""The packages that TierMem is built on: what each is for, and how to get one that is missing."""

import re
from collections.abc import Iterator
from importlib import metadata
from typing import NamedTuple

__all__ = ["Requirement", "install", "module_of", "purpose", "requirements"]

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*([^;\[]*?)\s*(?:;\s*extra\s*==\s*['\"](.+)['\"])?")

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


class Requirement(NamedTuple):
    """A package, the versions that fit, and the extra that brings it; None: TierMem itself."""

    name: str
    bounds: str
    extra: str | None


def requirements() -> Iterator[Requirement]:
    """What TierMem says it needs; nothing where it was not installed but copied."""
    try:
        lines = metadata.requires("tiermem") or ()
    except metadata.PackageNotFoundError:
        return
    for line in lines:
        if match := _REQUIREMENT.fullmatch(line):
            yield Requirement(match[1], match[2], match[3])


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
    for name, bounds, extra in requirements():
        if name.lower() == package and extra not in _FOR_DEVELOPERS:
            wanted = f"{name}{bounds}" if extra is None else f"tiermem[{extra}]"
            return f"pip install '{wanted}'"
    return "pip install tiermem"  # of something that it needs: pip looks for what is missing
