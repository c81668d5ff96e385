"""Means over seeds and differences between runs of the same seed, with the evidence for them.

Every interval of a mean is Student's, and where values are too skewed for it, the median has one,
too. ``make bench WHAT=calibration`` measures how often a difference is found between runs that
differ by chance alone; docs/architecture/statistics.md tells why it is no bootstrap.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..memory.words import number

FEWEST_SEEDS = 3
"""Fewer values say nothing about others, and have no interval."""
LEVEL = 0.95
ALPHA = 0.05
"""How often a sweep without any difference may show one: 1 − :data:`LEVEL`."""
_POWER = 0.8
_MOST_SEEDS = 1_000_000
_AS_NORMAL = 1_000
_LARGEST_EFFECT = 100.0
"""Three seeds show it; SciPy gives no power beyond."""
_ROUNDING = 1e-12
"""Values that differ by less, compared with their size, differ by rounding alone."""
UNEVEN = 3.0
"""One side's deviation, as a multiple of the other's, from which their shapes are not alike."""
WIDER = 4
"""How much further a skewed mean must lie from zero than Student's test asks."""
_MANY = 30
"""So many seeds show whether a side is skewed."""
_EXACT_FLIPS = 12
_FLIPS = 10_000


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


def equivalence(difference: Interval | Difference, margin: float, level: float = LEVEL) -> float:
    """The p value of two one-sided tests (TOST).

    How probable a mean this near to zero is, if the true one is ``margin`` away from it. The mean's
    interval is one of ``level``. Without an interval p is 1: equal values do not tell how far
    away another seed's is.
    """
    if not (math.isfinite(margin) and margin > 0):
        raise ValueError(f"margin is {margin}; it must be a number above 0")
    n, reach = difference.n, (difference.high - difference.low) / 2
    if not math.isfinite(reach):
        return 1.0
    from scipy.special import stdtr, stdtrit

    error = reach / stdtrit(n - 1, (1 + level) / 2)
    return _stable(stdtr(n - 1, -(margin - abs(difference.mean)) / error))


class Median(NamedTuple):
    """A median of ``n`` values with its interval, which no shape of the values makes wrong."""

    n: int
    median: float
    low: float
    high: float
    p: float
    """The sign test's: how probable so many values on one side of zero are, by chance alone."""


def median_test(values: Sequence[float], level: float = LEVEL) -> Median:
    """The median of ``values``, the interval between two of them, and the sign test against zero.

    Values of zero are on neither side. The interval is infinite below six values.

    >>> median_test([1.0, 2.0, 3.0, 4.0, 5.0, 60.0])[1:4]
    (3.5, 1.0, 60.0)
    """
    from scipy.special import bdtr

    ordered = sorted(map(float, values))
    n, half = len(ordered), len(ordered) // 2
    middle = ordered[half] if n % 2 else (ordered[half - 1] + ordered[half]) / 2
    outside = -1  # how many values may lie outside at each end
    while outside + 1 < half and 2 * bdtr(outside + 1, n, 0.5) <= 1 - level:
        outside += 1
    ends = (ordered[outside], ordered[n - 1 - outside]) if outside >= 0 else (-math.inf, math.inf)
    above, below = (sum(sign * value > 0 for value in ordered) for sign in (1, -1))
    fewer = min(above, below)
    p = _stable(min(1.0, 2 * bdtr(fewer, above + below, 0.5))) if above + below else 1.0
    return Median(n, middle, *ends, p)


def permutation_p(differences: Sequence[float]) -> float:
    """How probable a sum at least this far from zero is, if each pair's sides could be exchanged.

    Up to twelve differences all exchanges are tried, and of more a seeded sample of 10,000.
    """
    import numpy as np

    n = len(differences)
    if n <= _EXACT_FLIPS:
        numbers = np.arange(2**n)
        flips = np.stack([(numbers >> place) & 1 for place in range(n)])
    else:
        flips = np.random.default_rng(0).integers(0, 2, size=(n, _FLIPS - 1))
    sums = np.zeros(flips.shape[1])
    for value, flip in zip(differences, flips, strict=True):  # one after the other: one order
        sums += np.where(flip, value, -value)
    seen = abs(math.fsum(differences)) * (1 - 1e-9)
    as_far = int(np.count_nonzero(np.abs(sums) >= seen))
    return as_far / 2**n if n <= _EXACT_FLIPS else (as_far + 1) / _FLIPS


def skewness(values: Sequence[float]) -> float:
    """The third moment about the mean, in deviations; 0 for equal values."""
    n, mean = len(values), math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / n)
    if deviation <= _ROUNDING * max(map(abs, values)):
        return 0.0
    return math.fsum(((value - mean) / deviation) ** 3 for value in values) / n


