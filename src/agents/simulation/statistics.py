"""Means over seeds and differences between runs of the same seed, with the evidence for them.

Every interval is Student's. ``make bench WHAT=calibration`` measures how often it finds a
difference between runs that differ by chance alone; docs/architecture/statistics.md tells why it is
no bootstrap.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..memory.words import number

FEWEST_SEEDS = 3
"""Fewer values say nothing about others, and have no interval."""
LEVEL = 0.95
_POWER = 0.8
_MOST_SEEDS = 1_000_000
_AS_NORMAL = 1_000
_LARGEST_EFFECT = 100.0
"""Three seeds show it; SciPy gives no power beyond."""
_ROUNDING = 1e-12
"""Values that differ by less, compared with their size, differ by rounding alone."""


class Interval(NamedTuple):
    """A mean of ``n`` values, and the interval in which the true mean plausibly lies.

    An interval that the values can't give goes from minus infinity to infinity.
    """

    n: int
    mean: float
    low: float
    high: float


class Difference(NamedTuple):
    """The mean of ``n`` paired differences, its interval, and the evidence that it is not zero."""

    n: int
    mean: float
    low: float
    high: float
    p: float
    """How probable a mean at least this far from zero is, if chance alone makes the differences.

    It is 1 where there is no interval.
    """
    deviation: float
    """The standard deviation of the differences."""


def mean_interval(values: Sequence[float], *, level: float = LEVEL) -> Interval:
    """The mean of ``values`` with Student's interval.

    >>> mean_interval([1.0, 2.0, 3.0, 4.0, 5.0]).mean
    3.0
    """
    return Interval(*student_test(values, level)[:4])


def student_test(values: Sequence[float], level: float = LEVEL, size: float = 0.0) -> Difference:
    """Student's test of ``values`` against zero; ``size`` is that of the numbers behind them."""
    numbers = [float(value) for value in values]
    if not numbers:
        raise ValueError("no values to take the mean of")
    if not all(map(math.isfinite, numbers)):
        raise ValueError("the mean needs finite values; leave out NaN and infinity")
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; it must lie between 0 and 1")
    n = len(numbers)
    mean = numbers[0] if min(numbers) == max(numbers) else math.fsum(numbers) / n
    rounding = _ROUNDING * max(size, *map(abs, numbers))
    # Equal values show no deviation: that of the next seed may be any.
    if n < FEWEST_SEEDS or max(numbers) - min(numbers) <= rounding:
        return Difference(n, mean, -math.inf, math.inf, 1.0, math.nan)
    from scipy.special import stdtr, stdtrit

    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in numbers) / (n - 1))
    error = deviation / math.sqrt(n)
    reach = _stable(stdtrit(n - 1, (1 + level) / 2)) * error
    p = 2 * _stable(stdtr(n - 1, -abs(mean) / error))
    return Difference(n, mean, mean - reach, mean + reach, p, deviation)


def equivalence(difference: Interval | Difference, margin: float) -> float:
    """The p value of two one-sided tests (TOST).

    How probable a mean this near to zero is, if the true one is ``margin`` away from it. The mean's
    interval is one of :data:`LEVEL`. Without an interval p is 1: equal values do not tell how far
    away another seed's is.
    """
    if not (math.isfinite(margin) and margin > 0):
        raise ValueError(f"margin is {margin}; it must be a number above 0")
    n, reach = difference.n, (difference.high - difference.low) / 2
    if not math.isfinite(reach):
        return 1.0
    from scipy.special import stdtr, stdtrit

    error = reach / stdtrit(n - 1, (1 + LEVEL) / 2)
    return _stable(stdtr(n - 1, -(margin - abs(difference.mean)) / error))


def _stable(value: float) -> float:
    """A number without its last digits, which are others in other versions of SciPy."""
    return float(f"{value:.12g}")


def may_differ(n: int, level: float = LEVEL) -> float:
    """The largest share of all seeds that plausibly has another value, if ``n`` have the same.

    If more had another one, ``n`` equal values would come in less than 5 % of cases.

    >>> round(may_differ(6), 3)
    0.393
    """
    return 1 - math.pow(1 - level, 1 / n)


def seeds_to_show(difference: Difference, alpha: float = 1 - LEVEL) -> int | None:
    """How many seeds would show a difference of this size and deviation, four times out of five.

    The estimate is as rough as the size and the deviation that it comes from. None: there is no
    difference, no deviation to estimate from, or a million seeds would not be enough.
    """
    mean, deviation = difference.mean, difference.deviation
    if mean == 0 or math.isnan(deviation):
        return None
    from scipy.special import nctdtr, ndtri, stdtrit

    effect = min(abs(mean) / deviation, _LARGEST_EFFECT)
    if effect < 1e-6:
        return None
    # For many seeds Student's test is the normal one; for few it needs some more.
    normal = ((ndtri(1 - alpha / 2) + ndtri(_POWER)) / effect) ** 2
    seeds = max(FEWEST_SEEDS, math.ceil(normal))
    while seeds < _AS_NORMAL:
        missed = nctdtr(seeds - 1, effect * math.sqrt(seeds), stdtrit(seeds - 1, 1 - alpha / 2))
        if missed <= 1 - _POWER:
            break
        seeds += 1
    return seeds if seeds <= _MOST_SEEDS else None


