"""Counting what events changed."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from agents.memory.events import Added, Event, Moved, Retained, TickAdvanced, TierChanged
from agents.memory.retention import Retention
from agents.memory.temperature import Temperature

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


NO_CHANGES = Changes(*[0] * len(Changes._fields))


def count_changes(events: Iterable[Event]) -> Changes:
    """How many memories these events changed, and how."""
    n: Counter[str] = Counter()
    for event in events:
        if isinstance(event, Added | TickAdvanced):
            n[event.kind] += 1
        elif isinstance(event, TierChanged):
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
        else:
            n[event.kind] += len(event.sequences)
    return Changes(
        n["add"], n["demote"], n["set"], n["DELETED"], n["ARCHIVED"], n["ACTIVE"], n["expire"],
        n["purge"], n["promote"], n["spill"], n["cool"], n["recall"],
    )  # fmt: skip
