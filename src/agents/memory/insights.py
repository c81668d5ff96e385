"""The importance of a memory, from 1 (mundane) to 10 (poignant), and the evidence of an insight."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import InvalidInput

INSIGHT = "insight"
"""The kind of a memory that a reflection made."""
IMPORTANCE = "importance"
"""The name under which the metadata keeps a memory's importance."""
EVIDENCE = "memory_evidence"
"""The name under which the metadata keeps the ids of an insight's evidence, as JSON text."""
MOST_EVIDENCE = 32
_LEAST, _MOST = 1, 10
_LONGEST_ID = 64


def check_importance(value: object) -> int:
    """``value`` itself if it is a whole number from 1 to 10, or :class:`InvalidInput`."""
    if isinstance(value, int) and not isinstance(value, bool) and _LEAST <= value <= _MOST:
        return int(value)
    raise InvalidInput(
        f"importance {value!r:.40} is not a whole number from {_LEAST} to {_MOST}",
        hint="1 is mundane, 10 is poignant; leave it out to go by the tier",
    )


def given_importance(metadata: Mapping[str, object]) -> float | None:
    """The importance in a memory's metadata; None where there is no number from 1 to 10."""
    value = metadata.get(IMPORTANCE)
    if isinstance(value, int | float) and not isinstance(value, bool) and _LEAST <= value <= _MOST:
        return float(value)
    return None


def evidence_text(ids: object) -> str:
    """The ids of memories as JSON text, each once; or :class:`InvalidInput`."""
    if isinstance(ids, str | bytes | Mapping) or not isinstance(ids, Iterable):
        raise InvalidInput(f"evidence is a list of memory ids; got {ids!r:.60}")
    found: dict[Any, None] = {}
    for each in ids:
        if not isinstance(each, str) or not 0 < len(each) <= _LONGEST_ID:
            raise InvalidInput(f"evidence is a list of memory ids; one is {each!r:.60}")
        found[each] = None
    if not 0 < len(found) <= MOST_EVIDENCE:
        raise InvalidInput(
            f"an insight has 1 to {MOST_EVIDENCE} memories as evidence; got {len(found)}",
            hint="name the memories that it is drawn from",
        )
    return json.dumps(list(found))


def evidence_of(metadata: Mapping[str, object]) -> tuple[str, ...]:
    """The ids in a memory's metadata; none where it has no evidence."""
    text = metadata.get(EVIDENCE)
    if not isinstance(text, str):
        return ()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # somebody else wrote the metadata
        return ()
    return tuple(each for each in found if isinstance(each, str)) if type(found) is list else ()
