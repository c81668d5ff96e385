"""The market: agents that keep warnings in view stop losing money."""

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
from agents.simulation.worlds.market import Market

TRADERS = [f"agent_{number:02}" for number in range(12)]


@contextmanager
def market(
    seed: int = 0, *, tiers: bool = True, preset: str | None = None, **options: Any
) -> Iterator[tuple[Loop, Market]]:
    world = Market(**options)
    with MemoryBank.ephemeral(seed=seed, preset=preset) as bank:
        loop = Loop(bank, world, world.rules(tiers=tiers), TRADERS)
        loop.begin()
        yield loop, world


def play(ticks: int, seed: int = 0, **options: Any) -> list[dict[str, Any]]:
    with market(seed, **options) as (loop, _):
        return [loop.tick() for _ in range(ticks)]


def fresh(**options: Any) -> Market:
    """A market in its first tick, all offers made."""
    world = Market(**options)
    world.setup(Random(1), TRADERS)
    for trader in TRADERS:
        world.observe(trader)
    return world


def test_it_is_a_world_and_its_rules_a_policy() -> None:
    assert isinstance(Market(), World)
    assert isinstance(Market.rules(), Policy)


@pytest.mark.parametrize("preset", [None, "vector"])
def test_pinned_warnings_lose_less_than_half_of_what_flat_ones_lose(preset: str | None) -> None:
    flat, tiers = (play(40, tiers=tiers, preset=preset)[-1]["metrics"] for tiers in (False, True))
    assert tiers["loss"] < flat["loss"] / 2
    assert tiers["welfare"] > flat["welfare"]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("preset", [None, "vector"])
@pytest.mark.parametrize("asks", ["seller", "cheats"])
def test_a_trader_that_knows_what_to_ask_for_needs_no_tiers(asks: str, preset: str | None) -> None:
    flat, tiers = (
        play(40, tiers=tiers, preset=preset, asks=asks)[-1]["metrics"] for tiers in (False, True)
    )
    assert abs(flat["loss"] - tiers["loss"]) < tiers["loss"] / 10


@pytest.mark.long
def test_pins_that_fill_the_context_shut_out_the_warning_that_was_asked_for() -> None:
    flat, tiers = (
        play(60, tiers=tiers, asks="seller", scammers=7)[-1]["metrics"] for tiers in (False, True)
    )
    assert tiers["loss"] > flat["loss"] * 1.2


def test_in_the_morning_no_seller_is_named() -> None:
    world = Market()
    world.setup(Random(1), TRADERS)
    questions = {world.observe(trader).query for trader in TRADERS}
    assert len(questions) == 1
    assert not any(trader in question for trader in TRADERS for question in questions if question)


@pytest.mark.slow
def test_with_pinned_warnings_losses_end() -> None:
    records = play(120)
    assert sum(record["metrics"]["loss_tick"] for record in records[-20:]) == 0


def test_losses_by_tick_and_by_agent_add_up_to_the_loss() -> None:
    with market(turnover=5) as (loop, world):
        records = [loop.tick() for _ in range(20)]
        by_agent = world.by_agent()
    loss = records[-1]["metrics"]["loss"]
    assert loss == sum(record["metrics"]["loss_tick"] for record in records) > 0
    assert loss == sum(by_agent["loss"].values())


def test_welfare_is_the_gain_from_trades_less_the_losses() -> None:
    metrics = play(20)[-1]["metrics"]
    assert metrics["welfare"] == 3 * metrics["trades"] - metrics["loss"]


def test_without_scammers_nothing_is_lost() -> None:
    metrics = play(10, scammers=0)[-1]["metrics"]
    assert (metrics["loss"], metrics["scams"], metrics["trades"]) == (0, 0, 10 * len(TRADERS))


def test_a_cheated_trader_finds_out_in_the_next_tick() -> None:
    world = fresh(scammers=10)
    for trader in TRADERS:
        world.apply(trader, Action("accept"))
    world.end_tick()
    seen = [world.observe(trader) for trader in TRADERS]
    cheated = [observation for observation in seen if "cheated_by" in observation.facts]
    assert cheated
    for observation in cheated:
        assert f"{observation.facts['cheated_by']} cheated me" in observation.text


def test_scammers_change_over_in_turnover() -> None:
    with market(turnover=3) as (loop, world):
        loop.tick()
        before = world.get_state()["cheats"]
        for _ in range(2):
            loop.tick()
        after = world.get_state()["cheats"]
    assert sum(before) == sum(after) == 3
    assert sum(was != now for was, now in zip(before, after, strict=True)) == 2


