"""A memory as mem0 shows it, and what the bank keeps of it.

A payload is mem0's flat mapping of everything about a memory but its text: ids, role, times and the
caller's metadata. The bank keeps it as metadata. A name that the bank has a use for gets ``mem0_``
in front, as ``tiermem store import --mem0`` does it. What is nested, or no JSON scalar, is kept
beside.
"""

import hashlib
import json
import logging
import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final, NamedTuple

from ..engine.engine import Engine
from ..errors import InvalidInput, InvalidTier
from ..memory.records import KEY, VALUE, Memory, Metadata, Scalar, sequence_of
from ..memory.requests import RESERVED_METADATA_KEYS, plain_scalar
from ..memory.sources import SOURCE
from ..memory.tiers import TIER_NAMES, Retention, Tier, parse_tier
from ..storage.columns.agent_columns import Outline
from ..storage.state.links import live_version, versions
from .scopes import IDS, Owner

logger = logging.getLogger(__name__)

_PREFIX = "mem0_"
_SHOWN: Final = (*IDS, "actor_id", "role", "attributed_to", "expiration_date")
"""What a result shows beside the metadata."""
_DERIVED: Final = frozenset({"data", "hash", "id", "text_lemmatized", "updated_at"})
"""What mem0 sets itself; metadata with these names is lost."""
_OF_THE_BANK: Final = frozenset({KEY, VALUE, SOURCE})
"""Metadata that the bank keeps for itself."""
_json = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps would make one for each call
_IDENTITY = frozenset({*IDS, "actor_id"})
_MOST_FLAT = 12_000
"""How many bytes of metadata stay flat; the bank takes 16,384 with the names of its own."""


class Kept(NamedTuple):
    """What the bank keeps of a payload."""

    metadata: dict[str, Scalar]
    value: dict[str, Any]
    """What metadata can't hold."""
    tier: Tier | None
    """The tier that the payload names, if it is one."""


def kept_name(name: str) -> str:
    """The name of metadata under which the bank keeps an entry of a payload."""
    is_ours = name in RESERVED_METADATA_KEYS or name in ("", KEY, VALUE)
    return _PREFIX + name if is_ours or name.startswith((_PREFIX, "$", "#", "chroma:")) else name


EXPIRES: Final = kept_name("expiration_date")
CREATED: Final = kept_name("created_at")
_STAY_FLAT: Final = frozenset(map(kept_name, (*_SHOWN, "created_at", "updated_at")))
"""What stays flat as long as anything else can be kept beside: every call looks at it."""


def kept(payload: Mapping[str, Any]) -> Kept:
    """What the bank keeps of a payload."""
    flat: dict[str, Scalar] = {}
    beside: dict[str, Any] = {}
    for name, given in payload.items():
        if not isinstance(name, str):
            raise InvalidInput(f"metadata keys are text, not {name!r:.80}")
        value = plain_scalar(given)
        (flat if _is_scalar(value) else beside)[kept_name(name)] = value
    # A character of it is at most six bytes of JSON, so a short one is not too large.
    if 6 * len(repr(flat)) > _MOST_FLAT and (size := _size(flat)) > _MOST_FLAT:
        for name in sorted(flat, key=lambda name: (name in _STAY_FLAT, -len(str(flat[name])))):
            if size <= _MOST_FLAT:
                break
            size -= _size({name: flat[name]})
            beside[name] = flat.pop(name)
    return Kept(flat, beside, tier_of(plain_scalar(payload.get("tier"))))


def whole(metadata: Metadata) -> Mapping[str, Any]:
    """The metadata of a memory with what is kept beside it, under the bank's names."""
    text = metadata.get(VALUE)
    beside = json.loads(text) if isinstance(text, str) else None
    return {**metadata, **beside} if isinstance(beside, dict) else metadata


def payload(memory: Memory | Outline, owner: Owner) -> dict[str, Any]:
    """A memory's payload; ``tier`` is there if it was given, or if it is not normal."""
    result = {
        name.removeprefix(_PREFIX): value
        for name, value in whole(memory.metadata).items()
        if name not in _OF_THE_BANK
    }
    if memory.tier is not Tier.NORMAL or "tier" in result:
        named = tier_of(result.get("tier"))
        if named is not memory.tier and not (memory.tier is Tier.NORMAL and named is None):
            result["tier"] = TIER_NAMES[memory.tier]
    result.setdefault("updated_at", result.setdefault("created_at", None))
    result[owner.name] = owner.value
    return result


