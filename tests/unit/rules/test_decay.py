"""Decay: scores halve with each half-life, and whole numbers of idle ticks decide what moves."""

import numpy as np
import pytest

from agents.memory.temperature import Temperature
from agents.memory.tiers import Tier
from agents.rules.decay import NEVER, Decay, limits, score

HOT, WARM, COLD = Temperature
DECAY = Decay(half_lives=(0, 2160, 1440, 720, 168), hot_below=0.5, warm_below=0.25)


def test_a_score_halves_with_each_half_life() -> None:
    assert [score(idle, 10, used=False) for idle in (0, 10, 20)] == [1.0, 0.5, 0.25]


def test_what_was_ever_retrieved_fades_half_as_fast() -> None:
    assert score(20, 10, used=True) == score(10, 10, used=False)


def test_a_half_life_of_0_never_fades() -> None:
    assert score(10**9, 0, used=False) == 1.0


def test_it_moves_when_the_score_is_below_the_threshold_not_when_it_equals_it() -> None:
    assert DECAY.idle_limit(Tier.NORMAL, HOT, used=False) == 721
    assert DECAY.idle_limit(Tier.NORMAL, WARM, used=False) == 1441


def test_what_was_ever_retrieved_moves_after_twice_the_time() -> None:
    assert DECAY.idle_limit(Tier.NORMAL, HOT, used=True) == 1441


def test_pinned_and_cold_never_move() -> None:
    assert DECAY.idle_limit(Tier.PINNED, HOT, used=False) is None
    assert DECAY.idle_limit(Tier.LOW, COLD, used=False) is None


def test_a_threshold_of_0_is_never_reached() -> None:
    assert Decay((0, 9, 9, 9, 9), 0.0, 0.0).idle_limit(Tier.LOW, HOT, used=False) is None


def test_a_threshold_of_1_moves_after_one_idle_tick() -> None:
    assert Decay((0, 9, 9, 9, 9), 1.0, 0.5).idle_limit(Tier.LOW, HOT, used=True) == 1


@pytest.mark.parametrize("threshold", [0.05, 0.1, 0.2, 0.3, 0.7, 0.9])
@pytest.mark.parametrize("half_life", [1, 24, 168, 720, 8760])
def test_the_limit_is_the_first_idle_tick_with_a_score_below(
    threshold: float, half_life: int
) -> None:
    limit = Decay((half_life,) * 5, threshold, 0.0).idle_limit(Tier.LOW, HOT, used=False)
    assert limit is not None
    assert score(limit, half_life, used=False) < threshold
    assert score(limit - 1, half_life, used=False) >= threshold


def test_the_table_holds_every_limit_by_tier_temperature_and_use() -> None:
    table = limits(DECAY)
    assert table.shape == (5, 3, 2)
    assert table.dtype == np.int64
    for tier in Tier:
        for temperature in Temperature:
            for used in (False, True):
                limit = DECAY.idle_limit(tier, temperature, used)
                assert table[tier, temperature, int(used)] == (NEVER if limit is None else limit)


def test_a_limit_beyond_counting_is_never() -> None:
    assert limits(Decay((0, 0, 0, 0, 2**62), 0.1, 0.1))[Tier.LOW, HOT, 0] == NEVER
