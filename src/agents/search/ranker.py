"""Ranking an agent's memories: pinned first, then the best by score and tier boost, as hits."""

from collections.abc import Iterable, Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from ..memory.records import Hit, Hits, Memory
from ..memory.tiers import Tier
from ..rules.ranking import EXCLUDED, Boosts, Ranked, rank
from ..storage.resident.agent_columns import AgentColumns
from ..storage.state.accesses import Accesses, apart
from .hybrid_score import HybridScore
from .similarity import Scope, Scored, score

__all__ = ["Ranker", "pinned_in"]


class Ranker:
    """Chooses among resident memories, and makes hits of them."""

    def __init__(self, boosts: Sequence[float], multiplier: int) -> None:
        self._boosts = tuple(boosts)
        self._boost_array = np.array(boosts, np.float64)
        self._boost_objects = np.array(self._boost_array.tolist(), object)
        self.multiplier = multiplier
        """How many candidates there are for each result."""

    # Many searches

    def best(
        self,
        blocks: Sequence[AgentColumns],
        worded: Sequence[int],
        asked: HybridScore,
        limit: int,
        scopes: Sequence[Scope | None],
        results: list[Hits],
    ) -> list[Accesses]:
        """Fill ``results[worded[i]]`` with what matches the ``i``-th query of ``asked``.

        What each search gives comes back as columns, too.
        """
        given: list[Accesses] = []
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
            given.append(Accesses(scored.members, counts, numbers[:, 0], scores, rows))
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
        """The memories in these rows of the table, as hits with these scores.

        Each block has as many of them as its count; ``numbers`` is the table's column of the rows.
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
        return wanted, rank(scored.scores, self._boosts_of(scored), wanted, self.multiplier)

    def _boosts_of(self, scored: Scored) -> Boosts:
        boosts = self._boost_array
        return lambda columns: boosts[scored.tiers(columns)]

    # One agent

    def candidates(
        self, block: AgentColumns, asked: HybridScore, most: int, scope: Scope | None
    ) -> list[Hit]:
        """The ``most`` memories that match best, without those that come first anyway."""
        (scored,) = score([block], asked.vectors, [scope], asked)
        wanted = np.array([min(most, block.size)])
        ranked = rank(scored.scores, self._boosts_of(scored), wanted, 1)
        columns = ranked.columns[0, : ranked.counts[0]].tolist()
        return self._hits(block, columns, scored.scores[0][columns].tolist())

    def front(self, block: AgentColumns, asked: HybridScore, scope: Scope | None) -> list[Hit]:
        """What comes first: the pinned memories."""
        (scored,) = score([block], asked.vectors, [scope], asked)
        return self.first(block, scope, scored.front.scores.tolist())

    def all_similar(
        self, block: AgentColumns, asked: HybridScore, limit: int, scope: Scope | None
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
            self.first(block, scope, scored.front.scores.tolist()),
            self._hits(block, candidates, scores[candidates].tolist()),
            self._hits(block, outside, scores[outside].tolist()),
        )

    def newest(
        self, block: AgentColumns, most: int, scope: Scope | None
    ) -> tuple[list[Hit], list[Hit]]:
        """For a blank query: what comes first, and then by tier, newest first in each."""
        tiers = block.tiers
        columns = np.lexsort((-np.arange(len(tiers)), tiers))
        open_to = tiers != Tier.PINNED
        if scope is not None and scope.hidden is not None:
            open_to &= ~scope.hidden
        rest = columns[open_to[columns]][:most].tolist()
        zeros = repeat(0.0)
        return self.first(block, scope, zeros), self._hits(block, rest, zeros)

    def hit(self, memory: Memory, own: float) -> Hit:
        """A memory that was found elsewhere, with this score."""
        boost = self._boosts[memory.tier]
        return Hit(memory, own, boost, own + boost)

    def merged(self, candidates: list[Hit], wanted: int) -> list[Hit]:
        """The best of candidates that come from several places, each with the most similar."""
        candidates.sort(key=lambda hit: (-hit.score, -hit.memory.sequence))
        del candidates[wanted * self.multiplier :]
        candidates.sort(key=lambda hit: (-hit.boosted_score, -hit.score, -hit.memory.sequence))
        return candidates[:wanted]

    def _hits(self, block: AgentColumns, columns: list[int], scores: Iterable[float]) -> list[Hit]:
        memories = block.memories(columns)
        boosts = [self._boosts[memory.tier] for memory in memories]
        return [
            Hit(memory, similarity, boost, similarity + boost)
            for memory, similarity, boost in zip(memories, scores, boosts, strict=False)
        ]

    def first(self, block: AgentColumns, scope: Scope | None, scores: Iterable[float]) -> list[Hit]:
        """What comes first: the pinned memories, or what the scope puts in front."""
        rows = block.pinned if scope is None else scope.front
        return self._hits(block, list(rows), scores)


def pinned_in(block: AgentColumns, scope: Scope | None) -> int:
    """How many pinned memories come first."""
    return len(block.pinned) if scope is None else scope.pinned
