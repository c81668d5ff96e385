"""Context: a memory is understood by its neighbours in the same session."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .spread_weights import Spread

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

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
    def among(
        cls,
        session: Rows,
        previous: Rows,
        second: Rows,
        following: Rows,
        asks: NDArray[np.bool_],
        is_question: NDArray[np.bool_],
    ) -> Self:
        """The places with the members, sizes and starts that follow from them."""
        members = (session >= 0).nonzero()[0]
        of = session[members]
        sizes = np.bincount(of)
        starts = np.cumsum(sizes) - sizes
        given = (session, previous, second, following, asks, is_question)
        return cls(*given, members, of, sizes, starts)


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
