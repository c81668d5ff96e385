"""The state of a bank and the journal behind it, changed together or not at all."""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.errors import CommitFailed
from agents.memory.caps import Caps, make_room, relieve
from agents.memory.events import (
    Added,
    Deleted,
    Event,
    TickAdvanced,
    TierChanged,
    encode,
)
from agents.memory.records import NO_METADATA, Memory, memory_id
from agents.memory.requests import NewMemory
from agents.memory.tiers import Tier
from agents.storage import snapshots
from agents.storage.journal import Journal
from agents.storage.resident import Resident
from agents.storage.ticks import TickNote
from agents.storage.vectors import Quantised, norms

__all__ = ["Changes", "Ledger"]

logger = logging.getLogger(__name__)


class Changes(NamedTuple):
    """How many memories changed, and how."""

    added: int
    demoted: int
    """Moved down to make room."""
    moved: int
    """Moved to another tier because someone said so."""
    deleted: int


class Ledger:
    """Applies events to the state, and writes them to the journal commit by commit."""

    SNAPSHOT_ON_CLOSE = 10_000
    """Closing writes a snapshot when this many events came after the last one."""
    SNAPSHOT_ON_COMMIT = 1_000_000
    """So does a commit; and never before twice as many events as there are memories."""

    def __init__(self, journal: Journal, resident: Resident) -> None:
        self.journal = journal
        self.resident = resident
        self.unsaved_embeddings: dict[bytes, bytes] = {}
        """Vectors, by the hash of their text, to be kept with the next commit."""
        self._events: list[Event] = []
        self._vectors: list[Quantised] = []
        self._marks: list[int] = []
        """Where in the pending events each open transaction began."""
        self._note: TickNote | None = None
        self._since_snapshot = resident.load(journal)

    # Events

    def add_many(self, items: Sequence[NewMemory], vectors: Quantised, caps: Caps) -> list[Memory]:
        """New memories, in order; where a tier is full, it makes room first."""
        lengths = norms(vectors)
        added: list[Memory] = []
        start = 0
        while start < len(items):
            agent_id, _, tier, _ = items[start]
            stop = start + 1
            if caps.of(tier) is not None:
                self.make_room(agent_id, tier, caps, None)
            else:  # what follows of this agent and has no cap either goes with it
                while stop < len(items) and _follows(items[stop], agent_id, caps):
                    stop += 1
            rows = slice(start, stop)
            added += self._add(agent_id, items[rows], vectors[rows], lengths[rows])
            start = stop
        return added

    def make_room(self, agent_id: str, tier: Tier, caps: Caps, newcomer: int | None) -> None:
        """Demote what has to go before a memory enters ``tier``, or raise :class:`TierFull`."""
        block = self.resident.block(agent_id)
        for memory, lower in make_room(tier, caps, block.occupants, newcomer):
            self.change_tier(memory, lower, demoted=True)

    def relieve(self, caps: Caps) -> None:
        """Bring every agent within caps that may be smaller than when it last wrote."""
        for agent_id in sorted(self.resident.blocks):
            block = self.resident.block(agent_id)
            for tier in (Tier.PINNED, Tier.CRITICAL):
                while demotions := relieve(tier, caps, block.in_tier):
                    for memory, lower in demotions:
                        self.change_tier(memory, lower, demoted=True)

    def _add(
        self,
        agent_id: str,
        items: Sequence[NewMemory],
        vectors: Quantised,
        lengths: NDArray[np.float64],
    ) -> list[Memory]:
        block = self.resident.own_block(agent_id)
        tick, prefix, first = self.resident.tick, block.prefix, block.next_sequence
        # tuple.__new__ is what the records' own constructors come down to, at half their cost.
        make = tuple.__new__
        events: list[Added] = []
        memories: list[Memory] = []
        for sequence, (_, content, tier, metadata) in enumerate(items, start=first):
            events.append(make(Added, ("add", agent_id, sequence, tier.value, content, metadata)))
            kept = NO_METADATA if metadata is None else MappingProxyType(metadata)
            identifier = memory_id(prefix, sequence)
            memories.append(
                make(Memory, (identifier, agent_id, content, tier, tick, tick, sequence, kept))
            )
        self._events += events
        self._vectors.append(vectors)
        self.resident.add(events, vectors, lengths)
        return memories

    def change_tier(self, memory: Memory, tier: Tier, *, demoted: bool) -> None:
        """A memory enters another tier."""
        cause: Literal["set", "demote"] = "demote" if demoted else "set"
        event = TierChanged("tier", memory.agent_id, memory.sequence, int(tier), cause)
        self._events.append(event)
        self.resident.change_tier(event)

    def delete(self, memory: Memory) -> None:
        """A memory is no more."""
        event = Deleted("delete", memory.agent_id, memory.sequence)
        self._events.append(event)
        self.resident.delete(event)

    def advance(self, tick: int) -> None:
        """The clock moves."""
        event = TickAdvanced("tick", tick)
        self._events.append(event)
        self.resident.tick = tick

    def note(self, note: TickNote) -> None:
        """What a simulation keeps with the next commit."""
        self._note = note

    def pending(self) -> Changes:
        """What happened since the last commit."""
        kinds = Counter(
            event.cause if isinstance(event, TierChanged) else event.kind for event in self._events
        )
        return Changes(kinds["add"], kinds["demote"], kinds["set"], kinds["delete"])

    # Transactions

    @property
    def in_transaction(self) -> bool:
        """Whether a :meth:`transaction` is open."""
        return bool(self._marks)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what happens inside together, or undo it if an error comes out.

        In a transaction inside another, an error undoes the inner one alone.
        """
        self._marks.append(len(self._events))
        try:
            yield
            if len(self._marks) == 1 and (self._events or self._note):
                self.commit()
        except BaseException:
            self._undo(self._marks[-1])
            raise
        finally:
            self._marks.pop()

    def commit(self) -> None:
        """Write what is pending to the journal, durably. On an error nothing of it is kept."""
        if not self._events and self._note is None:
            self._save_embeddings()
            return
        vectors = b"".join([vector.tobytes() for vector in self._vectors])
        try:
            self.journal.append(
                self.resident.tick,
                encode(self._events),
                vectors,
                self.unsaved_embeddings,
                self._note,
            )
        except BaseException:
            self._undo(0)
            self._forget_pending()
            raise
        self._since_snapshot += len(self._events)
        self._forget_pending()
        self.unsaved_embeddings.clear()
        if self._since_snapshot >= self.SNAPSHOT_ON_COMMIT:
            try:
                self._snapshot_if(2 * len(self.resident))
            except CommitFailed as error:  # the commit itself is safe, and says so by returning
                logger.warning("no snapshot, so the next opening takes longer: %s", error)

    def close(self) -> None:
        """Write a snapshot if it makes the next opening faster."""
        self._save_embeddings()
        self._snapshot_if(self.SNAPSHOT_ON_CLOSE)

    def _save_embeddings(self) -> None:
        """Keep what was embedded for searches alone."""
        if self.unsaved_embeddings:
            self.journal.save_embeddings(self.unsaved_embeddings)
            self.unsaved_embeddings.clear()

    def _forget_pending(self) -> None:
        self._events.clear()
        self._vectors.clear()
        self._note = None
        self._marks = [0] * len(self._marks)

    def _snapshot_if(self, events: int) -> None:
        if self._since_snapshot < max(1, events):
            return
        if self.journal.base:  # its first snapshot is all it has of the past: it is not replaced
            return
        blocks = self.resident.blocks
        # An agent whose only memories were undone is among the changed and has no block.
        changed = sorted(self.resident.changed & blocks.keys())
        self.journal.write_snapshots(snapshots.pack(blocks[agent]) for agent in changed)
        self.resident.changed.clear()
        self._since_snapshot = 0

    def _undo(self, mark: int) -> None:
        """Forget the events from ``mark`` on.

        The agents they touched are read from the journal again and the events before ``mark`` are
        applied once more: slower than to undo each, but it can't differ from opening the bank.
        """
        self._note = None
        undone = self._events[mark:]
        if not undone:
            return
        del self._events[mark:]
        added = sum(isinstance(event, Added) for event in self._events)
        vectors = np.concatenate(self._vectors)[:added] if self._vectors else None
        self._vectors = [] if vectors is None else [vectors]
        agents = {event.agent_id for event in undone if not isinstance(event, TickAdvanced)}
        self.resident.load(self.journal, agents)
        self.resident.replay(self._events, vectors, agents)


def _follows(item: NewMemory, agent_id: str, caps: Caps) -> bool:
    return item[0] == agent_id and caps.of(item[2]) is None
