"""Means over seeds, with bootstrap intervals.

The intervals are percentile bootstraps. They assume nothing about the shape of the data. For few
values they are a little too narrow: with 10 seeds, a 95 % interval holds the true mean about nine
times in ten.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Interval", "bootstrap_mean", "differences", "interval_of", "summarise"]


class Interval(NamedTuple):
    """A mean of ``n`` values, and the interval in which the true mean plausibly lies."""

    n: int
    mean: float
    low: float
    high: float


def bootstrap_mean(
    values: Sequence[float], *, seed: int = 0, resamples: int = 10_000, level: float = 0.95
) -> Interval:
    """The mean of ``values`` with its percentile bootstrap interval.

    The same arguments give the same bits on every machine. The interval of equal values has no
    width.

    >>> bootstrap_mean([2.0, 2.0, 2.0])
    Interval(n=3, mean=2.0, low=2.0, high=2.0)
    """
    given = [float(value) for value in values]
    if not given:
        raise ValueError("no values to take the mean of")
    if not all(map(math.isfinite, given)):
        raise ValueError("the mean needs finite values; leave out NaN and infinity")
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; at least 1 is needed")
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; it must lie between 0 and 1")
    n = len(given)
    if min(given) == max(given):
        return Interval(n, given[0], given[0], given[0])
    mean = math.fsum(given) / n
    low, high = _spread([value - mean for value in given], seed, resamples, level)
    return Interval(n, mean, mean + low, mean + high)


def _spread(
    deviations: list[float], seed: int, resamples: int, level: float
) -> tuple[float, float]:
    """The quantiles of the resampled means of ``deviations``."""
    import numpy as np

    rng = np.random.Generator(np.random.PCG64(seed))
    values = np.array(deviations)
    n = len(values)
    # Each pass adds one value to every resample. So the order of additions is the same on every
    # machine, and memory does not grow with n.
    totals = np.zeros(resamples)
    for _ in range(n):
        totals += values[rng.integers(0, n, size=resamples)]
    totals.sort()
    # The quantiles are values, not interpolated.
    cut = min(int((1 - level) / 2 * resamples), (resamples - 1) // 2)
    return float(totals[cut]) / n, float(totals[resamples - 1 - cut]) / n


def summarise(
    rows: Sequence[Mapping[str, Any]], keys: Sequence[str], metrics: Sequence[str]
) -> list[dict[str, Any]]:
    """``n``, ``mean``, ``low`` and ``high`` of each metric, per group of rows with equal ``keys``.

    Groups come in the order in which they first appear, metrics in the order given. ``n`` counts
    the finite values; None, infinity and NaN are left out. A metric without finite values in a
    group has no row.
    """
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(_place(row, keys), []).append(row)
    summaries = []
    for members in groups.values():
        for metric in metrics:
            values = [value for row in members if (value := _value(row, metric)) is not None]
            if values:
                where = {key: members[0][key] for key in keys}
                summaries.append({**where, "metric": metric, **bootstrap_mean(values)._asdict()})
    return summaries


def interval_of(row: Mapping[str, Any]) -> Interval:
    """The interval in a row of :func:`summarise` or :func:`differences`."""
    return Interval(*(row[name] for name in Interval._fields))


def differences(
    rows: Sequence[Mapping[str, Any]],
    keys: Sequence[str],
    metrics: Sequence[str],
    *,
    baseline: Any,
    variant: str = "variant",
    pair: str = "seed",
) -> list[dict[str, Any]]:
    """The difference of every other variant from ``baseline``, in rows like :func:`summarise`.

    A row is compared with the baseline's row that has equal ``keys`` (the grid's keys, without the
    variant) and an equal ``pair``: the seed's effect on both cancels out. Rows without a
    counterpart are left out.
    """
    bases = {_place(row, (*keys, pair)): row for row in rows if row[variant] == baseline}
    groups: dict[tuple[str, ...], list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    for row in rows:
        base = bases.get(_place(row, (*keys, pair)))
        if row[variant] != baseline and base is not None:
            groups.setdefault(_place(row, (variant, *keys)), []).append((row, base))
    found = []
    for pairs in groups.values():
        for metric in metrics:
            both = [(_value(row, metric), _value(base, metric)) for row, base in pairs]
            gaps = [a - b for a, b in both if a is not None and b is not None]
            if gaps:
                where = {key: pairs[0][0][key] for key in (variant, *keys)}
                found.append({**where, "metric": metric, **bootstrap_mean(gaps)._asdict()})
    return found


def _place(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...]:
    """A row's group, as text: a setting may be a list, and ``1`` is not the setting ``true``."""
    return tuple(repr(row[key]) for key in keys)


def _value(row: Mapping[str, Any], metric: str) -> float | None:
    value = row.get(metric)
    return None if value is None or not math.isfinite(value) else float(value)
