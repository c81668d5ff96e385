"""The town: people meet where their days lead them, and go where they heard that something is."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from agents import MemoryBank
from agents.errors import ConfigError, InvalidAction
from agents.simulation.protocols import Action, Policy, World
from agents.simulation.tick.loop import Loop
from agents.simulation.worlds.town import DAY, Town

PEOPLE = [f"agent_{number:02}" for number in range(12)]
NINE = 4
"""The tick at nine in the morning of day 1, when the first news comes."""
SIX = 2 * DAY + 13
"""The tick at six in the evening of day 3, when the first event takes place."""


@contextmanager
def town(seed: int = 0, **options: int) -> Iterator[tuple[Loop, Town, MemoryBank]]:
    world = Town(**options)
    with MemoryBank.ephemeral(seed=seed) as bank:
        loop = Loop(bank, world, world.rules(), PEOPLE)
        loop.begin()
        yield loop, world, bank


def play(ticks: int, seed: int = 0, **options: int) -> list[dict[str, Any]]:
    with town(seed, **options) as (loop, _, _):
        return [loop.tick() for _ in range(ticks)]


def knowing(bank: MemoryBank, text: str) -> set[str]:
    return {name for name in PEOPLE if any(m.content == text for m in bank.agent(name).all())}


def at(tick: int, **options: int) -> Town:
    """A town that got to this tick without anybody doing anything."""
    world = Town(**options)
    world.setup(Random(1), PEOPLE)
    for _ in range(1, tick):
        world.end_tick()
    return world


def test_it_is_a_world_and_its_rules_a_policy() -> None:
    assert isinstance(Town(), World)
    assert isinstance(Town.rules(), Policy)


@pytest.mark.slow
def test_news_goes_from_its_host_to_others_and_brings_them_to_the_place() -> None:
    with town(events=1, rumours=0, talk=60) as (loop, world, bank):
        ((text, is_true),) = world.facts()["concert"].items()
        assert is_true
        known = []
        for _ in range(SIX):
            loop.tick()
            known.append(len(knowing(bank, text)))
        assert known[NINE - 2 : NINE] == [0, 1]
        assert known == sorted(known)
        assert known[-1] > 6
        attended = world.metrics()["attended"]
        assert 6 < attended <= known[-1]
        assert world.metrics()["misled"] == 0


@pytest.mark.slow
def test_a_false_place_goes_round_beside_the_true_one_and_misleads() -> None:
    with town(3, events=2, rumours=1, talk=60) as (loop, world, bank):
        facts = world.facts()
        assert {subject: sorted(each.values()) for subject, each in facts.items()} == {
            "concert": [False, True],
            "play": [True],
        }
        for _ in range(SIX):
            loop.tick()
        (lie,) = [text for text, is_true in facts["concert"].items() if not is_true]
        assert len(knowing(bank, lie)) > 1
        assert world.metrics()["misled"] > 0


def test_nobody_tells_what_nobody_heard_and_nobody_talks_at_night() -> None:
    records = play(DAY, events=0)
    assert records[-1]["metrics"] == {
        "attended": 0,
        "misled": 0,
        "talks": records[15]["metrics"]["talks"],
    }
    assert records[-1]["metrics"]["talks"] > 0
    assert play(DAY, events=0, talk=0)[-1]["metrics"]["talks"] == 0


def test_two_who_talk_talk_with_each_other() -> None:
    with town(talk=80) as (_, world, _):
        for _ in range(DAY):
            seen = {name: world.observe(name).facts.get("partner") for name in PEOPLE}
            assert all(seen[other] == name for name, other in seen.items() if other)
            world.end_tick()


def test_two_runs_with_one_seed_are_the_same() -> None:
    assert play(30) == play(30)
    assert play(30)[-1]["state_hash"] != play(30, 1)[-1]["state_hash"]


@pytest.mark.slow
def test_a_world_made_anew_from_its_state_goes_on_the_same() -> None:
    options = {"events": 2, "talk": 60}
    expected = play(SIX + 4, **options)
    with MemoryBank.ephemeral(seed=0) as bank:
        records = []
        for ticks in (30, SIX - 29, 3):
            world = Town(**options)
            loop = Loop(bank, world, world.rules(), PEOPLE)
            loop.begin()
            records += [loop.tick() for _ in range(ticks)]
        assert json.loads(json.dumps(world.get_state())) == world.get_state()
    assert records == expected


def test_an_unknown_action_is_refused_with_what_there_is() -> None:
    with pytest.raises(InvalidAction, match=r"no action 'shout'.*go: .*place"):
        at(1).apply(PEOPLE[0], Action("shout"))


def test_one_goes_to_a_place_once_and_in_the_evening() -> None:
    world = at(SIX)
    for arguments in ({}, {"place": "moon"}, {"place": "park", "with": "agent_01"}):
        with pytest.raises(InvalidAction, match="go takes one argument: place, one of square"):
            world.apply(PEOPLE[0], Action("go", arguments))
    world.apply(PEOPLE[0], Action("go", {"place": "park"}))
    with pytest.raises(InvalidAction, match="once an evening"):
        world.apply(PEOPLE[0], Action("go", {"place": "park"}))
    with pytest.raises(InvalidAction, match="at six"):
        at(SIX - 1).apply(PEOPLE[0], Action("go", {"place": "park"}))


@pytest.mark.parametrize(
    ("option", "value"),
    [("events", 13), ("rumours", 13), ("hosts", 0), ("talk", 101), ("talk", "often")],
)
def test_a_bad_option_is_named(option: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"world_options\.{option} is .*whole number"):
        Town(**{option: value})


def test_a_town_needs_two_people_for_each_host() -> None:
    with pytest.raises(ConfigError, match="hosts is 7, of 12 agents"):
        Town(hosts=7).setup(Random(1), PEOPLE)
