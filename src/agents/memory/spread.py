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
    padded = np.append(scores, 0.0)  # what -1 stands for
    asking = np.append(np.where(places.asks, scores, 0.0), 0.0)
    lent = weights.question * asking[places.previous]
    lent += weights.neighbours * padded[places.following]
    lent += weights.neighbours * padded[places.second]
    lent += weights.session * np.append(best_of_sessions(scores, places), 0.0)[places.session]
    answered = places.is_question & (places.following >= 0)
    own = np.where(answered, weights.asked * scores, scores)
    together = np.minimum((own + lent) / weights.scale, 1.0)
    return np.where(places.session < 0, scores, together)


def best_of_sessions(scores: Floats, places: Places) -> Floats:
    """The mean of the three best of each session, or of as many as it has."""
    sessions = places.session
    rows = (sessions >= 0).nonzero()[0]
    order = rows[np.lexsort((-scores[rows], sessions[rows]))]
    sizes = np.bincount(sessions[rows])
    starts = np.cumsum(sizes) - sizes
    total = np.zeros(len(sizes))
    for place in range(_BEST):
        there = sizes > place
        total[there] += scores[order[starts[there] + place]]
    return total / np.maximum(np.minimum(sizes, _BEST), 1)