def is_skewed(values: Sequence[float]) -> bool:
    """Whether ``values`` are too skewed for Student's interval of their mean.

    They are more skewed than one in twenty samples of normal noise, and fewer than 25 times the
    square of their skewness: with so many, means are nearly normal (Cochran).
    """
    n = len(values)
    if n < FEWEST_SEEDS:
        return False
    skew = abs(skewness(values))
    usual = math.sqrt(6 * (n - 2) / ((n + 1) * (n + 3)))
    return skew > 2 * usual and n <= 25 * skew**2


class Band(NamedTuple):
    """The mean of ``n`` runs in each tick, and a band in which the whole true line plausibly lies.

    Where runs differ in no tick, or there are fewer than three, the band is the mean.
    """

    n: int
    ticks: Sequence[int]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


def band(ticks: Sequence[int], runs: Sequence[Sequence[float]], level: float = LEVEL) -> Band:
    """The mean of ``runs`` over ``ticks`` with its simultaneous band.

    It is made of Student's intervals, whose level is corrected for the number of ticks in which
    runs differ. So it is wider than needed where ticks resemble each other, and never too narrow.
    """
    columns = list(zip(*runs, strict=True))
    size = max((abs(value) for column in columns for value in column), default=0.0)
    moving = sum(max(each) - min(each) > _ROUNDING * size for each in columns)
    each_level = 1 - (1 - level) / max(moving, 1)
    tested = [student_test(column, each_level, size) for column in columns]
    lows = [own.low if math.isfinite(own.low) else own.mean for own in tested]
    highs = [own.high if math.isfinite(own.high) else own.mean for own in tested]
    return Band(len(runs), list(ticks), [own.mean for own in tested], lows, highs)


