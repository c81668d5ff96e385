"""How memories are scored and ranked: words (BM25), words and vectors, sessions, tier boosts; and
how relevant their uses make them.

Ranking works on many agents at once, a row for each, because a tick searches for all of them
together. A single search is a batch of one, so both give the same bits.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from .weights import Spread

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

_SMALLEST = 1e-6
_PRIOR = 5000
"""How many words an agent is assumed to have heard before its first memory, none of them in the
query. Otherwise the words of a query would count for nothing if all of a few memories have them."""
_PRIOR_MEMORIES = 100
"""How many memories without a word of the query an agent is assumed to have, for that reason."""
_EVERYWHERE = 5
"""A word that one in so many memories has is everywhere: it does not say which memory is meant."""
_USUAL_LENGTH = 12.0
"""The mean length of memories, in terms, if an agent has none."""
_LONGEST = 3.0
"""A memory this many times as long as the mean is held back the most."""
_COMMON_WEIGHT = 0.2
"""What a word that says little in any text counts for when it matches."""


class Matches(NamedTuple):
    """Where a query's terms are: each term and memory that has it, once.

    The terms of a memory stand in the order of its text, and are summed up in that order.
    """

    terms: Rows
    memories: NDArray[np.int32]
    counts: NDArray[np.float32]
    """How often the memory has the term."""
    lengths: Floats
    """How many terms each memory has; also memories without a term of the query."""
    asked: int
    """How many terms the query has."""


class Measure(NamedTuple):
    """What an agent's memories make of a query's terms."""

    weights: Floats
    """The weight of each term: the rarer, the more."""
    total: float
    mean: float
    """The mean length of a memory, in terms."""
    frequencies: Rows
    """How many memories have each term."""
    common: NDArray[np.bool_]
    """Which terms say little in any text."""
    is_known: bool
    """Whether a memory has a term of the query that is not common."""


def measure(matches: Matches, common: NDArray[np.bool_]) -> Measure:
    """The measure of a query's terms, some of them common, for the memories that have them."""
    memories = len(matches.lengths)
    frequencies = np.bincount(matches.terms, minlength=matches.asked)
    weights = np.log1p((memories + _PRIOR_MEMORIES - frequencies + 0.5) / (frequencies + 0.5))
    weights[common] *= _COMMON_WEIGHT
    total = 0.0
    for weight in weights.tolist():  # in this order on every machine
        total += weight
    mean = float(matches.lengths.sum()) / memories if memories else _USUAL_LENGTH
    is_known = bool(frequencies[~common].any())
    return Measure(weights, total, mean, frequencies, common, is_known)


def keyword_scores(by: Measure, matches: Matches, k1: float, b: float) -> Floats:
    """For each memory how well it matches, from 0 to 1.

    1 is what a memory of average length reaches that has every term once: the sum of the terms'
    weights. Rounded to 1e-6, because logarithms differ in the last bits from machine to machine.
    """
    if not len(matches.terms):  # and the memories may have no words at all
        return np.zeros(len(matches.lengths))
    weights = by.weights * ((k1 + 1.0) / by.total)
    saturation = np.minimum(matches.lengths / by.mean, _LONGEST)
    saturation *= k1 * b
    saturation += k1 * (1.0 - b) + _SMALLEST**2  # never 0
    below = saturation.take(matches.memories)
    below += matches.counts
    parts = weights.take(matches.terms)
    parts *= matches.counts
    parts /= below
    sums = np.bincount(matches.memories, parts, len(matches.lengths))
    scores: Floats = np.minimum(sums, 1.0)
    return np.rint(scores / _SMALLEST) * _SMALLEST


def coverage(by: Measure, matches: Matches) -> Floats:
    """For each memory the share of the query that it has, by weight, however long it is."""
    sums = np.bincount(matches.memories, by.weights[matches.terms], len(matches.lengths))
    shares: Floats = sums / by.total
    return np.rint(shares / _SMALLEST) * _SMALLEST


def word_weights(matches: Matches, total: int, sif: float) -> Floats:
    """How much each term says about what is meant: names that are everywhere say little.

    ``sif / (sif + p)`` with p, the term's share of all words (smooth inverse frequency), in whole
    1024ths, so that what is weighted by them stays exact.
    """
    shares: Floats = np.bincount(matches.terms, matches.counts, matches.asked) / (total + _PRIOR)
    return np.maximum(np.rint(1024.0 * sif / (sif + shares)), 1.0)


