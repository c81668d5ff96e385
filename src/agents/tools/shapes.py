"""What goes in and out of operations, as JSON and as JSON Schema."""

from collections.abc import Iterable
from typing import Any, get_args

from ..memory.kinds import KINDS
from ..memory.records import Memory
from ..memory.retention import RETENTION_NAMES
from ..memory.temperature import TEMPERATURE_NAMES
from ..memory.tiers import TIER_NAMES
from ..rules.suggestions import MOST_IDS, What

__all__ = [
    "CONTENT",
    "ID",
    "KIND",
    "LIMIT",
    "MEMORY",
    "MOST_SAID",
    "QUERY",
    "RETENTION",
    "SCORE",
    "SCORED",
    "STATUS",
    "TAGS",
    "TEMPERATURE",
    "TIER",
    "Schema",
    "any_of",
    "memory_json",
    "object_of",
]

Schema = dict[str, Any]

MOST_SAID = 1000
"""Characters of an error's message."""

TIER: Schema = {
    "type": "string",
    "enum": list(TIER_NAMES.values()),
    "description": "How much it matters: pinned ones always come first.",
}
TEMPERATURE: Schema = {
    "type": "string",
    "enum": list(TEMPERATURE_NAMES.values()),
    "description": "How active it is: hot is always in view, warm is searched, cold only if asked.",
}
RETENTION: Schema = {
    "type": "string",
    "enum": list(RETENTION_NAMES.values()),
    "description": "Whether it is visible: archived and deleted ones can be restored.",
}
KIND: Schema = {"type": "string", "enum": list(KINDS), "description": "What sort of memory it is."}
TAGS: Schema = {
    "type": "array",
    "items": {
        "type": "string",
        "minLength": 1,
        "maxLength": 64,
        "pattern": r"^[^\s,]([^,]*[^\s,])?$",
    },
    "maxItems": 32,
    "description": "Labels of your own, without commas and without blanks around.",
}
ID: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 64,
    "description": "The id of one of the agent's memories.",
}
CONTENT: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 1_048_576,
    "description": "The text to remember; it comes back byte for byte. How long it may be, says "
    "memory.max_content_bytes in the bank's settings: 16,384 bytes of UTF-8 unless set.",
}
QUERY: Schema = {
    "type": "string",
    "maxLength": 16_384,
    "description": "What to look for, in plain words, names or numbers.",
}
LIMIT: Schema = {
    "type": "integer",
    "minimum": 1,
    "maximum": 1000,
    "description": "At most so many.",
}
SCORE: Schema = {
    "type": "number",
    "minimum": 0,
    "maximum": 1,
    "description": "How well it must match.",
}


def object_of(
    required: dict[str, Schema] | None = None, optional: dict[str, Schema] | None = None
) -> Schema:
    """An object with these properties and no others."""
    needed = required or {}
    schema: Schema = {
        "type": "object",
        "properties": {**needed, **(optional or {})},
        "additionalProperties": False,
    }
    if needed:
        schema["required"] = list(needed)
    return schema


def any_of(one: Schema) -> Schema:
    """One value, or a list of them of which any will do."""
    described = {key: value for key, value in one.items() if key != "description"}
    return {
        "anyOf": [described, {"type": "array", "items": described, "minItems": 1, "maxItems": 32}],
        "description": f"{one['description']} One, or a list of which any will do.",
    }


_SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}

MEMORY: Schema = object_of(
    {
        "id": ID,
        "content": {"type": "string"},
        "tier": TIER,
        "temperature": TEMPERATURE,
        "retention": RETENTION,
        "kind": KIND,
        "tags": TAGS,
        "metadata": {"type": "object", "additionalProperties": _SCALAR},
        "created_tick": {"type": "integer"},
        "expires_tick": {"type": ["integer", "null"]},
        "access_count": {"type": "integer"},
        "last_access_tick": {"type": ["integer", "null"]},
    }
)
SCORED: Schema = object_of(
    {**MEMORY["properties"], "score": {"type": "number"}, "boosted_score": {"type": "number"}}
)

_COUNT: Schema = {"type": "integer", "minimum": 0}
_SHARE: Schema = {"type": "number", "minimum": 0}
_ITEMS: Schema = {**_COUNT, "description": "How many memories."}
_TOKENS: Schema = {**_COUNT, "description": "How many tokens they take."}
_CAP: Schema = {
    "type": ["integer", "null"],
    "description": "How many an agent may have; null for any number.",
}
_MOST: Schema = {**_COUNT, "description": "How many the agent with the most has."}


def _each(names: Iterable[str], schema: Schema) -> Schema:
    return object_of(dict.fromkeys(names, schema))


STATUS: Schema = object_of(
    {
        "agent_id": {"type": "string", "description": "Whose memory it is."},
        "tick": {**_COUNT, "description": "The bank's time."},
        "agents": {**_COUNT, "description": "How many agents it is about."},
        "temperatures": _each(
            TEMPERATURE_NAMES.values(), object_of({"items": _ITEMS, "tokens": _TOKENS})
        ),
        "hot_max_tokens": {**_COUNT, "description": "What hot memories may take."},
        "hot_max_facts": {**_COUNT, "description": "How many hot memories there may be."},
        "utilization": {**_SHARE, "description": "How full hot is; above 1 is too much."},
        "fullest": {
            "type": "array",
            "items": object_of(
                {
                    "agent_id": {"type": "string"},
                    "items": _ITEMS,
                    "tokens": _TOKENS,
                    "token_utilization": {**_SHARE, "description": "Of hot_max_tokens."},
                    "fact_utilization": {**_SHARE, "description": "Of hot_max_facts."},
                }
            ),
        },
        "over_limits": {**_COUNT, "description": "How many agents have too much that is hot."},
        "auto_spill": {"type": "boolean", "description": "Whether hot is kept within its limits."},
        "tiers": _each(
            TIER_NAMES.values(), object_of({"items": _ITEMS, "cap": _CAP, "most": _MOST})
        ),
        "retention": _each(RETENTION_NAMES.values(), _ITEMS),
        "suggestions": {
            "type": "array",
            "items": object_of(
                {
                    "what": {
                        "type": "string",
                        "enum": list(get_args(What)),
                        "description": "What is worth doing.",
                    },
                    "agent_id": {"type": "string"},
                    "reason": {"type": "string", "description": "Why, and what to do."},
                    "ids": {
                        "type": "array",
                        "items": ID,
                        "maxItems": MOST_IDS,
                        "description": "The memories it is about.",
                    },
                }
            ),
        },
    }
)


def memory_json(memory: Memory) -> dict[str, Any]:
    """A memory as JSON."""
    return {
        "id": memory.id,
        "content": memory.content,
        "tier": TIER_NAMES[memory.tier],
        "temperature": TEMPERATURE_NAMES[memory.temperature],
        "retention": RETENTION_NAMES[memory.retention],
        "kind": memory.kind,
        "tags": list(memory.tags),
        "metadata": dict(memory.metadata),
        "created_tick": memory.created_tick,
        "expires_tick": memory.expires_tick,
        "access_count": memory.access_count,
        "last_access_tick": memory.last_access_tick,
    }