def holm(ps: Sequence[float]) -> list[float]:
    """The p values corrected by Holm's method, in their order.

    If all that are at most 0.05 count as differences, the chance that one of them is none is at
    most 5 %, however many there are.

    >>> holm([0.01, 0.5, 0.02])
    [0.03, 0.5, 0.04]
    """
    corrected = [1.0] * len(ps)
    so_far = 0.0
    for left, index in _by_size(ps):
        so_far = max(so_far, min(1.0, left * ps[index]))
        corrected[index] = so_far
    return corrected


def _by_size(ps: Sequence[float]) -> list[tuple[int, int]]:
    """The index of each p value, smallest first, after how many are left with it."""
    order = sorted(range(len(ps)), key=ps.__getitem__)
    return [(len(ps) - rank, index) for rank, index in enumerate(order)]


def summarise(
    rows: Sequence[Mapping[str, Any]], keys: Sequence[str], metrics: Sequence[str]
) -> list[dict[str, Any]]:
    """``n``, ``mean``, ``low`` and ``high`` of each metric, per group of rows with equal ``keys``.

    Groups come in the order in which they first appear, metrics in the order given. ``n`` counts
    the finite values; None, infinity and NaN are left out. A metric without finite values in a
    group has no row. ``low`` and ``high`` are None where the values give no interval: fewer than
    three, or equal ones.
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
                summaries.append({**where, "metric": metric, **_columns(mean_interval(values))})
    return summaries


def _columns(interval: Interval | Difference) -> dict[str, Any]:
    """An interval for a table, in which nothing is infinite."""
    ends = {"low": interval.low, "high": interval.high}
    known = {name: end if math.isfinite(end) else None for name, end in ends.items()}
    return {"n": interval.n, "mean": interval.mean, **known}


def interval_of(row: Mapping[str, Any]) -> Interval:
    """The interval in a row of :func:`summarise` or :func:`differences`."""
    low = -math.inf if row["low"] is None else row["low"]
    return Interval(row["n"], row["mean"], low, math.inf if row["high"] is None else row["high"])


def in_words(interval: Interval, write: Callable[[float], str] = number) -> str:
    """The ends of an interval, ``1 to 3``, or what the values say without one.

    Too few values say nothing. Equal ones have no interval, and others may differ from them.
    """
    if math.isfinite(interval.low) and math.isfinite(interval.high):
        return f"{write(interval.low)} to {write(interval.high)}"
    if interval.n < FEWEST_SEEDS:
        return ""
    share = number(100 * may_differ(interval.n), 2)
    return f"all {interval.n:,} are equal; up to {share} % of others may differ"


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
    counterpart are left out. ``baseline`` may also be a mapping of columns to values: these columns
    take the place of ``variant``.

    ``p`` is of the paired t test; ``p_holm`` is corrected for all comparisons that are returned;
    ``seeds_needed`` is :func:`seeds_to_show` for a ``p_holm`` of 0.05. Without an interval all
    three are None.
    """
    base = baseline if isinstance(baseline, Mapping) else {variant: baseline}
    here = _place(base, list(base))
    bases = {_place(row, (*keys, pair)): row for row in rows if _place(row, list(base)) == here}
    groups: dict[tuple[str, ...], list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    for row in rows:
        other = bases.get(_place(row, (*keys, pair)))
        if other is not None and _place(row, list(base)) != here:
            groups.setdefault(_place(row, (*base, *keys)), []).append((row, other))
    result, tested = [], []
    for pairs in groups.values():
        for metric in metrics:
            both = [(_value(row, metric), _value(other, metric)) for row, other in pairs]
            known = [(a, b) for a, b in both if a is not None and b is not None]
            if known:
                size = max(abs(value) for values in known for value in values)
                tested.append(student_test([a - b for a, b in known], size=size))
                where = {key: pairs[0][0][key] for key in (*base, *keys)}
                result.append({**where, "metric": metric, **_columns(tested[-1])})
    return _with_evidence(result, tested)


def _with_evidence(
    rows: list[dict[str, Any]], tested: Sequence[Difference]
) -> list[dict[str, Any]]:
    ps = [each.p for each in tested]
    corrected = holm(ps)
    for left, index in _by_size(ps):
        is_tested = rows[index]["low"] is not None
        rows[index] |= {
            "p": ps[index] if is_tested else None,
            "p_holm": corrected[index] if is_tested else None,
            "seeds_needed": seeds_to_show(tested[index], (1 - LEVEL) / left),
        }
    return rows


def _place(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...]:
    """A row's group, as text: a setting may be a list, and ``1`` is not the setting ``true``."""
    return tuple(repr(row[key]) for key in keys)


def _value(row: Mapping[str, Any], metric: str) -> float | None:
    value = row.get(metric)
    return None if value is None or not math.isfinite(value) else float(value)
