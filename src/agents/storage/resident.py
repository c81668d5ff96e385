"""The state of a bank in memory. It changes only by events, so a replay gives the same state."""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from agents.errors import BankDamaged
from agents.memory.events import Added, Deleted, Event, TickAdvanced, TierChanged, decode
from agents.memory.tiers import Tier
from agents.storage import snapshots
from agents.storage.columns import AgentColumns
from agents.storage.journal import Journal
from agents.storage.vectors import Quantised, norms

__all__ = ["Resident"]


class Resident:
    """Every agent's columns, and the tick."""

    def __init__(self, seed: int, dims: int) -> None:
        self.seed = seed
        self.dims = dims
        self.tick = 0
        self.blocks: dict[str, AgentColumns] = {}
        self.changed: set[str] = set()
        """The agents that changed since their snapshot."""

    def __len__(self) -> int:
        return sum(len(block) for block in self.blocks.values())

    def block(self, agent_id: str) -> AgentColumns:
        """The agent's columns; empty ones, that are not kept, for an agent without memories."""
        block = self.blocks.get(agent_id)
        return AgentColumns(agent_id, self.seed, self.dims) if block is None else block

    def own_block(self, agent_id: str) -> AgentColumns:
        """The agent's columns, kept from now on."""
        block = self.blocks.get(agent_id)
        if block is None:
            block = self.blocks[agent_id] = AgentColumns(agent_id, self.seed, self.dims)
        return block

    def tier_counts(self) -> dict[Tier, int]:
        """How many memories are in each tier."""
        tiers = [block.tiers for block in self.blocks.values()]
        counts = np.bincount(np.concatenate(tiers), minlength=5) if tiers else np.zeros(5, int)
        return dict(zip(Tier, counts.tolist(), strict=True))

    # Events

    def add(
        self, events: Sequence[Added], vectors: Quantised, lengths: NDArray[np.float64]
    ) -> None:
        """Apply events of one agent, whose vectors have these lengths."""
        agent_id = events[0].agent_id
        block = self.own_block(agent_id)
        if events[0].sequence != block.next_sequence:
            raise BankDamaged(f"the journal gives {agent_id} a memory out of sequence")
        block.extend(events, self.tick, vectors, lengths)
        self.changed.add(agent_id)

    def change_tier(self, event: TierChanged) -> None:
        """Apply an event."""
        block, row = self._find(event)
        block.change_tier(row, event.tier, self.tick)
        self.changed.add(event.agent_id)

    def delete(self, event: Deleted) -> None:
        """Apply an event."""
        block, row = self._find(event)
        block.remove(row)
        self.changed.add(event.agent_id)

    # Loading

    def load(self, journal: Journal, agents: Collection[str] | None = None) -> int:
        """Read the state, of all agents or of some, as of the journal's last commit.

        The number of events that came after the last snapshot.
        """
        for agent in list(self.blocks) if agents is None else agents:
            self.blocks.pop(agent, None)
        count = 0
        with journal.reading():
            snapshot = journal.snapshot()
            if snapshot.commit:
                for row in journal.snapshots(None if agents is None else sorted(agents)):
                    self.blocks[row.agent] = snapshots.unpack(row, self.seed, self.dims)
            self.tick = snapshot.tick
            for commit in journal.commits(after=snapshot.commit):
                events = decode(commit.events)
                vectors = np.frombuffer(commit.vectors, np.int8).reshape(-1, self.dims)
                self.replay(events, vectors, agents)
                count += len(events)
        return count

    def replay(
        self,
        events: Sequence[Event],
        vectors: Quantised | None,
        agents: Collection[str] | None = None,
    ) -> None:
        """Apply events, of all agents or of some; ``vectors`` are those of all that add."""
        lengths = None if vectors is None else norms(vectors)
        added = 0
        waiting: list[Added] = []
        for event in events:
            if waiting and not (isinstance(event, Added) and event.agent_id == waiting[0].agent_id):
                added = self._replay_added(waiting, vectors, lengths, added, agents)
                waiting = []
            if isinstance(event, Added):
                waiting.append(event)
            elif isinstance(event, TickAdvanced):
                self.tick = event.tick
            elif agents is not None and event.agent_id not in agents:
                continue
            elif isinstance(event, TierChanged):
                self.change_tier(event)
            else:
                self.delete(event)
        if waiting:
            self._replay_added(waiting, vectors, lengths, added, agents)

    def _replay_added(
        self,
        events: Sequence[Added],
        vectors: Quantised | None,
        lengths: NDArray[np.float64] | None,
        start: int,
        agents: Collection[str] | None,
    ) -> int:
        """Apply events of one agent whose vectors begin at ``start``; where the next ones do."""
        stop = start + len(events)
        if vectors is None or lengths is None or stop > len(vectors):
            raise ValueError("an added memory has no vector")
        if agents is None or events[0].agent_id in agents:
            numbers = [event.sequence for event in events]
            if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
                raise BankDamaged(
                    f"the journal gives {events[0].agent_id} memories out of sequence"
                )
            self.add(events, vectors[start:stop], lengths[start:stop])
        return stop

    def _find(self, event: TierChanged | Deleted) -> tuple[AgentColumns, int]:
        block = self.block(event.agent_id)
        row = block.row_of(event.sequence)
        if row is None:
            raise BankDamaged(f"the journal changes a memory that {event.agent_id} doesn't have")
        return block, row
