"""The one search: queries are read, memories scored, scoped, ranked and cut to limit and budget."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..config.settings import Settings
from ..memory.context import TokenCounter, fit
from ..memory.filters import ANY, Filter
from ..memory.records import Explanation, Hit, Hits, Memory
from ..rules.ranking import EXCLUDED, Floats, Rows, rank_one
from ..rules.temperature import HotLimits
from ..storage.columns.agent_columns import AgentColumns
from ..storage.embedding import CachedEmbedder
from ..storage.state.state import Accesses, State
from ..storage.store_sync import StoreSync
from .cold import ColdSearch
from .explain import Considered, everything, explained
from .rank import Ranker, cosines, likenesses, with_chances
from .request import Scope, SearchRequest, pinned_in, scope_of
from .score import QueryReader, ReadQueries, Weigher, hits_of, similarities


class ReadRequest(NamedTuple):
    """A request whose queries were read."""

    request: SearchRequest
    blocks: list[AgentColumns]
    """The memories of each agent."""
    worded: list[int]
    """The places of the queries that are not blank."""
    queries: ReadQueries
    """These queries."""


class Found(NamedTuple):
    """What searches gave."""

    hits: list[Hits]
    """The memories of each search, best first."""
    searches: int
    """How many searches had a query that is not blank."""
    accesses: list[Accesses]
    """The memories that these searches gave, as columns."""


class Search:
    """Answers every search: of one agent or many, with cold memories or without."""

    def __init__(
        self,
        state: State,
        embedder: CachedEmbedder,
        store: StoreSync,
        settings: Settings,
        count_tokens: TokenCounter,
    ) -> None:
        memory = settings.memory
        self.count_tokens = count_tokens
        self._state = state
        self.reader = QueryReader(embedder, settings)
        """Reads queries. Banks with the same settings may share one: it remembers words alone."""
        self._pins_first = settings.retrieval.pins_first
        self._by_probability = settings.temperature.measure == "probability"
        self._ranker = Ranker(
            memory.tier_boosts,
            memory.candidate_multiplier,
            pins_first=self._pins_first,
        )
        self._cold = ColdSearch(state, store, self._ranker.multiplier)

    def weigh_by(self, weigher: Weigher) -> None:
        """From now on, multiply the score and the boost of each memory by a factor."""
        self._ranker.weigher = weigher

    def read(self, request: SearchRequest) -> ReadRequest:
        """Read the queries of a request; the embedder may wait for somebody else's server."""
        if not self._pins_first:
            request = request._replace(hot=None, pinned_first=False)
        if self._by_probability and request.only.min_probability is None:
            request = request._replace(only=request.only._replace(min_probability=0.0))
        blocks, texts = self._state.blocks_of(request.agents), request.queries
        worded = [i for i, text in enumerate(texts) if text and not text.isspace()]
        queries = self.reader.read(
            [blocks[i] for i in worded], [texts[i] for i in worded], self._state.tick
        )
        return ReadRequest(request, blocks, worded, queries)

    def run(self, read: ReadRequest, *, may_sync: bool = False) -> Found:
        """Answer each search of a request.

        With ``may_sync``, mem0's store may be brought up to date to find cold memories.
        """
        request, blocks, worded, queries = read
        scopes = self._scopes(request, blocks)
        results: list[Hits] = [Hits()] * len(blocks)
        accesses: list[Accesses] | None = None
        told: dict[int, str] = {}
        if request.with_cold:
            for index, i in enumerate(worded):
                block, own = self._with_cold(read, index, may_sync)
                (scope,) = self._scopes(request, [block])
                results[i] = self._alone(block, own, request.limit, scope, i, bare=False)[0]
                told[index] = own.told(0)
        elif len(worded) == 1:  # as for every caller but a simulation
            (place,) = worded
            results[place], access = self._alone(
                blocks[place], queries, request.limit, scopes[place], place, bare=request.bare
            )
            accesses = [access]
        else:
            accesses = self._ranker.best(blocks, worded, queries, request.limit, scopes, results)
            if self._by_probability:
                accesses = None  # they have scores
        if len(worded) < len(blocks):
            blank = sorted(set(range(len(blocks))).difference(worded))
            for i, newest in zip(blank, self._newest(blank, blocks, scopes, request), strict=True):
                results[i] = Hits(newest)
        if request.budget is not None:
            results = [
                self._fitted(hits, pinned_in(block, scope), request.budget)
                for hits, block, scope in zip(results, blocks, scopes, strict=True)
            ]
        for place in {*queries.notes, *queries.readings}.difference(told):
            told[place] = queries.told(place)
        for place, note in told.items():
            results[worded[place]].note = note
        if request.budget is not None or len({*request.agents}) < len(blocks):
            accesses = None  # the budget left some out, or a search gave a memory again
        if accesses is None:
            accesses = [self._accesses_of(results, worded)]
        return Found(results, len(worded), accesses)

    def _with_cold(
        self, read: ReadRequest, index: int, may_sync: bool
    ) -> tuple[AgentColumns, ReadQueries]:
        """The memories of a query with the cold ones among them, and the query read for these."""
        i, vector = read.worded[index], read.queries.vectors[index]
        block = self._cold.joined(read.blocks[i], vector, read.request, may_sync)
        if block is read.blocks[i]:
            return block, read.queries.one(index)
        return block, self.reader.read([block], [read.request.queries[i]], self._state.tick)

    def _alone(
        self,
        block: AgentColumns,
        queries: ReadQueries,
        limit: int,
        scope: Scope | None,
        place: int,
        *,
        bare: bool,
    ) -> tuple[Hits, Accesses]:
        """What :meth:`Ranker.best` gives for one query alone, to the same bits, in half the time.

        ``place`` is the number of the search.
        """
        size = block.size
        scores, evidence = _scores_of_one(block, queries, scope)
        front = np.array(block.pinned if scope is None else scope.front, np.intp)
        chances = None if scope is None else scope.chances(scores)
        first = scores.take(front)
        scores.put(front, EXCLUDED)
        if scope is not None:
            scope.leave_out(scores, evidence, chances)
        ranker = self._ranker
        factors = None if ranker.weigher is None else ranker.weigher.factors(block)
        if factors is not None:
            first *= factors[front]
            scores[scores > 0.0] *= factors[scores > 0.0]
        tiers, boost_of = block.tiers, ranker.boost_array

        def boosts(columns: Rows) -> Floats:
            found: Floats = boost_of.take(tiers.take(columns))
            return found if factors is None else found * factors.take(columns)

        pinned = len(front) if scope is None else scope.pinned
        wanted = min(max(limit - pinned, 0), size)
        columns, ranked = rank_one(scores, boosts, wanted, ranker.multiplier)
        columns = columns[:wanted]
        rows = np.concatenate([front, columns])
        values = np.concatenate([first, ranked[:wanted]])
        hits = Hits()
        if not bare:
            matches: Iterable[float | None] = repeat(None)
            if scope is not None and scope.min_score > 0.0:
                matches = [*[None] * len(front), *evidence.take(columns).tolist()]
            found = hits_of(
                block, rows.tolist(), values.tolist(), ranker.boosts, ranker.weigher, matches
            )
            hits += found if chances is None else with_chances(found, chances.take(rows).tolist())
        sequences = block.figures[:, 0].take(rows)
        counts = np.array([len(rows)], np.intp)
        used = values if chances is None or not self._by_probability else chances.take(rows)
        return hits, Accesses([place], counts, sequences, used, rows + block.start)

    def _accesses_of(self, results: Sequence[Hits], worded: Sequence[int]) -> Accesses:
        """The memories that these searches gave, search after search."""
        numbers = [[hit.memory.sequence for hit in results[i]] for i in worded]
        scores = [[hit.score for hit in results[i]] for i in worded]
        if self._by_probability:
            scores = [[hit.relevance_probability or 0.0 for hit in results[i]] for i in worded]
        return Accesses.of(list(zip(numbers, scores, strict=True)))._replace(members=list(worded))

    def forget(self, agent_id: str) -> None:
        """Keep nothing of an agent's cold memories: one of its memories was forgotten for good."""
        self._cold.forget(agent_id)

    def likenesses(self, query: str, memories: Sequence[Memory]) -> list[float]:
        """How alike a query and each memory are, whatever other memories there are.

        With ``temperature.promote_by: passage``, the best passage of a memory may stand for it.
        """
        whole = likenesses(self._state, query, self.reader.plain(query), memories)
        passages = self.reader.passages(query, [memory.content for memory in memories])
        return [max(pair) for pair in zip(whole, passages, strict=True)]

    def cosines(self, query: str, memories: Sequence[Memory]) -> list[float]:
        """The cosine of a query and each memory, from -1 to 1, with all words alike."""
        return cosines(self._state, self.reader.plain(query), memories)

    def front(self, agent_id: str, hot: HotLimits, only: Filter = ANY) -> list[Hit]:
        """The pinned memories of an agent, then the hot ones within limits."""
        block = self._state.block(agent_id)
        scope = scope_of(block, self._state.tick, only, hot, self.count_tokens)
        return self._ranker.newest(block, 0, scope)[0]

    def explain(self, request: SearchRequest, *, may_sync: bool = False) -> list[Explanation]:
        """What :meth:`run` makes of each memory of one agent: what it gives, then the rest."""
        read = self.read(request)
        request = read.request
        given = unlimited = self.run(read, may_sync=may_sync).hits[0]
        if request.budget is not None:
            without = read._replace(request=request._replace(budget=None))
            unlimited = self.run(without, may_sync=may_sync).hits[0]
        seen = self._considered(read, may_sync)
        memories = everything(self._state, request.agents[0])
        return explained(
            request,
            given,
            unlimited,
            seen,
            memories,
            lambda memory: self._ranker.hit(memory, 0.0),
            self._state.tick,
            self._ranker.weigher,
        )

    def _considered(self, read: ReadRequest, may_sync: bool) -> Considered:
        """What the search of one agent looks at before its cut."""
        request, (block,) = read.request, read.blocks
        if not read.worded:
            (scope,) = self._scopes(request, read.blocks)
            most = max(0, request.limit - pinned_in(block, scope))
            everyone = request._replace(limit=block.next_sequence + pinned_in(block, scope))
            (hits,) = self._newest([0], read.blocks, [scope], everyone)
            return Considered(list(hits), [], block, most, self._ranker.multiplier, None)
        queries = read.queries.one(0)
        if request.with_cold:
            block, queries = self._with_cold(read, 0, may_sync)
        (scope,) = self._scopes(request, [block])
        most = min(max(0, request.limit - pinned_in(block, scope)), block.size)
        seen = self._ranker.all_similar(block, queries, request.limit, scope)
        hidden = None if scope is None else scope.hidden
        return Considered(*seen, block, most, self._ranker.multiplier, queries, hidden)

    def _scopes(self, request: SearchRequest, blocks: Sequence[AgentColumns]) -> list[Scope | None]:
        """What each search sees of its agent's memories."""
        only, hot, count, tick = request.only, request.hot, self.count_tokens, self._state.tick
        if only is ANY and hot is None and request.pinned_first:  # as in most ticks
            return [
                scope_of(block, tick, ANY, None, count) if block.next_expiry <= tick else None
                for block in blocks
            ]
        scopes = [scope_of(block, tick, only, hot, count) for block in blocks]
        if request.pinned_first:
            return scopes
        return [(scope or Scope(None, [], 0))._replace(front=[], pinned=0) for scope in scopes]

    def _newest(
        self,
        blank: Sequence[int],
        blocks: Sequence[AgentColumns],
        scopes: Sequence[Scope | None],
        request: SearchRequest,
    ) -> Iterable[Sequence[Hit]]:
        """The answers to these blank queries."""
        if request.with_cold:
            return (self._newest_with_cold(blocks[i], request) for i in blank)
        own = [blocks[i] for i in blank], request.limit, [scopes[i] for i in blank]
        return self._ranker.newest_of_all(*own)

    def _newest_with_cold(self, block: AgentColumns, request: SearchRequest) -> Sequence[Hit]:
        every = self._cold.joined(block, np.zeros(self._state.dims, np.int8), request, False)
        front, rest = self._ranker.newest(every, request.limit, *self._scopes(request, [every]))
        return [*front, *rest[: max(0, request.limit - len(front))]]

    def _fitted(self, hits: Hits, pinned: int, budget: int) -> Hits:
        kept, pinned_left_out, _ = fit(hits[:pinned], hits[pinned:], budget, self.count_tokens)
        fitted = Hits(kept)
        fitted.pinned_left_out = pinned_left_out
        return fitted


def _scores_of_one(
    block: AgentColumns, queries: ReadQueries, scope: Scope | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The scores of an agent's memories for the only query, and their evidence."""
    scores = similarities(block.vectors(), queries.vectors[0], block.norms)
    if queries.is_plain:
        return scores.copy(), scores
    weighed = scope is not None and scope.min_score > 0.0
    hidden = None if scope is None else scope.hidden
    parts = queries.parts(0, scores, weighed=weighed, hidden=hidden)
    return parts.score.copy(), parts.evidence
