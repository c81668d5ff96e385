"""Cold memories take part in a search as resident memories do, in columns beside them.

An agent's cold memories are read from the journal when somebody first asks for them, and are kept
with the resident ones in columns of their own. So one rule scores and ranks all of them, and word
weights and neighbours are those of all memories.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import is_

import numpy as np
from numpy.typing import NDArray

from ..memory.filters import Filter
from ..memory.records import NEVER, PLAIN, sequence_of
from ..memory.tiers import TEMPERATURE_NAMES, Retention, Temperature
from ..storage.columns.agent_columns import AgentColumns
from ..storage.columns.extras import TierOrder
from ..storage.columns.records import leave_out, put_back, records_of
from ..storage.embedding import Quantised
from ..storage.record import ColdFact, Record
from ..storage.state.state import Population, State
from ..storage.store_sync import StoreSync
from .request import SearchRequest

_MOST_EXACT = 50_000
"""If an agent has more cold memories, older ones take part if mem0's store finds them."""
_MOST_HELD = 100_000
"""Columns with up to this many memories together are kept; those asked for last stay."""
_MOST_UNSYNCED = 1000
"""If the store lacks more memories, it is brought up to date before it is asked."""


class ColdSearch:
    """Gives searches the memories of an agent, cold ones and resident ones together."""

    def __init__(self, state: State, store: StoreSync, multiplier: int) -> None:
        self._state = state
        self._store = store
        self._multiplier = multiplier
        self._joined: dict[tuple[str, bool], _Joined] = {}
        """By agent, and by whether a request named the memories; the last used comes last."""

    def joined(
        self, block: AgentColumns, vector: Quantised, request: SearchRequest, may_sync: bool
    ) -> AgentColumns:
        """The columns of an agent's resident memories and of those cold ones that take part.

        ``vector`` is that of the query; zeros, if it has none. The columns are the search's until
        the next call.
        """
        agent_id, shelf, named = block.agent_id, self._state.shelf, request.shelved
        self._state.check_shelf(agent_id)
        # The shelf is not read for nothing: 0 is the sum of an agent without such memories.
        if not (block.shelf_sum and (self._state.cold if named is None else named)):
            return block
        key = agent_id, named is None
        # Out of the way: after an error, these columns are of no use.
        known = self._joined.pop(key, None) or _Joined(block, self._state)
        if named is not None:
            rows = [row for row in shelf.many(agent_id, named) if _is_left(row.record)]
            known.follow(block, {row.record.sequence: row.digest for row in rows}, None, self._read)
        else:
            listing = shelf.listing(agent_id, block.shelf_sum)
            changed, listing.changed = listing.changed, None
            chosen = self._chosen(block, listing.cold, vector, request, may_sync)
            if chosen is None:
                known.follow(block, listing.cold, changed, self._read)
                listing.changed = set()
            else:
                part = {each: listing.cold[each] for each in chosen if each in listing.cold}
                known.follow(block, part, None, self._read)
        self._joined[key] = known
        self._make_room()
        return known.block

    def forget(self, agent_id: str) -> None:
        """Let go of an agent's columns: one of its memories was forgotten for good."""
        for is_every in (True, False):
            self._joined.pop((agent_id, is_every), None)
        self._state.shelf.forget_listing(agent_id)

    def _read(self, agent_id: str, sequences: Sequence[int]) -> list[Record]:
        return [row.record for row in self._state.shelf.many(agent_id, sequences)]

    def _make_room(self) -> None:
        """Let go of the columns that were asked for first, but of the last ones."""
        held = sum(each.block.size for each in self._joined.values())
        while held > _MOST_HELD and len(self._joined) > 1:
            first = agent_id, is_every = next(iter(self._joined))
            held -= self._joined.pop(first).block.size
            if is_every:
                self._state.shelf.forget_listing(agent_id)

    # Agents with very many cold memories

    def _chosen(
        self,
        block: AgentColumns,
        digests: Collection[int],
        vector: Quantised,
        request: SearchRequest,
        may_sync: bool,
    ) -> set[int] | None:
        """The cold memories that take part: the newest, and what the store finds; None: all."""
        if len(digests) <= _MOST_EXACT or request.exact or not vector.any():
            return None
        agent_id, shelf, only = block.agent_id, self._state.shelf, request.only
        unsynced = shelf.unsynced(agent_id, self._store.written)
        if len(unsynced) > _MOST_UNSYNCED and may_sync:
            self._store.push()
            unsynced = shelf.unsynced(agent_id, self._store.written)
        if not self._store.written:
            return None
        chosen = {*sorted(digests)[len(digests) - _MOST_EXACT :]}
        chosen.update(each.sequence for each in unsynced)
        if only.session is not None:
            chosen.update(each.sequence for each in shelf.in_sessions(agent_id, only.session))
        most = request.limit * self._multiplier
        return chosen.union(self._from_store(block, vector, most, only)) if most else chosen

    def _from_store(
        self, block: AgentColumns, vector: Quantised, most: int, only: Filter
    ) -> Collection[int]:
        """The numbers of the cold memories that mem0's store finds nearest to a vector."""
        filters: dict[str, object] = {
            "user_id": block.agent_id,
            "temperature": TEMPERATURE_NAMES[Temperature.COLD],
        }
        if only.tiers is not None:
            filters["tier"] = _one_of([int(tier) for tier in only.tiers])
        if only.kinds is not None:
            filters["kind"] = _one_of(list(only.kinds))
        if only.since_tick:
            filters["created_tick"] = {"gte": only.since_tick}
        wanted = most
        while True:
            ids = self._store.search(vector, wanted, filters)
            numbers = [sequence_of(block.prefix, each) for each in ids]  # None: another agent's
            records = self._read(block.agent_id, [each for each in numbers if each is not None])
            found = {each.sequence for each in records if self._passes(block, each, only)}
            # Memories that are no longer cold, or have other tags, took the place of better ones.
            if len(found) >= most:
                return found
            if len(ids) < wanted:  # an approximate index may miss some
                facts = self._state.shelf.cold(block.agent_id)
                return {fact.sequence for fact in facts if _may_pass(fact, only)}
            wanted *= 4

    def _passes(self, block: AgentColumns, record: Record, only: Filter) -> bool:
        memory = record.memory(block.agent_id, block.prefix)
        is_cold = (record.retention, record.temperature) == (Retention.ACTIVE, Temperature.COLD)
        return is_cold and not memory.is_expired(self._state.tick) and only.allows(memory)


