"""The state of a bank, read from its journal: a replay of the events gives the same state."""

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import BankDamaged
from ...memory.events import Accessed, Added, Additions, Event, TickAdvanced, decode
from ..journal.journal import Journal
from ..vectors import Quantised, norms
from . import snapshots
from .state import State

__all__ = ["Resident"]


class Resident(State):
    """The state of an open bank."""

    def load(self, journal: Journal, agents: Collection[str] | None = None) -> int:
        """Read the state, of all agents or of some, as of the journal's last commit.

        The number of events that came after the last snapshot.
        """
        for agent in list(self.blocks) if agents is None else agents:
            block = self.blocks.pop(agent, None)
            if block is not None:
                block.unmark(slice(block.size))
        self._cold = None
        count = 0
        with (
            journal.reading(),
            self.shelf.replaying(agents),
            journal.rebuilding_shelf() as rebuilding,
        ):
            snapshot = journal.snapshot()
            if snapshot.commit:
                self._load_snapshots(journal, snapshot.commit, agents)
            self.tick = snapshot.tick
            for commit in journal.commits(after=snapshot.commit):
                events = decode(commit.events, self.table.shared_metadata.keep)
                vectors = np.frombuffer(commit.vectors, np.int8).reshape(-1, self.dims)
                self.shelf.commit = commit.id
                self.replay(events, vectors, agents)
                if rebuilding:
                    journal.shelf.write(commit.id, self.shelf.changes())
                self.shelf.clear()
                count += len(events)
            if agents is None:
                journal.check_shelf(self.shelf_sum())
        self._cold = None
        return count

    def _load_snapshots(
        self, journal: Journal, commit: int, agents: Collection[str] | None
    ) -> None:
        if agents is None:
            self.table.expect(journal.snapshot_size() // (8 * snapshots.NUMBERS))
        for row in journal.snapshots(None if agents is None else sorted(agents)):
            self.blocks[row.agent] = snapshots.unpack(row, self.seed, self.dims, self.table)
        for agent in [None] if agents is None else sorted(agents):
            for owner, stored in journal.shelf.critical(agent, commit + 1):
                self._note_critical(self.blocks[owner], stored.record)

    def replay(
        self,
        events: Sequence[Event],
        vectors: Quantised | None,
        agents: Collection[str] | None = None,
    ) -> None:
        """Apply events, of all agents or of some; ``vectors`` are those of all that add."""
        lengths = None if vectors is None else norms(vectors)
        added = 0
        for kind, run in groupby(events, _kind):
            if kind is _WITH_TEXT:
                new = [each for each in run if isinstance(each, Added)]
                added = self._replay_added(new, vectors, lengths, added, agents)
            elif kind is Accessed:
                self.access([each for each in run if agents is None or each[1] in agents])
            else:
                added += self._replay_others(run, agents)

    def _replay_others(self, events: Iterable[Event], agents: Collection[str] | None) -> int:
        """Apply events other than uses and memories with a text; how many memories were added."""
        added = 0
        for event in events:
            if isinstance(event, TickAdvanced):
                self.tick = event.tick
            elif isinstance(event, Added):  # purged since
                added += 1
                if agents is None or event.agent_id in agents:
                    self.own_block(event.agent_id).next_sequence += 1
                    self.changed.add(event.agent_id)
            elif agents is None or event.agent_id in agents:
                self.apply(event)
        return added

    def _replay_added(
        self,
        events: Sequence[Added],
        vectors: Quantised | None,
        lengths: NDArray[np.float64] | None,
        start: int,
        agents: Collection[str] | None,
    ) -> int:
        """Apply events whose vectors begin at ``start``; where the next ones do."""
        stop = start + len(events)
        if vectors is None or lengths is None or stop > len(vectors):
            raise ValueError("an added memory has no vector")
        vectors, lengths = vectors[start:stop], lengths[start:stop]
        if agents is not None:
            own = [place for place, event in enumerate(events) if event.agent_id in agents]
            events = [events[place] for place in own]
            vectors, lengths = vectors[own], lengths[own]
        if events:
            self._check_sequences(events)
            self.add(Additions.of(events), vectors, lengths)
        return stop

    def _check_sequences(self, events: Sequence[Added]) -> None:
        following: dict[str, int] = {}
        for _, agent_id, sequence, _, _, _, _ in events:
            if sequence != (following.get(agent_id) or self.block(agent_id).next_sequence):
                raise BankDamaged(f"the journal gives {agent_id} a memory out of sequence")
            following[agent_id] = sequence + 1


_WITH_TEXT = "added, and not purged since"


def _kind(event: Event) -> Any:
    """Consecutive events of one kind are replayed together."""
    return _WITH_TEXT if isinstance(event, Added) and event.content is not None else type(event)