def item(memory: Memory | Outline, owner: Owner, **score: float | None) -> dict[str, Any]:
    """A memory as a result shows it."""
    entries = payload(memory, owner)
    digest = hashlib.md5(memory.content.encode(), usedforsecurity=False).hexdigest()
    result = {
        "id": id_of(memory),
        "memory": memory.content,
        "hash": digest,
        "metadata": None,
        **score,
        "created_at": entries.pop("created_at"),
        "updated_at": entries.pop("updated_at"),
    }
    for name in _SHOWN:
        if name in entries:
            result[name] = entries.pop(name)
    if entries:
        result["metadata"] = {n: value for n, value in entries.items() if n not in _DERIVED} or None
    return result


def id_of(memory: Memory | Outline) -> str:
    """The id that mem0 knows: that of the first version, which is the key of later ones."""
    key = memory.metadata.get(KEY)
    if isinstance(key, str) and key[:24] == memory.id[:24] and len(key) == len(memory.id):
        return key
    return memory.id


def tier_of(value: Any) -> Tier | None:
    """The tier that a value of metadata names; None if it names none."""
    if not isinstance(value, str | int) or isinstance(value, bool):
        return None
    try:
        return parse_tier(value)
    except InvalidTier:
        return None


def without_ids(metadata: Mapping[str, Any] | None, now: Mapping[str, Any]) -> dict[str, Any]:
    """A caller's metadata without ids, which metadata can't change, and without what is derived."""
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidInput(f"metadata is a mapping, not {type(metadata).__name__}")
    for name in _IDENTITY & (metadata or {}).keys():
        if (metadata or {})[name] != now.get(name):
            logger.warning("metadata[%r] is ignored: metadata can't set whose memory it is", name)
    dropped = _IDENTITY | _DERIVED
    return {name: value for name, value in (metadata or {}).items() if name not in dropped}


def checked_date(value: Any) -> str | None:
    """A date as text, from a date, a time or a text; mem0 takes the same."""
    if value is None:
        return None
    if isinstance(value, datetime):
        return value.date().isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if not isinstance(value, str):
        raise InvalidInput("expiration_date must be a date string in YYYY-MM-DD format.")
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError:
        raise InvalidInput("expiration_date must be a valid date in YYYY-MM-DD format.") from None


def _size(flat: Mapping[str, Scalar]) -> int:
    """How many bytes of JSON it is: as many as its entries are one by one."""
    return len(_json(flat).encode(errors="surrogatepass"))


def _is_scalar(value: Any) -> bool:
    if value is None or type(value) in (str, bool):
        return True
    if type(value) is int:
        return -(2**63) <= value < 2**63
    return type(value) is float and math.isfinite(value)


# The versions of a memory


def live(bank: Engine, agent_id: str, memory_id: str) -> Memory | None:
    """The active version of a memory, by the id of any of its versions; None if there is none."""
    state = bank.state
    memory = _by_id(bank, agent_id, memory_id)
    if memory is not None and memory.retention is Retention.ACTIVE:  # nothing superseded it
        return None if memory.is_expired(state.tick) else memory
    return live_version(state, agent_id, _key(memory, memory_id))


def rows_of(bank: Engine, agent_id: str, memory_id: str) -> list[dict[str, Any]]:
    """A row for each version of a memory, oldest first, and one if the last was deleted."""
    key = _key(_by_id(bank, agent_id, memory_id), memory_id)
    rows: list[dict[str, Any]] = []
    before: str | None = None
    for version in versions(bank.state, agent_id, key):
        rows.append(_row(version, "UPDATE" if rows else "ADD", before, version.content))
        before = version.content
        if version.retention is Retention.DELETED:
            rows.append(_row(version, "DELETE", before, None))
    return rows


def _by_id(bank: Engine, agent_id: str, memory_id: str) -> Memory | None:
    state = bank.state
    number = sequence_of(state.block(agent_id).prefix, memory_id)
    return None if number is None else state.memory(agent_id, number)


def _key(memory: Memory | None, memory_id: str) -> str:
    """The key of all versions but maybe the first; a purged memory's id is still theirs."""
    return memory_id if memory is None else memory.key or memory.id


def _row(memory: Memory, event: str, old: str | None, new: str | None) -> dict[str, Any]:
    entries: Mapping[str, Any] = payload(memory, Owner("user_id", ""))
    return {
        "id": memory.id if event != "DELETE" else f"{memory.id}-deleted",
        "memory_id": id_of(memory),
        "old_memory": old,
        "new_memory": new,
        "event": event,
        "created_at": entries["created_at"],
        "updated_at": entries["updated_at"],
        "is_deleted": event == "DELETE",
        "actor_id": entries.get("actor_id"),
        "role": entries.get("role"),
    }
