"""Maximal marginal relevance: of memories that are alike, the best one stands for all."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def most_diverse(
    values: Floats,
    nearest: Floats,
    likeness: Callable[[int], Floats],
    wanted: int,
    diversity: float,
) -> list[int]:
    """The places of all candidates: first the ``wanted`` that are chosen, then the rest in order.

    ``values`` are the candidates' boosted scores, best first. ``nearest`` says how like each is to
    what comes before all candidates, and ``likeness`` how like each is to the one at a place. One
    after the other, the candidate is chosen whose value counts for most after its likeness to what
    is chosen already; of equals, the one that comes first.
    """
    left = np.ones(len(values), bool)
    chosen: list[int] = []
    for _ in range(min(wanted, len(values))):
        marginal = (1.0 - diversity) * values - diversity * nearest
        marginal[~left] = -np.inf
        best = int(marginal.argmax())
        chosen.append(best)
        left[best] = False
        nearest = np.maximum(nearest, likeness(best))
    return chosen + np.flatnonzero(left).tolist()
