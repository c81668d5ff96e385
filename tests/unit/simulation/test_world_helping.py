"""Helping: what onlookers remember of others decides whether help pays."""

import json
from random import Random
from typing import Any

import pytest

from agents import MemoryBank
from agents.errors import ConfigError, InvalidAction
from agents.simulation.protocols import Action, Observation, Policy, World
from agents.simulation.tick.loop import Loop
from agents.simulation.worlds.helping import Helping

PEOPLE = [f"agent_{number:02}" for number in range(12)]
HELP, REFUSE = Action("help"), Action("refuse")


def village(**options: Any) -> Helping:
    world = Helping(**options)
    world.setup(Random(1), PEOPLE)
    return world


def play(ticks: int, memories: int, seed: int = 1, **options: Any) -> list[dict[str, Any]]:
    """The records of a village whose people have so many memories in mind."""
    policy = {"matters": options.pop("matters", "nothing")}
    world = Helping(**options)
    with MemoryBank.ephemeral(seed=seed, memory={"default_limit": memories}) as bank:
        loop = Loop(bank, world, world.rules(**policy), PEOPLE)
        loop.begin()
        return [loop.tick() for _ in range(ticks)]


def known(memories: int, **options: Any) -> float:
    """The share of those asked for help who know something of the other."""
    share: float = play(20, memories, onlookers=11, **options)[-1]["metrics"]["known"]
    return share


def test_it_is_a_world_and_its_rules_a_policy() -> None:
    assert isinstance(Helping(), World)
    assert isinstance(Helping.rules(), Policy)


def test_who_remembers_more_knows_more_of_those_who_ask() -> None:
    assert known(0) == 0 < known(3) < known(30)
    assert known(3, asks="recipient") == known(30, asks="recipient") > known(3)


def test_help_pays_if_onlookers_remember_and_not_if_they_forget() -> None:
    def gain(memories: int) -> float:
        """How much better those fare who help the helpful than those who never help."""
        world = Helping(share=2, generation=40, onlookers=11)
        with MemoryBank.ephemeral(seed=1, memory={"default_limit": memories}) as bank:
            loop = Loop(bank, world, world.rules(), PEOPLE)
            loop.begin()
            world._thresholds = [0, 6] * 6
            for _ in range(39):
                loop.tick()
        return sum(world._fared[0::2]) - sum(world._fared[1::2])

    assert gain(0) < 0 < gain(60)


def test_only_onlookers_remember_and_only_for_a_lifetime() -> None:
    world = Helping(onlookers=4, generation=6, share=6)
    with MemoryBank.ephemeral(seed=1) as bank:
        loop = Loop(bank, world, world.rules(), PEOPLE)
        loop.begin()
        loop.tick(), loop.tick()
        texts = [memory.content for one in PEOPLE for memory in bank.agent(one).all()]
        acts = [text for text in texts if text.endswith("one who asked")]
        assert len(acts) == 2 * 4
        assert len(texts) - len(acts) == 2 * 2  # who was asked knows by whom
        for _ in range(5):
            loop.tick()
        assert {memory.created_tick for one in PEOPLE for memory in bank.agent(one).all()} == {7}


def test_help_costs_less_than_it_gives_and_nobody_fares_below_zero() -> None:
    world = village(share=6, benefit=10, cost=3)
    (first, gets), (second, asks) = world._asked_by.items()
    world.apply(first, HELP)
    world.apply(second, REFUSE)
    world.end_tick()
    fared = dict(zip(PEOPLE, world._fared, strict=True))
    assert [fared[one] for one in (first, gets, second, asks)] == [0, 13, 3, 3]


def test_the_children_have_the_thresholds_of_those_who_fared_well() -> None:
    world = village(generation=1, share=6)
    first, gets = next(iter(world._asked_by.items()))
    world._thresholds = [number - 5 for number in range(12)]
    world.apply(first, HELP)
    world._fared = [0] * 12
    world._asked_by = {first: gets}
    world.end_tick()
    assert set(world._thresholds) == {PEOPLE.index(gets) - 5}
    assert world._fared == [0] * 12


@pytest.mark.parametrize(
    ("acts", "threshold", "name", "image"),
    [
        ("", 0, "help", None),
        ("", 1, "refuse", None),
        ("hhr", 1, "help", 1),
        ("hhr", 2, "refuse", 1),
        ("rrrrrrr", -5, "help", -5),
        ("hhhhhhh", 6, "refuse", 5),
    ],
)
def test_the_image_is_help_less_refusals(
    acts: str, threshold: int, name: str, image: int | None
) -> None:
    words = {"h": "helped", "r": "refused"}
    seen = Observation("bob asks me for help", "", {"recipient": "bob", "threshold": threshold})
    with MemoryBank.ephemeral(seed=1) as bank:
        for tick, act in enumerate(acts, 1):
            bank.advance(tick)
            bank.agent("ann").add(f"bob {words[act]} one who asked")
            bank.agent("ann").add(f"bobby {words[act]} one who asked")
        (done,) = Helping.rules().decide(seen, bank.agent("ann").search("", limit=20), Random(1))
    assert (done.name, done.arguments.get("image")) == (name, image)


def test_refusals_that_matter_come_to_mind_first_and_count_once() -> None:
    with MemoryBank.ephemeral(seed=1) as bank:
        world = Helping(onlookers=11)
        loop = Loop(bank, world, world.rules(matters="refusals"), PEOPLE)
        loop.begin()
        for _ in range(8):
            loop.tick()
        known = {one: [memory.content for memory in bank.agent(one).all()] for one in PEOPLE}
        saw = [one for one, texts in known.items() if "refused one who asked" in str(texts)]
        found = [hit.memory for one in saw for hit in bank.agent(one).search("", limit=1)]
        assert {memory.tier.name for memory in found} == {"IMPORTANT"}
        assert all(memory.content.endswith("refused one who asked") for memory in found)
        both = bank.agent(saw[0]).search("", limit=100)
        name = found[0].content.split()[0]
        seen = Observation("", "", {"recipient": name, "threshold": 0})
        (done,) = world.rules().decide(seen, both, Random(1))
        acts = [hit.memory for hit in both if hit.memory.content.startswith(f"{name} refused")]
        assert done.arguments["image"] == -len({act.created_tick for act in acts}) == -len(acts) / 2


def test_a_copy_that_goes_on_from_its_state_does_the_same() -> None:
    first = village()
    for donor, act in zip(first._asked_by, (HELP, REFUSE, HELP), strict=True):
        first.apply(donor, act)
    first.end_tick()
    again = village()
    again.set_state(json.loads(json.dumps(first.get_state())))
    assert again.get_state() == first.get_state()
    assert [first.observe(one) for one in PEOPLE] == [again.observe(one) for one in PEOPLE]


def test_what_can_not_be_done_is_refused() -> None:
    world = village()
    donor = next(iter(world._asked_by))
    free = next(one for one in PEOPLE if one not in world._asked_by)
    for one, action in ((donor, Action("run")), (free, HELP)):
        with pytest.raises(InvalidAction):
            world.apply(one, action)
    world.apply(donor, HELP)
    with pytest.raises(InvalidAction, match="already"):
        world.apply(donor, REFUSE)


@pytest.mark.parametrize(
    "options",
    [{"share": 1}, {"onlookers": -1}, {"generation": 0}, {"mutants": 1001}, {"asks": "all"}],
)
def test_a_wrong_option_is_named(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        Helping(**options)
    with pytest.raises(ConfigError, match="matters"):
        Helping.rules(matters="all")
