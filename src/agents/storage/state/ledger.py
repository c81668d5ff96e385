"""The state of a bank and the journal behind it, changed together or not at all."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from operator import gt
from os.path import commonprefix

import numpy as np

from ...errors import CommitFailed
from ...memory.changes import NO_CHANGES, Changes, count_changes
from ...memory.events import (
    LEAST_LITERAL,
    Added,
    Cause,
    Moved,
    Noted,
    Purged,
    Retained,
    Row,
    Start,
    TickAdvanced,
    TierChanged,
    encode,
    named,
)
from ...memory.records import Memory
from ...memory.requests import NewBatch
from ...memory.retention import Retention
from ...memory.temperature import Temperature
from ...memory.tiers import Tier
from ...rules.caps import Caps, make_room, relieve
from ..gc_pause import gc_paused
from ..journal.journal import Journal
from ..journal.redaction import Purge, Redaction
from ..journal.ticks import TickNote
from ..resident.new_memories import NewMemories, forget_texts, number, which_matter
from ..vectors import Quantised, norms
from . import snapshots
from .loading import load, replay
from .state import Accesses, State

__all__ = ["Ledger"]

logger = logging.getLogger(__name__)


class Ledger:
    """Applies events to the state, and writes them to the journal commit by commit."""

    SNAPSHOT_ON_CLOSE = 10_000
    """Closing writes a snapshot when this many events came after the last one."""
    SNAPSHOT_ON_COMMIT = 1_000_000
    """A commit writes a snapshot after this many events, if they are twice as many as memories."""

    def __init__(self, journal: Journal, resident: State) -> None:
        self.journal = journal
        self.resident = resident
        self.unsaved_embeddings: dict[bytes, bytes] = {}
        """Vectors, by the hash of their text, to be kept with the next commit."""
        self._events: list[Row] = []
        self._vectors: list[Quantised] = []
        self._marks: list[int] = []
        """Where in the pending events each open transaction began."""
        self._accesses: list[Row] = []
        """The events of searches, which come before the next other event."""
        self._purges: list[Purge] = []
        self._note: TickNote | None = None
        self.totals = NO_CHANGES
        """What was committed since the bank was opened."""
        self._is_plain = True
        """Whether nothing is pending but new memories and what searches gave."""
        self._is_literal = True
        """Whether nothing is pending that :func:`encode` would have to look for."""
        self._since_snapshot = load(resident, journal)

    # Events

    def add_many(
        self,
        new: NewBatch,
        starts: Sequence[Start | None],
        vectors: Quantised,
        caps: Caps,
        relieve_hot: Callable[[str, list[int]], object],
    ) -> Sequence[Memory]:
        """Add memories in order, which begin as ``starts`` says; a full tier makes room first.

        ``relieve_hot`` is called for an agent that got hot memories.
        """
        size = len(new.agents)
        if not size:
            return []
        self._flush_accesses()
        resident = self.resident
        blocks = resident.blocks_of(dict.fromkeys(new.agents))
        prefixes = {own.agent_id: own.prefix for own in blocks}
        additions = number(new, starts, blocks)
        lengths = norms(vectors)
        events = additions.rows()
        self._is_literal = self._is_literal and new.metadata.count(None) == size
        told = kept = 0
        entered = set[str]()
        """The agents with a waiting memory that is hot or in a tier with a cap."""
        others: dict[int, Memory] = {}

        def tell(stop: int) -> None:
            nonlocal told
            self._events += events[told:stop]
            self._vectors.append(vectors[told:stop])
            told = stop

        def keep(stop: int) -> None:
            """Write the waiting memories to the table, all at once."""
            nonlocal kept
            tell(stop)
            rows = slice(kept, stop)
            if kept < stop:
                resident.add(additions.part(rows), vectors[rows], lengths[rows])
            kept = stop
            entered.clear()

        for place in which_matter(additions):
            agent_id, tier, start = new.agents[place], new.tiers[place], starts[place]
            if agent_id in entered:
                keep(place)
            tell(place)
            if caps.of(tier) is not None:
                self.make_room(agent_id, tier, caps, None)
            entered.add(agent_id)
            is_hot = start is not None and start.temperature == Temperature.HOT
            if (tier is not Tier.PINNED and is_hot) or resident.block(agent_id).hot:
                # Hot may be too full now.
                keep(place + 1)
                sequence = additions.sequences[place]
                relieve_hot(agent_id, [sequence])
                memory = resident.memory(agent_id, sequence)
                if memory is not None:
                    others[place] = memory
        keep(size)
        return NewMemories(additions, prefixes, resident.tick, others)

    def make_room(self, agent_id: str, tier: Tier, caps: Caps, newcomer: int | None) -> None:
        """Demote what has to go before a memory enters ``tier``, or raise :class:`TierFull`."""
        block = self.resident.block(agent_id)
        for memory, lower in make_room(tier, caps, block.occupants, newcomer):
            self.change_tier(agent_id, memory.sequence, lower, demoted=True)

    def relieve(self, caps: Caps) -> None:
        """Bring every agent within caps that may be smaller than when it last wrote."""
        for agent_id in sorted(self.resident.blocks):
            block = self.resident.block(agent_id)
            for tier in (Tier.PINNED, Tier.CRITICAL):
                while demotions := relieve(tier, caps, block.occupants):
                    for memory, lower in demotions:
                        self.change_tier(agent_id, memory.sequence, lower, demoted=True)

    def change_tier(self, agent_id: str, sequence: int, tier: Tier, *, demoted: bool) -> None:
        """A memory enters another tier."""
        self._happen(
            TierChanged("tier", agent_id, sequence, int(tier), "demote" if demoted else "set")
        )

    def move(self, agent_id: str, sequences: Sequence[int], to: Temperature, cause: Cause) -> None:
        """Memories get another temperature."""
        if sequences:
            self._happen(Moved("move", agent_id, list(sequences), int(to), cause))

    def retain(
        self, agent_id: str, sequences: Sequence[int], retention: Retention, cause: Cause
    ) -> None:
        """Memories are archived, deleted or restored."""
        if sequences:
            self._happen(Retained("retain", agent_id, list(sequences), int(retention), cause))

    def purge(self, memories: Sequence[Memory], *, redacted: bool = True) -> None:
        """Remove memories of one agent for good, wherever they are kept.

        If not ``redacted``, the bank's earlier states still have them.
        """
        if memories:
            if redacted:
                self._purges += [
                    Purge(each.agent_id, each.sequence, each.created_tick, each.content)
                    for each in memories
                ]
            sequences = [each.sequence for each in memories]
            self._happen(Purged("purge", memories[0].agent_id, sequences))

    def used(
        self, agents: Sequence[str], accesses: Sequence[Accesses], *, recalled: bool = False
    ) -> None:
        """Count the memories that searches gave; ``agents`` has the agent of each search.

        The next commit writes the uses. They are no reason for a commit of their own.
        """
        kind = "recall" if recalled else "access"
        events: list[Row] = []
        for each in accesses:
            if not each.members:
                continue
            own = each.events(agents, kind)
            self._is_literal = self._is_literal and bool(each.scores.min() >= LEAST_LITERAL)
            if each.rows is None or recalled:
                self.resident.access(own)
            else:
                owners = [event[1] for event in own]
                self.resident.use(owners, each.counts.tolist(), each.rows, each.scores)
            events += own
        members = [member for each in accesses for member in each.members]
        if any(map(gt, members, members[1:])):  # the order of events is that of the searches
            order = sorted(range(len(members)), key=members.__getitem__)
            events = [events[place] for place in order]
        self._accesses += events
        self._is_plain = self._is_plain and not recalled

    def noted(
        self, agent_id: str, path: str, text: str | None, chunks: list[tuple[int, int, int]]
    ) -> None:
        """A note has another text, or is gone; ``chunks`` are the memories that stand for it."""
        old = self.resident.block(agent_id).notes.get(path)
        kept = 0
        if text is not None and old is not None:
            grew = text.startswith(old.text)
            same = old.text if grew else commonprefix([old.text, text])  # noqa: RUF071  # of texts
            kept = len(same)
            text = text[kept:]
        self._happen(Noted("note", agent_id, path, kept, text, chunks))

    def _happen(self, event: TierChanged | Moved | Retained | Purged | Noted) -> None:
        self._flush_accesses()
        self._events.append(event)
        self._is_plain = False
        self.resident.apply(event)

    def _flush_accesses(self) -> None:
        self._events += self._accesses
        self._accesses.clear()

    def advance(self, tick: int) -> None:
        """The clock moves."""
        self._flush_accesses()
        self._events.append(TickAdvanced("tick", tick))
        self.resident.tick = tick

    def note(self, note: TickNote) -> None:
        """What a simulation keeps with the next commit."""
        self._note = note

    def pending(self) -> Changes:
        """What happened since the last commit."""
        return count_changes((*self._events, *self._accesses))

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
        self._flush_accesses()
        self._marks.append(len(self._events))
        note = self._note
        try:
            yield
            if len(self._marks) == 1 and (self._events or self._accesses or self._note):
                self.commit()
        except BaseException:
            self._undo(self._marks[-1])
            self._note = note
            raise
        finally:
            self._marks.pop()

    def commit(self) -> None:
        """Write what is pending to the journal, durably. On an error nothing of it is kept."""
        with gc_paused() if len(self._events) > 1 else nullcontext():
            self._commit()

    def _commit(self) -> None:
        self._flush_accesses()
        if not self._events and self._note is None:
            if self.unsaved_embeddings:  # of searches alone
                self.journal.save_embeddings(self.unsaved_embeddings)
                self.unsaved_embeddings.clear()
            return
        if self._purges and self._vectors:
            gone = {(purge.agent, purge.sequence) for purge in self._purges}
            self._vectors = [forget_texts(self._events, self._vectors, gone)]
        vectors = b"".join([vector.tobytes() for vector in self._vectors])
        shelf = self.resident.shelf
        changes = shelf.changes() if shelf.pending else None
        try:
            self.journal.append(
                self.resident.tick,
                encode(self._events, are_literal=self._is_literal),
                vectors,
                self.unsaved_embeddings,
                self._note,
                changes,
                self.resident.shelf_sum() if changes else 0,
                self._redaction() if self._purges else None,
                not self._is_plain and any(isinstance(each, Purged) for each in self._events),
            )
        except BaseException:
            shelf.commit = self.journal.head + 1  # an interrupt may follow a commit
            self._undo(0)
            self._forget_pending()
            raise
        shelf.commit = self.journal.head + 1
        if changes:
            shelf.clear()
        self._since_snapshot += len(self._events)
        self._add_to_totals()
        self._forget_pending()
        self.unsaved_embeddings.clear()
        if self._since_snapshot >= self.SNAPSHOT_ON_COMMIT:
            try:
                self._snapshot_if(2 * len(self.resident))
            except CommitFailed as error:  # the commit itself is safe, and says so by returning
                logger.warning("no snapshot, so the next opening takes longer: %s", error)

    def _add_to_totals(self) -> None:
        if self._is_plain:  # as most commits; to look at each event takes its time
            added = sum(map(len, self._vectors))
            self.totals = Changes(self.totals.added + added, *self.totals[1:])
        else:
            self.totals = Changes(*map(sum, zip(self.totals, self.pending(), strict=True)))

    def close(self) -> None:
        """Write what searches left, and a snapshot if it makes the next opening faster."""
        self.commit()
        self._snapshot_if(self.SNAPSHOT_ON_CLOSE)

    def _forget_pending(self) -> None:
        self._events.clear()
        self._vectors.clear()
        self._purges.clear()
        self._is_plain = self._is_literal = True
        self._note = None
        self._marks = [0] * len(self._marks)

    def _redaction(self) -> Redaction:
        """The pending purges, with the snapshots of their agents without the purged memories."""
        purged: dict[str, list[int]] = {}
        for purge in self._purges:
            purged.setdefault(purge.agent, []).append(purge.sequence)
        shelf, made_after = self.journal.shelf, self.journal.snapshot().commit
        rows = [
            snapshots.without(row, purged[row.agent], shelf, made_after)
            for row in self.journal.snapshots(purged)
        ]
        return Redaction(self._purges, rows)

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
        """Undo the events from ``mark`` on.

        The agents of these events are read from the journal again, and the events before ``mark``
        are applied once more: slower than to undo each, but it can't differ from opening the bank.
        """
        self._flush_accesses()
        events = named(self._events)
        undone = events[mark:]
        if not undone:
            return
        del self._events[mark:], events[mark:]
        purged = [event for event in undone if isinstance(event, Purged)]
        gone = {(event.agent_id, each) for event in purged for each in event.sequences}
        self._purges = [each for each in self._purges if (each.agent, each.sequence) not in gone]
        added = sum(isinstance(event, Added) for event in events)
        vectors = np.concatenate(self._vectors)[:added] if self._vectors else None
        self._vectors = [] if vectors is None else [vectors]
        agents = {event.agent_id for event in undone if not isinstance(event, TickAdvanced)}
        load(self.resident, self.journal, agents)
        replay(self.resident, events, vectors, agents)
