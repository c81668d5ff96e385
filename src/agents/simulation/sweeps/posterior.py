"""Which settings give what was seen: the runs that come nearest, and whether they can be trusted.

Rejection (approximate Bayesian computation): of many runs with settings drawn from their ranges,
those whose statistics are nearest to what was seen are a sample of the posterior. Each run can take
the place of what was seen, and its settings are known: so the same runs tell whether the intervals
have the settings as often as they say (simulation-based calibration, Talts and others 2018).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]
Places = NDArray[np.int64]

LEVEL = 0.9
"""That of all intervals of a fit."""
FEWEST_ACCEPTED = 20
"""An interval of 90 % has its ends beyond the outermost of fewer."""
_MOST_TRIED = 500
_BINS = 10
_SEED = 0
SURE = 0.01
"""How rarely a posterior that is right fails each of the two checks."""


def scales(statistics: Table) -> Table:
    """How far apart runs usually are in each statistic; 0 where all are equal.

    It is half of what the middle 68 % span, and the standard deviation where these are equal.
    """
    low, high = np.quantile(statistics, (0.16, 0.84), axis=0)
    usual = (high - low) / 2
    moving = statistics.max(axis=0) > statistics.min(axis=0)
    return np.where(usual > 0, usual, np.where(moving, statistics.std(axis=0), 0.0))


def distances(statistics: Table, seen: Table, scale: Table) -> Table:
    """How far each run is from what was seen; a statistic without a scale does not count."""
    far = np.zeros(len(statistics))
    for column in np.flatnonzero(scale).tolist():  # one after the other: one order of the sums
        far += ((statistics[:, column] - seen[column]) / scale[column]) ** 2
    return np.sqrt(far)


def nearest(far: Table, count: int) -> Places:
    """The places of the nearest runs, nearest first; of equal ones the first of the table."""
    return np.argsort(far, kind="stable")[:count].astype(np.int64)


def interval(values: Table, level: float = LEVEL) -> tuple[float, float]:
    """The ends between which another value of the same source lies in ``level`` of all cases.

    The rank of another value among n is any of n + 1: so the ends lie further out than those of
    the values themselves.
    """
    ends = ((1 - level) / 2, (1 + level) / 2)
    low, high = np.quantile(values, ends, method="weibull").tolist()
    return low, high


class Calibration(NamedTuple):
    """How the true settings of runs lie in the posteriors that the others give."""

    ranks: Table
    """Of each run tried, the share of its posterior that lies below the truth."""
    inside: int
    """How many truths the interval has."""
    p_inside: float
    """How probable so far a number from 90 % is, if the posterior is right."""
    p_uniform: float
    """How probable ranks so uneven are, if the posterior is right (χ² of ten bins)."""
    width: float
    """The usual width of the interval, as a share of the range's: 0.9 tells nothing new."""

    @property
    def tried(self) -> int:
        return len(self.ranks)

    @property
    def holds(self) -> bool:
        """Whether the intervals have the truth as often as they say, within noise."""
        return min(self.p_inside, self.p_uniform) >= SURE

    @property
    def verdict(self) -> str:
        """What is wrong, in words; or that nothing is."""
        if self.holds:
            return "covers"
        if self.p_inside >= SURE:
            return "lies beside the truth"
        return "too narrow" if self.inside < LEVEL * self.tried else "too wide"


Posterior = Callable[[Table, Places], Table]
"""From the settings of all runs and the places of the nearest: a sample of the posterior."""


def as_accepted(settings: Table, near: Places) -> Table:
    """The settings of the nearest runs as they are."""
    accepted: Table = settings[near]
    return accepted


def calibrate(
    settings: Table, statistics: Table, accepted: int, posterior: Posterior = as_accepted
) -> list[Calibration]:
    """For each setting, how its posterior does if each run in turn is what was seen.

    At most 500 runs are tried, from all over the table. Where a setting takes few values, the
    truth's rank is drawn among those that are equal to it.
    """
    from scipy.stats import binomtest, chisquare

    count, scale = len(settings), scales(statistics)
    tried = np.unique(np.linspace(0, count - 1, min(count, _MOST_TRIED)).astype(np.int64))
    rng = np.random.default_rng(_SEED)
    ranks = np.empty((len(tried), settings.shape[1]))
    widths = np.empty_like(ranks)
    reach = np.ptp(settings, axis=0)
    for row, place in enumerate(tried.tolist()):
        far = distances(statistics, statistics[place], scale)
        far[place] = math.inf
        sample = posterior(settings, nearest(far, accepted))
        below = (sample < settings[place]).sum(axis=0)
        equal = (sample == settings[place]).sum(axis=0)
        shift = rng.random(settings.shape[1])
        ranks[row] = (below + shift * (equal + 1)) / (len(sample) + 1)
        low, high = np.apply_along_axis(interval, 0, sample)
        widths[row] = (high - low) / np.where(reach > 0, reach, 1.0)
    ends = (1 - LEVEL) / 2, (1 + LEVEL) / 2
    found = []
    for own, width in zip(ranks.T, widths.T, strict=True):
        inside = int(((own > ends[0]) & (own < ends[1])).sum())
        bins = np.histogram(own, bins=_BINS, range=(0.0, 1.0))[0]
        found.append(
            Calibration(
                ranks=own,
                inside=inside,
                p_inside=_plain(binomtest(inside, len(own), LEVEL).pvalue),
                p_uniform=_plain(chisquare(bins).pvalue),
                width=float(np.median(width)),
            )
        )
    return found


def _plain(value: float) -> float:
    """A number without the digits that differ between versions of SciPy."""
    return float(f"{value:.9g}")
