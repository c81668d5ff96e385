"""Rows of a mem0 store that somebody else filled. The store is only read."""

import json
import math
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agents.config_yaml import read_file
from agents.errors import ConfigError, InvalidAgentId, InvalidInput, StoreError
from agents.exchange.rows import Row
from agents.memory.metadata import RESERVED_METADATA_KEYS
from agents.memory.records import check_agent_id
from agents.memory.temperature import TEMPERATURE_NAMES
from agents.memory.tiers import TIER_NAMES, TIER_VALUES, Tier
from agents.memory.traits import KINDS, check_tags
from agents.storage.mem0_store import read_rows

__all__ = ["mem0_rows"]

_OWNERS = ("user_id", "agent_id")
_SAID_OTHERWISE = frozenset({"data", "hash", "text_lemmatized"})
"""What mem0 can work out from the text."""
_OURS_ALONE = frozenset({"tier_name", "created_tick", "tier_tick", "sequence", "expires_tick"})
"""What a bank writes to its store besides; ticks of another bank mean nothing."""


def mem0_rows(config: Path, agent_id: str | None = None) -> Iterator[Row]:
    """The memories in the store of mem0's own config, a YAML or JSON file, oldest first.

    Rows whose owner can't be an agent's id go to ``agent_id``, or are :class:`InvalidInput`. Those
    without a text are no memories, and left out.
    """
    store = _store_config(config)
    with _copied(store) as copy:
        found = read_rows(copy)
    found = [(key, own) for key, own in found if own.get("data") and "tiermem_bank" not in own]
    if not found:
        name = store["config"].get("collection_name", "mem0")
        raise StoreError(
            f"{config}: the store has no memories in the collection {name!r:.80}; is "
            "vector_store.config.collection_name the one that mem0 was used with?"
        )
    found.sort(key=lambda pair: (str(pair[1].get("created_at", "")), pair[0]))
    for key, own in found:
        yield _row(key, own, agent_id)


def _store_config(path: Path) -> dict[str, Any]:
    """What the file says of the store: provider and config."""
    whole = read_file(path).value
    store = whole.get("vector_store") if isinstance(whole, Mapping) else None
    if not isinstance(store, Mapping) or not isinstance(store.get("provider"), str):
        raise ConfigError(
            f"{path}: this is no config of mem0: it needs vector_store with a provider, such as "
            "vector_store: {provider: chroma, config: {path: db, collection_name: mem0}}"
        )
    own = store.get("config", {})
    if not isinstance(own, Mapping):
        raise ConfigError(f"{path}: vector_store.config is a mapping")
    return {"provider": store["provider"], "config": dict(own)}


@contextmanager
def _copied(store: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The same config on a copy of a local store: a database that is opened is changed."""
    path = store["config"].get("path")
    if path is None:
        if not store["config"].keys() & {"host", "url", "api_key"}:
            raise ConfigError("vector_store.config says neither path nor host: where is the store?")
        yield store
        return
    place = Path(str(path))
    if not place.is_dir() or not any(place.iterdir()):
        raise StoreError(
            f"there is no store in {place.absolute()}; a relative path is meant from the current "
            "folder, as mem0 means it"
        )
    with tempfile.TemporaryDirectory(prefix="tiermem-adopt-") as folder:
        copy = Path(folder) / "store"
        shutil.copytree(place, copy)
        yield {**store, "config": {**store["config"], "path": str(copy)}}


def _row(key: str, own: Mapping[str, Any], agent_id: str | None) -> Row:
    place = f"mem0's memory {key}"
    owner = _owner(own, agent_id, place)
    tier = _tier(own.get("tier"))
    is_ours = tier is not None and own.get("tier_name") == TIER_NAMES[tier]
    values: dict[str, Any] = {"agent_id": owner, "content": own["data"]}
    metadata: dict[str, Any] = {"mem0_id": key}
    for name, value in own.items():
        taken = _taken(name, value)
        if taken is not None:
            values[name] = taken
        elif not _is_dropped(name, value, owner, is_ours):
            metadata[_renamed(name)] = _flat(value)
    return Row(place, {**values, "metadata": metadata})


def _owner(own: Mapping[str, Any], agent_id: str | None, place: str) -> str:
    found = next((own[name] for name in _OWNERS if own.get(name)), None)
    try:
        return check_agent_id(found)
    except InvalidAgentId as error:
        if agent_id is not None:
            return agent_id
        if found is None:
            raise InvalidInput(f"{place} has neither user_id nor agent_id; use --agent") from None
        raise InvalidInput(f"{place}: {error}. --agent takes all such memories") from None


def _tier(value: Any) -> Tier | None:
    if isinstance(value, str):
        return TIER_VALUES.get(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return Tier(value) if is_number and value in range(len(Tier)) else None


def _taken(name: str, value: Any) -> Any:
    """A value that means here what it means there, or None."""
    if name == "tier":
        return _tier(value)
    if name == "kind":
        return value if value in KINDS else None
    if name == "temperature":
        return value if value in TEMPERATURE_NAMES.values() else None
    if name == "tags":
        try:
            texts = [each.strip() for each in value.split(",")] if isinstance(value, str) else value
            return check_tags(texts)
        except InvalidInput:
            return None
    return None


def _is_dropped(name: str, value: Any, owner: str, is_ours: bool) -> bool:
    if name in _OWNERS:
        return bool(value == owner)
    return name in _SAID_OTHERWISE or (is_ours and name in _OURS_ALONE)


def _renamed(name: str) -> str:
    is_free = name not in RESERVED_METADATA_KEYS and not name.startswith(("$", "#", "chroma:"))
    return name if name and is_free else f"mem0_{name}"


def _flat(value: Any) -> Any:
    """A value that metadata can hold: what is nested, or no JSON, as text."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
