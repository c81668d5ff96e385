"""Context: a memory is understood by its neighbours in the same session."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.memory.spread_weights import Spread

__all__ = ["Places", "best_of_sessions", "spread"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

_BEST = 3


class Places(NamedTuple):
    """Where memories stand in their sessions; -1 stands for none."""

    session: Rows
    """The number of each memory's session."""
    previous: Rows
    second: Rows
    """The one before the previous."""
    following: Rows
    asks: NDArray[np.bool_]
    """Whether a memory has a question near its end."""
    is_question: NDArray[np.bool_]
    """Whether it ends with one."""


def spread(scores: Floats, places: Places, weights: Spread) -> Floats:
    """The scores with what each memory was lent, from 0 to 1; one without a session keeps its own.

    ``scores`` are from 0 to 1 as well.
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
    """The mean of the three best of each session, or of as many as it has."""
    sessions = places.session
    rows = (sessions >= 0).nonzero()[0]
    own = sessions[rows]
    order = rows[np.argsort(2.0 * own - scores[rows], kind="stable")]  # scores are below 2
    sizes = np.bincount(own)
    starts = np.cumsum(sizes) - sizes
    total = np.zeros(len(sizes))
    for place in range(_BEST):
        there = sizes > place
        total[there] += scores[order[starts[there] + place]]
    return total / np.maximum(np.minimum(sizes, _BEST), 1)


def _padded(scores: Floats) -> Floats:
    """With a 0 at the end, which -1 stands for."""
    result = np.zeros(len(scores) + 1)
    result[:-1] = scores
    return result
