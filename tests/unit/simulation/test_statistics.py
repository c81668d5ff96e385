"""Means over seeds and their intervals."""

import math

import numpy as np
import pytest

from agents.simulation.statistics import (
    Interval,
    bootstrap_mean,
    differences,
    summarise,
)

VALUES = [3.1, 4.7, 2.2, 9.4, 5.0, 4.1, 3.3, 7.8]


def rows(*cells: tuple[str, int, int, float | None]) -> list[dict[str, object]]:
    return [{"variant": v, "limit": at, "seed": s, "loss": loss} for v, at, s, loss in cells]


# One mean


def test_the_mean_is_the_correctly_rounded_one() -> None:
    assert bootstrap_mean([1e16, 1.0, -1e16, 2.0]).mean == 0.75


def test_one_value_has_an_interval_of_no_width() -> None:
    assert bootstrap_mean([0.1]) == Interval(1, 0.1, 0.1, 0.1)


def test_equal_values_have_an_interval_of_no_width() -> None:
    assert bootstrap_mean([0.1] * 7) == Interval(7, 0.1, 0.1, 0.1)


def test_the_interval_holds_the_mean_and_stays_within_the_values() -> None:
    _, mean, low, high = bootstrap_mean(VALUES)

    assert min(VALUES) < low < mean < high < max(VALUES)


def test_the_same_arguments_give_the_same_bits() -> None:
    assert bootstrap_mean(VALUES) == bootstrap_mean(tuple(VALUES))


def test_the_interval_is_known_to_the_last_bit() -> None:
    _, _, low, high = bootstrap_mean([0.0, 1.0, 2.0, 4.0], seed=1, resamples=1_000)

    assert (low, high) == (0.5, 3.25)


def test_another_seed_gives_nearly_the_same_interval() -> None:
    one, other = bootstrap_mean(VALUES, seed=1), bootstrap_mean(VALUES, seed=2)

    assert one != other
    assert one.low == pytest.approx(other.low, abs=0.1)
    assert one.high == pytest.approx(other.high, abs=0.1)


def test_a_higher_level_gives_a_wider_interval() -> None:
    narrow, wide = bootstrap_mean(VALUES, level=0.5), bootstrap_mean(VALUES, level=0.99)

    assert wide.low < narrow.low < narrow.high < wide.high


def test_the_interval_is_close_to_the_normal_one_for_many_values() -> None:
    values = np.random.default_rng(3).normal(10, 2, 400)
    error = values.std() / math.sqrt(len(values))

    _, mean, low, high = bootstrap_mean(values.tolist())

    assert low == pytest.approx(mean - 1.96 * error, abs=0.1 * error)
    assert high == pytest.approx(mean + 1.96 * error, abs=0.1 * error)


@pytest.mark.parametrize("kind", ["normal", "skewed"])
def test_most_95_percent_intervals_hold_the_true_mean(kind: str) -> None:
    rng = np.random.default_rng(11)
    draw = rng.normal if kind == "normal" else rng.gamma
    true = 5.0 if kind == "normal" else 5.0 * 2.0
    samples = [draw(5.0, 2.0, 20).tolist() for _ in range(300)]

    found = [bootstrap_mean(sample, resamples=1_000) for sample in samples]

    assert 0.88 <= sum(low <= true <= high for _, _, low, high in found) / 300 <= 0.99


def test_intervals_over_ten_values_are_a_little_too_narrow() -> None:
    rng = np.random.default_rng(12)
    found = [bootstrap_mean(rng.normal(size=10).tolist(), resamples=1_000) for _ in range(600)]

    assert 0.86 <= sum(low <= 0 <= high for _, _, low, high in found) / 600 <= 0.94


def test_a_single_resample_is_enough_to_run() -> None:
    _, _, low, high = bootstrap_mean(VALUES, resamples=1)

    assert low == high


def test_no_values_have_no_mean() -> None:
    with pytest.raises(ValueError, match="no values"):
        bootstrap_mean([])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        bootstrap_mean([1.0, bad])


@pytest.mark.parametrize("wrong", [{"level": 0.0}, {"level": 95}, {"resamples": 0}])
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        bootstrap_mean(VALUES, **wrong)  # type: ignore[arg-type]


# Pairs


def test_a_paired_interval_is_narrower_than_that_of_either() -> None:
    other = [value + 1 + 0.1 * (place % 3) for place, value in enumerate(VALUES)]
    table = rows(
        *(("flat", 3, seed, value) for seed, value in enumerate(VALUES)),
        *(("tiers", 3, seed, value) for seed, value in enumerate(other)),
    )

    (gap,) = differences(table, ["limit"], ["loss"], baseline="flat")
    alone = bootstrap_mean(VALUES)

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
            "low": 4.0,
            "high": 4.0,
        },
        {
            "variant": "flat",
            "limit": 9,
            "metric": "loss",
            "n": 1,
            "mean": 2.0,
            "low": 2.0,
            "high": 2.0,
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

    assert differences(table, ["limit"], ["loss"], baseline="flat") == [
        {
            "variant": "tiers",
            "limit": 3,
            "metric": "loss",
            "n": 2,
            "mean": -2.0,
            "low": -2.0,
            "high": -2.0,
        },
        {
            "variant": "tiers",
            "limit": 9,
            "metric": "loss",
            "n": 1,
            "mean": 3.0,
            "low": 3.0,
            "high": 3.0,
        },
    ]


def test_a_run_without_a_counterpart_is_left_out() -> None:
    table = rows(("flat", 3, 0, 10.0), ("tiers", 3, 0, 8.0), ("tiers", 3, 1, 0.0))

    (row,) = differences(table, ["limit"], ["loss"], baseline="flat")

    assert (row["n"], row["mean"]) == (1, -2.0)


def test_a_setting_that_is_a_list_can_be_a_grid_value() -> None:
    table = [{"variant": "a", "seed": seed, "boosts": [0.3, 0.1], "loss": 1.0} for seed in (0, 1)]

    (row,) = summarise(table, ["variant", "boosts"], ["loss"])

    assert (row["boosts"], row["n"]) == ([0.3, 0.1], 2)
