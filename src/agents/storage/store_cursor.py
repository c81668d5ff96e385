"""How far mem0's store is in step with the journal, and what it lacks."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..memory.events import (
    Accessed,
    Added,
    NoteWritten,
    Retained,
    TickAdvanced,
    TierChanged,
    ValueSet,
    VersionReplaced,
    decode,
)
from .journal.journal import Journal

_CHUNK = 5000

# What the store needs for a memory: a changed row, a new row, or a row that may be there already.
CHANGED, _ADDED, RETURNED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class StoreCursor:
    store: str
    commit: int = 0
    """The store has everything up to this commit."""
    writing: int = 0
    """A write up to this commit was begun; above ``commit``, the store may have a part of it."""
    rows: int = 0
    """The number of memories that the store has at least, since the last write."""
    files: str | None = None
    """The digest of the store's files after the last write."""
    stale: bool = False
    """The bank went back to an earlier state: the store has to be made anew."""
    vacuum: bool = False
    """A vacuum was begun: what is there has purged texts, and goes without being read."""

    def reached(self, journal: Journal) -> int | None:
        """The last commit that the store has; None if it has to be made anew.

        That is where the journal lacks commits that lead from the state of the store to its own.
        """
        is_stale = self.stale or self.vacuum or self.commit < journal.base
        return None if is_stale else self.commit


def cursor_of(journal: Journal, store: str) -> StoreCursor:
    """What the journal keeps about the store of this name."""
    kept = journal.get("store")
    cursor = StoreCursor(**kept) if kept else StoreCursor(store)
    if cursor.store != store:  # the settings name another store: it has nothing yet
        return StoreCursor(store)
    return cursor


def stale_store(journal: Journal, commit: int) -> dict[str, Any]:
    """What the journal has to keep about its store when it goes back to ``commit``."""
    kept = journal.get("store")
    if kept is None or max(kept["commit"], kept["writing"]) <= commit:
        return {}
    return {"store": {**kept, "stale": True}}


def changes_after(journal: Journal, last: int) -> Iterator[tuple[int, dict[tuple[str, int], int]]]:
    """The memories that later commits touched and what the store needs for each, in chunks."""
    changes: dict[tuple[str, int], int] = {}
    for commit in journal.commits(after=last):
        for event in decode(commit.events):
            if isinstance(event, TickAdvanced | Accessed | NoteWritten | ValueSet):
                continue  # the store does not keep what these change
            how = {Added: _ADDED, Retained: RETURNED}.get(type(event), CHANGED)
            if isinstance(event, Added | TierChanged | VersionReplaced):
                numbers = [event.sequence]
            else:
                numbers = event.sequences
            for sequence in numbers:
                key = event.agent_id, sequence
                changes[key] = max(changes.get(key, CHANGED), how)
        last = commit.id
        if len(changes) >= _CHUNK:
            yield last, changes
            changes = {}
    if changes:
        yield last, changes
