"""The building site: agents that pin the plan finish their houses."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from agents import MemoryBank
from agents.errors import ConfigError, InvalidAction
from agents.simulation.loop.loop import Loop
from agents.simulation.protocols import Action, Policy, World
from agents.simulation.worlds.builders import Builders

CREW = [f"agent_{number:02}" for number in range(8)]


@contextmanager
def site(seed: int = 0, *, tiers: bool = True, **options: int) -> Iterator[tuple[Loop, Builders]]:
    world = Builders(**options)
    with MemoryBank.ephemeral(seed=seed, preset="vector") as bank:
        loop = Loop(bank, world, world.rules(tiers=tiers), CREW)
        loop.begin()
        yield loop, world


def play(ticks: int, seed: int = 0, **options: Any) -> list[dict[str, Any]]:
    with site(seed, **options) as (loop, _):
        return [loop.tick() for _ in range(ticks)]


def ready(**options: int) -> tuple[Builders, list[str]]:
    """A site in its first tick, and what the first builder's cart has."""
    world = Builders(**options)
    world.setup(Random(1), CREW)
    carts = [world.observe(builder).facts["cart"] for builder in CREW]
    return world, carts[0]


def test_it_is_a_world_and_its_rules_a_policy() -> None:
    assert isinstance(Builders(), World)
    assert isinstance(Builders.rules(), Policy)


@pytest.mark.parametrize("seed", range(3))
def test_with_the_plan_pinned_no_part_is_wrong_and_without_many_are(seed: int) -> None:
    flat, tiers = (play(100, seed, tiers=tiers)[-1]["metrics"] for tiers in (False, True))
    assert tiers["wrong_parts"] == 0
    assert flat["wrong_parts"] > 20
    assert tiers["completion"] > flat["completion"]


def test_who_pins_the_plan_finishes() -> None:
    metrics = play(36, rooms=2, cart_every=2)[-1]["metrics"]
    assert metrics == {"completion": 1.0, "finished": len(CREW), "wrong_parts": 0}


def test_the_plan_is_read_out_once() -> None:
    world, _ = ready(rooms=2)
    world.end_tick()
    for _ in range(10):
        for builder in CREW:
            seen = world.observe(builder)
            assert "plan" not in seen.facts
            assert not any("The plan of my" in remark.text for remark in seen.heard)
        world.end_tick()


def test_a_wrong_part_is_torn_out_and_told() -> None:
    world, cart = ready()
    outcomes = []
    for material in cart:
        other = Builders()
        other.setup(Random(1), CREW)
        for builder in CREW:
            other.observe(builder)
        outcomes.append((material, other.apply(CREW[0], Action("place", {"material": material}))))
        assert other.by_agent()["wrong_parts"][CREW[0]] == (not outcomes[-1][1].success)
    assert sorted(outcome.success for _, outcome in outcomes) == [False, False, True]
    for material, outcome in outcomes:
        assert (f"is not {material}" in outcome.text) is not outcome.success
    assert world.by_agent()["wrong_parts"][CREW[0]] == 0


def test_completion_is_the_mean_over_builders() -> None:
    with site(tiers=False) as (loop, world):
        for _ in range(30):
            metrics = loop.tick()["metrics"]
        shares = world.by_agent()["completion"]
    assert metrics["completion"] == pytest.approx(sum(shares.values()) / len(CREW))


def test_two_runs_with_one_seed_are_the_same() -> None:
    assert play(15, tiers=False) == play(15, tiers=False)
    assert play(15)[-1]["state_hash"] != play(15, 1)[-1]["state_hash"]


def test_a_world_made_anew_from_its_state_goes_on_the_same() -> None:
    expected = play(15, tiers=False)
    with MemoryBank.ephemeral(seed=0, preset="vector") as bank:
        records = []
        for ticks in (10, 5):
            world = Builders()
            loop = Loop(bank, world, world.rules(tiers=False), CREW)
            loop.begin()
            records += [loop.tick() for _ in range(ticks)]
    assert records == expected


def test_its_state_is_json_and_complete() -> None:
    with site(tiers=False) as (loop, world):
        for _ in range(10):
            loop.tick()
        state = world.get_state()
        other = Builders()
        other.setup(Random(5), CREW)
        other.set_state(json.loads(json.dumps(state)))
        assert other.get_state() == state
        assert (other.metrics(), other.by_agent()) == (world.metrics(), world.by_agent())


def test_an_unknown_action_is_refused_with_what_there_is() -> None:
    world, _ = ready()
    with pytest.raises(InvalidAction, match=r"no action 'dig'.*place: .*material"):
        world.apply(CREW[0], Action("dig"))


@pytest.mark.parametrize("arguments", [{}, {"material": "gold"}, {"material": ["oak"]}])
def test_only_what_the_cart_has_can_be_placed(arguments: dict[str, Any]) -> None:
    world, cart = ready()
    with pytest.raises(InvalidAction, match=f"one of {', '.join(cart)}"):
        world.apply(CREW[0], Action("place", arguments))


def test_a_cart_is_good_for_one_part() -> None:
    world, cart = ready()
    world.apply(CREW[0], Action("place", {"material": cart[0]}))
    with pytest.raises(InvalidAction, match="there is no cart"):
        world.apply(CREW[0], Action("place", {"material": cart[0]}))


@pytest.mark.parametrize(
    ("option", "value"),
    [("rooms", 0), ("rooms", 9), ("cart_every", 0), ("choices", 1), ("talk", -1), ("talk", "2")],
)
def test_a_bad_option_is_named(option: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"world_options\.{option} is .*whole number"):
        Builders(**{option: value})


def test_one_builder_alone_is_too_few() -> None:
    with pytest.raises(ConfigError, match="two builders or more"):
        Builders().setup(Random(1), ["alone"])


def test_tiers_is_true_or_false() -> None:
    with pytest.raises(ConfigError, match=r"policy_options\.tiers is None"):
        Builders.rules(tiers=None)  # type: ignore[arg-type]
