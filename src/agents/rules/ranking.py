"""Similarity plus a tier boost, over a few times as many candidates as are wanted.

The rules work on many agents at once, a row for each, because a tick searches for all of them
together. A single search is a batch of one, so both give the same bits.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["EXCLUDED", "Boosts", "Ranked", "rank"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

Boosts = Callable[[Rows], Floats]
"""The boosts of the memories in these columns; each agent has a row of columns."""

EXCLUDED = -1.0
"""The score of a pinned memory and of padding, which are no candidates; scores are in [0, 1]."""


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


def _within_reach(scores: Floats, most: int) -> Floats:
    """For each row a score that at least ``most`` of its scores reach, and few more.

    A row is cut into up to eight parts, and the largest score at each place of the parts is taken.
    The ``most``-th largest of these takes less time to find, and is never above the ``most``-th
    largest of the row. At most eight times ``most`` scores reach it, without ties and the rest
    that the cut leaves over.
    """
    agents, width = scores.shape
    folds = min(8, width // (4 * most))
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
