"""Counting what events changed."""

from collections import Counter
from collections.abc import Iterable
from operator import itemgetter
from typing import NamedTuple

from .events import Accessed, Moved, Purged, Retained, Row, TierChanged, named
from .retention import Retention
from .temperature import Temperature

__all__ = ["NO_CHANGES", "Changes", "count_changes"]


class Changes(NamedTuple):
    """How many memories changed, and how."""

    added: int
    demoted: int
    """Moved to a lower tier to make room."""
    moved: int
    """Moved to another tier because someone said so."""
    deleted: int
    archived: int
    restored: int
    expired: int
    purged: int
    promoted: int
    """Became hot: asked for, recalled, or by compaction."""
    spilled: int
    """Left hot, which was full."""
    cooled: int
    """Became warm or cold: asked for, by compaction or because they faded."""
    recalled: int


_UNCOUNTED = frozenset({"add", "access", "tick", "note"})
NO_CHANGES = Changes(*[0] * len(Changes._fields))


def count_changes(events: Iterable[Row]) -> Changes:
    """How many memories these events changed, and how."""
    events = list(events)
    n = Counter(map(itemgetter(0), events))  # most of a tick's are adds and accesses
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
