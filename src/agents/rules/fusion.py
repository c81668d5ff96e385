"""One score from two searches."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["reciprocal_ranks", "weighted_sum"]

Floats = NDArray[np.float64]

_RANK_CONSTANT = 60
"""As in the paper that proposed reciprocal rank fusion."""


def weighted_sum(
    vector: Floats,
    keyword: Floats,
    vector_weight: float,
    text_weight: float,
    has_vector: NDArray[np.bool_] | None = None,
) -> Floats:
    """Both scores by their weights, which are shared out over what a memory can have.

    One without a vector, where ``has_vector`` says so, has its keyword score.

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
    """By the places that a memory has in both lists: 1 for one that is first in both.

    One without a vector, where ``has_vector`` says so, goes by its place among the words alone.
    """
    total = vector_weight + text_weight
    score: Floats = (vector_weight / total) * _by_rank(vector)
    by_words = _by_rank(keyword)
    score += (text_weight / total) * by_words
    if has_vector is not None:
        score = np.where(has_vector, score, by_words)
    return score


def _by_rank(scores: Floats) -> Floats:
    """From the best down, the newest of equals first; 0 for what was not found."""
    order = len(scores) - 1 - np.argsort(-scores[::-1], kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(len(scores))
    result: Floats = (_RANK_CONSTANT + 1) / (_RANK_CONSTANT + 1 + ranks)
    result[scores <= 0.0] = 0.0
    return result
