"""Memories are scored and ranked, exactly and for many agents at once, and become hits.

Pinned memories come first, then the best by score and tier boost.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import simsimd
from numpy.typing import NDArray

from ..memory.records import Hit, Hits, Memory
from ..memory.tiers import Tier
from ..rules.ranking import EXCLUDED, Boosts, Ranked, rank
from ..storage.columns.agent_columns import AgentColumns
from ..storage.embedding import Quantised, norm, norms, products
from ..storage.state.state import Accesses, State, split_by_count
from .request import Scope, pinned_in
from .score import ReadQueries, Weigher, hits_of, similarities

# NumPy asks an enum a dozen questions before it takes it for the number it is.
_PINNED, _NORMAL = int(Tier.PINNED), int(Tier.NORMAL)
_GROUP_CELLS = 2_000_000
"""Agents are scored together up to this many cells, which bounds the memory of a batch."""


class Front(NamedTuple):
    """The memories that come first in a group of searches, search after search.

    The pinned memories, oldest pin first; then the hot ones that a scope puts in front.
    """

    counts: NDArray[np.intp]
    """How many memories come first in each search."""
    rows: NDArray[np.intp]
    """Counted from the first row of the agent, not of the table."""
    scores: NDArray[np.float64]


class Scored(NamedTuple):
    """A group of searches: for each, a row of scores, oldest memory first."""

    members: list[int]
    """The number of each search."""
    scores: NDArray[np.float64]
    """EXCLUDED for a memory that comes first or is hidden, and for padding."""
    tiers: Callable[[NDArray[np.intp]], NDArray[np.int8]]
    """The tiers of the memories in these columns; each search has a row of columns."""
    front: Front
    factors: Callable[[NDArray[np.intp]], NDArray[np.float64]] | None = None
    """The factors of the memories in these columns; None if all are 1."""
    matches: Mapping[int, NDArray[np.float64]] = MappingProxyType({})
    """For searches with a least score, by their place in the group: what was compared with it."""
    chances: Mapping[int, NDArray[np.float64]] = MappingProxyType({})
    """For searches with a least probability, by their place: how likely each memory answers."""


class Ranker:
    """Chooses among resident memories, and makes hits of them."""

    def __init__(
        self,
        boosts: Sequence[float],
        multiplier: int,
        *,
        pins_first: bool = True,
    ) -> None:
        self.pins_first = pins_first
        """Whether tiers count where nothing else does."""
        self.boosts = tuple(boosts)
        """What the tiers add to a score."""
        self.boost_array = np.array(boosts, np.float64)
        self._boost_objects = np.array(self.boost_array.tolist(), object)
        self.multiplier = multiplier
        """How many candidates there are for each result."""
        self.weigher: Weigher | None = None
        """What multiplies the score and the boost of each memory; None if nothing does."""

    # Many searches

    def best(
        self,
        blocks: Sequence[AgentColumns],
        worded: Sequence[int],
        queries: ReadQueries,
        limit: int,
        scopes: Sequence[Scope | None],
        results: list[Hits],
    ) -> list[Accesses]:
        """Fill ``results[worded[i]]`` with the hits of the ``i``-th query.

        Returns the same memories as columns.
        """
        accesses: list[Accesses] = []
        chosen, own_scopes = [blocks[i] for i in worded], [scopes[i] for i in worded]
        for group in score(chosen, queries, own_scopes, self.weigher):
            scored = group._replace(members=[worded[member] for member in group.members])
            wanted, ranked = self._ranked(scored, limit, scopes)
            cuts = np.minimum(ranked.counts, wanted)
            width = ranked.columns.shape[1]
            shown = np.flatnonzero(np.arange(width) < cuts[:, None])
            searches = np.arange(len(cuts)).repeat(cuts)
            places = shown - searches * width
            columns = ranked.columns.take(shown)
            group_blocks = [blocks[member] for member in scored.members]
            # Search after search: the memories that come first, then the ranked ones.
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
            rows += np.array([block.start for block in group_blocks]).repeat(counts)
            numbers = group_blocks[0].table.numbers.take(rows, axis=0)
            accesses.append(Accesses(scored.members, counts, numbers[:, 0], scores, rows))
            hits = self._hits_of_all(group_blocks, counts, rows, numbers, scores)
            for place, matches in scored.matches.items():
                end, cut = int(ends[place]), int(cuts[place])
                values = matches[rows[end - cut : end] - group_blocks[place].start].tolist()
                hits[end - cut : end] = _matched(hits[end - cut : end], values)
            for place, chances in scored.chances.items():
                own = slice(int(ends[place] - counts[place]), int(ends[place]))
                values = chances[rows[own] - group_blocks[place].start].tolist()
                hits[own] = with_chances(hits[own], values)
            for member, part in zip(
                scored.members, map(Hits, split_by_count(hits, counts)), strict=True
            ):
                results[member] = part
        return accesses

    def newest_of_all(
        self, blocks: Sequence[AgentColumns], limit: int, scopes: Sequence[Scope | None]
    ) -> Iterable[Sequence[Hit]]:
        """:meth:`newest` for a blank query of each block, all hits in one list."""
        rows: list[int] = []
        counts: list[int] = []
        for block, scope in zip(blocks, scopes, strict=True):
            first = block.pinned if scope is None else scope.front
            most = max(0, limit - pinned_in(block, scope))
            chosen = [*first, *self._newest_rows(block, most, scope)]
            rows += [block.start + row for row in chosen]
            counts.append(len(chosen))
        places = np.array(rows, np.intp)
        numbers = blocks[0].table.numbers.take(places, axis=0)
        sizes, zeros = np.array(counts, np.intp), np.zeros(len(places))
        return split_by_count(self._hits_of_all(blocks, sizes, places, numbers, zeros), sizes)

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
        if self.weigher is not None:
            cuts = counts.cumsum()[:-1]
            parts = zip(blocks, np.split(rows, cuts), np.split(scores, cuts), strict=True)
            hits = [
                self._hits(block, (places - block.start).tolist(), values.tolist())
                for block, places, values in parts
            ]
            return list(chain.from_iterable(hits))
        table = blocks[0].table
        agents = np.array([block.agent_id for block in blocks], object).repeat(counts)
        prefixes = np.array([block.prefix for block in blocks], object).repeat(counts)
        tiers = table.tiers[rows]
        fields = zip(
            table.memories(rows, numbers, agents.tolist(), prefixes.tolist()),
            scores.tolist(),
            self._boost_objects[tiers].tolist(),
            (scores + self.boost_array[tiers]).tolist(),
            repeat(None),
            repeat(None),
            strict=False,
        )
        return list(map(tuple.__new__, repeat(Hit), fields))  # Hit(…), at half its cost

    def _ranked(
        self, scored: Scored, limit: int, scopes: Sequence[Scope | None]
    ) -> tuple[NDArray[np.intp], Ranked]:
        pinned = scored.front.counts.copy()
        for place, member in enumerate(scored.members):
            if (scope := scopes[member]) is not None:
                pinned[place] = scope.pinned  # without the hot memories, which come next
        # No more than there are: a huge limit times the multiplier would overflow.
        width = scored.scores.shape[1]
        wanted = np.minimum(np.maximum(limit - pinned, 0), width)
        return wanted, rank(scored.scores, self._boosts_of(scored), wanted, self.multiplier)

    def _boosts_of(self, scored: Scored) -> Boosts:
        boosts, factors = self.boost_array, scored.factors
        if factors is None:
            return lambda columns: boosts[scored.tiers(columns)]
        return lambda columns: boosts[scored.tiers(columns)] * factors(columns)

    # One agent

    def all_similar(
        self, block: AgentColumns, queries: ReadQueries, limit: int, scope: Scope | None
    ) -> tuple[list[Hit], list[Hit]]:
        """The candidates and all other memories that are ranked, each list best first."""
        (scored,) = score([block], queries, [scope], self.weigher)
        _, ranked = self._ranked(scored, limit, [scope])
        candidates = ranked.columns[0, : ranked.counts[0]].tolist()
        scores = scored.scores[0]
        newest_first = np.argsort(-scores[::-1], kind="stable")
        by_score = (len(scores) - 1 - newest_first).tolist()
        taken = set(candidates)
        outside = [c for c in by_score if c not in taken and scores[c] != EXCLUDED]
        return (
            self._scored_hits(block, scored, candidates),
            self._scored_hits(block, scored, outside),
        )

    def newest(
        self, block: AgentColumns, most: int, scope: Scope | None
    ) -> tuple[list[Hit], list[Hit]]:
        """For a blank query: the memories that come first, then the rest by tier and the newest.

        Where no memories come first, tiers do not count.
        """
        rest = self._newest_rows(block, most, scope)
        zeros = repeat(0.0)
        return self.first(block, scope, zeros), self._hits(block, rest, zeros)

    def _newest_rows(self, block: AgentColumns, most: int, scope: Scope | None) -> list[int]:
        """The rows that do not come first, by tier, and of a tier the newest first."""
        tiers = block.tiers if self.pins_first else np.full(block.size, _NORMAL)
        columns = len(tiers) - 1 - np.argsort(tiers[::-1], kind="stable")
        open_to = tiers != _PINNED
        if scope is not None and scope.hidden is not None:
            open_to &= ~scope.hidden
        rest: list[int] = columns[open_to[columns]][:most].tolist()
        return rest

    def hit(self, memory: Memory, score: float, match: float | None = None) -> Hit:
        """The hit for a memory that was found elsewhere, with this score."""
        boost = self.boosts[memory.tier]
        if self.weigher is not None:
            factor = self.weigher.of(memory)
            score, boost = score * factor, boost * factor
        return Hit(memory, score, boost, score + boost, match)

    def _scored_hits(self, block: AgentColumns, scored: Scored, columns: list[int]) -> list[Hit]:
        """The memories in these columns of one search, as hits."""
        hits = self._hits(block, columns, scored.scores[0][columns].tolist())
        matches, chances = scored.matches.get(0), scored.chances.get(0)
        if matches is not None:
            hits = _matched(hits, matches[columns].tolist())
        return hits if chances is None else with_chances(hits, chances[columns].tolist())

    def _hits(self, block: AgentColumns, rows: list[int], scores: Iterable[float]) -> list[Hit]:
        return hits_of(block, rows, scores, self.boosts, self.weigher)

    def first(self, block: AgentColumns, scope: Scope | None, scores: Iterable[float]) -> list[Hit]:
        """The pinned memories, or what the scope puts in front, as hits."""
        rows = block.pinned if scope is None else scope.front
        return self._hits(block, list(rows), scores)


def _matched(hits: Iterable[Hit], matches: Iterable[float]) -> list[Hit]:
    """The hits with what was compared with the least score."""
    pairs = zip(hits, matches, strict=True)
    return [hit._replace(match=match) for hit, match in pairs]


def with_chances(hits: Iterable[Hit], chances: Iterable[float]) -> list[Hit]:
    """The hits with how likely each is part of the answer."""
    pairs = zip(hits, chances, strict=True)
    return [hit._replace(relevance_probability=chance) for hit, chance in pairs]


def score(
    blocks: Sequence[AgentColumns],
    queries: ReadQueries,
    scopes: Sequence[Scope | None],
    weigher: Weigher | None,
) -> Iterator[Scored]:
    """Score every memory of each block for the query at its place, in groups of similar size."""
    lengths = norms(queries.vectors)
    sizes = [block.size for block in blocks]
    order = sorted(range(len(blocks)), key=sizes.__getitem__)
    ordered = [sizes[index] for index in order]
    start = 0
    while start < len(order):
        stop = bisect_right(ordered, ordered[start] * 1.25 + 8)
        stop = min(stop, start + max(1, _GROUP_CELLS // max(1, ordered[stop - 1])))
        group = _score_group(blocks, queries, lengths, scopes, order[start:stop])
        yield group if weigher is None else _weighed(group, blocks, weigher)
        start = stop


def _score_group(
    blocks: Sequence[AgentColumns],
    queries: ReadQueries,
    lengths: NDArray[np.float64],
    scopes: Sequence[Scope | None],
    members: list[int],
) -> Scored:
    group = [blocks[i] for i in members]
    sizes = [block.size for block in group]
    width = sizes[-1]
    table = group[0].table
    # An agent without memories has no row of its own.
    starts = [block.start if block.size else group[-1].start for block in group]
    vectors = table.vectors
    made: list[Any] = [  # products(), without arrays in between
        simsimd.dot(query, vectors[start : start + size])
        for query, start, size in zip(queries.vectors[members], starts, sizes, strict=True)
        if size
    ]
    products = np.frombuffer(b"".join(made)) if made else np.empty(0)
    first = np.array(starts)[:, None]
    scale = _runs(table.norms, first, width)
    padding = None
    if sizes[0] != width:  # the rows after an agent's own belong to another agent, or to nobody
        padding = np.arange(width) >= np.array(sizes)[:, None]
        scale[padding] = 1.0
    scale *= lengths[members, None]
    if padding is None:
        scores = np.divide(products.reshape(scale.shape), scale, out=scale)
    else:
        scores = np.zeros(scale.shape)
        scores[~padding] = products
        scores /= scale
    # Below 0 means unrelated; a root rounded down can lift a perfect match above 1.
    np.clip(scores, 0.0, 1.0, out=scores)
    evidence: dict[int, NDArray[np.float64]] = {}
    if not queries.is_plain:
        for row, size, member in zip(scores, sizes, members, strict=True):
            scope = scopes[member]
            weighed = scope is not None and scope.min_score > 0.0
            hidden = None if scope is None else scope.hidden
            parts = queries.parts(member, row[:size].copy(), weighed=weighed, hidden=hidden)
            row[:size] = parts.score
            evidence[member] = parts.evidence
    if padding is not None:
        scores[padding] = EXCLUDED
    own_scopes = [scopes[member] for member in members]
    chances: dict[int, NDArray[np.float64]] = {}
    for place, (scope, size) in enumerate(zip(own_scopes, sizes, strict=True)):
        if scope is not None and (found := scope.chances(scores[place, :size])) is not None:
            chances[place] = found
    front = _take_front(group, own_scopes, scores)
    matches: dict[int, NDArray[np.float64]] = {}
    for place, (scope, size, member) in enumerate(zip(own_scopes, sizes, members, strict=True)):
        if scope is not None:
            row = scores[place, :size]
            if scope.min_score > 0.0:
                matches[place] = evidence.get(member, row.copy())
            scope.leave_out(row, matches.get(place, row), chances.get(place))
    tiers = table.tiers
    return Scored(
        members,
        scores,
        lambda columns: tiers.take(first + columns),
        front,
        matches=matches,
        chances=chances,
    )


def _weighed(group: Scored, blocks: Sequence[AgentColumns], weigher: Weigher) -> Scored:
    """The group with each score multiplied by the factor of its memory."""
    weights = [weigher.factors(blocks[member]) for member in group.members]
    if all(row is None for row in weights):
        return group
    factors = np.ones(group.scores.shape)
    for place, row in enumerate(weights):
        if row is not None:
            factors[place, : len(row)] = row
    group.scores[group.scores > 0.0] *= factors[group.scores > 0.0]
    front, searches = group.front, np.arange(len(factors))
    front_factors = factors[searches.repeat(front.counts), front.rows]
    return group._replace(
        front=front._replace(scores=front.scores * front_factors),
        factors=lambda columns: factors[searches[:, None], columns],
    )


def _runs(values: NDArray[np.float64], first: NDArray[np.intp], width: int) -> NDArray[np.float64]:
    """A row of ``width`` values from each place in ``first`` on; anything beyond the last value."""
    if first.max() + width > len(values):
        return values.take(first + np.arange(width), mode="clip")
    # A view with each run as a row: to copy whole rows takes a third of the time.
    step = values.itemsize
    shape = (len(values) - width + 1, width)
    runs = np.ndarray(shape, values.dtype, values, strides=(step, step))
    return runs[first[:, 0]]


def _take_front(
    group: list[AgentColumns], scopes: list[Scope | None], scores: NDArray[np.float64]
) -> Front:
    """Read the scores of the memories that come first, and exclude these from the ranking."""
    firsts = [
        block.pinned if scope is None else scope.front
        for block, scope in zip(group, scopes, strict=True)
    ]
    counts = np.array(list(map(len, firsts)))
    rows = np.array(list(chain.from_iterable(firsts)), np.intp)
    cells = np.arange(len(group)).repeat(counts) * scores.shape[1] + rows
    front = Front(counts, rows, scores.take(cells))
    scores.put(cells, EXCLUDED)
    return front


# How alike a question and memories are, whatever other memories there are

_DIGITS = 9
"""A root that was rounded must not keep a memory from being like its own text."""


def likenesses(
    state: State, query: str, query_vector: Quantised, memories: Sequence[Memory]
) -> list[float]:
    """The likeness of each memory to a query with the vector ``query_vector``, from 0 to 1.

    It is the cosine of both vectors, with all words of the query alike; without a vector, the
    share of words that both have. A memory's own text gives 1.
    """
    return [_likeness(state, query, query_vector, memory) for memory in memories]


def _likeness(state: State, query: str, query_vector: Quantised, memory: Memory) -> float:
    vector = state.vector(memory.agent_id, memory.sequence)
    if query_vector.any() and vector.any():
        return round(float(similarities(vector[None], query_vector)[0]), _DIGITS)
    asked_words, words = (set(text.casefold().split()) for text in (query, memory.content))
    return round(2 * len(asked_words & words) / max(1, len(asked_words) + len(words)), _DIGITS)


def cosines(state: State, query_vector: Quantised, memories: Sequence[Memory]) -> list[float]:
    """The cosine of ``query_vector`` and each memory's, below 0 too; 0 without a vector."""
    if not memories or not query_vector.any():
        return [0.0] * len(memories)
    vectors = np.stack([state.vector(memory.agent_id, memory.sequence) for memory in memories])
    lengths = norms(vectors) * norm(query_vector)
    return [
        round(cosine, _DIGITS) for cosine in (products(vectors, query_vector) / lengths).tolist()
    ]
