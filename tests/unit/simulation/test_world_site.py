"""The building site: decisions are put away and recalled, blockers are in front."""

import json
from random import Random
from typing import Any

import pytest

from agents import MemoryBank
from agents.errors import ConfigError, InvalidAction
from agents.simulation.protocols import Action, Ask, Policy, World
from agents.simulation.tick.loop import Loop
from agents.simulation.worlds.site import Site

BUILDERS = [f"agent_{number:02}" for number in range(4)]


def play(
    ticks: int, seed: int = 0, preset: str | None = "hot-warm-cold", **policy: Any
) -> tuple[list[dict[str, Any]], list[Any]]:
    """The records of a run, and the memories that were cold or hot in the end."""
    world = Site()
    with MemoryBank.ephemeral(seed=seed, preset=preset, clock={"ticks_per_day": 10}) as bank:
        loop = Loop(bank, world, world.rules(**policy), BUILDERS)
        loop.begin()
        records = [loop.tick() for _ in range(ticks)]
        memories = [
            memory
            for builder in BUILDERS
            for heat in ("hot", "cold")
            for memory in bank.agent(builder).all(temperature=heat)
        ]
    return records, memories


def test_it_is_a_world_and_its_rules_a_policy() -> None:
    assert isinstance(Site(), World)
    assert isinstance(Site.rules(), Policy)


def test_decisions_become_cold_and_blockers_hot_until_they_are_mended() -> None:
    cold = [memory for memory in play(12)[1] if memory.temperature.name == "COLD"]
    assert {memory.kind for memory in cold} == {"decision"}
    records, memories = play(40)
    blockers = [memory for memory in memories if "blocker" in memory.tags]
    assert {memory.temperature.name for memory in blockers} == {"HOT"}
    assert sum(record["deleted"] for record in records) > 0


@pytest.mark.long
def test_builders_who_recall_are_right_and_others_guess() -> None:
    recalling, guessing = (play(60, recall=recall)[0] for recall in (True, False))
    assert recalling[-1]["metrics"]["right"] == 1.0
    assert guessing[-1]["metrics"]["right"] < 0.5
    assert sum(record["recalled"] for record in recalling) > 50
    assert sum(record["recalled"] for record in guessing) == 0


@pytest.mark.long
def test_blockers_in_front_save_days() -> None:
    hot, all_warm = (play(60, seed=1, preset=preset)[0] for preset in ("hot-warm-cold", None))
    assert hot[-1]["metrics"]["lost"] < all_warm[-1]["metrics"]["lost"]


def test_a_copy_that_goes_on_from_its_state_does_the_same() -> None:
    first = Site()
    first.setup(Random(3), BUILDERS)
    for _ in range(20):
        for builder in BUILDERS:
            first.observe(builder)
        first.end_tick()
    again = Site()
    again.setup(Random(3), BUILDERS)
    again.set_state(json.loads(json.dumps(first.get_state())))
    assert again.get_state() == first.get_state()
    for each in (first, again):
        each._rng = Random(9)
    assert [first.observe(one) for one in BUILDERS] == [again.observe(one) for one in BUILDERS]


@pytest.mark.parametrize(
    "action",
    [
        Action("lay", {"floor": "oak"}),
        Action("work", {"work": "sing"}),
        Action("work", {}),
        Action("dance", {}),
    ],
)
def test_what_can_not_be_done_is_refused(action: Action) -> None:
    site = Site()
    site.setup(Random(1), BUILDERS)
    site.observe(BUILDERS[0])
    with pytest.raises(InvalidAction):
        site.apply(BUILDERS[0], action)


def test_a_floor_that_is_not_there_can_be_laid_again() -> None:
    site = Site(rooms=1, every=2)
    site.setup(Random(1), BUILDERS)
    site.end_tick()
    seen = site.observe(BUILDERS[0])
    assert seen.facts["room"] == "kitchen"
    with pytest.raises(InvalidAction, match="one of oak"):
        site.apply(BUILDERS[0], Action("lay", {"floor": "grass"}))
    site.apply(BUILDERS[0], Action("lay", {"floor": "oak"}))


def test_a_builder_asks_once() -> None:
    site = Site(rooms=1, every=2)
    site.setup(Random(1), BUILDERS)
    site.end_tick()
    seen = site.observe(BUILDERS[0])._replace(asks_left=3)
    (asked,) = site.rules().decide(seen, [], Random(1))  # type: ignore[arg-type]
    assert isinstance(asked, Ask)
    (laid,) = site.rules().decide(seen._replace(asks_left=0), [], Random(1))  # type: ignore[arg-type]
    assert laid.name == "lay"  # type: ignore[union-attr]


@pytest.mark.parametrize("options", [{"rooms": 0}, {"rooms": 99}, {"every": "4"}, {"breaks": 0}])
def test_a_wrong_option_is_named(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        Site(**options)
    with pytest.raises(ConfigError, match="recall"):
        Site.rules(recall="yes")  # type: ignore[arg-type]
