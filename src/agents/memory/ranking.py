"""Similarity plus a tier boost, over a few times as many candidates as are wanted.

Works on many agents at once, one row each, because a tick asks for all of them together; a single
search is a batch of one, so both give the same bits.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["EXCLUDED", "Ranked", "rank"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

EXCLUDED = -1.0
"""The score of a pinned memory and of padding, which are no candidates. Others are in [0, 1]."""


class Ranked(NamedTuple):
    """For each agent its candidates, best first; the row of an agent is filled to its count."""

    columns: Rows
    scores: Floats
    boosted: Floats
    counts: Rows


def rank(
    scores: Floats, tiers: NDArray[np.int8], wanted: Rows, multiplier: int, boosts: Floats
) -> Ranked:
    """Order each agent's candidates by boosted score, then score, then the newest.

    ``scores`` and ``tiers`` hold an agent's memories from oldest to newest. The candidates are the
    ``wanted × multiplier`` most similar, the newer first where scores are equal.
    """
    agents, width = scores.shape
    most = min(int(wanted.max(initial=0)) * multiplier, width)
    if most == 0:
        empty = np.empty((agents, 0))
        return Ranked(empty.astype(np.intp), empty, empty, np.zeros(agents, np.intp))

    # Everything from the most-th largest score up, ties included, newest first.
    threshold = np.partition(scores, width - most, axis=1)[:, width - most]
    reach = np.maximum(threshold, 0.0)[:, None]
    cells = np.flatnonzero(scores >= reach)[::-1]
    agent, column = np.divmod(cells, width)
    counts = np.bincount(agent, minlength=agents)
    place = np.arange(len(cells)) - (len(cells) - np.cumsum(counts))[agent]
    shape = (agents, int(counts.max()))
    columns = np.zeros(shape, np.intp)
    columns[agent, place] = column
    candidate_scores = np.full(shape, EXCLUDED)
    candidate_scores[agent, place] = scores[agent, column]

    # Stable sorts: the first orders by score with the newest first among equals, the second by
    # boosted score and leaves that order among equals.
    rows = np.arange(agents)[:, None]
    order = np.argsort(-candidate_scores, axis=1, kind="stable")[:, :most]
    columns, candidate_scores = columns[rows, order], candidate_scores[rows, order]
    counts = np.minimum(counts, wanted * multiplier)
    boosted = candidate_scores + boosts[tiers[rows, columns]]
    boosted[np.arange(boosted.shape[1]) >= counts[:, None]] = -np.inf
    order = np.argsort(-boosted, axis=1, kind="stable")
    return Ranked(columns[rows, order], candidate_scores[rows, order], boosted[rows, order], counts)
