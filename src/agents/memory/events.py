"""Every change to a bank, as it stands in the journal.

An event is a named tuple whose first field is its kind, so a list of events is a JSON array of
arrays, and replaying the events in order gives the state.
"""

import json
from collections.abc import Sequence
from typing import Literal, NamedTuple

from agents.memory.metadata import KeptMetadata, keep_metadata

__all__ = ["Added", "Deleted", "Event", "TickAdvanced", "TierChanged", "decode", "encode"]


class Added(NamedTuple):
    """A new memory. Its vector is the commit's next one."""

    kind: Literal["add"]
    agent_id: str
    sequence: int
    tier: int
    content: str
    metadata: KeptMetadata | None


class TierChanged(NamedTuple):
    """A memory entered another tier: because it was told to, or to make room."""

    kind: Literal["tier"]
    agent_id: str
    sequence: int
    tier: int
    cause: Literal["set", "demote"]


class Deleted(NamedTuple):
    """A memory was deleted."""

    kind: Literal["delete"]
    agent_id: str
    sequence: int


class TickAdvanced(NamedTuple):
    """The bank's clock moved; what follows happened in this tick."""

    kind: Literal["tick"]
    tick: int


Event = Added | TierChanged | Deleted | TickAdvanced

_KINDS: dict[str, type[Added] | type[TierChanged] | type[Deleted] | type[TickAdvanced]] = {
    "add": Added,
    "tier": TierChanged,
    "delete": Deleted,
    "tick": TickAdvanced,
}


def encode(events: Sequence[Event]) -> str:
    """The JSON text of ``events``; the same events give the same text."""
    return json.dumps(events, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def decode(text: str) -> list[Event]:
    """The events of a text that :func:`encode` made; ValueError for any other."""
    rows = json.loads(text)
    if not isinstance(rows, list):
        raise ValueError(f"not a list of events: {text:.40}")
    try:
        events = [_KINDS[row[0]]._make(row) for row in rows]
        return [_with_metadata(each) if isinstance(each, Added) else each for each in events]
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"not a list of events: {error!r}") from None


def _with_metadata(event: Added) -> Added:
    metadata: object = event.metadata
    if metadata is None:
        return event
    if not isinstance(metadata, dict):
        raise ValueError(f"not metadata: {metadata!r:.40}")
    return event._replace(metadata=keep_metadata(metadata))
