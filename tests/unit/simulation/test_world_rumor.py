"""The rumour mill: agents that store the herald's word find it among the rumours."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from agents import MemoryBank
from agents.errors import ConfigError, InvalidAction
from agents.simulation.protocols import Action, Observation, Policy, World
from agents.simulation.society import Society
from agents.simulation.tick.loop import Loop
from agents.simulation.worlds.rumor import HERALD, PAYMASTER, Rumor
from examples import some

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


@pytest.mark.long
def test_critical_corrections_make_answers_truer() -> None:
    seeds = some(range(3), 0)
    means = {
        tiers: sum(play(70, seed, tiers=tiers)[-1]["metrics"]["accuracy_mean"] for seed in seeds)
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


def test_every_rumour_began_with_a_liar_and_every_truth_with_the_herald() -> None:
    with village() as (loop, world, bank):
        for _ in range(30):
            loop.tick()
        honest = world.by_agent()["accuracy"]
        said = {text: true for each in world.facts().values() for text, true in each.items()}
        told = [memory for name in VILLAGE for memory in bank.agent(name).all() if memory.source]
        hands = set()
        for memory in told:
            chain = bank.chain(memory)
            assert chain.is_whole
            origin = chain.memories[-1]
            hands.add(memory.source.hands)
            assert (origin.id, len(chain.memories)) == (
                memory.source.origin_id,
                memory.source.hands + 1,
            )
            if said[_statement(memory.content)]:
                assert origin.content.startswith(f"{HERALD} says ")
                assert origin.agent_id in honest
            else:
                assert origin.speaker == PAYMASTER
                assert origin.agent_id not in honest
    assert hands >= {1, 2}


def _statement(text: str) -> str:
    return text.removeprefix(f"{HERALD} says ").removesuffix(", that is certain")


def test_only_the_one_who_asks_is_told() -> None:
    with village() as (loop, _, _):
        records = [loop.tick() for _ in range(8)]
        assert all(record["errors"] == 0 for record in records)
    world = ready()
    asker = world.observe(VILLAGE[0]).facts["asker"]
    others = [name for name in VILLAGE if name != asker]
    assert world.may_tell(VILLAGE[0], asker)
    assert not any(world.may_tell(VILLAGE[0], name) for name in others)


def test_in_a_society_only_who_can_hear_an_agent_asks_it() -> None:
    alone, *others = VILLAGE
    ties = [(one, other) for one, other in pairwise(others)]
    with village() as (loop, world, bank):
        world.society = Society.of_edges(VILLAGE, ties)  # type: ignore[attr-defined]
        records = [loop.tick() for _ in range(12)]
        assert all(record["errors"] == 0 for record in records)
        held = [memory for name in VILLAGE for memory in bank.agent(name).all() if memory.source]
        heard = {(each.source.teller, each.agent_id) for each in held if each.source}
        assert {tuple(sorted(pair)) for pair in heard} == set(ties)
        observed = world.observe(alone)
    assert observed.facts["asker"] is None
    assert observed.text.startswith("A stranger asks me whether ")


def test_hearsay_of_the_heralds_word_is_a_voice_like_any_other() -> None:
    asked = Observation("", facts={"claim": "bridge", "asker": "bob", "corrections": []})
    with MemoryBank.ephemeral() as bank:
        alice, carol = bank.agent("alice"), bank.agent("carol")
        word = carol.add(f"{HERALD} says the north bridge is open")
        alice.get(carol.social.tell("alice", word.id).memory_id)
        for number in range(2):
            lie = bank.agent(f"liar_{number}").add("the north bridge is closed")
            bank.agent(f"liar_{number}").social.tell("alice", lie.id)
        hits = alice.search("is the north bridge open or closed?")
        (answer, *_) = Rumor.rules().decide(asked, hits, Random(1))
        assert (answer.name, answer.arguments) == ("answer", {"holds": False})
        alice.add(f"{HERALD} says the north bridge is open")
        hits = alice.search("is the north bridge open or closed?")
        answer, tell = Rumor.rules().decide(asked, hits, Random(1))
        assert (answer.name, answer.arguments) == ("answer", {"holds": True})
        assert (tell.name, tell.arguments["to"]) == ("tell", "bob")


@pytest.mark.slow
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
