"""Every change to a bank, as it stands in the journal.

An event is a named tuple whose first field is its kind, so a list of events is a JSON array of
arrays, and replaying the events in order gives the state. What moves many memories at once is one
event with many sequence numbers.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import orjson

from agents.memory.metadata import KeptMetadata, keep_metadata
from agents.memory.temperature import Temperature

__all__ = [
    "Accessed",
    "Added",
    "Cause",
    "Event",
    "Moved",
    "Noted",
    "Purged",
    "Retained",
    "Start",
    "TickAdvanced",
    "TierChanged",
    "decode",
    "encode",
]

Cause = Literal["set", "promote", "spill", "compact", "decay", "expire", "prune", "restore"]
"""Why a memory moved."""


class Start(NamedTuple):
    """How a new memory differs from a warm fact without tags that stays."""

    temperature: int
    kind: str
    tags: tuple[str, ...]
    expires_tick: int | None


class Added(NamedTuple):
    """A new memory. Its vector is the commit's next one. Pinned ones are hot."""

    kind: Literal["add"]
    agent_id: str
    sequence: int
    tier: int
    content: str | None
    """None once it was purged: only that there was a memory is still known."""
    metadata: KeptMetadata | None
    start: Start | None


class TierChanged(NamedTuple):
    """A memory entered another tier: because it was told to, or to make room.

    Entering pinned makes it hot and active, leaving pinned makes it warm.
    """

    kind: Literal["tier"]
    agent_id: str
    sequence: int
    tier: int
    cause: Literal["set", "demote"]


class Moved(NamedTuple):
    """Memories have another temperature now."""

    kind: Literal["move"]
    agent_id: str
    sequences: list[int]
    temperature: int
    cause: Cause


class Retained(NamedTuple):
    """Memories were archived, deleted or restored."""

    kind: Literal["retain"]
    agent_id: str
    sequences: list[int]
    retention: int
    cause: Cause


class Purged(NamedTuple):
    """Memories are gone for good, their text and vectors too."""

    kind: Literal["purge"]
    agent_id: str
    sequences: list[int]


class Accessed(NamedTuple):
    """Searches gave memories to their agent, with these scores; ``recall``, because it asked."""

    kind: Literal["access", "recall"]
    agent_id: str
    sequences: list[int]
    scores: list[float]


class Noted(NamedTuple):
    """A Markdown note of the agent has another text now, and these memories stand for it."""

    kind: Literal["note"]
    agent_id: str
    path: str
    kept: int
    """So many characters of the old text stay; what follows is ``text``."""
    text: str | None
    """None: there is no such note any more."""
    chunks: list[tuple[int, int, int]]
    """For each chunk the memory's sequence number, its first and its last line."""


class TickAdvanced(NamedTuple):
    """The bank's clock moved; what follows happened in this tick."""

    kind: Literal["tick"]
    tick: int


Event = Added | TierChanged | Moved | Retained | Purged | Accessed | Noted | TickAdvanced

_KINDS: dict[str, type[Event]] = {
    "add": Added,
    "tier": TierChanged,
    "move": Moved,
    "retain": Retained,
    "purge": Purged,
    "access": Accessed,
    "recall": Accessed,
    "note": Noted,
    "tick": TickAdvanced,
}


def encode(events: Sequence[Event]) -> str:
    """The JSON text of ``events``; the same events give the same text, byte for byte."""
    rows = [
        event
        if (event[0] == "add" and event[5] is None)
        or (event[0] == "access" and (not event[3] or min(event[3]) >= _PLAIN))
        else (*event[:5], orjson.Fragment(event[5].json), event[6])  # type: ignore[union-attr]
        if event[0] == "add"
        else _row(event)
        for event in events
    ]
    return orjson.dumps(rows, default=tuple).decode()


def _row(event: Event) -> object:
    """An event as orjson takes it; numbers that it would write in another way as text."""
    if isinstance(event, Accessed) and min(event.scores, default=_PLAIN) < _PLAIN:
        return orjson.Fragment(_json(event))
    return event


def _json(event: Event) -> str:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


_PLAIN = 1e-4
"""Smaller numbers have an exponent, which orjson writes without a leading zero."""


def decode(text: str) -> list[Event]:
    """The events of a text that :func:`encode` made; ValueError for any other."""
    rows = json.loads(text)
    if not isinstance(rows, list):
        raise ValueError(f"not a list of events: {text:.40}")
    try:
        events: list[Event] = [_KINDS[row[0]]._make(row) for row in map(_today, rows)]
        return [_whole(each) if isinstance(each, Added) else each for each in events]
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"not a list of events: {error!r}") from None


def _today(row: list[Any]) -> list[Any]:
    """The event as it is written today: earlier versions knew no more of a new memory than its
    text, tier and metadata, and what they deleted was gone.
    """
    if row[0] == "add" and len(row) == 6:
        return [*row, None]
    return ["purge", row[1], [row[2]]] if row[0] == "delete" else row


def _whole(event: Added) -> Added:
    """An event with its inner parts as what they are, and not as JSON has them."""
    metadata: object = event.metadata
    if metadata is not None:
        if not isinstance(metadata, dict):
            raise ValueError(f"not metadata: {metadata!r:.40}")
        event = event._replace(metadata=keep_metadata(metadata))
    if event.start is None:
        return event
    temperature, kind, tags, expires = event.start
    start = Start(int(Temperature(temperature)), kind, tuple(tags), expires)
    return event._replace(start=start)
