"""The household: servants that pin their standing orders break none."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from agents import MemoryBank
from agents.errors import ConfigError, InvalidAction
from agents.simulation.protocols import Action, Observation, Policy, World
from agents.simulation.tick.loop import Loop
from agents.simulation.worlds.household import Household

SERVANTS = [f"agent_{number:02}" for number in range(6)]


@contextmanager
def household(
    seed: int = 0, *, tiers: bool = True, preset: str | None = None, **options: int
) -> Iterator[tuple[Loop, Household, MemoryBank]]:
    world = Household(**options)
    with MemoryBank.ephemeral(seed=seed, preset=preset) as bank:
        loop = Loop(bank, world, world.rules(tiers=tiers), SERVANTS)
        loop.begin()
        yield loop, world, bank


def play(ticks: int, seed: int = 0, **options: Any) -> list[dict[str, Any]]:
    with household(seed, **options) as (loop, _, _):
        return [loop.tick() for _ in range(ticks)]


def ready(**options: int) -> tuple[Household, Observation]:
    """Houses in their first tick, and what the first servant sees."""
    world = Household(**options)
    world.setup(Random(1), SERVANTS)
    first, *_ = [world.observe(servant) for servant in SERVANTS]
    return world, first


def test_it_is_a_world_and_its_rules_a_policy() -> None:
    assert isinstance(Household(), World)
    assert isinstance(Household.rules(), Policy)


@pytest.mark.parametrize("preset", [None, "vector"])
def test_pinned_orders_are_kept_and_flat_ones_are_forgotten(preset: str | None) -> None:
    flat, tiers = (play(40, tiers=tiers, preset=preset)[-1]["metrics"] for tiers in (False, True))
    assert tiers == {"mistakes": 0, "kept": 1.0}
    assert flat["mistakes"] > 30


def test_with_more_orders_than_pins_some_are_broken() -> None:
    assert play(30, orders=8)[-1]["metrics"]["mistakes"] > 0


def test_each_order_is_told_once_and_one_a_tick() -> None:
    world = Household(orders=3, talk=0)
    world.setup(Random(1), SERVANTS)
    heard = []
    for _ in range(10):
        seen = world.observe(SERVANTS[0])
        heard.append([remark.text for remark in seen.heard])
        assert heard[-1] == [text for key, text in seen.facts.items() if key == "order"]
        world.end_tick()
    assert [len(texts) for texts in heard] == [1, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert len({text for texts in heard for text in texts}) == 3


def test_the_words_of_a_choice_are_not_those_of_the_order() -> None:
    world = Household(orders=8)
    for seed in range(20):
        world.setup(Random(seed), SERVANTS)
        orders = {servant: world.observe(servant).facts["order"] for servant in SERVANTS}
        for servant in SERVANTS:
            named = orders[servant].rpartition(" ")[2]  # what makes the young lady ill
            assert named not in world.observe(servant).text.split()


def test_exactly_one_thing_is_forbidden_and_told_as_a_mistake() -> None:
    _, seen = ready()
    things = seen.facts["things"]
    outcomes = []
    for thing in things:
        world, _ = ready()
        outcomes.append(world.apply(SERVANTS[0], Action("choose", {"thing": thing})))
        assert world.by_agent()["mistakes"][SERVANTS[0]] == (not outcomes[-1].success)
        assert ("bad mistake" in outcomes[-1].text) is not outcomes[-1].success
    assert len(things) == 3
    assert sorted(outcome.success for outcome in outcomes) == [False, True, True]


def test_a_regretted_thing_in_view_is_not_chosen_again() -> None:
    world, seen = ready()
    things = seen.facts["things"]
    with MemoryBank.ephemeral() as bank:
        memory = bank.agent(SERVANTS[0])
        bad = next(iter(things))
        memory.add(f"I served {bad} for supper, and that was a bad mistake")
        seen = seen._replace(facts={key: seen.facts[key] for key in ("kind", "things")})
        chosen = {
            world.rules().decide(seen, memory.search("supper"), Random(n))[0].arguments["thing"]
            for n in range(40)
        }
    assert chosen == set(things) - {bad}


def test_mistakes_of_the_servants_add_up() -> None:
    with household(tiers=False) as (loop, world, _):
        for _ in range(15):
            metrics = loop.tick()["metrics"]
        by_agent = world.by_agent()["mistakes"]
    assert metrics["mistakes"] == sum(by_agent.values()) > 0
    assert metrics["kept"] == 1 - metrics["mistakes"] / (15 * len(SERVANTS))


def test_an_order_is_stored_in_the_tick_of_its_number() -> None:
    with household(orders=4) as (loop, world, bank):
        for _ in range(6):
            loop.tick()
        pins = [memory for memory in bank.agent(SERVANTS[0]).all() if memory.tier.name == "PINNED"]
        assert [memory.created_tick for memory in pins] == [1, 2, 3, 4]
        assert world.get_state()["tick"] == bank.tick + 1


def test_two_runs_with_one_seed_are_the_same() -> None:
    assert play(12, tiers=False) == play(12, tiers=False)
    assert play(12)[-1]["state_hash"] != play(12, 1)[-1]["state_hash"]


def test_a_world_made_anew_from_its_state_goes_on_the_same() -> None:
    expected = play(15, tiers=False)
    with MemoryBank.ephemeral(seed=0) as bank:
        records = []
        for ticks in (3, 7, 5):
            world = Household()
            loop = Loop(bank, world, world.rules(tiers=False), SERVANTS)
            loop.begin()
            records += [loop.tick() for _ in range(ticks)]
    assert records == expected


def test_its_state_is_json_and_complete() -> None:
    with household(tiers=False) as (loop, world, _):
        for _ in range(10):
            loop.tick()
        state = world.get_state()
        other = Household()
        other.setup(Random(5), SERVANTS)
        other.set_state(json.loads(json.dumps(state)))
        assert other.get_state() == state
        assert (other.metrics(), other.by_agent()) == (world.metrics(), world.by_agent())


def test_an_unknown_action_is_refused_with_what_there_is() -> None:
    world, _ = ready()
    with pytest.raises(InvalidAction, match=r"no action 'dig'.*choose: .*thing"):
        world.apply(SERVANTS[0], Action("dig"))


@pytest.mark.parametrize("arguments", [{}, {"thing": "gold"}, {"thing": ["gold"]}])
def test_only_one_of_the_three_things_can_be_chosen(arguments: dict[str, Any]) -> None:
    world, seen = ready()
    with pytest.raises(InvalidAction, match=f"one of {', '.join(seen.facts['things'])}"):
        world.apply(SERVANTS[0], Action("choose", arguments))


def test_a_choice_is_made_once() -> None:
    world, seen = ready()
    choice = Action("choose", {"thing": next(iter(seen.facts["things"]))})
    world.apply(SERVANTS[0], choice)
    with pytest.raises(InvalidAction, match="chose already"):
        world.apply(SERVANTS[0], choice)


@pytest.mark.parametrize(
    ("option", "value"), [("orders", 0), ("orders", 9), ("talk", -1), ("talk", "2")]
)
def test_a_bad_option_is_named(option: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"world_options\.{option} is .*whole number"):
        Household(**{option: value})


def test_one_servant_alone_is_too_few() -> None:
    with pytest.raises(ConfigError, match="two servants or more"):
        Household().setup(Random(1), ["alone"])


def test_tiers_is_true_or_false() -> None:
    with pytest.raises(ConfigError, match=r"policy_options\.tiers is None"):
        Household.rules(tiers=None)  # type: ignore[arg-type]


def test_a_well_worded_order_says_at_which_choice_it_matters() -> None:
    _, seen = ready()
    _, stored = Household.rules(tiers=False, worded=True).decide(seen, [], Random(1))
    order = seen.facts["order"]
    asked = seen.text.split(":")[0]
    assert stored.arguments["content"] == f"{asked}? Keep in mind: {order}"


def test_an_order_is_understood_within_another_text() -> None:
    world, seen = ready(orders=1)
    orders = world.rules().decide(seen, [], Random(1))[-1].arguments["content"]
    with MemoryBank.ephemeral() as bank:
        memory = bank.agent(SERVANTS[0])
        memory.add(f"I learned two things: {orders}; the cook is kind")
        hits = memory.search(orders)
        facts = {key: value for key, value in seen.facts.items() if key != "order"}
        later = seen._replace(facts=facts)
        chosen = {
            world.rules().decide(later, hits, Random(seed))[0].arguments["thing"]
            for seed in range(20)
        }
    assert len(chosen) == 2
