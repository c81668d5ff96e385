"""Counts of the changes that events made."""

from collections import Counter
from collections.abc import Iterable
from operator import itemgetter
from typing import NamedTuple

from .events import Accessed, Moved, Purged, Retained, Row, TierChanged, named
from .retention import Retention
from .temperature import Temperature


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
