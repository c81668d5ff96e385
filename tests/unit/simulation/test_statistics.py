"""Means over seeds and their intervals."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, ttest_1samp, ttest_rel

from agents.simulation.statistics import (
    Difference,
    Interval,
    band,
    differences,
    equivalence,
    has_other_shape,
    holm,
    may_differ,
    mean_interval,
    median_test,
    permutation_p,
    seeds_for_median,
    seeds_to_show,
    share_of_look,
    summarise,
)

VALUES = [3.1, 4.7, 2.2, 9.4, 5.0, 4.1, 3.3, 7.8]


def rows(*cells: tuple[str, int, int, float | None]) -> list[dict[str, object]]:
    return [{"variant": v, "limit": at, "seed": s, "loss": loss} for v, at, s, loss in cells]


def gap_of(one: list[float], other: list[float], **how: Any) -> dict[str, Any]:
    table = rows(
        *(("base", 1, seed, value) for seed, value in enumerate(one)),
        *(("new", 1, seed, value) for seed, value in enumerate(other)),
    )
    (gap,) = differences(table, ["limit"], ["loss"], baseline="base", **how)
    return gap


def is_clear(gap: dict[str, Any]) -> bool:
    return gap["low"] is not None and (gap["low"] > 0 or gap["high"] < 0)


# One mean


def test_the_mean_is_the_correctly_rounded_one() -> None:
    assert mean_interval([1e16, 1.0, -1e16, 2.0]).mean == 0.75


@pytest.mark.parametrize("values", [[0.1], [0.1, 0.3]])
def test_fewer_than_three_values_have_no_interval(values: list[float]) -> None:
    _, _, low, high = mean_interval(values)

    assert (low, high) == (-math.inf, math.inf)


@pytest.mark.parametrize("seeds", [3, 6, 100])
def test_equal_values_have_no_interval(seeds: int) -> None:
    assert mean_interval([0.1] * seeds) == Interval(seeds, 0.1, -math.inf, math.inf)


@pytest.mark.parametrize(("seeds", "share"), [(3, 0.632), (6, 0.393), (30, 0.095)])
def test_equal_values_leave_room_for_seeds_that_differ(seeds: int, share: float) -> None:
    # With so many others, equal values come in 5 % of cases.
    assert may_differ(seeds) == pytest.approx(share, abs=5e-4)
    assert (1 - may_differ(seeds)) ** seeds == pytest.approx(0.05)


def test_values_that_differ_by_rounding_alone_are_equal() -> None:
    assert mean_interval([0.3, 0.1 + 0.2, 0.3]).high == math.inf


def test_the_interval_is_students() -> None:
    _, mean, low, high = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])

    # The quantile 2.776 of four degrees of freedom, from a printed table.
    reach = 2.776 * math.sqrt(2.5 / 5)
    assert (mean, low, high) == pytest.approx((3.0, 3 - reach, 3 + reach), abs=1e-3)


@pytest.mark.parametrize("seeds", [3, 8])
def test_a_difference_is_that_of_scipys_paired_t_test(seeds: int) -> None:
    one, other = VALUES[:seeds], [value**1.5 for value in VALUES[:seeds]]
    expected = ttest_rel(other, one)
    ends = expected.confidence_interval(0.95)

    gap = gap_of(one, other)

    found = (gap["p"], gap["low"], gap["high"])
    assert found == pytest.approx((expected.pvalue, ends.low, ends.high), rel=1e-10)


def test_large_values_lose_no_digits() -> None:
    near, far = mean_interval([1.0, 2.0, 4.0]), mean_interval([1e9 + 1, 1e9 + 2, 1e9 + 4])

    assert far.high - far.low == pytest.approx(near.high - near.low)


def test_a_higher_level_gives_a_wider_interval() -> None:
    narrow, wide = mean_interval(VALUES, level=0.5), mean_interval(VALUES, level=0.99)

    assert wide.low < narrow.low < narrow.high < wide.high


def test_no_values_have_no_mean() -> None:
    with pytest.raises(ValueError, match="no values"):
        mean_interval([])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        mean_interval([1.0, bad])


@pytest.mark.parametrize("level", [0.0, 95])
def test_a_level_out_of_range_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="level"):
        mean_interval(VALUES, level=level)


# Noise


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seeds", [3, 5, 10, 30])
@pytest.mark.parametrize("kind", ["normal", "skewed", "discrete"])
def test_noise_is_seldom_taken_for_a_difference(kind: str, seeds: int) -> None:
    rng = np.random.default_rng(seeds)
    draw = {
        "normal": lambda: rng.normal(size=(2, 400, seeds)),
        "skewed": lambda: rng.lognormal(size=(2, 400, seeds)),
        "discrete": lambda: rng.poisson(0.5, size=(2, 400, seeds)),
    }[kind]
    one, other = draw()

    found = [gap_of(*pair) for pair in zip(one.tolist(), other.tolist(), strict=True)]

    # Of 400 trials with 5 % each, more than 33 happen once in 200 times.
    assert sum(each["p"] is not None and each["p"] <= 0.05 for each in found) <= 33
    assert sum(is_clear(each) for each in found) <= 33


@pytest.mark.parametrize("base", [0.0, 5.0])
def test_a_rare_event_is_not_missed_with_an_interval_that_excludes_it(base: float) -> None:
    """One seed in twenty has 100, so the mean is 5; most samples of six seeds have none."""
    rng = np.random.default_rng(3)
    other = 100.0 * rng.binomial(1, 0.05, size=(400, 6))

    found = [gap_of([base] * 6, each) for each in other.tolist()]

    unseen = [each for each, own in zip(found, other, strict=True) if not own.any()]
    assert len(unseen) > 250
    assert not any(is_clear(each) for each in found)
    assert {(each["low"], each["high"], each["p"], each["p_holm"]) for each in unseen} == {
        (None, None, None, None)
    }


def test_equal_differences_count_as_comparisons_of_their_table() -> None:
    table = [
        {"variant": name, "seed": seed, "loss": value, "won": float(name == "new")}
        for name, values in (("base", [0.0] * 8), ("new", VALUES))
        for seed, value in enumerate(values)
    ]
    loss, won = differences(table, [], ["loss", "won"], baseline="base")
    assert won["p_holm"] is None
    assert loss["p_holm"] == 2 * loss["p"]


def test_differences_that_only_rounding_parts_are_equal() -> None:
    one, other = [1e6 + 0.1, 2e6 + 0.1, 3e6 + 0.1], [1e6, 2e6, 3e6]

    assert not is_clear(gap_of(one, other))


@pytest.mark.parametrize("other", [3.0, 4.0])
def test_equal_differences_need_no_number_of_seeds(other: float) -> None:
    gap = gap_of([3.0] * 8, [other] * 8)

    assert (gap["mean"], gap["seeds_needed"]) == (other - 3, None)


# Many comparisons


@pytest.mark.parametrize("margin", [0.5, 2.0, 6.0])
def test_equivalence_is_the_larger_p_of_two_one_sided_tests(margin: float) -> None:
    gaps = [0.4, -1.1, 2.0, 0.3, -0.6, 1.2]
    above = ttest_1samp(gaps, -margin, alternative="greater").pvalue
    below = ttest_1samp(gaps, margin, alternative="less").pvalue
    assert equivalence(mean_interval(gaps), margin) == pytest.approx(max(above, below))


@pytest.mark.parametrize("seeds", [3, 5, 20])
def test_a_gap_as_large_as_the_margin_is_seldom_called_equivalent(seeds: int) -> None:
    rng = np.random.default_rng(7)
    trials = [mean_interval(rng.normal(1.0, 0.7, seeds).tolist()) for _ in range(2_000)]
    wrong = sum(equivalence(trial, 1.0) <= 0.05 for trial in trials)
    assert wrong / len(trials) == pytest.approx(0.05, abs=0.016)


def test_equal_values_are_not_shown_to_be_equivalent() -> None:
    assert equivalence(mean_interval([0.0] * 20), 1.0) == 1.0


@pytest.mark.parametrize("margin", [0.0, -1.0, math.inf, math.nan])
def test_a_margin_that_is_none_is_refused(margin: float) -> None:
    with pytest.raises(ValueError, match="margin"):
        equivalence(mean_interval(VALUES), margin)


def test_holm_multiplies_the_smallest_by_all_and_never_orders_them_anew() -> None:
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_among_many_comparisons_of_noise_holm_seldom_finds_one() -> None:
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(100):
        table = [
            {"variant": name, "seed": seed, "loss": float(rng.normal())}
            for name in "abcdefghijk"
            for seed in range(6)
        ]
        found = differences(table, [], ["loss"], baseline="a")
        assert len(found) == 10
        wrong += any(each["p_holm"] <= 0.05 for each in found)

    assert wrong <= 12


# How many seeds


@pytest.mark.parametrize(("effect", "seeds"), [(0.5, 34), (0.8, 15), (1.0, 10), (2.0, 5)])
def test_seeds_to_show_are_those_of_the_printed_tables(effect: float, seeds: int) -> None:
    assert seeds_to_show(Difference(10, effect, 0, 0, 0.5, 1.0)) == seeds


def test_a_smaller_difference_needs_more_seeds_and_none_needs_no_number() -> None:
    assert seeds_to_show(Difference(10, 0.01, 0, 0, 0.5, 1.0)) == 78_489
    assert seeds_to_show(Difference(10, 1e-9, 0, 0, 0.9, 1.0)) is None
    assert seeds_to_show(Difference(10, 1e-7, 0, 0, 0.9, 1.0)) is None
    assert seeds_to_show(Difference(10, 0.0, 0, 0, 1.0, 1.0)) is None
    assert seeds_to_show(Difference(2, 5.0, 0, 0, 1.0, math.nan)) is None


def test_a_huge_difference_still_needs_three_seeds() -> None:
    assert seeds_to_show(Difference(10, 1e12, 0, 0, 0.0, 1.0)) == 3


def test_a_difference_among_many_needs_more_seeds() -> None:
    one = Difference(10, 1.0, 0, 0, 0.01, 1.0)

    assert seeds_to_show(one, alpha=0.005) > seeds_to_show(one)  # type: ignore[operator]


# Pairs


def test_a_paired_interval_is_narrower_than_that_of_either() -> None:
    other = [value + 1 + 0.1 * (place % 3) for place, value in enumerate(VALUES)]
    table = rows(
        *(("flat", 3, seed, value) for seed, value in enumerate(VALUES)),
        *(("tiers", 3, seed, value) for seed, value in enumerate(other)),
    )

    (gap,) = differences(table, ["limit"], ["loss"], baseline="flat")
    alone = mean_interval(VALUES)

    assert gap["high"] - gap["low"] < 0.1 * (alone.high - alone.low)


# A sweep


def test_rows_alike_in_the_keys_are_one_group() -> None:
    table = rows(("flat", 3, 0, 4.0), ("flat", 3, 1, 4.0), ("flat", 9, 0, 2.0))

    assert summarise(table, ["variant", "limit"], ["loss"]) == [
        {
            "variant": "flat",
            "limit": 3,
            "metric": "loss",
            "n": 2,
            "mean": 4.0,
            "low": None,
            "high": None,
        },
        {
            "variant": "flat",
            "limit": 9,
            "metric": "loss",
            "n": 1,
            "mean": 2.0,
            "low": None,
            "high": None,
        },
    ]


def test_groups_keep_the_order_in_which_they_appear() -> None:
    table = rows(("b", 1, 0, 1.0), ("a", 1, 0, 1.0), ("b", 1, 1, 1.0))

    assert [row["variant"] for row in summarise(table, ["variant"], ["loss"])] == ["b", "a"]


def test_missing_values_are_left_out_and_not_counted() -> None:
    table = rows(("a", 1, 0, 1.0), ("a", 1, 1, None), ("a", 1, 2, math.nan), ("b", 1, 0, None))

    assert [(row["variant"], row["n"]) for row in summarise(table, ["variant"], ["loss"])] == [
        ("a", 1)
    ]


def test_differences_compare_the_same_seed_at_the_same_grid_point() -> None:
    table = rows(
        ("flat", 3, 0, 10.0), ("flat", 3, 1, 20.0), ("flat", 9, 0, 1.0),
        ("tiers", 3, 1, 18.0), ("tiers", 3, 0, 8.0), ("tiers", 9, 0, 4.0),
    )  # fmt: skip

    found = differences(table, ["limit"], ["loss"], baseline="flat")

    assert [(row["variant"], row["limit"], row["n"], row["mean"]) for row in found] == [
        ("tiers", 3, 2, -2.0),
        ("tiers", 9, 1, 3.0),
    ]


def test_a_baseline_may_be_a_point_of_the_grid() -> None:
    table = [
        {"size": size, "noise": noise, "seed": seed, "loss": 10.0 * size + noise + seed}
        for size in (1, 2, 3)
        for noise in (0, 5)
        for seed in range(7)
    ]

    found = differences(table, ["noise"], ["loss"], baseline={"size": 2})

    assert [(row["size"], row["noise"], row["n"], row["mean"]) for row in found] == [
        (1, 0, 7, -10.0),
        (1, 5, 7, -10.0),
        (3, 0, 7, 10.0),
        (3, 5, 7, 10.0),
    ]


def test_a_run_without_a_counterpart_is_left_out() -> None:
    table = rows(("flat", 3, 0, 10.0), ("tiers", 3, 0, 8.0), ("tiers", 3, 1, 0.0))

    (row,) = differences(table, ["limit"], ["loss"], baseline="flat")

    assert (row["n"], row["mean"]) == (1, -2.0)


def test_a_setting_that_is_a_list_can_be_a_grid_value() -> None:
    table = [{"variant": "a", "seed": seed, "boosts": [0.3, 0.1], "loss": 1.0} for seed in (0, 1)]

    (row,) = summarise(table, ["variant", "boosts"], ["loss"])

    assert (row["boosts"], row["n"]) == ([0.3, 0.1], 2)


# Shapes


def test_the_interval_of_a_median_lies_between_two_values() -> None:
    # Of ten values, the second and the ninth enclose the median in 97.9 % of cases.
    found = median_test([1, 2, 3, 4, 5, 6, 7, 8, 9, -10])

    assert (found.median, found.low, found.high) == (4.5, 1, 8)
    assert found.p == pytest.approx(binomtest(1, 10).pvalue)
    assert median_test([1.0] * 5).low == -math.inf


@pytest.mark.parametrize("seeds", [6, 12, 20])
def test_a_permutation_exchanges_the_sides_of_each_pair(seeds: int) -> None:
    rng = np.random.default_rng(seeds)
    gaps = (rng.normal(size=seeds) + 0.5).tolist()

    flips = np.where(rng.random((200_000, seeds)) < 0.5, -1, 1)
    as_far = np.abs((flips * np.array(gaps)).sum(axis=1)) >= abs(sum(gaps)) * (1 - 1e-9)
    assert permutation_p(gaps) == pytest.approx(as_far.mean(), abs=0.015)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([5.0] * 10, [1.0, 2, 3, 4, 5, 6, 7, 8, 9, 11], True),  # one side does not vary
        ([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 11], [3.0, 1, 2, 7, 6, 5, 9, 4, 11, 8], False),
        ([0.0] * 9 + [100.0], list(np.linspace(0, 30, 10)), True),  # differences are skewed
        ([5.0, 5.0], [1.0, 9.0], False),  # too few to say anything
        ([5.0] * 40, list(np.linspace(0, 10, 40)), False),  # many, and not skewed
    ],
)
def test_another_shape_is_noticed(one: list[float], other: list[float], expected: bool) -> None:
    assert has_other_shape(one, other) is expected


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seeds", [10, 5, 30])
@pytest.mark.parametrize("width", [1.0, 1.5])
def test_a_constant_is_seldom_called_another_mean_than_skewed_numbers(
    seeds: int, width: float
) -> None:
    rng = np.random.default_rng(seeds)
    mean = math.exp(width**2 / 2)
    found = []
    for values in rng.lognormal(0.0, width, size=(300, seeds)).tolist():
        table = rows(
            *(("base", 1, seed, mean) for seed in range(seeds)),
            *(("new", 1, seed, value) for seed, value in enumerate(values)),
        )
        found += differences(table, ["limit"], ["loss"], baseline="base", shapes=True)

    assert sum(each["p"] <= 0.05 for each in found) > 20  # the t test's mistakes
    clear = [each for each in found if each["p_holm"] <= 0.05]
    assert sum(each["judged"] == "mean" for each in clear) <= 25


def test_a_constant_far_below_all_of_six_skewed_numbers_differs_from_their_mean() -> None:
    found = gap_of([0.0] * 6, [231.0, 245, 238, 240, 236, 243], shapes=True)

    assert (found["skewed"], found["judged"]) == (True, "mean")
    assert found["p_holm"] < 0.001


def test_seeds_for_a_median_are_those_of_the_sign_test() -> None:
    # 80 % of seeds above zero: printed tables have 20 to 25 seeds for a power of 80 %.
    assert 18 <= (seeds_for_median([1.0] * 80 + [-1.0] * 20) or 0) <= 26
    assert seeds_for_median([1.0, -1.0]) is None
    assert seeds_for_median([1.0] * 6, alpha=0.0) is None


@pytest.mark.parametrize("looks", [None, 1, 3])
def test_looks_never_spend_more_than_five_percent(looks: int | None) -> None:
    shares = [share_of_look(number, looks) for number in range(1, 60)]

    assert sum(shares) <= 0.05 * (1 + 1e-12)
    assert all(one >= other for one, other in pairwise(shares))


@pytest.mark.again
def test_following_seeds_needed_seldom_finds_a_difference_in_noise() -> None:
    rng = np.random.default_rng(11)
    found = 0
    for _ in range(200):
        one, other = rng.normal(size=(2, 100)).tolist()
        seeds = 10
        for look in range(1, 8):
            table = rows(
                *(("base", 1, seed, value) for seed, value in enumerate(one[:seeds])),
                *(("new", 1, seed, value) for seed, value in enumerate(other[:seeds])),
            )
            (row,) = differences(
                table, ["limit"], ["loss"], baseline="base",
                alpha=share_of_look(look, None), alpha_next=share_of_look(look + 1, None),
            )  # fmt: skip
            if row["p_holm"] <= 0.05 or seeds == 100:
                found += row["p_holm"] <= 0.05
                break
            seeds = min(100, max(seeds + 1, row["seeds_needed"] or 100))

    # With 5 % at each look some 20 of 200 are found; of 5 %, more than 17 come once in 30 times.
    assert found <= 17


# Over ticks


@pytest.mark.parametrize("seeds", [3, 10])
@pytest.mark.parametrize("kind", ["noise", "walk"])
def test_a_band_has_the_whole_true_line(kind: str, seeds: int) -> None:
    rng = np.random.default_rng(seeds)
    outside = 0
    for _ in range(400):
        runs = rng.normal(size=(seeds, 20))
        found = band(range(20), (runs.cumsum(axis=1) if kind == "walk" else runs).tolist())
        outside += not all(
            low <= 0 <= high for low, high in zip(found.low, found.high, strict=True)
        )

    # Of 400 trials with 5 % each, more than 33 happen once in 200 times.
    assert outside <= 33


def test_a_band_of_equal_runs_or_of_two_is_their_mean() -> None:
    equal, two = band([0, 1], [[1.0, 2.0]] * 4), band([0, 1], [[1.0, 2.0], [3.0, 4.0]])

    assert (equal.low, equal.high) == ([1.0, 2.0], [1.0, 2.0])
    assert (two.mean, two.low, two.high) == ([2.0, 3.0], [2.0, 3.0], [2.0, 3.0])
