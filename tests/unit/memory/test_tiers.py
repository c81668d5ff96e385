"""The five tiers, and all that may be said for one."""

from fractions import Fraction

import numpy as np
import pytest

from agents import TIER_NAMES, TIER_VALUES, AgentMemory, InvalidTier, Tier, TierMemError
from agents.memory.tiers import parse_tier

NOT_TIERS = [
    7, -1, 5, "urgent", "", " pinned", "pinned ", "0", "3", True, False, 2.5, 2.0, None,
    b"pinned", ["pinned"], ("pinned",), {}, object, 10**30, float("nan"), Fraction(2), "pınned",
]  # fmt: skip


def test_tiers_run_from_pinned_0_to_low_4() -> None:
    assert [(tier.name, int(tier)) for tier in Tier] == [
        ("PINNED", 0),
        ("CRITICAL", 1),
        ("IMPORTANT", 2),
        ("NORMAL", 3),
        ("LOW", 4),
    ]


def test_names_and_values_are_exact_inverses() -> None:
    assert {name: tier for tier, name in TIER_NAMES.items()} == TIER_VALUES
    assert {tier: name for name, tier in TIER_VALUES.items()} == TIER_NAMES
    assert set(TIER_NAMES) == set(Tier)


@pytest.mark.parametrize("tier", list(Tier))
def test_a_tier_may_be_an_int_a_tier_or_a_name_in_any_case(tier: Tier) -> None:
    name = TIER_NAMES[tier]
    for value in (tier, int(tier), name, name.upper(), name.title(), np.int64(tier)):
        assert parse_tier(value) is tier


@pytest.mark.parametrize("value", NOT_TIERS, ids=repr)
def test_anything_else_is_an_invalid_tier(value: object) -> None:
    with pytest.raises(InvalidTier, match=r"0 pinned.*4 low"):
        parse_tier(value)


@pytest.mark.parametrize("value", ["hot", "Cold", "lukewarm", 7])
def test_a_refusal_names_the_temperatures_beside_the_tiers(
    alice: AgentMemory, value: object
) -> None:
    named = rf"{value!r} is not a tier.*0 pinned.*4 low; hot, warm and cold are temperatures"
    for call in (alice.add, alice.search):
        with pytest.raises(InvalidTier, match=named):
            call("x", tier=value)  # type: ignore[operator]


def test_a_refused_tier_is_shown_in_the_message() -> None:
    with pytest.raises(InvalidTier, match="'urgent'"):
        parse_tier("urgent")


def test_an_invalid_tier_is_also_a_value_error() -> None:
    assert issubclass(InvalidTier, ValueError)
    assert issubclass(InvalidTier, TierMemError)


@pytest.mark.parametrize("value", [each for each in NOT_TIERS if each is not None], ids=repr)
def test_adding_at_an_invalid_tier_stores_nothing(alice: AgentMemory, value: object) -> None:
    with pytest.raises(InvalidTier):
        alice.add("x", tier=value)  # type: ignore[arg-type]
    assert alice.count() == 0


@pytest.mark.parametrize("value", [7, -1, "urgent", True, 2.5], ids=repr)
def test_every_method_that_takes_a_tier_refuses_an_invalid_one(
    alice: AgentMemory, value: object
) -> None:
    memory = alice.add("x", tier="pinned")
    calls = [
        lambda: alice.add_many([("y",), ("z", value)]),
        lambda: alice.set_tier(memory.id, value),  # type: ignore[arg-type]
        lambda: alice.unpin(memory.id, value),  # type: ignore[arg-type]
        lambda: alice.record_action("buy", "bread", True, tier=value),  # type: ignore[arg-type]
        lambda: alice.record_observation("rain", tier=value),  # type: ignore[arg-type]
        lambda: alice.add_messages("hello", infer=False, tier=value),  # type: ignore[arg-type]
        lambda: alice.all(tier=value),  # type: ignore[arg-type]
        lambda: alice.count(tier=value),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(InvalidTier):
            call()
    assert alice.all() == [memory]


@pytest.mark.parametrize("value", [Tier.LOW, 4, "low", "LOW", "Low"])
def test_every_spelling_of_a_tier_stores_the_same_tier(alice: AgentMemory, value: object) -> None:
    assert alice.add("x", tier=value).tier is Tier.LOW  # type: ignore[arg-type]


def test_a_memory_is_normal_unless_told(alice: AgentMemory) -> None:
    assert alice.add("x").tier is Tier.NORMAL
