"""Rows of a mem0 store that another program filled. The store is only read."""

import json
import math
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..config.yaml_reader import read_file
from ..errors import ConfigError, InvalidAgentId, InvalidInput, StoreError
from ..memory.kinds import KINDS, check_tags
from ..memory.metadata import RESERVED_METADATA_KEYS
from ..memory.requests import check_agent_id
from ..memory.temperature import TEMPERATURE_NAMES
from ..memory.tiers import TIER_NAMES, TIER_VALUES, Tier
from ..storage.leftovers import TemporaryFolder
from ..storage.mem0.providers import check_vector_store
from ..storage.mem0.reading import read_rows
from .memory_rows import Row

_OWNERS = ("user_id", "agent_id")
_SAID_OTHERWISE = frozenset({"data", "hash", "text_lemmatized"})
"""Keys that mem0 derives from the text."""
_FILES = {"chroma": "chroma.sqlite3", "qdrant": "meta.json", "faiss": "{}.faiss"}
"""A file that every local store of a provider has; {} is the collection's name."""
_OURS_ALONE = frozenset({"tier_name", "created_tick", "tier_tick", "sequence", "expires_tick"})
"""Keys that only a bank writes to its store; the ticks of another bank mean nothing here."""


def mem0_rows(config: Path, agent_id: str | None = None) -> Iterator[Row]:
    """The memories in the store of mem0's own config, a YAML or JSON file, oldest first.

    A row whose owner can't be an agent's id goes to ``agent_id``; without ``agent_id`` it can't be
    kept. A row without a text is marked as blank.
    """
    store = _store_config(config)
    with _copied(store, config) as copy:
        found = read_rows(copy)
    found = [(key, own) for key, own in found if "tiermem_bank" not in own]
    if all(_is_blank(own) for _, own in found):
        name = store["config"].get("collection_name", "mem0")
        raise StoreError(
            f"{config}: the store has no memories in the collection {name!r:.80}",
            hint="is vector_store.config.collection_name the one that mem0 was used with?",
        )
    found.sort(key=lambda pair: (str(pair[1].get("created_at", "")), pair[0]))
    for key, own in found:
        yield _row(key, own, agent_id)


def _is_blank(own: Mapping[str, Any]) -> bool:
    text = own.get("data")
    return text is None or (isinstance(text, str) and not text.strip())


def _store_config(path: Path) -> dict[str, Any]:
    """Provider and config of the store, from the file."""
    whole = read_file(path).value
    store = whole.get("vector_store") if isinstance(whole, Mapping) else None
    if not isinstance(store, Mapping) or not isinstance(store.get("provider"), str):
        raise ConfigError(
            f"{path}: this is not a config of mem0: it needs vector_store with a provider",
            hint="write it as in "
            "vector_store: {provider: chroma, config: {path: db, collection_name: mem0}}",
        )
    check_vector_store(store["provider"], f"{path}: vector_store.provider")
    own = store.get("config", {})
    if not isinstance(own, Mapping):
        raise ConfigError(
            f"{path}: vector_store.config is not a mapping",
            hint="write config: {path: db, collection_name: mem0}",
        )
    return {"provider": store["provider"], "config": dict(own)}


@contextmanager
def _copied(store: dict[str, Any], config: Path) -> Iterator[dict[str, Any]]:
    """The same config for a copy of a local store, because to open a database changes its files."""
    path = store["config"].get("path")
    if path is None:
        if not store["config"].keys() & {"host", "url", "api_key"}:
            raise ConfigError(
                f"{config}: vector_store.config says neither path nor host",
                hint="say there where the store is",
            )
        yield store
        return
    if not isinstance(path, str) or not path.strip():
        raise ConfigError(
            f"{config}: vector_store.config.path is {path!r:.40}, and no folder's path",
            hint="say there in which folder the store is",
        )
    if store["provider"] not in _FILES:  # a provider without a path; mem0 tells what is wrong
        yield store
        return
    place = Path(path)
    name = _FILES[store["provider"]].format(store["config"].get("collection_name", "mem0"))
    if not (place / name).is_file():
        raise StoreError(
            f"there is no {store['provider']} store in {place.absolute()}: it has no {name:.80}",
            hint="a relative path is meant from the current folder, as mem0 means it",
        )
    with TemporaryFolder("adopt") as folder:
        copy = Path(folder) / "store"
        shutil.copytree(place, copy)
        yield {**store, "config": {**store["config"], "path": str(copy)}}


def _row(key: str, own: Mapping[str, Any], agent_id: str | None) -> Row:
    place = f"mem0's memory {key}"
    if _is_blank(own):
        return Row(place, {}, is_blank=True)
    try:
        owner = _owner(own, agent_id)
    except InvalidInput as error:
        return Row(place, {}, error)
    tier = _tier(own.get("tier"))
    is_ours = tier is not None and own.get("tier_name") == TIER_NAMES[tier]
    values: dict[str, Any] = {"agent_id": owner, "content": own["data"]}
    metadata: dict[str, Any] = {}
    renamed = [("id", key)]
    for name, value in own.items():
        taken = _taken(name, value, tier)
        if taken is not None:
            values[name] = taken
        elif _is_dropped(name, value, owner, is_ours):
            continue
        elif _is_free(name):
            metadata[name] = _flat(value)
        else:
            renamed.append((name, _flat(value)))
    for name, value in renamed:  # last, so that the user's own keys keep their names
        metadata[_unused(f"mem0_{name}", metadata)] = value
    return Row(place, {**values, "metadata": metadata})


def _owner(own: Mapping[str, Any], agent_id: str | None) -> str:
    found = next((own[name] for name in _OWNERS if own.get(name)), None)
    try:
        return check_agent_id(found)
    except InvalidAgentId as error:
        if agent_id is not None:
            return agent_id
        if found is None:
            raise InvalidInput("it has neither user_id nor agent_id", hint="use --agent") from None
        raise InvalidInput(error.why, hint="--agent takes all such memories") from None


def _tier(value: Any) -> Tier | None:
    if isinstance(value, str):
        return TIER_VALUES.get(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return Tier(value) if is_number and value in range(len(Tier)) else None


def _taken(name: str, value: Any, tier: Tier | None) -> Any:
    """The value of a key that means the same in a bank and in mem0's store, or None."""
    if name == "tier":
        return tier
    if name == "kind":
        return value if value in KINDS else None
    if name == "temperature":
        known = ("hot",) if tier is Tier.PINNED else tuple(TEMPERATURE_NAMES.values())
        return value if value in known else None  # a pinned memory is always hot
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


def _is_free(name: str) -> bool:
    """Whether metadata may have a key of this name."""
    is_reserved = name in RESERVED_METADATA_KEYS or name.startswith(("$", "#", "chroma:"))
    return bool(name) and not is_reserved


def _unused(name: str, metadata: Mapping[str, Any]) -> str:
    while name in metadata:
        name = f"mem0_{name}"
    return name


def _flat(value: Any) -> Any:
    """The value as metadata can hold it: a nested value, or one that is not JSON, becomes text."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
