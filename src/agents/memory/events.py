"""Every change to a bank, as an event of the journal; and counts of the changes that events made.

An event is a named tuple whose first field is its kind. A list of events is a JSON array of arrays;
replaying the events in order gives the state. Events that wait to be written may be plain tuples of
the same fields. A change of many memories at once is one event with many sequence numbers.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Literal, NamedTuple, get_args

from .records import Scalar
from .requests import KeptMetadata
from .tiers import Retention, Temperature

Cause = Literal[
    "set", "promote", "spill", "compact", "decay", "expire", "prune", "restore", "supersede"
]
"""Why a memory moved."""
BY_RULE = "rule:"
"""Begins the cause of a move by a rule of temperature.rules; the rule's name follows."""
UseKind = Literal["access", "recall", "repeat"]
"""How a memory was used."""
USES: tuple[UseKind, ...] = get_args(UseKind)
Keep = Callable[[Mapping[str, Scalar]], KeptMetadata]


class Start(NamedTuple):
    """How a new memory differs from a warm fact without tags and without an end."""

    temperature: int
    kind: str
    tags: tuple[str, ...]
    expires_tick: int | None


class Added(NamedTuple):
    """A new memory. Its vector is the next vector of the commit. A pinned memory is hot."""

    kind: Literal["add"]
    agent_id: str
    sequence: int
    tier: int
    content: str | None
    """None after a purge: the journal still has the event, without the text."""
    metadata: KeptMetadata | None
    start: Start | None


class TierChanged(NamedTuple):
    """A memory entered another tier, by a call or to make room.

    A memory that becomes pinned becomes hot and active; a memory that was pinned becomes warm.
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
    cause: Cause | str
    """A word, or :data:`BY_RULE` and a name. Banks of before say "compact", and no name."""


class Retained(NamedTuple):
    """Memories were archived, deleted or restored."""

    kind: Literal["retain"]
    agent_id: str
    sequences: list[int]
    retention: int
    cause: Cause


class LifetimeSet(NamedTuple):
    """Memories live until another tick now."""

    kind: Literal["last"]
    agent_id: str
    sequences: list[int]
    expires_tick: int


class VersionReplaced(NamedTuple):
    """A new memory took the place of a former one, which was archived in the same commit."""

    kind: Literal["succeed"]
    agent_id: str
    sequence: int
    """The new memory."""
    former: int
    place: tuple[int, int, int] | None
    """The former's tick and turn in a tier with a cap; None if the new memory is in another tier,
    or in one without a cap."""


class Purged(NamedTuple):
    """Memories are gone for good, with their texts and vectors."""

    kind: Literal["purge"]
    agent_id: str
    sequences: list[int]


class Accessed(NamedTuple):
    """A search or a ``recall`` returned memories to their agent, with these scores.

    Or, as ``repeat``, a new memory had the text of one that exists, and was not stored again.
    """

    kind: UseKind
    agent_id: str
    sequences: Sequence[int]
    scores: Sequence[float]


class NoteWritten(NamedTuple):
    """A Markdown note of the agent has a new text, and these memories are its chunks."""

    kind: Literal["note"]
    agent_id: str
    path: str
    kept: int
    """The number of first characters of the old text that stay; ``text`` follows them."""
    text: str | None
    """None if the note is gone."""
    chunks: list[tuple[int, int, int]]
    """For each chunk the memory's sequence number, its first and its last line."""


class ValueSet(NamedTuple):
    """An agent holds a small JSON value under a topic and a name, beside its memories."""

    kind: Literal["hold"]
    agent_id: str
    topic: str
    name: str
    value: Any
    """None if the agent holds nothing there any more."""


class TickAdvanced(NamedTuple):
    """The bank's clock moved; the events after this one happened in this tick."""

    kind: Literal["tick"]
    tick: int


Event = (
    Added
    | TierChanged
    | Moved
    | Retained
    | LifetimeSet
    | VersionReplaced
    | Purged
    | Accessed
    | NoteWritten
    | ValueSet
    | TickAdvanced
)
Change = (
    TierChanged | Moved | Retained | LifetimeSet | VersionReplaced | Purged | NoteWritten | ValueSet
)
"""An event that changes memories of one agent."""
Row = tuple[Any, ...]
"""An event, or a plain tuple of its fields, which takes half the time to make and to write."""

EVENTS: dict[str, type[Event]] = {
    "add": Added,
    "tier": TierChanged,
    "move": Moved,
    "retain": Retained,
    "last": LifetimeSet,
    "succeed": VersionReplaced,
    "purge": Purged,
    "access": Accessed,
    "recall": Accessed,
    "repeat": Accessed,
    "note": NoteWritten,
    "hold": ValueSet,
    "tick": TickAdvanced,
}


def named(rows: Iterable[Row]) -> list[Event]:
    """The rows as events."""
    return [EVENTS[row[0]]._make(row) if type(row) is tuple else row for row in rows]  # type: ignore[misc]


class Changes(NamedTuple):
    """The number of memories that changed, by the way in which they changed."""

    added: int
    demoted: int
    """Moved to a lower tier to make room."""
    moved: int
    """Moved to another tier because a caller asked for it."""
    deleted: int
    archived: int
    restored: int
    expired: int
    purged: int
    promoted: int
    """Became hot: by a call, a recall or a compaction."""
    spilled: int
    """Left hot because hot was full."""
    cooled: int
    """Became warm or cold: by a call, a compaction or decay."""
    recalled: int


_UNCOUNTED = frozenset({"add", "access", "repeat", "tick", "note", "succeed", "last", "hold"})
NO_CHANGES = Changes(*[0] * len(Changes._fields))


def count_changes(events: Iterable[Row]) -> Changes:
    """The number of memories that these events changed, by the way in which they changed."""
    events = list(events)
    n = Counter(map(itemgetter(0), events))  # most events of a tick are adds and accesses
    n["recall"] = 0
    for event in named([event for event in events if event[0] not in _UNCOUNTED]):
        if isinstance(event, TierChanged):
            n[event.cause] += 1
        elif isinstance(event, Moved) and event.cause == "spill":
            n["spill"] += len(event.sequences)
        elif isinstance(event, Moved):
            is_hot = event.temperature == Temperature.HOT
            n["promote" if is_hot else "cool"] += len(event.sequences)
        elif isinstance(event, Retained) and event.cause == "expire":
            n["expire"] += len(event.sequences)
        elif isinstance(event, Retained):
            n[Retention(event.retention).name] += len(event.sequences)
        elif isinstance(event, Purged):
            n["purged"] += len(event.sequences)
        elif isinstance(event, Accessed):
            n["recall"] += len(event.sequences)
    return Changes(
        n["add"], n["demote"], n["set"], n["DELETED"], n["ARCHIVED"], n["ACTIVE"], n["expire"],
        n["purged"], n["promote"], n["spill"], n["cool"], n["recall"],
    )  # fmt: skip
