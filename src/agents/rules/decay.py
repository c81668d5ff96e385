"""How a memory that nobody uses cools down.

Its score starts at 1 and halves with every half-life of its tier that it lies idle. One use doubles
the half-life, and each doubling of the uses adds as much again: 2, 3 or 4 half-lives with 1, 2 or 4
uses. Once the score is below a threshold, the memory moves down one temperature: from hot to warm,
from warm to cold.

Scores are for people to look at. Two machines may differ in the last bit of a power, so what moves
is decided by whole numbers: the idle ticks from which on the score is below the threshold.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..memory.tiers import Temperature, Tier

NEVER = 2**62
"""More ticks than any memory is ever idle."""
SLOWEST = 32
"""More than four billion uses add no more half-lives."""


@dataclass(frozen=True, slots=True)
class Decay:
    """How fast each tier fades, and how far until it moves."""

    half_lives: tuple[int, ...]
    """In ticks, from pinned to low. 0 means that the tier never fades, as pinned."""
    hot_below: float
    """A hot memory with a score below this becomes warm. 0 means never."""
    warm_below: float
    """A warm memory with a score below this becomes cold. 0 means never."""

    def idle_limit(self, tier: int, temperature: Temperature, slowness: int) -> int | None:
        """The number of idle ticks from which on it moves down, or None for never.

        ``slowness`` is that of its uses. A score that equals the threshold is not below it:

        >>> Decay((0, 0, 0, 720, 0), 0.5, 0.25).idle_limit(3, Temperature.HOT, slowness=0)
        721
        """
        half_life = self.half_lives[tier] * (1 + slowness)
        if temperature is Temperature.COLD or half_life == 0:
            return None
        threshold = self.hot_below if temperature is Temperature.HOT else self.warm_below
        if threshold <= 0:
            return None
        # The logarithm too may differ in its last bit, so only nine digits of it count.
        return math.floor(half_life * round(-math.log2(threshold), 9)) + 1


def limits(decay: Decay) -> NDArray[np.int64]:
    """All idle limits, as ``[tier, temperature, slowness]``; :data:`NEVER` where none is."""
    table = np.full((len(Tier), len(Temperature), SLOWEST + 1), NEVER, np.int64)
    for tier in Tier:
        for temperature in Temperature:
            for slowness in range(SLOWEST + 1):
                limit = decay.idle_limit(tier, temperature, slowness)
                if limit is not None:
                    table[tier, temperature, slowness] = min(limit, NEVER)
    return table


def slownesses(uses: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many half-lives the uses of each memory add.

    >>> slownesses(np.array([0, 1, 2, 3, 4, 1000])).tolist()
    [0, 1, 2, 2, 3, 10]
    """
    digits = np.frexp(uses.astype(np.float64))[1]  # of the number in base two
    return np.minimum(digits, SLOWEST).astype(np.int64)


def score(idle: int, half_life: int, uses: int) -> float:
    """The score of one memory, for people to read; always 1 where ``half_life`` is 0.

    >>> score(720, 720, uses=0), score(720, 360, uses=1)
    (0.5, 0.5)
    """
    slowness = min(uses.bit_length(), SLOWEST)
    return math.pow(2.0, -idle / (half_life * (1 + slowness))) if half_life else 1.0
