"""mem0's config as the settings of a bank."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from ...bank.memory_bank import MemoryBank
from ...errors import ConfigError

_KNOWN = (
    "vector_store", "embedder", "llm", "history_db_path", "version", "custom_instructions",
    "reranker",
)  # fmt: skip


def bank_of(
    config: Mapping[str, Any], folder: str | PathLike[str] | None, settings: dict[str, Any]
) -> MemoryBank:
    """Open the bank that stands for a config of mem0's."""
    if not isinstance(config, Mapping):
        raise ConfigError(f"a config of mem0's is a mapping, not {type(config).__name__}")
    if unknown := [name for name in config if name not in _KNOWN]:
        is_ours = unknown[0] == "infer"
        hint = "write Memory.from_config(…, infer=False)" if is_ours else "leave it out"
        raise ConfigError(f"mem0's config has no {unknown[0]!r:.80}", hint=hint)
    if config.get("reranker"):
        raise ConfigError(
            "a bank has no reranker: it ranks by meaning, by words and by tier",
            hint="leave reranker out of the config",
        )
    for name in ("embedder", "llm"):
        if own := config.get(name):
            settings.setdefault(name, _section(own, name))
    store = _section(config.get("vector_store") or {"provider": "chroma"}, "vector_store")
    path = store["config"].get("path")
    if path is None and store["config"]:
        settings.setdefault("store", store)
    if folder is None and path is None:
        raise ConfigError(
            "the config does not say where the memories are",
            hint="name a folder: Memory.from_config(config, 'my-bank')",
        )
    return MemoryBank.open(Path(f"{path}.tiermem") if folder is None else folder, **settings)


def _section(own: Any, name: str) -> dict[str, Any]:
    if not isinstance(own, Mapping) or not isinstance(own.get("provider"), str):
        raise ConfigError(f"{name} of mem0's config names no provider", hint="name one")
    return {"provider": own["provider"], "config": dict(own.get("config") or {})}
