"""Searching cold memories: in mem0's store, and in the journal for memories the store lacks."""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..memory.filters import Filter
from ..memory.records import PLAIN, Hit, Memory, sequence_of
from ..memory.tiers import TEMPERATURE_NAMES, Retention, Temperature
from ..storage.columns.agent_columns import AgentColumns
from ..storage.embedding import Quantised
from ..storage.record import ColdFact, Record
from ..storage.state.state import State
from ..storage.store_sync import StoreSync
from .rank import Ranker
from .request import Scope, SearchRequest, pinned_in
from .score import ColdCandidates, ReadQueries, lives_of_shelved, similarities

_MOST_UNSYNCED = 1000
"""If the store lacks more memories, it is brought up to date before a search."""


class ColdSearch:
    """Finds cold memories, and merges them with resident ones."""

    def __init__(self, state: State, store: StoreSync, ranker: Ranker) -> None:
        self._state = state
        self._store = store
        self._ranker = ranker

    def search(
        self,
        block: AgentColumns,
        queries: ReadQueries,
        scope: Scope | None,
        request: SearchRequest,
        may_sync: bool,
    ) -> list[Hit]:
        """The memories that come first, then the best of all memories, cold and resident."""
        near = self.candidates(block, queries, scope, request, may_sync)
        wanted = max(0, request.limit - pinned_in(block, scope))
        front = self._ranker.front(block, queries, scope)
        return front + near[:wanted]

    def candidates(
        self,
        block: AgentColumns,
        queries: ReadQueries,
        scope: Scope | None,
        request: SearchRequest,
        may_sync: bool,
    ) -> list[Hit]:
        """The candidates among all memories, cold and resident, best first.

        From now on, ``queries`` scores resident and cold memories on one scale.
        """
        self._state.check_shelf(block.agent_id)
        only = request.only
        wanted = max(0, request.limit - pinned_in(block, scope))
        most = wanted * self._ranker.multiplier
        records = self._found(block, queries, most, request, may_sync)
        if records:
            queries.include(0, self._away(records, queries))
        candidates = self._ranker.candidates(block, queries, most, scope)
        hidden = None if scope is None else scope.hidden
        candidates += self._hits(block, queries, records, most, only, hidden)
        return self._ranker.merged(candidates, most)

    def newest(self, block: AgentColumns, scope: Scope | None, request: SearchRequest) -> list[Hit]:
        """For a blank query: the memories that come first, then the rest by tier and the newest."""
        self._state.check_shelf(block.agent_id)
        limit = request.limit
        front, near = self._ranker.newest(block, limit, scope)
        cold = self._newest(block, request)
        near += [self._ranker.hit(each, 0.0) for each in cold]
        by_tier = self._ranker.pins_first
        near.sort(key=lambda hit: (by_tier and hit.memory.tier, -hit.memory.sequence))
        return front + near[: max(0, limit - len(front))]

    def _newest(self, block: AgentColumns, request: SearchRequest) -> list[Memory]:
        if (numbers := self._meant(block, request)) is not None:
            records = self._among(block, numbers, request.only)
            return [record.memory(block.agent_id, block.prefix) for record in records]
        facts, by_tier = self._state.shelf.cold(block.agent_id), self._ranker.pins_first
        facts.sort(key=lambda fact: (by_tier and fact.tier, -fact.sequence))
        memories: list[Memory] = []
        for fact in facts:
            if len(memories) == request.limit:
                break
            memory = self._state.memory(block.agent_id, fact.sequence)
            if memory is not None and self._is_seen(memory) and request.only.allows(memory):
                memories.append(memory)
        return memories

    def _meant(self, block: AgentColumns, request: SearchRequest) -> Sequence[int] | None:
        """The memories that a request names, or those of its session; None for all cold ones."""
        session = request.only.session
        if request.shelved is not None or session is None:
            return request.shelved
        cold = Retention.ACTIVE, Temperature.COLD
        return [
            fact.sequence
            for fact in self._state.shelf.in_sessions(block.agent_id, session)
            if (fact.retention, fact.temperature) == cold
        ]

    def _among(self, block: AgentColumns, numbers: Sequence[int], only: Filter) -> list[Record]:
        """Those of these memories that are not deleted and pass."""
        stored = [row.record for row in self._state.shelf.many(block.agent_id, numbers)]
        kept = [record for record in stored if record.retention != Retention.DELETED]
        return self._visible(block, kept, only)

    def _found(
        self,
        block: AgentColumns,
        queries: ReadQueries,
        most: int,
        request: SearchRequest,
        may_sync: bool,
    ) -> list[Record]:
        """The cold memories that are most similar, or have a rare word of the query."""
        only = request.only
        if most == 0 or block.next_sequence == 1:
            return []
        agent_id, shelf = block.agent_id, self._state.shelf
        # The shelf is not read for nothing: 0 is the sum of an agent without such memories.
        if request.shelved is None and not (self._state.cold and block.shelf_sum):
            return []
        if (numbers := self._meant(block, request)) is not None:
            return self._named(block, queries, most, numbers, only)
        unsynced = shelf.unsynced(agent_id, 0 if request.exact else self._store.written)
        if len(unsynced) > _MOST_UNSYNCED and may_sync and not request.exact:
            self._store.push()
            unsynced = shelf.unsynced(agent_id, self._store.written)
        named = queries.with_words(0, partial(shelf.with_roots, agent_id))
        records: list[Record] = []
        if queries.vectors[0].any() or named is None:
            is_in_store = bool(self._store.written) and not request.exact
            records = self._near(block, queries.vectors[0], most, only, unsynced, is_in_store)
        if named:
            known = {record.sequence for record in records}
            fresh = [sequence for sequence in named if sequence not in known]
            more = [row.record for row in shelf.many(agent_id, fresh)]
            records += self._passing(block, more, only)
        return sorted(records, key=lambda record: record.sequence)

    def _named(
        self,
        block: AgentColumns,
        queries: ReadQueries,
        most: int,
        numbers: Sequence[int],
        only: Filter,
    ) -> list[Record]:
        """Of these memories, those that are most similar, or have a rare word of the query."""
        records = self._among(block, numbers, only)
        vector = queries.vectors[0]
        if not records or not vector.any():
            return records
        scores = _similarities(records, vector).tolist()
        order = sorted(range(len(records)), key=lambda at: (-scores[at], -records[at].sequence))
        texts = [(at, record.content) for at, record in enumerate(records)]
        worded = queries.with_words(0, lambda _, before: nullcontext(texts[:before][::-1]))
        chosen = {*order[:most], *(worded or ())}
        return [records[at] for at in sorted(chosen)]

    def _away(self, records: Sequence[Record], queries: ReadQueries) -> ColdCandidates:
        lives, classic = None, queries.classic
        if classic is not None:
            lives = lives_of_shelved(records, classic.by_tier, self._state.tick)
        return ColdCandidates(
            _similarities(records, queries.vectors[0]),
            np.array([any(record.vector) for record in records], bool),
            [record.content for record in records],
            [record.metadata for record in records],
            lives,
        )

    def _hits(
        self,
        block: AgentColumns,
        queries: ReadQueries,
        records: Sequence[Record],
        most: int,
        only: Filter,
        hidden: NDArray[np.bool_] | None,
    ) -> list[Hit]:
        """The ``most`` best of these cold memories."""
        if not records:
            return []
        parts = queries.parts_away(0, similarities(block.vectors(), queries.vectors[0]), hidden)
        scored = zip(records, parts.score.tolist(), parts.evidence.tolist(), strict=True)
        hits = [
            self._ranker.hit(
                record.memory(block.agent_id, block.prefix),
                score,
                match if only.min_score else None,
            )
            for record, score, match in scored
            if match >= only.min_score
        ]
        hits.sort(key=lambda hit: (-hit.score, -hit.memory.sequence))
        return hits[:most]

    def _near(
        self,
        block: AgentColumns,
        vector: Quantised,
        most: int,
        only: Filter,
        unsynced: Sequence[Record],
        is_in_store: bool,
    ) -> list[Record]:
        """The ``most`` cold memories nearest to a vector; all of them if it is zeros."""
        records = self._passing(block, unsynced, only)
        known = {record.sequence for record in unsynced}
        if not vector.any():
            return records + self._all(block, only, known, [])
        if is_in_store:
            records += self._from_store(block, vector, most, only, known)
        scores = _similarities(records, vector).tolist() if records else []
        order = sorted(range(len(records)), key=lambda at: (-scores[at], -records[at].sequence))
        return [records[at] for at in order[:most]]

    def _from_store(
        self, block: AgentColumns, vector: Quantised, most: int, only: Filter, known: set[int]
    ) -> list[Record]:
        """The cold memories that mem0's store finds, to the bit as the journal has them."""
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
            fresh = [each for each in numbers if each is not None and each not in known]
            stored = self._state.shelf.many(block.agent_id, fresh)
            found = self._passing(block, [row.record for row in stored], only)
            # Memories that are no longer cold, or have other tags, took the place of better ones.
            if len(found) >= most:
                return found
            if len(ids) < wanted:
                return self._all(block, only, known, found)
            wanted *= 4

    def _all(
        self, block: AgentColumns, only: Filter, known: set[int], found: list[Record]
    ) -> list[Record]:
        """``found``, or all that pass if there are more: an approximate index may miss some."""
        passing = [
            fact.sequence
            for fact in self._state.shelf.cold(block.agent_id)
            if fact.sequence not in known and _may_pass(fact, only)
        ]
        if len(passing) <= len(found):
            return found
        stored = self._state.shelf.many(block.agent_id, passing)
        return self._passing(block, [row.record for row in stored], only)

    def _passing(
        self, block: AgentColumns, records: Sequence[Record], only: Filter
    ) -> list[Record]:
        cold = [
            record
            for record in records
            if record.retention == Retention.ACTIVE and record.temperature == Temperature.COLD
        ]
        return self._visible(block, cold, only)

    def _visible(
        self, block: AgentColumns, records: Sequence[Record], only: Filter
    ) -> list[Record]:
        return [
            record
            for record in records
            if self._is_seen(memory := record.memory(block.agent_id, block.prefix))
            and only.allows(memory)
        ]

    def _is_seen(self, memory: Memory) -> bool:
        return not memory.is_expired(self._state.tick)


def _similarities(records: Sequence[Record], vector: Quantised) -> NDArray[np.float64]:
    vectors = np.frombuffer(b"".join([record.vector for record in records]), np.int8)
    return similarities(vectors.reshape(len(records), -1), vector)


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
