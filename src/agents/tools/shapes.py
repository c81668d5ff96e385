"""Arguments and results of operations: their JSON Schema, and a memory as JSON."""

from collections.abc import Iterable
from typing import Any, get_args

from ..engine import read
from ..engine.engine import Engine
from ..engine.status import MOST_IDS, What
from ..memory.records import VALUE as VALUE_KEY
from ..memory.records import Memory
from ..memory.requests import FIELDS, MEMORY_ID
from ..memory.tiers import RETENTION_NAMES, TEMPERATURE_NAMES, TIER_NAMES

Schema = dict[str, Any]

MOST_SAID = 1000
"""An error's message has at most this number of characters."""


def typed(kind: str, description: str, **limits: Any) -> Schema:
    """A value of one type, with limits of JSON Schema."""
    return {"type": kind, **limits, "description": description}


def whole(description: str, least: int, most: int) -> Schema:
    """A whole number from ``least`` to ``most``."""
    return typed("integer", description, minimum=least, maximum=most)


def list_of(items: Schema, **more: Any) -> Schema:
    """A list of values that fit ``items``."""
    return {"type": "array", "items": items, **more}


def one_of(names: Iterable[str], description: str) -> Schema:
    """One of these names."""
    return typed("string", description, enum=list(names))


TIER = one_of(TIER_NAMES.values(), "How much it matters: pinned ones always come first.")
TEMPERATURE = dict(FIELDS["temperature"].schema)
RETENTION = one_of(
    RETENTION_NAMES.values(), "Whether it is visible: archived and deleted ones can be restored."
)
KIND = dict(FIELDS["kind"].schema)
TAGS = dict(FIELDS["tags"].schema)
ID = dict(MEMORY_ID)
CONTENT = typed(
    "string",
    "The text to remember; it comes back byte for byte. How long it may be, says "
    "memory.max_content_bytes in the bank's settings: 16,384 bytes of UTF-8 unless set.",
    minLength=1,
    maxLength=1_048_576,
)
QUERY = typed("string", "What to look for, in plain words, names or numbers.", maxLength=16_384)
KEY = dict(FIELDS["key"].schema)
VALUE = dict(FIELDS["value"].schema)
NEW = {name: dict(field.schema) for name, field in FIELDS.items() if field.schema}
"""What can be said of a new memory beside its text, its tier and its metadata."""
FILTERS: Schema = {
    "type": "object",
    "maxProperties": 100,
    "description": 'Conditions on metadata, such as {"metadata.place": "bay"} or {"metadata.day": '
    '{"$gte": 3}}: $eq, $ne, $in, $nin, $gt, $gte, $lt, $lte, $exists; $and, $or, $not.',
}
LIMIT = whole("At most so many.", 1, 1000)
SCORE = typed(
    "number",
    "How well it must match: by score, similarity or share of the query's words.",
    minimum=0,
    maximum=1,
)
MATCH = typed(
    "number",
    "What a least was compared with, where one was asked for: the largest of score, similarity and "
    "share of the query's words, unless retrieval.match says score.",
)

LIKELY = typed(
    "number",
    "How likely it must be that it is part of the answer, the same with every embedder; 0 leaves "
    "nothing out.",
    minimum=0,
    maximum=1,
)
LIKELIHOOD = typed("number", "How likely it is part of the answer, where that was asked for.")


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
    """One value, or a list of alternatives."""
    described = {key: value for key, value in one.items() if key != "description"}
    return {
        "anyOf": [described, {"type": "array", "items": described, "minItems": 1, "maxItems": 32}],
        "description": f"{one['description']} One, or a list of which any will do.",
    }


_SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}

