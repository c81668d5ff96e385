"""A bank's state is read from its journal: a replay of the events gives the same state."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import BankDamaged
from ...memory.events import Accessed, Added, Additions, Event, TickAdvanced, decode
from ..journal.file import SnapshotRow
from ..journal.journal import Journal
from ..vectors import Quantised, norms
from . import snapshots
from .state import State

_TOGETHER = 1 << 20
"""Bytes of numbers in snapshots that are read together."""


def load(state: State, journal: Journal, agents: Collection[str] | None = None) -> int:
    """Read the state of all agents, or of some, as of the journal's last commit.

    Returns the number of events after the last snapshot.
    """
    state.forget(agents)
    count = 0
    with (
        journal.reading(),
        state.shelf.replaying(agents),
        journal.rebuilding_shelf() if agents is None else nullcontext(False) as rebuilding,
    ):
        snapshot = journal.snapshot()
        if snapshot.commit:
            _load_snapshots(state, journal, snapshot.commit, agents)
        state.tick = snapshot.tick
        for commit in journal.commits(after=snapshot.commit):
            events = decode(commit.events, state.table.shared_metadata.keep)
            vectors = np.frombuffer(commit.vectors, np.int8).reshape(-1, state.dims)
            state.shelf.commit = commit.id
            replay(state, events, vectors, agents)
            if rebuilding:
                journal.shelf.write(commit.id, state.shelf.changes())
            state.shelf.clear()
            count += len(events)
        if agents is None:
            journal.check_shelf(state.shelf_sum())
    return count


def _load_snapshots(
    state: State, journal: Journal, commit: int, agents: Collection[str] | None
) -> None:
    if agents is None:
        size, count = journal.snapshot_size(), journal.snapshot().agents
        state.table.expect(size // (8 * snapshots.NUMBERS), count)
    for rows in _portions(journal.snapshots(None if agents is None else sorted(agents))):
        snapshots.unpack_all(rows, state.blocks)
    for agent in [None] if agents is None else sorted(agents):
        for owner, stored in journal.shelf.critical(agent, commit + 1):
            state.note_critical(state.blocks[owner], stored.record)


def _portions(rows: Iterable[SnapshotRow]) -> Iterator[list[SnapshotRow]]:
    """Snapshots that are read together: of many agents, if these have few memories."""
    together: list[SnapshotRow] = []
    size = 0
    for row in rows:
        together.append(row)
        size += len(row.columns)
        if size >= _TOGETHER:
            yield together
            together, size = [], 0
    if together:
        yield together


def replay(
    state: State,
    events: Sequence[Event],
    vectors: Quantised | None,
    agents: Collection[str] | None = None,
) -> None:
    """Apply events of all agents, or of some; ``vectors`` has one for each added memory."""
    lengths = None if vectors is None else norms(vectors)
    added = 0
    for kind, run in groupby(events, _kind):
        if kind is _WITH_TEXT:
            new = [each for each in run if isinstance(each, Added)]
            _replay_added(state, new, vectors, lengths, added, agents)
            added += len(new)
        elif kind is Accessed:
            state.access([each for each in run if agents is None or each[1] in agents])
        else:
            added += _replay_others(state, run, agents)


def _replay_others(state: State, events: Iterable[Event], agents: Collection[str] | None) -> int:
    """Apply events other than uses and memories with a text; how many memories were added."""
    added = 0
    for event in events:
        if isinstance(event, TickAdvanced):
            state.tick = event.tick
        elif isinstance(event, Added):  # purged since
            added += 1
            if agents is None or event.agent_id in agents:
                state.own_block(event.agent_id).next_sequence += 1
                state.touch([event.agent_id])
        elif not isinstance(event, Accessed) and (agents is None or event.agent_id in agents):
            state.apply(event)
    return added


def _replay_added(
    state: State,
    events: Sequence[Added],
    vectors: Quantised | None,
    lengths: NDArray[np.float64] | None,
    start: int,
    agents: Collection[str] | None,
) -> None:
    """Apply events that add memories, whose vectors begin at ``start``."""
    stop = start + len(events)
    if vectors is None or lengths is None or stop > len(vectors):
        raise ValueError("an added memory has no vector")
    vectors, lengths = vectors[start:stop], lengths[start:stop]
    if agents is not None:
        own = [place for place, event in enumerate(events) if event.agent_id in agents]
        events = [events[place] for place in own]
        vectors, lengths = vectors[own], lengths[own]
    if events:
        _check_sequences(state, events)
        state.add(Additions.of(events), vectors, lengths)


def _check_sequences(state: State, events: Sequence[Added]) -> None:
    following: dict[str, int] = {}
    for event in events:
        agent_id, sequence = event.agent_id, event.sequence
        if sequence != (following.get(agent_id) or state.block(agent_id).next_sequence):
            raise BankDamaged(f"the journal gives {agent_id} a memory out of sequence")
        following[agent_id] = sequence + 1


_WITH_TEXT = "added, and not purged since"


def _kind(event: Event) -> Any:
    """Consecutive events of one kind are replayed together."""
    return _WITH_TEXT if isinstance(event, Added) and event.content is not None else type(event)
