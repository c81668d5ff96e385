"""The hybrid score: how well words match (BM25), and one score of words and vectors."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Matches",
    "Measure",
    "coverage",
    "keyword_scores",
    "measure",
    "reciprocal_ranks",
    "weighted_sum",
    "word_weights",
]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

_SMALLEST = 1e-6
_PRIOR = 5000
"""How many words an agent is assumed to have heard before its first memory, none of them in the
query. Otherwise the words of a query would count for nothing if all of a few memories have them."""
_PRIOR_MEMORIES = 100
"""How many memories without a word of the query an agent is assumed to have, for that reason."""
_USUAL_LENGTH = 12.0
"""The mean length of memories, in terms, if an agent has none."""
_LONGEST = 3.0
"""A memory this many times as long as the mean is held back the most."""
_COMMON_WEIGHT = 0.2
"""What a word that says little in any text counts for when it matches."""
_RANK_CONSTANT = 60
"""As in the paper that proposed reciprocal rank fusion."""


class Matches(NamedTuple):
    """Where a query's terms are: each term and memory that has it, once.

    The terms of a memory stand in the order of its text, and are summed up in that order.
    """

    terms: Places
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
    is_known: bool
    """Whether a memory has a term of the query that is not common."""


def measure(found: Matches, common: NDArray[np.bool_]) -> Measure:
    """The measure of a query's terms, some of them common, for the memories that have them."""
    memories = len(found.lengths)
    frequencies = np.bincount(found.terms, minlength=found.asked)
    weights = np.log1p((memories + _PRIOR_MEMORIES - frequencies + 0.5) / (frequencies + 0.5))
    weights[common] *= _COMMON_WEIGHT
    total = 0.0
    for weight in weights.tolist():  # in this order on every machine
        total += weight
    mean = float(found.lengths.sum()) / memories if memories else _USUAL_LENGTH
    is_known = bool(frequencies[~common].any())
    return Measure(weights, total, mean, is_known)


def keyword_scores(by: Measure, found: Matches, k1: float, b: float) -> Floats:
    """For each memory how well it matches, from 0 to 1.

    1 is what a memory of average length reaches that has every term once: the sum of the terms'
    weights. Rounded to 1e-6, because logarithms differ in the last bits from machine to machine.
    """
    if not len(found.terms):  # and the memories may have no words at all
        return np.zeros(len(found.lengths))
    weights = by.weights * ((k1 + 1.0) / by.total)
    saturation = np.minimum(found.lengths / by.mean, _LONGEST)
    saturation *= k1 * b
    saturation += k1 * (1.0 - b) + _SMALLEST**2  # never 0
    below = saturation.take(found.memories)
    below += found.counts
    parts = weights.take(found.terms)
    parts *= found.counts
    parts /= below
    sums = np.bincount(found.memories, parts, len(found.lengths))
    scores: Floats = np.minimum(sums, 1.0)
    return np.rint(scores / _SMALLEST) * _SMALLEST


def coverage(by: Measure, found: Matches) -> Floats:
    """For each memory the share of the query that it has, by weight, however long it is."""
    sums = np.bincount(found.memories, by.weights[found.terms], len(found.lengths))
    shares: Floats = sums / by.total
    return np.rint(shares / _SMALLEST) * _SMALLEST


def word_weights(found: Matches, total: int, sif: float) -> Floats:
    """How much each term says about what is meant: names that are everywhere say little.

    ``sif / (sif + p)`` with p, the term's share of all words (smooth inverse frequency), in whole
    1024ths, so that what is weighted by them stays exact.
    """
    shares: Floats = np.bincount(found.terms, found.counts, found.asked) / (total + _PRIOR)
    return np.maximum(np.rint(1024.0 * sif / (sif + shares)), 1.0)


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


def reciprocal_ranks(
    vector: Floats,
    keyword: Floats,
    vector_weight: float,
    text_weight: float,
    has_vector: NDArray[np.bool_] | None = None,
) -> Floats:
    """A score by the places of a memory in both lists; 1 if it is the first in both.

    A memory without a vector has a score by its place in the list of words alone.
    """
    total = vector_weight + text_weight
    score: Floats = (vector_weight / total) * _by_rank(vector)
    by_words = _by_rank(keyword)
    score += (text_weight / total) * by_words
    if has_vector is not None:
        score = np.where(has_vector, score, by_words)
    return score


def _by_rank(scores: Floats) -> Floats:
    """A score by rank, the newest of equals first; 0 for a memory that was not found."""
    order = len(scores) - 1 - np.argsort(-scores[::-1], kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(len(scores))
    result: Floats = (_RANK_CONSTANT + 1) / (_RANK_CONSTANT + 1 + ranks)
    result[scores <= 0.0] = 0.0
    return result
