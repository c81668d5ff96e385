"""What goes in and out of operations, as JSON and as JSON Schema."""

from typing import Any

from agents.memory.records import Memory
from agents.memory.retention import RETENTION_NAMES
from agents.memory.temperature import TEMPERATURE_NAMES
from agents.memory.tiers import TIER_NAMES
from agents.memory.traits import KINDS

__all__ = [
    "CONTENT",
    "ID",
    "KIND",
    "LIMIT",
    "MEMORY",
    "QUERY",
    "RETENTION",
    "SCORE",
    "SCORED",
    "TAGS",
    "TEMPERATURE",
    "TIER",
    "Schema",
    "any_of",
    "memory_json",
    "object_of",
]

Schema = dict[str, Any]

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
    "items": {"type": "string", "minLength": 1, "maxLength": 64},
    "maxItems": 32,
    "description": "Labels of your own.",
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
    "description": "The text to remember; it comes back byte for byte.",
}
QUERY: Schema = {
    "type": "string",
    "maxLength": 1_000_000,
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