def has_other_shape(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether differences of these pairs may be so skewed that Student's test is wrong too often.

    They are seen to be; or one side varies three times as much as the other, and so few seeds do
    not show whether it is skewed.
    """
    gaps = [a - b for a, b in zip(one, other, strict=True)]
    if len(gaps) < FEWEST_SEEDS:
        return False
    least, most = sorted(map(_deviation, (one, other)))
    if most > UNEVEN * least and (len(gaps) < _MANY or len(gaps) <= 25 * skewness(gaps) ** 2):
        return True
    return is_skewed(gaps)


def _deviation(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return deviation if deviation > _ROUNDING * max(map(abs, values)) else 0.0


def share_of_look(number: int, looks: int | None) -> float:
    """How much of the 5 % the look of this number may spend.

    Of ``looks`` registered ones each has an equal part, and later ones have nothing. Without a
    number of looks each has half of what is left, so that there is always some.

    >>> [share_of_look(number, None) for number in (1, 2, 3)]
    [0.025, 0.0125, 0.00625]
    """
    if looks is None:
        return math.ldexp(ALPHA, -number)
    return ALPHA / looks if number <= looks else 0.0


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


def seeds_to_show(difference: Difference, alpha: float = ALPHA) -> int | None:
    """How many seeds would show a difference of this size and deviation, four times out of five.

    The estimate is as rough as the size and the deviation that it comes from. None: there is no
    difference, no deviation to estimate from, or a million seeds would not be enough.
    """
    mean, deviation = difference.mean, difference.deviation
    if mean == 0 or math.isnan(deviation):
        return None
    from scipy.special import ndtri

    effect = min(abs(mean) / deviation, _LARGEST_EFFECT)
    if effect < 1e-6:
        return None
    # For many seeds Student's test is the normal one; for few it needs some more.
    normal = ((ndtri(1 - alpha / 2) + ndtri(_POWER)) / effect) ** 2
    seeds = max(FEWEST_SEEDS, math.ceil(normal))
    while seeds < _AS_NORMAL and power(difference, seeds, alpha) < _POWER:
        seeds += 1
    return seeds if seeds <= _MOST_SEEDS else None


def power(difference: Difference, seeds: int, alpha: float = ALPHA) -> float:
    """How probable it is that so many seeds show a difference of this size and deviation."""
    if seeds < FEWEST_SEEDS or not difference.mean or math.isnan(difference.deviation):
        return 0.0
    from scipy.special import nctdtr, ndtr, ndtri, stdtrit

    effect = min(abs(difference.mean) / difference.deviation, _LARGEST_EFFECT) * math.sqrt(seeds)
    if seeds >= _AS_NORMAL:
        return _stable(ndtr(effect - ndtri(1 - alpha / 2)))
    return 1 - _stable(nctdtr(seeds - 1, effect, stdtrit(seeds - 1, 1 - alpha / 2)))


def seeds_for_median(differences: Sequence[float], alpha: float = ALPHA) -> int | None:
    """How many seeds would show by the sign test that most seeds differ as these do.

    None: as many of these lie above zero as below.
    """
    above, below = (sum(sign * value > 0 for value in differences) for sign in (1, -1))
    if above == below or alpha <= 0:
        return None
    from scipy.special import ndtri

    share = (max(above, below) + 0.5) / (above + below + 1)
    reach = ndtri(1 - alpha / 2) / 2 + ndtri(_POWER) * math.sqrt(share * (1 - share))
    # Equal signs alone must be rare enough.
    seeds = max(math.ceil((reach / (share - 0.5)) ** 2), math.ceil(math.log2(2 / alpha)))
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
    rows: Sequence[Mapping[str, Any]],
    keys: Sequence[str],
    metrics: Sequence[str],
    *,
    level: float = LEVEL,
    shapes: bool = False,
) -> list[dict[str, Any]]:
    """``n``, ``mean``, ``low`` and ``high`` of each metric, per group of rows with equal ``keys``.

    Groups come in the order in which they first appear, metrics in the order given. ``n`` counts
    the finite values; None, infinity and NaN are left out. A metric without finite values in a
    group has no row. ``low`` and ``high`` are None where the values give no interval: fewer than
    three, or equal ones. With ``shapes``, each also has its median with an interval, and whether
    it :func:`is_skewed`.
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
                columns = _columns(mean_interval(values, level=level))
                if shapes:
                    columns |= _median_columns(median_test(values, level), is_skewed(values))
                summaries.append({**where, "metric": metric, **columns})
    return summaries


def _columns(interval: Interval | Difference) -> dict[str, Any]:
    """An interval for a table, in which nothing is infinite."""
    ends = {"low": interval.low, "high": interval.high}
    return {"n": interval.n, "mean": interval.mean, **_finite(ends)}


def _median_columns(median: Median, skewed: bool) -> dict[str, Any]:
    ends = _finite({"median_low": median.low, "median_high": median.high})
    return {"skewed": skewed, "median": median.median, **ends}


def _finite(ends: Mapping[str, float]) -> dict[str, float | None]:
    return {name: end if math.isfinite(end) else None for name, end in ends.items()}


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
    shapes: bool = False,
    alpha: float = ALPHA,
    alpha_next: float | None = None,
) -> list[dict[str, Any]]:
    """The difference of every other variant from ``baseline``, in rows like :func:`summarise`.

    A row is compared with the baseline's row that has equal ``keys`` (the grid's keys, without the
    variant) and an equal ``pair``: the seed's effect on both cancels out. Rows without a
    counterpart are left out. ``baseline`` may also be a mapping of columns to values: these columns
    take the place of ``variant``.

    ``p`` is of the paired t test; ``p_holm`` is corrected for all comparisons that are returned,
    and for spending only ``alpha`` of the 5 %: a difference is one at 0.05 whatever ``alpha`` is,
    and nothing is where it is 0. ``seeds_needed`` is :func:`seeds_to_show` for that, at a next look
    that spends ``alpha_next``. Without an interval all three are None.

    With ``shapes``, rows also have the median of the differences, its interval, ``p_median`` (sign
    test) and ``p_permutation``. Where a difference is ``skewed`` (:func:`has_other_shape`), two
    tests share ``p_holm``: the sign test of its median, and Student's of a mean that lies
    :data:`WIDER` times nearer to zero. ``judged`` says which shows more, and ``seeds_needed`` is of
    the sign test.
    """
    base = baseline if isinstance(baseline, Mapping) else {variant: baseline}
    result, tested = [], list[_Tested]()
    level = 1 - alpha if alpha else LEVEL
    for pairs in _pairs(rows, keys, base, pair):
        for metric in metrics:
            if known := _known(pairs, metric):
                own = _test_pairs(known, level, shapes)
                where = {key: pairs[0][0][key] for key in (*base, *keys)}
                tested.append(own)
                result.append({**where, "metric": metric, **_columns(own.mean), **own.shape})
    return _with_evidence(result, tested, alpha, alpha if alpha_next is None else alpha_next)


_Pair = tuple[Mapping[str, Any], Mapping[str, Any]]


def _pairs(
    rows: Sequence[Mapping[str, Any]], keys: Sequence[str], base: Mapping[str, Any], pair: str
) -> list[list[_Pair]]:
    """For each comparison its rows, each with the baseline's row of the same seed."""
    here = _place(base, list(base))
    bases = {_place(row, (*keys, pair)): row for row in rows if _place(row, list(base)) == here}
    groups: dict[tuple[str, ...], list[_Pair]] = {}
    for row in rows:
        other = bases.get(_place(row, (*keys, pair)))
        if other is not None and _place(row, list(base)) != here:
            groups.setdefault(_place(row, (*base, *keys)), []).append((row, other))
    return list(groups.values())


