"""Which cold memories are archived when there are too many."""

import numpy as np
from numpy.typing import NDArray

from ..memory.tiers import Tier

__all__ = ["choose_prune"]

_WORTH_OF_AN_ACCESS = 0.1


def choose_prune(
    sequences: NDArray[np.int64],
    tiers: NDArray[np.int8],
    relevances: NDArray[np.float64],
    access_counts: NDArray[np.int64],
    most: int,
) -> list[int]:
    """The sequences to archive, in order, so that at most ``most`` cold memories remain.

    The arrays hold an agent's cold memories, oldest first. The lowest relevance goes first, where
    each retrieval counts for 0.1 of relevance; among equals, the oldest. Pinned and critical
    memories are kept, even if more than ``most`` remain.
    """
    excess = len(sequences) - most
    if excess <= 0:
        return []
    open_to_it = np.flatnonzero(tiers > Tier.CRITICAL)
    worth = relevances[open_to_it] + _WORTH_OF_AN_ACCESS * access_counts[open_to_it]
    order = np.argsort(worth, kind="stable")[:excess]  # stable: equals stay oldest first
    chosen: list[int] = sequences[open_to_it[order]].tolist()
    return chosen
