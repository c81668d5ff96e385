"""Choosing memories for queries: pinned first, then the ranked rest, within limit and budget."""

from collections.abc import Iterable, Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from ..memory.context import TokenCounter, fit
from ..memory.filters import ANY, Filter
from ..memory.records import Explanation, Hit, Hits, Memory
from ..memory.tiers import Tier
from ..rules.ranking import EXCLUDED, Boosts, Ranked, rank
from ..rules.spill import HotLimits
from ..storage.resident.agent_columns import AgentColumns
from ..storage.state.accesses import Given, apart
from .hybrid_score import Asked
from .scope import scope_of
from .similarity import Scope, Scored, score, similarities

__all__ = ["Retrieval"]


class Retrieval:
    """The one search engine; a single search is a batch of one."""

    def __init__(
        self, boosts: Sequence[float], multiplier: int, count_tokens: TokenCounter
    ) -> None:
        self._boosts = tuple(boosts)
        self._boost_array = np.array(boosts, np.float64)
        self._boost_objects = np.array(self._boost_array.tolist(), object)
        self._multiplier = multiplier
        self.count_tokens = count_tokens

    def search(
        self,
        blocks: Sequence[AgentColumns],
        worded: Sequence[int],
        asked: Asked,
        limit: int,
        budget: int | None,
        tick: int,
        only: Filter = ANY,
        hot: HotLimits | None = None,
    ) -> tuple[list[Hits], list[Given]]:
        """The hits of each block for its query; ``asked`` has those that ``worded`` lists.

        The others are blank. ``only`` says what may be found. With ``hot``, the hot memories come
        after the pinned ones, as many as these limits allow, and only warm ones are ranked. What
        was given to ``worded`` comes again as numbers, before the budget cut it.
        """
        results: list[Hits] = [Hits()] * len(blocks)
        if only is ANY and hot is None:  # as in most ticks, nearly all agents see all they have
            scopes = [self.scope(b, tick) if b.next_expiry <= tick else None for b in blocks]
        else:
            scopes = [self.scope(block, tick, only, hot) for block in blocks]
        given = self._similar(blocks, worded, asked, limit, scopes, results)
        if len(worded) < len(blocks):
            for i in set(range(len(blocks))).difference(worded):
                wanted = self._wanted(blocks[i], limit, scopes[i])
                front, rest = self.newest(blocks[i], wanted, scopes[i])
                results[i] = Hits(front + rest)
        if budget is None:
            return results, given
        fitted = [
            self._fitted(hits, _pinned_in(block, scope), budget)
            for hits, block, scope in zip(results, blocks, scopes, strict=True)
        ]
        return fitted, given

    def scope(
        self, block: AgentColumns, tick: int, only: Filter = ANY, hot: HotLimits | None = None
    ) -> Scope | None:
        """What a search sees of an agent's memories; None where that is all."""
        return scope_of(block, tick, only, hot, self.count_tokens)

    def candidates(
        self, block: AgentColumns, asked: Asked, most: int, scope: Scope | None
    ) -> list[Hit]:
        """The ``most`` memories that match best, without those that come first anyway."""
        (scored,) = score([block], asked.vectors, [scope], asked)
        wanted = np.array([min(most, block.size)])
        ranked = rank(scored.scores, self._boosts_of(scored), wanted, 1)
        columns = ranked.columns[0, : ranked.counts[0]].tolist()
        return self._hits(block, columns, scored.scores[0][columns].tolist())

    def matching(
        self, block: AgentColumns, asked: Asked, most: int, tick: int, only: Filter
    ) -> list[Hit]:
        """The ``most`` best; pinned memories only if they match as others have to."""
        if not block.size:
            return []
        scope = self.scope(block, tick, only) or Scope(None, [], 0)
        every = scope._replace(front=[], pinned=0)
        return self.candidates(block, asked, most * self._multiplier, every)[:most]

    def front(self, block: AgentColumns, asked: Asked, scope: Scope | None) -> list[Hit]:
        """What comes first: the pinned memories."""
        (scored,) = score([block], asked.vectors, [scope], asked)
        return self._front(block, scope, scored.front.scores.tolist())

    def hit(self, memory: Memory, own: float) -> Hit:
        """A memory that was found elsewhere, with this score."""
        boost = self._boosts[memory.tier]
        return Hit(memory, own, boost, own + boost)

    def merged(self, candidates: list[Hit], wanted: int) -> list[Hit]:
        """The best of candidates that come from several places, each with the most similar."""
        candidates.sort(key=lambda hit: (-hit.score, -hit.memory.sequence))
        del candidates[wanted * self._multiplier :]
        candidates.sort(key=lambda hit: (-hit.boosted_score, -hit.score, -hit.memory.sequence))
        return candidates[:wanted]

    @property
    def multiplier(self) -> int:
        """Candidates per result."""
        return self._multiplier

    def explain(
        self, block: AgentColumns, asked: Asked | None, limit: int, budget: int | None, tick: int
    ) -> list[Explanation]:
        """What :meth:`search` makes of each memory that it sees: the result, then the rest."""
        scope = self.scope(block, tick)
        wanted = self._wanted(block, limit, scope)
        parts: list[tuple[float, float, float]] | None = None
        if asked is None or not block.size:
            pinned, candidates = self.newest(block, len(block), scope)
            outside: list[Hit] = []
        else:
            pinned, candidates, outside = self._all_similar(block, asked, limit, scope)
            own = asked.parts(0, similarities(block.vectors(), asked.vectors[0]))
            words = np.zeros(block.size) if own.keyword is None else own.keyword
            columns = (own.vector.tolist(), words.tolist(), own.fused.tolist())
            parts = list(zip(*columns, strict=True))

        def explained(hit: Hit, place: int | None, reason: str) -> Explanation:
            row = block.row_of(hit.memory.sequence)
            if parts is None or row is None:
                return Explanation(*hit, place, reason)
            return Explanation(*hit, place, reason, *parts[row], hit.score - parts[row][2])

        kept, _, _ = fit(pinned, candidates[:wanted], budget, self.count_tokens)
        shown = {hit.memory.sequence for hit in kept}
        rows = [
            explained(hit, place, "pinned" if hit.memory.tier is Tier.PINNED else "chosen")
            for place, hit in enumerate(kept, start=1)
        ]
        rows += [
            explained(hit, None, "over the token budget")
            for hit in (*pinned, *candidates[:wanted])
            if hit.memory.sequence not in shown
        ]
        rows += [explained(hit, None, "below the cut") for hit in candidates[wanted:]]
        reason = f"outside the {wanted * self._multiplier} candidates"
        rows += [explained(hit, None, reason) for hit in outside]
        return rows

    def _all_similar(
        self, block: AgentColumns, asked: Asked, limit: int, scope: Scope | None
    ) -> tuple[list[Hit], list[Hit], list[Hit]]:
        """The pinned, the candidates best first, and the others best first."""
        (scored,) = score([block], asked.vectors, [scope], asked)
        _, ranked = self._ranked(scored, limit, [scope])
        candidates = ranked.columns[0, : ranked.counts[0]].tolist()
        scores = scored.scores[0]
        newest_first = np.argsort(-scores[::-1], kind="stable")
        by_score = (len(scores) - 1 - newest_first).tolist()
        taken = set(candidates)
        outside = [c for c in by_score if c not in taken and scores[c] != EXCLUDED]
        return (
            self._front(block, scope, scored.front.scores.tolist()),
            self._hits(block, candidates, scores[candidates].tolist()),
            self._hits(block, outside, scores[outside].tolist()),
        )

    def _similar(
        self,
        blocks: Sequence[AgentColumns],
        worded: Sequence[int],
        asked: Asked,
        limit: int,
        scopes: Sequence[Scope | None],
        results: list[Hits],
    ) -> list[Given]:
        """Fill ``results[worded[i]]`` with what matches the ``i``-th query of ``asked``."""
        given = []
        chosen, own_scopes = [blocks[i] for i in worded], [scopes[i] for i in worded]
        for group in score(chosen, asked.vectors, own_scopes, asked):
            scored = group._replace(members=[worded[member] for member in group.members])
            wanted, ranked = self._ranked(scored, limit, scopes)
            cuts = np.minimum(ranked.counts, wanted)
            width = ranked.columns.shape[1]
            shown = np.flatnonzero(np.arange(width) < cuts[:, None])
            searches = np.arange(len(cuts)).repeat(cuts)
            places = shown - searches * width
            columns = ranked.columns.take(shown)
            own = [blocks[member] for member in scored.members]
            # Of each search what comes first and then the rest, search after search.
            front = scored.front
            counts = front.counts + cuts
            ends = counts.cumsum()
            is_front = np.ones(ends[-1], np.bool_)
            rest = (ends - cuts)[searches] + places
            is_front[rest] = False
            rows, scores = np.empty(len(is_front), np.intp), np.empty(len(is_front))
            rows[is_front], scores[is_front] = front.rows, front.scores
            rows[rest] = columns
            scores[rest] = ranked.scores.take(shown)
            rows += np.array([block.start for block in own]).repeat(counts)
            numbers = own[0].table.numbers.take(rows, axis=0)
            given.append(Given(scored.members, counts, rows, numbers[:, 0], scores))
            hits = self._hits_of_all(own, counts, rows, numbers, scores)
            for member, part in zip(scored.members, map(Hits, apart(hits, counts)), strict=True):
                results[member] = part
        return given

    def _hits_of_all(
        self,
        blocks: Sequence[AgentColumns],
        counts: NDArray[np.intp],
        rows: NDArray[np.intp],
        numbers: NDArray[np.int64],
        scores: NDArray[np.float64],
    ) -> list[Hit]:
        """So many memories of each block, in these rows of the table, as hits with these scores.

        ``numbers`` are those in the rows.
        """
        if len(blocks) == 1:  # a few rows are read faster one by one
            return self._hits(blocks[0], (rows - blocks[0].start).tolist(), scores.tolist())
        table = blocks[0].table
        agents = np.array([block.agent_id for block in blocks], object).repeat(counts)
        prefixes = np.array([block.prefix for block in blocks], object).repeat(counts)
        tiers = table.tiers[rows]
        fields = zip(
            table.memories(rows, numbers, agents.tolist(), prefixes.tolist()),
            scores.tolist(),
            self._boost_objects[tiers].tolist(),
            (scores + self._boost_array[tiers]).tolist(),
            strict=True,
        )
        return list(map(tuple.__new__, repeat(Hit), fields))  # Hit(…), at half its cost

    def _ranked(
        self, scored: Scored, limit: int, scopes: Sequence[Scope | None]
    ) -> tuple[NDArray[np.intp], Ranked]:
        pinned = scored.front.counts.copy()
        for place, member in enumerate(scored.members):
            if (scope := scopes[member]) is not None:
                pinned[place] = scope.pinned  # without the hot ones that come next
        # No more than there are: a huge limit times the multiplier would overflow.
        width = scored.scores.shape[1]
        wanted = np.minimum(np.maximum(limit - pinned, 0), width)
        return wanted, rank(scored.scores, self._boosts_of(scored), wanted, self._multiplier)

    def _boosts_of(self, scored: Scored) -> Boosts:
        boosts = self._boost_array
        return lambda columns: boosts[scored.tiers(columns)]

    def newest(
        self, block: AgentColumns, most: int, scope: Scope | None
    ) -> tuple[list[Hit], list[Hit]]:
        """For a blank query: what comes first, and the others by tier, newest first in each."""
        tiers = block.tiers
        columns = np.lexsort((-np.arange(len(tiers)), tiers))
        open_to = tiers != Tier.PINNED
        if scope is not None and scope.hidden is not None:
            open_to &= ~scope.hidden
        rest = columns[open_to[columns]][:most].tolist()
        zeros = repeat(0.0)
        return self._front(block, scope, zeros), self._hits(block, rest, zeros)

    def _hits(self, block: AgentColumns, columns: list[int], scores: Iterable[float]) -> list[Hit]:
        memories = block.memories(columns)
        boosts = [self._boosts[memory.tier] for memory in memories]
        return [
            Hit(memory, similarity, boost, similarity + boost)
            for memory, similarity, boost in zip(memories, scores, boosts, strict=False)
        ]

    def _front(
        self, block: AgentColumns, scope: Scope | None, scores: Iterable[float]
    ) -> list[Hit]:
        """What comes first."""
        rows = block.pinned if scope is None else scope.front
        return self._hits(block, list(rows), scores)

    @staticmethod
    def _wanted(block: AgentColumns, limit: int, scope: Scope | None) -> int:
        return min(max(0, limit - _pinned_in(block, scope)), block.size)

    def _fitted(self, hits: Hits, pinned: int, budget: int) -> Hits:
        kept, pinned_left_out, _ = fit(hits[:pinned], hits[pinned:], budget, self.count_tokens)
        fitted = Hits(kept)
        fitted.pinned_left_out = pinned_left_out
        return fitted


def _pinned_in(block: AgentColumns, scope: Scope | None) -> int:
    return len(block.pinned) if scope is None else scope.pinned