def _known(pairs: Sequence[_Pair], metric: str) -> list[tuple[float, float]]:
    both = [(_value(row, metric), _value(other, metric)) for row, other in pairs]
    return [(a, b) for a, b in both if a is not None and b is not None]


class Needed(NamedTuple):
    """What a difference needs to be shown, four times out of five."""

    difference: Difference
    seeds: int | None
    """None: there is no difference or no deviation, or a million seeds would not be enough."""
    by_median: bool = False
    """Whether the sign test must show it, because the differences are skewed."""


def needed_seeds(
    rows: Sequence[Mapping[str, Any]],
    keys: Sequence[str],
    metric: str,
    *,
    baseline: Mapping[str, Any],
    alpha: float,
    size: float | None = None,
    pair: str = "seed",
) -> list[tuple[dict[str, Any], Needed]]:
    """For each comparison of ``rows``, its place and how many seeds another sweep needs.

    The test is that of :func:`differences`, at the level ``alpha``. With ``size``, the differences
    are as these, but for their mean.
    """
    found = []
    for pairs in _pairs(rows, keys, baseline, pair):
        if known := _known(pairs, metric):
            if size is not None:
                shift = size - math.fsum(a - b for a, b in known) / len(known)
                known = [(a + shift, b) for a, b in known]
            own = _test_pairs(known, 1 - alpha, shapes=True)
            where = {key: pairs[0][0][key] for key in (*baseline, *keys)}
            skewed = bool(own.shape["skewed"])
            found.append((where, Needed(own.mean, own.seeds_needed(alpha), skewed)))
    return found


class _Tested(NamedTuple):
    """What one comparison's pairs say."""

    gaps: Sequence[float]
    mean: Difference
    shape: Mapping[str, Any]
    """The columns of the median, if they were asked for."""

    @property
    def p(self) -> float:
        """The evidence; where the mean can't be trusted, that of two tests together."""
        if not self.shape.get("skewed"):
            return self.mean.p
        return min(1.0, 2 * min(_wide_p(self.mean), float(self.shape["p_median"])))

    def seeds_needed(self, alpha: float) -> int | None:
        if alpha <= 0:
            return None
        if self.shape.get("skewed"):
            return seeds_for_median(self.gaps, alpha / 2)
        return seeds_to_show(self.mean, alpha)


def _wide_p(difference: Difference) -> float:
    from scipy.special import stdtr

    n, mean = difference.n, difference.mean
    nearer = -abs(mean) * math.sqrt(n) / difference.deviation / WIDER
    return 2 * _stable(stdtr(n - 1, nearer))


def _test_pairs(pairs: Sequence[tuple[float, float]], level: float, shapes: bool) -> _Tested:
    gaps = [a - b for a, b in pairs]
    mean = student_test(gaps, level, max(abs(value) for values in pairs for value in values))
    if not shapes:
        return _Tested(gaps, mean, {})
    skewed = math.isfinite(mean.low) and has_other_shape(*zip(*pairs, strict=True))
    median = median_test(gaps, level)
    is_median = skewed and median.p <= _wide_p(mean)
    evidence = {
        "judged": "median" if is_median else "mean",
        "p_median": median.p if math.isfinite(mean.low) else None,
        "p_permutation": permutation_p(gaps) if skewed else None,
    }
    return _Tested(gaps, mean, {**_median_columns(median, skewed), **evidence})


def _with_evidence(
    rows: list[dict[str, Any]], tested: Sequence[_Tested], alpha: float, alpha_next: float
) -> list[dict[str, Any]]:
    ps = [each.p for each in tested]
    corrected = holm(ps)
    for left, index in _by_size(ps):
        spent = min(1.0, corrected[index] * (ALPHA / alpha)) if alpha else 1.0
        is_tested = rows[index]["low"] is not None
        rows[index] |= {
            "p": tested[index].mean.p if is_tested else None,
            "p_holm": spent if is_tested else None,
            "seeds_needed": tested[index].seeds_needed(alpha_next / left),
        }
    return rows


def _place(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...]:
    """A row's group, as text: a setting may be a list, and ``1`` is not the setting ``true``."""
    return tuple(repr(row[key]) for key in keys)


def _value(row: Mapping[str, Any], metric: str) -> float | None:
    value = row.get(metric)
    return None if value is None or not math.isfinite(value) else float(value)
