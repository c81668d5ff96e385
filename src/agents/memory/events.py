"""Every change to a bank, as it stands in the journal.

An event is a named tuple whose first field is its kind, so a list of events is a JSON array of
arrays, and replaying the events in order gives the state. While many wait to be written, they are
plain tuples of the same fields. What moves many memories at once is one event with many sequence
numbers.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, Literal, NamedTuple, Self

import orjson

from .metadata import KeptMetadata
from .records import Scalar
from .temperature import Temperature

__all__ = [
    "LEAST_LITERAL",
    "Accessed",
    "Added",
    "Additions",
    "Cause",
    "Event",
    "Moved",
    "Noted",
    "Purged",
    "Retained",
    "Row",
    "Start",
    "TickAdvanced",
    "TierChanged",
    "decode",
    "encode",
    "named",
]

Cause = Literal["set", "promote", "spill", "compact", "decay", "expire", "prune", "restore"]
"""Why a memory moved."""
Keep = Callable[[Mapping[str, Scalar]], KeptMetadata]


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


class Additions(NamedTuple):
    """Events of new memories, column by column: a tick has thousands."""

    agents: Sequence[str]
    sequences: Sequence[int]
    tiers: Sequence[int]
    contents: Sequence[str]
    metadata: Sequence[KeptMetadata | None]
    starts: Sequence[Start | None]

    @classmethod
    def of(cls, events: Sequence[Added]) -> Self:
        """The same events; none of them is of a memory that was purged."""
        return cls(*list(zip(*events, strict=True))[1:])

    def part(self, places: slice) -> "Additions":
        """Some of them."""
        return Additions._make(column[places] for column in self)

    def rows(self) -> list["Row"]:
        """The same events, one by one."""
        return list(zip(repeat("add"), *self, strict=False))


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
    sequences: Sequence[int]
    scores: Sequence[float]


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
Row = tuple[Any, ...]
"""An event, or its fields in a plain tuple: that is made, and written, in half the time."""

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


def named(rows: Iterable[Row]) -> list[Event]:
    """The events themselves."""
    return [_KINDS[row[0]]._make(row) if type(row) is tuple else row for row in rows]  # type: ignore[misc]


LEAST_LITERAL = 1e-4
"""Smaller numbers have an exponent, which orjson writes without a leading zero."""


def encode(events: Sequence[Row], *, are_literal: bool = False) -> str:
    """The JSON text of ``events``; the same events give the same text, byte for byte.

    ``are_literal``: no metadata and no score below LEAST_LITERAL is among them, so that to look at
    each can be spared.
    """
    rows: Sequence[object] = events
    if not are_literal:
        rows = [
            event
            if event[0] not in _LOOKED_AT
            or (event[0] == "add" and event[5] is None)
            or (event[0] != "add" and (not event[3] or min(event[3]) >= LEAST_LITERAL))
            else (*event[:5], orjson.Fragment(event[5].json), event[6])
            if event[0] == "add"
            else orjson.Fragment(_json(event))
            for event in events
        ]
    return orjson.dumps(rows, default=tuple).decode()


_LOOKED_AT = ("add", "access", "recall")
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def decode(text: str, keep: Keep = KeptMetadata) -> list[Event]:
    """The events of a text that :func:`encode` made; ValueError for any other.

    ``keep`` makes their metadata.
    """
    rows = json.loads(text)
    if not isinstance(rows, list):
        raise ValueError(f"not a list of events: {text:.40}")
    try:
        events: list[Event] = [_KINDS[row[0]]._make(row) for row in rows]
        return [_whole(each, keep) if isinstance(each, Added) else each for each in events]
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"not a list of events: {error!r}") from None


def _whole(event: Added, keep: Keep) -> Added:
    """An event with its inner parts as what they are, and not as JSON has them."""
    metadata: object = event.metadata
    if metadata is not None:
        if not isinstance(metadata, dict):
            raise ValueError(f"not metadata: {metadata!r:.40}")
        event = event._replace(metadata=keep(metadata))
    if event.start is None:
        return event
    temperature, kind, tags, expires = event.start
    start = Start(int(Temperature(temperature)), kind, tuple(tags), expires)
    return event._replace(start=start)