def test_two_runs_with_one_seed_are_the_same() -> None:
    assert play(15) == play(15)
    assert play(15)[-1]["state_hash"] != play(15, 1)[-1]["state_hash"]


def test_a_world_made_anew_from_its_state_goes_on_the_same() -> None:
    expected = play(15, turnover=4)
    with MemoryBank.ephemeral(seed=0) as bank:
        records = []
        for ticks in (10, 5):
            world = Market(turnover=4)
            loop = Loop(bank, world, world.rules(), TRADERS)
            loop.begin()
            records += [loop.tick() for _ in range(ticks)]
    assert records == expected


def test_its_state_is_json_and_complete() -> None:
    with market(turnover=4) as (loop, world):
        for _ in range(10):
            loop.tick()
        state = world.get_state()
        other = Market(turnover=4)
        other.setup(Random(5), TRADERS)
        other.set_state(json.loads(json.dumps(state)))
        assert other.get_state() == state
        assert (other.metrics(), other.by_agent()) == (world.metrics(), world.by_agent())


def test_an_unknown_action_is_refused_with_what_there_is() -> None:
    with pytest.raises(InvalidAction, match=r"no action 'steal'.*accept: .*decline: "):
        fresh().apply(TRADERS[0], Action("steal"))


def test_an_argument_is_refused() -> None:
    with pytest.raises(InvalidAction, match="accept takes no arguments"):
        fresh().apply(TRADERS[0], Action("accept", {"price": 1}))


def test_an_offer_is_answered_once() -> None:
    world = fresh()
    world.apply(TRADERS[0], Action("decline"))
    with pytest.raises(InvalidAction, match="answered already"):
        world.apply(TRADERS[0], Action("accept"))


@pytest.mark.parametrize(
    ("option", "value"),
    [("scammers", -1), ("scammers", 2.5), ("scammers", "3"), ("gossip", 11), ("gossip", True),
     ("turnover", -5), ("turnover", None)],
)  # fmt: skip
def test_a_bad_option_is_named(option: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"world_options\.{option} is .*whole number"):
        Market(**{option: value})


def test_tiers_is_true_or_false() -> None:
    with pytest.raises(ConfigError, match=r"policy_options\.tiers is 'no'"):
        Market.rules(tiers="no")  # type: ignore[arg-type]


def stored(facts: dict[str, Any], days: int = 400, **options: Any) -> list[tuple[str, str]]:
    """The tier and the text of what a trader stores on days with these facts."""
    seen, rules, rng = Observation("an offer", facts=facts), Market.rules(**options), Random(3)
    kept = [each for _ in range(days) for each in rules.decide(seen, [], rng)[1:]]
    return [(each.arguments["tier"], each.arguments["content"]) for each in kept]


CHEATED = {"seller": TRADERS[1], "cheated_by": TRADERS[2]}


def test_a_well_worded_warning_has_the_words_of_the_mornings_question() -> None:
    ((tier, text),) = stored(CHEATED, 1, tiers=False, worded=True)
    assert tier == "normal"
    assert text.startswith("Keep in mind at the market: never accept an offer from agent_02")


def test_a_share_of_the_warnings_is_not_pinned() -> None:
    assert {tier for tier, _ in stored(CHEATED)} == {"pinned"}
    tiers = [tier for tier, _ in stored(CHEATED, missed=0.2)]
    assert len(tiers) == 400
    assert tiers.count("normal") == pytest.approx(80, abs=25)


def test_on_a_share_of_the_days_without_bad_news_the_offer_is_pinned() -> None:
    assert stored({"seller": TRADERS[1]}) == []
    pins = stored({"seller": TRADERS[1]}, false_pins=0.2)
    assert set(pins) == {("pinned", "an offer")}
    assert len(pins) == pytest.approx(80, abs=25)


@pytest.mark.parametrize("option", ["false_pins", "missed"])
@pytest.mark.parametrize("value", [-0.1, 1.1, "0.5", True, None, float("nan")])
def test_a_share_is_a_number_from_0_to_1(option: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"policy_options\.{option} is .*0 to 1"):
        Market.rules(**{option: value})


@pytest.mark.parametrize("asks", ["noon", None, 1])
def test_an_unknown_question_is_named_with_what_there_is(asks: Any) -> None:
    with pytest.raises(ConfigError, match=r"world_options\.asks is .*morning, seller, cheats"):
        Market(asks=asks)


def test_two_traders_must_be_honest() -> None:
    with pytest.raises(ConfigError, match=r"scammers is 11, of 12 agents"):
        Market(scammers=11).setup(Random(1), TRADERS)
