"""The minority game: how many outcomes agents remember decides how unequal the groups are."""

import json
from random import Random
from typing import Any

import pytest

from agents import MemoryBank
from agents.errors import ConfigError, InvalidAction
from agents.simulation.protocols import Action, Observation, Policy, World
from agents.simulation.tick.loop import Loop
from agents.simulation.worlds.minority import Minority

PLAYERS = [f"agent_{number:02}" for number in range(31)]


def play(ticks: int, outcomes: int, seed: int = 1, **policy: Any) -> list[dict[str, Any]]:
    """The records of a game whose players know so many outcomes."""
    world = Minority(warm_up=30)
    with MemoryBank.ephemeral(seed=seed, memory={"default_limit": outcomes - 1}) as bank:
        loop = Loop(bank, world, world.rules(**policy), PLAYERS)
        loop.begin()
        return [loop.tick() for _ in range(ticks)]


def game(players: int = 3, **options: Any) -> Minority:
    """A game whose players have observed the first tick."""
    world = Minority(**options)
    world.setup(Random(1), PLAYERS[:players])
    for player in PLAYERS[:players]:
        world.observe(player)
    return world


def test_it_is_a_world_and_its_rules_a_policy() -> None:
    assert isinstance(Minority(), World)
    assert isinstance(Minority.rules(), Policy)


@pytest.mark.slow
def test_few_outcomes_make_crowds_and_some_more_make_the_groups_even() -> None:
    def spread(outcomes: int) -> float:
        return sum(play(90, outcomes, seed)[-1]["metrics"]["sigma2"] for seed in (1, 2)) / 2

    assert spread(1) > 0.5 > 0.15 > spread(4)  # coins would give 0.25


@pytest.mark.parametrize("outcomes", [1, 4])
def test_an_agent_goes_by_the_outcomes_that_a_search_gives_and_the_one_it_is_told(
    outcomes: int,
) -> None:
    world, rows = Minority(), []
    rules = world.rules()
    with MemoryBank.ephemeral(seed=1, memory={"default_limit": outcomes - 1}) as bank:

        class Watched:
            def decide(self, seen: Observation, memories: Any, rng: Random) -> Any:
                (joined,) = rules.decide(seen, memories, rng)
                rows.append((joined.reason.rsplit(" ", 1)[1], seen.text.split()[1]))
                return [joined]

        loop = Loop(bank, world, Watched(), PLAYERS[:1])
        loop.begin()
        for _ in range(8):
            loop.tick()
    told = "".join(last for _, last in rows)
    assert [row for row, _ in rows] == [told[max(0, end - outcomes) : end] for end in range(1, 9)]


def test_the_group_of_the_table_with_the_most_points_is_joined() -> None:
    world = game()
    for player, says in zip(PLAYERS, ("AB", "AB", "BA"), strict=False):
        world.apply(player, Action("join", {"says": says}))
    groups = list(world._joined)
    world.end_tick()
    smaller = next(group for group in "AB" if groups.count(group) < 2)
    assert world._points == [[int(each == smaller) for each in own] for own in ("AB", "AB", "BA")]
    for player in PLAYERS[:3]:
        world.observe(player)
        world.apply(player, Action("join", {"says": "AB"}))
    assert world._joined == ["AB"[own.index(1)] for own in world._points]
    assert world.metrics()["wins"] == groups.count(smaller) / 3


def test_sigma2_is_the_variance_of_a_groups_size_by_the_number_of_agents() -> None:
    world = game(warm_up=1, tables=1)
    for size in (3, 0, 1, 2):  # the first tick is left out
        for number, player in enumerate(PLAYERS[:3]):
            world.observe(player)
            world.apply(player, Action("join", {"says": "A" if number < size else "B"}))
        world.end_tick()
    assert world.metrics()["sigma2"] == pytest.approx((1 + 0 + 1) / 3 / 3)


def test_wins_that_matter_come_to_mind_before_newer_outcomes() -> None:
    with MemoryBank.ephemeral(seed=1, memory={"default_limit": 2}) as bank:
        world = Minority()
        loop = Loop(bank, world, world.rules(matters="wins"), PLAYERS)
        loop.begin()
        for _ in range(20):
            loop.tick()
        for player in PLAYERS:
            found = [hit.memory for hit in bank.agent(player).search(" ", limit=2)]
            assert {memory.tier.name for memory in found} == {"IMPORTANT"}
            assert all(memory.content.endswith("and I was in it") for memory in found)


def test_a_copy_that_goes_on_from_its_state_does_the_same() -> None:
    first = game(5)
    for player in PLAYERS[:4]:  # one joins no group
        first.apply(player, Action("join", {"says": "AB"}))
    first.end_tick()
    again = Minority()
    again.setup(Random(1), PLAYERS[:5])
    again.set_state(json.loads(json.dumps(first.get_state())))
    assert again.get_state() == first.get_state()
    assert [first.observe(one) for one in PLAYERS[:5]] == [
        again.observe(one) for one in PLAYERS[:5]
    ]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("leave", {}),
        ("join", {}),
        ("join", {"says": "A"}),
        ("join", {"says": "AC"}),
        ("join", {"says": ["A", "B"]}),
    ],
)
def test_what_can_not_be_done_is_refused(name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidAction):
        game().apply(PLAYERS[0], Action(name, arguments))


def test_who_is_in_a_group_stays_there_for_the_tick() -> None:
    world = game()
    world.apply(PLAYERS[0], Action("join", {"says": "AB"}))
    with pytest.raises(InvalidAction, match="already"):
        world.apply(PLAYERS[0], Action("join", {"says": "AB"}))


@pytest.mark.parametrize("options", [{"tables": 0}, {"tables": "2"}, {"warm_up": -1}])
def test_a_wrong_option_is_named(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        Minority(**options)
    with pytest.raises(ConfigError, match="matters"):
        Minority.rules(matters="all")
