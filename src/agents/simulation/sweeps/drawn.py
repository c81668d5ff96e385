"""Points drawn from ranges of settings: a Latin hypercube, or two of them mixed as Saltelli does.

A fit takes the first, the sensitivity of a sweep over ranges the second. The same ranges and number
of points give the same points, on every machine.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...config.plain import Document
from ...errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SEED = 0
MOST_RANGES = 50
MOST_POINTS = 1_000_000
_DIGITS = 6
"""Significant digits of a drawn value: the last ones of a float differ from machine to machine."""

Range = tuple[float, float]
"""The lowest and the highest value; of whole numbers, if both are."""


@dataclass(frozen=True)
class Drawn:
    """Which points are drawn from ranges of settings."""

    ranges: Mapping[str, Range]
    points: int
    is_mixed: bool = False
    """Whether the points are those that Sobol's indices need: N × (settings + 2) of them."""

    @cached_property
    def values(self) -> list[tuple[float, ...]]:
        """The points, each with a value for every setting.

        If they are mixed: the N of a hypercube A, the N of another one B, and for each setting in
        turn those of A with this setting as in B.
        """
        import numpy as np

        count = len(self.ranges)
        if not self.is_mixed:
            rows = _hypercube(count, self.points)
        else:
            both = _hypercube(2 * count, self.points)
            a, b = both[:, :count], both[:, count:]
            mixed = []
            for place in range(count):
                one = a.copy()
                one[:, place] = b[:, place]
                mixed.append(one)
            rows = np.concatenate([a, b, *mixed])
        limits = list(self.ranges.values())
        return [tuple(map(_within, limits, row)) for row in rows.tolist()]

    @property
    def columns(self) -> dict[str, list[float]]:
        """By setting, its value at each point."""
        return dict(zip(self.ranges, map(list, zip(*self.values, strict=True)), strict=True))

    @property
    def ends(self) -> list[tuple[float, ...]]:
        """Points at the ends: all low, all high, and each setting alone at its other end."""
        low, high = (tuple(each[end] for each in self.ranges.values()) for end in (0, 1))
        found = [low, high]
        for place in range(len(low)):
            found += [
                (*here[:place], there[place], *here[place + 1 :])
                for here, there in ((low, high), (high, low))
            ]
        return list(dict.fromkeys(found))

    def to_dict(self) -> dict[str, Any]:
        """What decides which points are drawn; the order of the ranges does, too."""
        ranges = [[name, *each] for name, each in self.ranges.items()]
        return {"ranges": ranges, "points": self.points, "is_mixed": self.is_mixed}

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> "Drawn":
        """The points that a plan keeps; ValueError if they would be too many."""
        ranges = {str(name): (low, high) for name, low, high in kept["ranges"]}
        if not (
            0 < kept["points"] * (len(ranges) + 2) <= MOST_POINTS and len(ranges) <= MOST_RANGES
        ):
            raise ValueError("too many points are drawn")
        return cls(ranges, kept["points"], kept["is_mixed"])


def _hypercube(dimensions: int, points: int) -> "NDArray[np.float64]":
    import numpy as np
    from scipy.stats import qmc

    drawn = qmc.LatinHypercube(dimensions, seed=np.random.default_rng(_SEED)).random(points)
    return np.asarray(drawn, np.float64)


def _within(limits: Range, share: float) -> float:
    """The value that lies so far from the low end to the high one."""
    low, high = limits
    if is_whole(limits):
        return min(low + math.floor(share * (high - low + 1)), high)
    return min(max(float(f"{low + share * (high - low):.{_DIGITS}g}"), float(low)), float(high))


def is_whole(limits: Range) -> bool:
    """Whether a range has whole numbers alone."""
    return all(isinstance(end, int) for end in limits)


def read_ranges(document: Document, value: object, taken: Sequence[str]) -> dict[str, Range]:
    """The ranges in a file, checked; no setting may have one of the names that are ``taken``."""
    wanted = "settings, each with its lowest and its highest value: {memory.max_pinned: [1, 9]}"
    if not isinstance(value, dict) or not 1 <= len(value) <= MOST_RANGES:
        raise ConfigError(f"{document.place(('ranges',))}: ranges must be {wanted}")
    for name, ends in value.items():
        at = document.place(("ranges", name))
        if name in taken:
            raise ConfigError(
                f"{at}: {name} can't have a range", hint="each run has a seed of its own"
            )
        if not isinstance(ends, list) or len(ends) != 2 or not all(map(_is_number, ends)):
            raise ConfigError(
                f"{at}: the range of {name!s:.60} is no pair of numbers",
                hint=f"ranges are {wanted}",
            )
        if not ends[0] < ends[1]:
            raise ConfigError(
                f"{at}: the range of {name!s:.60} is upside down: {ends[0]} to {ends[1]}",
                hint="the lowest value comes first",
            )
    return {str(name): (low, high) for name, (low, high) in value.items()}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
