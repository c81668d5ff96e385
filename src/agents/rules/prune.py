"""Which cold memories are archived when there are too many."""

import numpy as np
from numpy.typing import NDArray

from ..memory.tiers import Tier


def choose_prune(
    sequences: NDArray[np.int64],
    tiers: NDArray[np.int8],
    relevances: NDArray[np.float64],
    access_counts: NDArray[np.int64],
    most: int,
) -> list[int]:
    """The sequences to archive, in order, so that at most ``most`` cold memories remain.

    The arrays hold an agent's cold memories, oldest first. The lowest relevance goes first; among
    equals the memory with fewer retrievals, then the oldest. Pinned and critical memories are kept,
    even if more than ``most`` remain.
    """
    excess = len(sequences) - most
    if excess <= 0:
        return []
    open_to_it = np.flatnonzero(tiers > Tier.CRITICAL)
    # Equals stay oldest first.
    order = np.lexsort((access_counts[open_to_it], relevances[open_to_it]))[:excess]
    chosen: list[int] = sequences[open_to_it[order]].tolist()
    return chosen