def everywhere(matches: Matches) -> NDArray[np.bool_]:
    """Which terms so many memories have that they don't say which memory is meant."""
    frequencies = np.bincount(matches.terms, minlength=matches.asked)
    found: NDArray[np.bool_] = frequencies * _EVERYWHERE > len(matches.lengths) + _PRIOR_MEMORIES
    return found


def weighted_sum(
    vector: Floats,
    keyword: Floats,
    vector_weight: float,
    text_weight: float,
    has_vector: NDArray[np.bool_] | None = None,
) -> Floats:
    """The mean of both scores by their weights; a memory without a vector has its keyword score.

    >>> one = np.array([0.9]); weighted_sum(one, np.array([1.0]), 0.7, 0.3).round(2).tolist()
    [0.93]
    """
    total = vector_weight + text_weight
    score: Floats = (vector_weight / total) * vector + (text_weight / total) * keyword
    if has_vector is not None:
        score = np.where(has_vector, score, keyword)
    return score


# How likely a memory is part of the answer
#
# No score means the same with every embedder. How far a memory's score stands out from the scores
# of the agent's other memories does, if how far the best one does and how many there are is taken
# into account. ``benchmarks/probability.py`` fitted the weights, and tells how well they hold.
# A root stands for how far, because to stand out twice as far says less than twice as much.

_BY_DEVIATION, _BY_BEST, _BY_NUMBER, _ALWAYS = 4.31, -0.27, -1.24, -2.19


def probabilities(scores: Floats, seen: NDArray[np.bool_] | None = None) -> Floats:
    """How likely each memory is part of the answer, if the memories that are ``seen`` have one.

    ``scores`` are those of all memories, from 0 to 1. Sums are of whole numbers, and so exact; the
    result is rounded, because exponentials differ in the last bits from machine to machine.
    """
    parts = np.rint(scores / _SMALLEST).astype(np.int64)
    among = parts if seen is None else parts[seen]
    count, total = len(among), int(among.sum())
    if not count:
        return np.zeros(len(scores))
    spread_out = math.sqrt(count * int(among @ among) - total * total) or 1.0
    above = np.maximum(parts * count - total, 0) / spread_out
    best = (int(among.max()) * count - total) / spread_out
    alone = _BY_BEST * best + _BY_NUMBER * math.log(count) + _ALWAYS
    logits = _BY_DEVIATION * np.sqrt(above) + alone
    chances: Floats = 1.0 / (1.0 + np.exp(-logits))
    return np.rint(chances / _SMALLEST) * _SMALLEST


# Ranking

Boosts = Callable[[Rows], Floats]
"""The boosts of the memories in these columns; each agent has a row of columns."""

EXCLUDED = -1.0
"""The score of a pinned memory and of padding, which are not candidates; scores are in [0, 1]."""


_FOLDS = 8


class Ranked(NamedTuple):
    """For each agent its candidates, best first; the row of an agent is filled to its count."""

    columns: Rows
    scores: Floats
    boosted: Floats
    counts: Rows


def rank(scores: Floats, boosts: Boosts, wanted: Rows, multiplier: int) -> Ranked:
    """Order each agent's candidates by boosted score, then score, then the newest.

    ``scores`` holds an agent's memories from oldest to newest. The candidates are the ``wanted ×
    multiplier`` most similar, the newer first where scores are equal.
    """
    agents, width = scores.shape
    most = min(int(wanted.max(initial=0)) * multiplier, width)
    if most == 0:
        empty = np.empty((agents, 0))
        return Ranked(empty.astype(np.intp), empty, empty, np.zeros(agents, np.intp))

    # All memories from the most-th largest score up, ties included, newest first; and a few more.
    reach = np.maximum(_within_reach(scores, most), 0.0)[:, None]
    cells = np.flatnonzero(scores >= reach)
    ends = cells.searchsorted(np.arange(1, agents + 1) * width)
    counts = ends.copy()
    counts[1:] -= ends[:-1]
    agent = np.arange(agents).repeat(counts)
    filled = int(counts.max())
    place = agent * filled + ends[agent] - 1 - np.arange(len(cells))
    columns = np.zeros((agents, filled), np.intp)
    columns.put(place, cells - agent * width)
    candidate_scores = np.full((agents, filled), EXCLUDED)
    candidate_scores.put(place, scores.take(cells))

    # Stable sorts: the first orders by score with the newest first among equals, the second by
    # boosted score and leaves that order among equals.
    order = np.argsort(-candidate_scores, axis=1, kind="stable")[:, :most]
    columns, candidate_scores = _in_order(order, columns, candidate_scores)
    counts = np.minimum(counts, wanted * multiplier)
    boosted = candidate_scores + boosts(columns)
    boosted[np.arange(boosted.shape[1]) >= counts[:, None]] = -np.inf
    order = np.argsort(-boosted, axis=1, kind="stable")
    columns, candidate_scores, boosted = _in_order(order, columns, candidate_scores, boosted)
    return Ranked(columns, candidate_scores, boosted, counts)


