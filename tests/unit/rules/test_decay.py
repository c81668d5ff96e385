"""Decay: scores halve with each half-life, and whole numbers of idle ticks decide what moves."""

import numpy as np
import pytest

from agents.memory.tiers import Temperature, Tier
from agents.rules.temperature import (
    NEVER_IDLE,
    SLOWEST,
    Decay,
    faded_score,
    idle_limits,
    slownesses,
)

HOT, WARM, COLD = Temperature
DECAY = Decay(half_lives=(0, 2160, 1440, 720, 168), hot_below=0.5, warm_below=0.25)


def test_a_score_halves_with_each_half_life() -> None:
    assert [faded_score(idle, 10, uses=0) for idle in (0, 10, 20)] == [1.0, 0.5, 0.25]


def test_what_was_ever_retrieved_fades_half_as_fast() -> None:
    assert faded_score(20, 10, uses=1) == faded_score(10, 10, uses=0)


def test_each_doubling_of_the_uses_adds_a_half_life() -> None:
    assert slownesses(np.array([0, 1, 2, 3, 4, 7, 8, 2**50])).tolist() == [
        0, 1, 2, 2, 3, 3, 4, SLOWEST,
    ]  # fmt: skip
    for uses in (1, 2, 4, 7, 8, 31):
        slower = 10 * (1 + int(slownesses(np.array([uses]))[0]))
        assert faded_score(slower, 10, uses) == 0.5


def test_a_half_life_of_0_never_fades() -> None:
    assert faded_score(10**9, 0, uses=0) == 1.0


def test_it_moves_when_the_score_is_below_the_threshold_not_when_it_equals_it() -> None:
    assert DECAY.idle_limit(Tier.NORMAL, HOT, slowness=0) == 721
    assert DECAY.idle_limit(Tier.NORMAL, WARM, slowness=0) == 1441


def test_what_was_ever_retrieved_moves_after_twice_the_time() -> None:
    assert DECAY.idle_limit(Tier.NORMAL, HOT, slowness=1) == 1441


def test_pinned_and_cold_never_move() -> None:
    assert DECAY.idle_limit(Tier.PINNED, HOT, slowness=0) is None
    assert DECAY.idle_limit(Tier.LOW, COLD, slowness=0) is None


def test_a_threshold_of_0_is_never_reached() -> None:
    assert Decay((0, 9, 9, 9, 9), 0.0, 0.0).idle_limit(Tier.LOW, HOT, slowness=0) is None


def test_a_threshold_of_1_moves_after_one_idle_tick() -> None:
    assert Decay((0, 9, 9, 9, 9), 1.0, 0.5).idle_limit(Tier.LOW, HOT, slowness=1) == 1


@pytest.mark.parametrize("threshold", [0.05, 0.1, 0.2, 0.3, 0.7, 0.9])
@pytest.mark.parametrize("half_life", [1, 24, 168, 720, 8760])
def test_the_limit_is_the_first_idle_tick_with_a_score_below(
    threshold: float, half_life: int
) -> None:
    limit = Decay((half_life,) * 5, threshold, 0.0).idle_limit(Tier.LOW, HOT, slowness=0)
    assert limit is not None
    assert faded_score(limit, half_life, uses=0) < threshold
    assert faded_score(limit - 1, half_life, uses=0) >= threshold


def test_the_table_holds_every_limit_by_tier_temperature_and_use() -> None:
    table = idle_limits(DECAY)
    assert table.shape == (5, 3, SLOWEST + 1)
    assert table.dtype == np.int64
    for tier in Tier:
        for temperature in Temperature:
            for slowness in range(SLOWEST + 1):
                limit = DECAY.idle_limit(tier, temperature, slowness)
                assert table[tier, temperature, slowness] == (
                    NEVER_IDLE if limit is None else limit
                )


def test_a_limit_beyond_counting_is_never() -> None:
    assert idle_limits(Decay((0, 0, 0, 0, 2**62), 0.1, 0.1))[Tier.LOW, HOT, 0] == NEVER_IDLE