class _Joined:
    """An agent's resident memories and others, in columns of their own, from the oldest on."""

    def __init__(self, block: AgentColumns, state: State) -> None:
        self.block = Population(state.seed, state.dims).own(block.agent_id)
        self._digests: dict[int, bytes] = {}
        """The hash over each memory that is not resident, by sequence number."""

    def follow(
        self,
        other: AgentColumns,
        digests: Mapping[int, bytes],
        changed: Collection[int] | None,
        read: Callable[[str, Sequence[int]], list[Record]],
    ) -> None:
        """From now on, these are the memories of ``other`` and those with these digests.

        Only digests of ``changed`` memories may be other ones than before; None: all may be.
        ``read`` gives memories that are not resident.
        """
        block, now = self.block, self._digests
        if changed is None or not now:
            changed = now.keys() | digests.keys()
        left = [each for each in changed if each not in digests]
        fresh = [each for each in changed if each in digests and now.get(each) != digests[each]]
        for each in left:
            now.pop(each, None)
        now.update((each, digests[each]) for each in fresh)
        sequences, resident = block.column("sequence"), other.column("sequence")
        known = np.fromiter(now, np.int64, len(now))
        kept = np.isin(sequences, known) & ~np.isin(sequences, fresh)
        there = np.isin(resident, sequences)
        rows, others = sequences.searchsorted(resident[there]), np.flatnonzero(there)
        # What became resident, or has another text, comes anew.
        same = np.array([*map(is_, _facts(block, rows), _facts(other, others))], bool)
        same = np.logical_and(*same.reshape(2, -1))
        kept[rows], there[others] = same, same
        if not kept.all():
            leave_out(block, kept)
        coming = records_of(other, np.flatnonzero(~there).tolist())
        if fresh:
            coming += read(block.agent_id, fresh)
        if coming:
            put_back(block, coming)
        rows = block.column("sequence").searchsorted(resident)
        for column, theirs in zip(block.columns(), other.columns(), strict=True):
            column[rows] = theirs
        block.table.all_plain &= other.table.all_plain
        block.extras.tier_order = other.tier_order if other.has_extras else TierOrder()
        block.front_changed()
        block.next_sequence, block.holdings = other.next_sequence, other.holdings
        block.next_expiry = int(block.column("expires").min(initial=NEVER))


def _facts(block: AgentColumns, rows: NDArray[np.intp]) -> list[object]:
    """The texts of these rows, then their metadata."""
    _, _, _, _, _, _, contents, metadata, _ = block.columns()
    return [*contents[rows].tolist(), *metadata[rows].tolist()]


def _is_left(record: Record) -> bool:
    return record.retention != Retention.DELETED


def _may_pass(fact: ColdFact, only: Filter) -> bool:
    kind, tags, _ = fact.traits or PLAIN
    return (
        (only.tiers is None or fact.tier in only.tiers)
        and (only.kinds is None or kind in only.kinds)
        and (only.tags is None or not only.tags.isdisjoint(tags))
        and fact.created_tick >= only.since_tick
    )


def _one_of(values: list[int] | list[str]) -> object:
    return values[0] if len(values) == 1 else {"in": sorted(values)}