def rank_one(scores: Floats, boosts: Boosts, wanted: int, multiplier: int) -> tuple[Rows, Floats]:
    """:func:`rank` for one agent, to the same bits, in a quarter of the time.

    The columns of its candidates and their scores, best first.
    """
    width = len(scores)
    most = min(wanted * multiplier, width)
    if most == 0:
        return np.empty(0, np.intp), np.empty(0)
    reach = 0.0
    if width > _FOLDS * most:  # or all may as well be sorted
        reach = max(float(_within_reach(scores[None], most)[0]), 0.0)
    columns = (scores >= reach).nonzero()[0][::-1]
    candidates = scores.take(columns)
    order = (-candidates).argsort(kind="stable")[:most]
    columns, candidates = columns.take(order), candidates.take(order)
    order = (-(candidates + boosts(columns))).argsort(kind="stable")
    return columns.take(order), candidates.take(order)


def _within_reach(scores: Floats, most: int) -> Floats:
    """For each row a score that at least ``most`` of its scores reach, and few more.

    A row is cut into up to eight parts, and the largest score at each place of the parts is taken.
    The ``most``-th largest of these takes less time to find, and is never above the ``most``-th
    largest of the row. At most eight times ``most`` scores reach it, without ties and the rest
    that the cut leaves over.
    """
    agents, width = scores.shape
    folds = min(_FOLDS, width // (4 * most))
    if folds > 1:
        width //= folds
        scores = scores[:, : folds * width].reshape(agents, folds, width).max(axis=1)
    reach: Floats = np.partition(scores, width - most, axis=1)[:, width - most]
    return reach


def _in_order(order: Rows, *tables: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Each row of these tables in this order."""
    # Cells are taken by their number, in half the time that rows and columns take.
    cells = order + np.arange(len(order))[:, None] * tables[0].shape[1]
    return tuple(table.take(cells) for table in tables)


# What memories of a session lend each other

_BEST = 3


class Places(NamedTuple):
    """Where memories stand in their sessions; -1 stands for none."""

    session: Rows
    """The number of each memory's session."""
    previous: Rows
    second: Rows
    """The memory before the previous one."""
    following: Rows
    asks: NDArray[np.bool_]
    """Whether a memory has a question near its end."""
    is_question: NDArray[np.bool_]
    """Whether a memory ends with a question."""
    members: Rows
    """The memories that have a session."""
    of: Rows
    """The session of each of ``members``."""
    sizes: Rows
    """How many memories each session has."""
    starts: Rows
    """Where each session begins, if the members are ordered by session."""

    @classmethod
    def among(cls, session: Rows, asks: NDArray[np.bool_], is_question: NDArray[np.bool_]) -> Self:
        """The places of memories, oldest first."""
        members = (session >= 0).nonzero()[0]
        of = session[members]
        sizes = np.bincount(of)
        starts = np.cumsum(sizes) - sizes
        together = members[np.argsort(of, kind="stable")]
        before, after = together[:-1], together[1:]
        is_same = session[before] == session[after]
        previous, following = np.full((2, len(session)), -1, np.intp)
        previous[after[is_same]] = before[is_same]
        following[before[is_same]] = after[is_same]
        second = np.where(previous < 0, previous, previous[previous])
        columns = (session, previous, second, following, asks, is_question)
        return cls(*columns, members, of, sizes, starts)


def spread(scores: Floats, places: Places, weights: Spread) -> Floats:
    """The scores with what each memory is lent; a memory without a session keeps its score.

    All scores are from 0 to 1.
    """
    padded = _padded(scores)
    asking = _padded(scores * places.asks)
    lent = weights.question * asking[places.previous]
    lent += weights.neighbours * (padded[places.following] + padded[places.second])
    lent += weights.session * _padded(best_of_sessions(scores, places))[places.session]
    answered = places.is_question & (places.following >= 0)
    lent += np.where(answered, weights.asked * scores, scores)
    lent /= weights.scale
    np.minimum(lent, 1.0, out=lent)
    return np.where(places.session < 0, scores, lent)


def best_of_sessions(scores: Floats, places: Places) -> Floats:
    """The mean of the three best scores of each session, or of fewer if it has fewer."""
    rows, sizes, starts = places.members, places.sizes, places.starts
    # Scores are below 2, so sessions stay apart.
    order = rows[np.argsort(2.0 * places.of - scores[rows], kind="stable")]
    total = np.zeros(len(sizes))
    for place in range(_BEST):
        there = sizes > place
        total[there] += scores[order[starts[there] + place]]
    return total / np.maximum(np.minimum(sizes, _BEST), 1)


def _padded(scores: Floats) -> Floats:
    """The scores with a 0 at the end, which the place -1 finds."""
    result = np.zeros(len(scores) + 1)
    result[:-1] = scores
    return result


# How relevant a memory is: what its uses, their scores and a promotion make of it.
#
# ``relevance = 1 - (3/4 - mean/2) / 2^uses``, where ``mean`` is the running mean of the scores of
# its uses, 0.5 at first. So each use halves what is missing to 1. A use with the score 0 halves
# the mean, and still lowers nothing: another use never makes a memory less relevant.
#
# The state keeps one number for it, the *record* of a memory's uses: the mean, and 2 for each use
# that a promotion granted. A score in the journal has the same form. Powers of two are exact, so
# all machines agree to the last bit. ``docs/architecture/relevance.md`` says why.

Rank = tuple[int, float]
"""Orders memories by their relevance, the least relevant first. It knows no rounding to 1."""


Number = TypeVar("Number", float, Floats)


def after_use(record: Number, score: Number) -> Number:
    """The record after a use with this score; of many memories at once, to the same bits.

    >>> after_use(0.5, 1.0), after_use(6.5, 1.0)
    (0.75, 6.75)
    """
    return (record + score) / 2 + record // 2 + score // 2


def relevance(record: float, accesses: int) -> float:
    """How relevant a memory with this record is, from 0.5 to 1.

    >>> relevance(0.5, 0), relevance(0.25, 1), relevance(0.75, 1)
    (0.5, 0.6875, 0.8125)
    """
    return 1.0 - math.ldexp(_missing(record), -_uses(record, accesses))


def mean_from(first: float, record: float, accesses: int) -> float:
    """The running mean of the scores of a memory's uses, had it been ``first`` before the first.

    >>> mean_from(1.0, 0.5, 0), mean_from(1.0, after_use(0.5, 0.25), 1)
    (1.0, 0.625)
    """
    return min(record % 2, 1.0) + math.ldexp(first - 0.5, -accesses)


def relevances(records: Floats, accesses: NDArray[np.int64]) -> Floats:
    """:func:`relevance` of many memories, to the same bits."""
    granted = np.floor(records / 2)
    missing = 0.75 - np.minimum(records - 2 * granted, 1.0) / 2
    found: Floats = 1.0 - np.ldexp(missing, -(accesses + granted.astype(np.int64)))
    return found


def relevance_rank(record: float, accesses: int) -> Rank:
    """The place of a memory in the order of relevance."""
    fraction, exponent = math.frexp(_missing(record))
    return _uses(record, accesses) - exponent, -fraction


def is_promoted(record: float) -> bool:
    """Whether a promotion granted uses to a memory with this record."""
    return record >= 2.0


def promotion(record: float, accesses: int, most: Rank) -> float:
    """The score with which a promotion counts as a use.

    Then the memory is more relevant than a memory with the rank ``most``, and was promoted.
    """
    granted = int(record // 2)
    missing = most[0] - _uses(record, accesses)
    return record % 2 + 2 * max(missing, 0 if granted else 1)


def _uses(record: float, accesses: int) -> int:
    return accesses + int(record // 2)


def _missing(record: float) -> float:
    """What a memory that was never used would lack to be entirely relevant."""
    return 0.75 - min(record % 2, 1.0) / 2
