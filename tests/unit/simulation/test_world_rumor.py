"""The rumour mill: agents that store the herald's word find it among the rumours."""

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
from agents.simulation.worlds.rumor import HERALD, Hearing, Rumor

VILLAGE = [f"agent_{number:02}" for number in range(12)]


@contextmanager
def village(
    seed: int = 0, *, tiers: bool = True, **options: int
) -> Iterator[tuple[Loop, Rumor, MemoryBank]]:
    world = Rumor(**options)
    with MemoryBank.ephemeral(seed=seed) as bank:
        loop = Loop(bank, world, world.rules(tiers=tiers), VILLAGE)
        loop.begin()
        yield loop, world, bank


def play(ticks: int, seed: int = 0, **options: Any) -> list[dict[str, Any]]:
    with village(seed, **options) as (loop, _, _):
        return [loop.tick() for _ in range(ticks)]


def ready(**options: int) -> Rumor:
    """A village in its first tick, all questions asked."""
    world = Rumor(**options)
    world.setup(Random(1), VILLAGE)
    for agent in VILLAGE:
        world.observe(agent)
    return world


def test_it_is_a_world_and_its_rules_a_policy() -> None:
    assert isinstance(Rumor(), World)
    assert isinstance(Rumor.rules(), Policy)


def test_critical_corrections_make_answers_truer() -> None:
    means = {
        tiers: sum(play(70, seed, tiers=tiers)[-1]["metrics"]["accuracy_mean"] for seed in range(3))
        for tiers in (False, True)
    }
    assert means[True] > means[False] * 1.05


def test_without_liars_nothing_false_is_said() -> None:
    metrics = play(20, liars=0)[-1]["metrics"]
    assert metrics["false_answers"] == 0
    assert metrics["accuracy_mean"] > 0


def test_without_corrections_no_truth_is_known() -> None:
    assert play(10, corrections=0)[-1]["metrics"]["accuracy_mean"] == 0


def test_the_mean_accuracy_is_the_mean_of_ticks_and_of_agents() -> None:
    with village() as (loop, world, _):
        records = [loop.tick() for _ in range(20)]
        by_agent = world.by_agent()["accuracy"]
    mean = records[-1]["metrics"]["accuracy_mean"]
    assert mean == pytest.approx(sum(record["metrics"]["accuracy"] for record in records) / 20)
    assert mean == pytest.approx(sum(by_agent.values()) / len(by_agent))
    assert len(by_agent) == len(VILLAGE) - 4


def test_a_remark_remembers_claim_source_and_tick() -> None:
    with village() as (loop, _, bank):
        for _ in range(5):
            loop.tick()
        heard = [
            memory
            for agent in VILLAGE
            for memory in bank.agent(agent).all()
            if "heard_tick" in memory.metadata
        ]
    assert heard
    for memory in heard:
        assert memory.metadata["heard_tick"] == memory.created_tick
        assert memory.content.startswith(f"{memory.metadata['source']} says the ")


def test_a_trace_leads_from_the_origin_to_the_agent() -> None:
    world = Rumor(claims=1, liars=0, corrections=0)
    world.setup(Random(2), VILLAGE)
    listener, chain = VILLAGE[3], []
    for tick in (1, 2, 3):
        seen = {agent: world.observe(agent) for agent in VILLAGE}
        speaker, listener = listener, seen[listener].facts["asker"]
        world.apply(speaker, Action("answer", {"holds": True}))
        world.end_tick()
        chain.append(Hearing(listener, speaker, tick + 1))
    for agent in VILLAGE:
        world.observe(agent)
    assert len({VILLAGE[3], *(hearing.agent_id for hearing in chain)}) == 4  # no agent twice
    assert world.trace("bridge", listener, True) == chain
    assert world.trace("bridge", listener, False) == []


def test_every_rumour_began_with_a_liar_and_every_truth_with_the_herald() -> None:
    with village() as (loop, world, _):
        for _ in range(30):
            loop.tick()
        honest = world.by_agent()["accuracy"]
        origins: dict[bool, set[str]] = {True: set(), False: set()}
        for claim, truth in world.truth.items():
            for agent in VILLAGE:
                for holds in (True, False):
                    chain = world.trace(claim, agent, holds)
                    assert [hearing.tick for hearing in chain] == sorted(
                        {hearing.tick for hearing in chain}
                    )
                    origins[holds == truth] |= {hearing.source for hearing in chain[:1]}
    assert origins[True] == {HERALD}
    assert origins[False]
    assert not origins[False] & {HERALD, *honest}


def test_two_runs_with_one_seed_are_the_same() -> None:
    assert play(15) == play(15)
    assert play(15)[-1]["state_hash"] != play(15, 1)[-1]["state_hash"]


def test_a_world_made_anew_from_its_state_goes_on_the_same() -> None:
    expected = play(15)
    with MemoryBank.ephemeral(seed=0) as bank:
        records = []
        for ticks in (10, 5):
            world = Rumor()
            loop = Loop(bank, world, world.rules(), VILLAGE)
            loop.begin()
            records += [loop.tick() for _ in range(ticks)]
    assert records == expected


def test_its_state_is_json_and_complete() -> None:
    with village() as (loop, world, bank):
        for _ in range(10):
            loop.tick()
        state = world.get_state()
        other = Rumor()
        Loop(bank, other, other.rules(), VILLAGE).begin()
        other.set_state(json.loads(json.dumps(state)))
        assert other.get_state() == state
        assert (other.metrics(), other.by_agent()) == (world.metrics(), world.by_agent())


def test_an_unknown_action_is_refused_with_what_there_is() -> None:
    with pytest.raises(InvalidAction, match=r"no action 'shout'.*answer: .*holds"):
        ready().apply(VILLAGE[0], Action("shout"))


@pytest.mark.parametrize("arguments", [{}, {"holds": "yes"}, {"holds": True, "to": "agent_01"}])
def test_an_answer_holds_or_does_not(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidAction, match="holds, which is true or false"):
        ready().apply(VILLAGE[0], Action("answer", arguments))


def test_a_question_is_answered_once() -> None:
    world = ready()
    world.apply(VILLAGE[0], Action("answer", {"holds": True}))
    with pytest.raises(InvalidAction, match="answered already"):
        world.apply(VILLAGE[0], Action("answer", {"holds": True}))


@pytest.mark.parametrize(
    ("option", "value"),
    [("claims", 0), ("claims", 9), ("liars", -1), ("liars", "4"), ("corrections", 0.5)],
)
def test_a_bad_option_is_named(option: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"world_options\.{option} is .*whole number"):
        Rumor(**{option: value})


@pytest.mark.parametrize("option", ["liars", "corrections"])
def test_an_option_that_the_village_is_too_small_for_is_named(option: str) -> None:
    with pytest.raises(ConfigError, match=rf"{option} is 13, of 12 agents"):
        Rumor(**{option: 13}).setup(Random(1), VILLAGE)


def test_tiers_is_true_or_false() -> None:
    with pytest.raises(ConfigError, match=r"policy_options\.tiers is 1"):
        Rumor.rules(tiers=1)  # type: ignore[arg-type]