KEPT = object_of(
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
_SEEN = {
    **KEPT["properties"],
    "usage_count": typed("integer", "How often it was used: access_count by another name."),
    "decay_score": typed("number", "How little it has faded: 1 is not at all."),
}
_BESIDE: dict[str, Schema] = {
    "value": {"description": "The JSON that was stored beside the text."},
    "evidence": list_of(ID, description="The memories that an insight is drawn from."),
    "flags": list_of(
        {"type": "string"}, description="Which of its evidence no longer holds, and why."
    ),
}
MEMORY = object_of(_SEEN, _BESIDE)
RECALLED = object_of(
    {
        **_SEEN,
        "score": {"type": "number"},
        "likeness": typed(
            "number",
            "How alike its text and the query are; temperature.promote_threshold is compared with "
            "it.",
        ),
    },
    {**_BESIDE, "match": MATCH, "relevance_probability": LIKELIHOOD},
)
SCORED = object_of(
    {**_SEEN, "score": {"type": "number"}, "boosted_score": {"type": "number"}},
    {**_BESIDE, "match": MATCH, "relevance_probability": LIKELIHOOD},
)


def _count(description: str) -> Schema:
    return typed("integer", description, minimum=0)


def _share(description: str) -> Schema:
    return typed("number", description, minimum=0)


_ITEMS = _count("How many memories.")
_TOKENS = _count("How many tokens they take.")
_CAP: Schema = {
    "type": ["integer", "null"],
    "description": "How many an agent may have; null for any number.",
}
_MOST = _count("How many the agent with the most has.")


def _each(names: Iterable[str], schema: Schema) -> Schema:
    return object_of(dict.fromkeys(names, schema))


STATUS = object_of(
    {
        "agent_id": typed("string", "Whose memory it is."),
        "tick": _count("The bank's time."),
        "clock": object_of(
            {
                "mode": one_of(
                    ("ticks", "wall"), "Whether programs move it, or the time that passes."
                ),
                "ticks_per_day": _count("How many ticks a day has."),
            }
        ),
        "embedder": typed("string", "What the vectors come from."),
        "agents": _count("How many agents it is about."),
        "temperatures": _each(
            TEMPERATURE_NAMES.values(), object_of({"items": _ITEMS, "tokens": _TOKENS})
        ),
        "hot_max_tokens": _count("What hot memories may take."),
        "hot_max_facts": _CAP,
        "utilization": _share("How full hot is; above 1 is too much."),
        "fullest": list_of(
            object_of(
                {
                    "agent_id": {"type": "string"},
                    "items": _ITEMS,
                    "tokens": _TOKENS,
                    "token_utilization": _share("Of hot_max_tokens."),
                    "fact_utilization": _share("Of hot_max_facts."),
                }
            )
        ),
        "over_limits": _count("How many agents have too much that is hot."),
        "auto_spill": typed("boolean", "Whether hot is kept within its limits."),
        "tiers": _each(
            TIER_NAMES.values(), object_of({"items": _ITEMS, "cap": _CAP, "most": _MOST})
        ),
        "retention": _each(RETENTION_NAMES.values(), _ITEMS),
        "suggestions": list_of(
            object_of(
                {
                    "what": one_of(get_args(What), "What is worth doing."),
                    "agent_id": {"type": "string"},
                    "reason": typed("string", "Why, and what to do."),
                    "ids": list_of(ID, maxItems=MOST_IDS, description="The memories it is about."),
                }
            )
        ),
        "groups": _count("Of how many groups the agent is a member."),
    },
    {"session": typed("string", "The session that it is about, if one was asked for.")},
)


def shown(bank: Engine, memory: Memory) -> dict[str, Any]:
    """A memory as JSON for whoever looks at it."""
    return {
        **memory_json(memory),
        **_value(memory),
        **_insight(bank, memory),
        "usage_count": memory.usage_count,
        "decay_score": round(read.decay_score(bank, memory), 6),
    }


def _value(memory: Memory) -> dict[str, Any]:
    """The value as JSON, not as the text that the metadata keeps; nothing if there is none."""
    if VALUE_KEY not in memory.metadata:
        return {}
    rest = {key: own for key, own in memory.metadata.items() if key != VALUE_KEY}
    return {"metadata": rest, "value": memory.value}


def _insight(bank: Engine, memory: Memory) -> dict[str, Any]:
    """The evidence of an insight, and what speaks against it; nothing for other memories."""
    if not memory.evidence:
        return {}
    return {"evidence": list(memory.evidence), "flags": read.flags(bank, memory)}


def memory_json(memory: Memory) -> dict[str, Any]:
    """A memory as JSON: what a file keeps of it."""
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
