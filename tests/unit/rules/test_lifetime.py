"""A new memory starts as asked, or as warm as its lifetime deserves; pinned is hot."""

import pytest

from agents import InvalidInput
from agents.memory.tiers import Temperature, Tier
from agents.rules.temperature import initial_temperature

HOT, WARM, COLD = Temperature


def start(ttl: int | None, initial: Temperature = HOT) -> Temperature:
    return initial_temperature(Tier.NORMAL, None, ttl, initial, warm_below=24, cold_below=4)


def test_without_a_lifetime_it_starts_as_configured() -> None:
    assert [start(None, initial) for initial in Temperature] == list(Temperature)


def test_a_short_life_starts_warm_and_a_shorter_one_cold() -> None:
    assert [start(ttl) for ttl in (3, 4, 23, 24)] == [COLD, WARM, WARM, HOT]


def test_without_bounds_the_lifetime_makes_no_difference() -> None:
    assert initial_temperature(Tier.LOW, None, 1, HOT, None, None) is HOT


def test_one_bound_works_without_the_other() -> None:
    assert initial_temperature(Tier.LOW, None, 1, HOT, 4, None) is WARM
    assert initial_temperature(Tier.LOW, None, 1, HOT, None, 4) is COLD


def test_what_is_asked_for_wins() -> None:
    assert initial_temperature(Tier.NORMAL, HOT, 1, WARM, 24, 4) is HOT


@pytest.mark.parametrize("asked", [None, HOT])
def test_pinned_is_hot_however_short_its_life(asked: Temperature | None) -> None:
    assert initial_temperature(Tier.PINNED, asked, 1, COLD, 24, 4) is HOT


@pytest.mark.parametrize("asked", [WARM, COLD])
def test_pinned_refuses_another_temperature(asked: Temperature) -> None:
    with pytest.raises(InvalidInput, match=f"a pinned memory is hot; .*{asked.name.lower()}"):
        initial_temperature(Tier.PINNED, asked, None, HOT, None, None)
