"""What happened since the last commit."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...memory.events import (
    NO_CHANGES,
    Added,
    Changes,
    Event,
    Purged,
    Row,
    TickAdvanced,
    count_changes,
    named,
)
from ..journal.redaction import Purge
from ..journal.ticks import TickNote
from ..resident.new_memories import forget_texts
from ..vectors import Quantised


class Kept(NamedTuple):
    """What is left when the last events are dropped."""

    events: Sequence[Event]
    vectors: Quantised | None
    touched: set[str]
    """The agents of the dropped events."""
    dropped: int


class Pending:
    """Events that are applied to the state and not written to the journal yet."""

    def __init__(self) -> None:
        self.events: list[Row] = []
        self.vectors: list[Quantised] = []
        """Of the added memories, in the order of their events."""
        self.accesses: list[Row] = []
        """The events of searches, which come before the next other event."""
        self.purges: list[Purge] = []
        self.note: TickNote | None = None
        """What a simulation keeps with the commit."""
        self.clock: Sequence[int] | None = None
        """How the wall clock moves the tick, if the commit changes that."""
        self.is_plain = True
        """Whether there is nothing but new memories and what searches gave."""
        self.is_literal = True
        """Whether there is nothing that :func:`encode` would have to look for."""

    def __bool__(self) -> bool:
        return bool(self.events or self.accesses or self.note)

    def __len__(self) -> int:
        return len(self.events) + len(self.accesses)

    def changes(self, leaves_out: Callable[[str], bool] | None = None) -> Changes:
        """How many changes of each kind there are, but for owners that are left out."""
        if leaves_out is not None:
            every = (*self.events, *self.accesses)
            return count_changes(
                event for event in every if event[0] == "tick" or not leaves_out(event[1])
            )
        if self.is_plain:  # as in most commits; to look at each event takes its time
            return Changes(sum(map(len, self.vectors)), *NO_CHANGES[1:])
        return count_changes((*self.events, *self.accesses))

    def purged(self) -> bool:
        """Whether memories were purged."""
        return not self.is_plain and any(isinstance(each, Purged) for each in self.events)

    def packed_vectors(self) -> bytes:
        """The vectors of the added memories, without the memories that were purged since."""
        if self.purges and self.vectors:
            gone = {(purge.agent, purge.sequence) for purge in self.purges}
            self.vectors = [forget_texts(self.events, self.vectors, gone)]
        return b"".join([vector.tobytes() for vector in self.vectors])

    def drop(self, mark: int) -> Kept:
        """Drop the events from ``mark`` on. It can be done again if an error comes in between."""
        events = named(self.events)
        undone = events[mark:]
        del events[mark:]
        # An error may have come before the event of a purge.
        purged = [event for event in events if isinstance(event, Purged)]
        gone = {(event.agent_id, each) for event in purged for each in event.sequences}
        self.purges = [each for each in self.purges if (each.agent, each.sequence) in gone]
        added = sum(isinstance(event, Added) for event in events)
        vectors = np.concatenate(self.vectors)[:added] if self.vectors else None
        self.vectors = [] if vectors is None else [vectors]
        del self.events[mark:]
        touched = {event.agent_id for event in undone if not isinstance(event, TickAdvanced)}
        return Kept(events, vectors, touched, len(undone))

    def forget(self) -> None:
        """The journal has everything, or nothing is to be kept."""
        self.events.clear()
        self.vectors.clear()
        self.purges.clear()
        self.is_plain = self.is_literal = True
        self.note = self.clock = None
