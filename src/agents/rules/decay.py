"""How a memory that nobody uses cools down.

Its score starts at 1 and halves with every half-life of its tier that it lies idle; one that was
ever retrieved fades half as fast. Once the score is below a threshold, the memory moves down one
temperature: from hot to warm, from warm to cold.

Scores are for people to look at. Two machines may differ in the last bit of a power, so what moves
is decided by whole numbers: the idle ticks from which on the score is below the threshold.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..memory.temperature import Temperature
from ..memory.tiers import Tier

__all__ = ["NEVER", "Decay", "limits", "score"]

NEVER = 2**62
"""More ticks than any memory is ever idle."""


@dataclass(frozen=True, slots=True)
class Decay:
    """How fast each tier fades, and how far until it moves."""

    half_lives: tuple[int, ...]
    """In ticks, from pinned to low. 0 means that the tier never fades, as pinned."""
    hot_below: float
    """A hot memory with a score below this becomes warm. 0 means never."""
    warm_below: float
    """A warm memory with a score below this becomes cold. 0 means never."""

    def idle_limit(self, tier: int, temperature: Temperature, used: bool) -> int | None:
        """The number of idle ticks from which on it moves down, or None for never.

        A score that equals the threshold is not below it:

        >>> Decay((0, 0, 0, 720, 0), 0.5, 0.25).idle_limit(3, Temperature.HOT, used=False)
        721
        """
        half_life = _slowed(self.half_lives[tier], used)
        if temperature is Temperature.COLD or half_life == 0:
            return None
        threshold = self.hot_below if temperature is Temperature.HOT else self.warm_below
        if threshold <= 0:
            return None
        # The logarithm too may differ in its last bit, so only nine digits of it count.
        return math.floor(half_life * round(-math.log2(threshold), 9)) + 1


def limits(decay: Decay) -> NDArray[np.int64]:
    """All idle limits, as an array ``[tier, temperature, used]``; :data:`NEVER` where none is."""
    table = np.full((len(Tier), len(Temperature), 2), NEVER, np.int64)
    for tier in Tier:
        for temperature in Temperature:
            for used in (False, True):
                limit = decay.idle_limit(tier, temperature, used)
                if limit is not None:
                    table[tier, temperature, int(used)] = min(limit, NEVER)
    return table


def score(idle: int, half_life: int, used: bool) -> float:
    """The score of one memory, for people to read; always 1 where ``half_life`` is 0.

    >>> score(720, 720, used=False)
    0.5
    """
    return math.pow(2.0, -idle / _slowed(half_life, used)) if half_life else 1.0


def _slowed(half_life: int, used: bool) -> int:
    return half_life * 2 if used else half_life
