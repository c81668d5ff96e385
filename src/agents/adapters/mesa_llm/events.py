"""An event of a Mesa-LLM agent, which is a dictionary, as a memory; and back."""

import math
from collections.abc import Mapping
from typing import Any

from ...memory.records import Memory, Scalar
from ...memory.tiers import Tier

STEP = "step"
"""The name, in a memory's metadata, of the step in which the event was."""
_KINDS = {"plan": "decision", **{name: name for name in ("action", "message", "observation")}}
_GRADES = {5: Tier.CRITICAL, 4: Tier.IMPORTANT, 3: Tier.NORMAL, 2: Tier.LOW, 1: Tier.LOW}
"""The tier of an event that says its importance, as Mesa-LLM's episodic memory grades it."""
_DEEPEST = 32
_LONGEST_SPEAKER = 256


def item(
    event_type: str, event: object, step: int | None, tier: Tier | None, most_bytes: int
) -> tuple[object, ...]:
    """What ``add_many`` takes for an event."""
    kept = plain(event)
    grade = kept.get("importance") if isinstance(kept, dict) else None
    if tier is None and isinstance(grade, int):
        tier = _GRADES.get(grade)
    text = f"{event_type}: {text_of(kept)}".replace("\0", "").encode(errors="replace")
    metadata: dict[str, Scalar] = {} if step is None else {STEP: step}
    options: dict[str, object] = {
        "kind": _KINDS.get(event_type.lower(), "fact"),
        "value": {"type": event_type, "event": kept},
    }
    if isinstance(kept, dict) and (sender := kept.get("sender")) not in (None, ""):
        options["speaker"] = str(sender)[:_LONGEST_SPEAKER]
    return text[:most_bytes].decode(errors="ignore"), tier, metadata, options


def event_of(memory: Memory) -> tuple[str, Any] | None:
    """The type and the content of the event; None for a memory that is not an event."""
    value = memory.value
    if isinstance(value, dict) and value.keys() == {"type", "event"}:
        return value["type"], value["event"]
    return None


def text_of(event: object) -> str:
    """An event in words, for people, prompts and searches."""
    if isinstance(event, Mapping):
        if "message" in event and event.get("sender") is not None:
            return f"Agent {event['sender']} says: {event['message']}"
        return "; ".join(f"{key}: {text_of(each)}" for key, each in event.items())
    if isinstance(event, list):
        return ", ".join(map(text_of, event))
    return str(event)


def plain(value: object, depth: int = _DEEPEST) -> Any:
    """The value as JSON: anything that JSON does not have becomes its text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if depth and isinstance(value, Mapping):
        return {_clean(str(key)): plain(each, depth - 1) for key, each in value.items()}
    if depth and isinstance(value, list | tuple | set | frozenset):
        values = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return [plain(each, depth - 1) for each in values]
    return _clean(str(value))


def _clean(text: str) -> str:
    return text.replace("\0", "").encode(errors="replace").decode()
