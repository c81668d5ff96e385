"""Agents tell each other memories in a simulation."""

import json
from typing import Any

import pytest

from agents import InvalidAction, MemoryBank, SimulationError
from agents.memory.sources import Source, Telling
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.protocols import Action, Observation
from agents.simulation.tick.loop import Loop
from banks import MakeBank, contents
from worlds import Diary, Mind

AGENTS = ["alice", "bob", "carol"]
NEWS = "agent_X cheats <1 0>"


def in_tick(number: int, agent: str, *actions: Any) -> Any:
    """What a mind does: these actions of one agent in one tick."""
    return lambda seen: list(actions) if (seen.tick, seen.agent_id) == (number, agent) else []


def run(bank: MemoryBank, does: Any, ticks: int = 2, world: Any = None) -> Mind:
    mind = Mind(does)
    loop = Loop(bank, world or Diary(), mind, AGENTS)
    loop.begin([("alice", NEWS), ("bob", "mine <0 1>")])
    for _ in range(ticks):
        loop.tick()
    return mind


def first(bank: MemoryBank, agent: str = "alice") -> str:
    return bank.engine.state.block(agent).prefix + f"{1:012x}"


def tell(bank: MemoryBank, to: object = "bob", **more: object) -> Action:
    return Action("tell", {"to": to, "memory_id": first(bank), **more})


def errors(mind: Mind, agent: str = "alice") -> list[str]:
    return [error for seen in mind.seen if seen.agent_id == agent for error in seen.errors]


def test_a_listener_finds_it_from_the_next_tick_on(bank: MemoryBank) -> None:
    world = Diary()
    world.says = lambda agent: Observation("", query="<1 0>")
    mind = run(bank, in_tick(1, "alice", tell(bank, note="I saw it", as_tier="low")), 2, world)
    found = {(agent, tick): texts for agent, tick, texts in mind.found}
    assert NEWS not in found["bob", 1]
    assert found["bob", 2][0] == NEWS
    copy = bank.agent("bob").all()[-1]
    assert copy.source == Source("alice", 1, first(bank), "alice", first(bank), 1)
    assert (copy.created_tick, copy.tier.name) == (1, "LOW")
    assert copy.metadata["told_note"] == "I saw it"
    assert errors(mind) == []
    assert contents(bank, "carol") == []


def test_a_broadcast_reaches_all_that_can_hear(bank: MemoryBank) -> None:
    everyone = Action("broadcast", {"memory_id": first(bank)})
    run(bank, in_tick(1, "alice", everyone))
    assert contents(bank, "bob")[-1] == contents(bank, "carol")[-1] == NEWS
    assert contents(bank) == [NEWS]


def test_a_broadcast_to_some_reaches_these(bank: MemoryBank) -> None:
    some = {"name": "broadcast", "arguments": {"memory_id": first(bank), "to": ["carol", "carol"]}}
    run(bank, in_tick(1, "alice", some))
    assert contents(bank, "carol") == [NEWS]
    assert NEWS not in contents(bank, "bob")


class Rooms(Diary):
    """Alice and bob are in one room."""

    def may_tell(self, teller: str, listener: str) -> bool:
        return {teller, listener} == {"alice", "bob"}


def test_the_world_says_who_can_hear(bank: MemoryBank) -> None:
    everyone = Action("broadcast", {"memory_id": first(bank)})
    mind = run(bank, in_tick(1, "alice", everyone, tell(bank, "carol")), world=Rooms())
    assert errors(mind) == ["tell was refused: carol can't hear you now"]
    assert contents(bank, "bob")[-1] == NEWS
    assert contents(bank, "carol") == []


def test_a_world_may_say_why_nobody_hears(bank: MemoryBank) -> None:
    class Space(Diary):
        def may_tell(self, teller: str, listener: str) -> bool:
            raise InvalidAction("there is no air")

    mind = run(bank, in_tick(1, "alice", tell(bank)), world=Space())
    assert errors(mind) == ["tell was refused: there is no air"]


def test_an_error_of_the_world_ends_the_tick(bank: MemoryBank) -> None:
    class Broken(Diary):
        def may_tell(self, teller: str, listener: str) -> bool:
            raise RuntimeError("the sky fell")

    with pytest.raises(SimulationError, match=r"Broken.may_tell\(\) raised RuntimeError in tick 1"):
        run(bank, in_tick(1, "alice", tell(bank)), world=Broken())
    assert bank.tick == 0


def test_a_world_may_have_a_tell_of_its_own(bank: MemoryBank) -> None:
    world = Diary()
    world.actions = {"tell": "say something"}  # type: ignore[attr-defined]
    run(bank, in_tick(1, "alice", tell(bank), Action("tell", {"text": "hi"})), world=world)
    assert world.made("apply") == [("alice", "tell"), ("alice", "tell")]
    assert NEWS not in contents(bank, "bob")


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (Action("tell", {"to": "bob"}), "memory_id is missing"),
        (Action("tell", {"to": "bob", "memory_id": "x"}), "alice has no memory"),
        (Action("tell", {"to": ["bob"], "memory_id": "ID"}), "to is the id of an agent"),
        (Action("tell", {"to": "alice", "memory_id": "ID"}), "can't tell yourself"),
        (Action("tell", {"to": "dave", "memory_id": "ID"}), "there is no agent 'dave'"),
        (Action("tell", {"to": "*", "memory_id": "ID"}), "there is no agent"),
        (Action("tell", {"to": "bob", "memory_id": "ID", "as_tier": "pinned"}), "as pinned"),
        (Action("tell", {"to": "bob", "memory_id": "ID", "as_tier": "high"}), "not a tier"),
        (Action("tell", {"to": "bob", "memory_id": "ID", "note": 3}), None),
        (Action("tell", {"to": "bob", "memory_id": "ID", "text": "a lie"}), "no argument 'text'"),
        (Action("tell", {"to": "bob", "memory_id": "BOB"}), "alice has no memory"),
        (Action("broadcast", {"memory_id": "ID", "to": "bob"}), "to is a list of ids"),
        (Action("broadcast", {"memory_id": "ID", "to": ["bob", 3]}), "to is a list of ids"),
        (Action("broadcast", {"memory_id": "ID", "to": ["bob", "dave"]}), "no agent 'dave'"),
        (Action("set_trust", {"agent": "bob", "trust": 2}), "from 0 to 1"),
        (Action("set_trust", {"agent": "bob"}), "trust is missing"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_to_the_agent(bank: MemoryBank, action: Action, why: str | None) -> None:
    ids = {"ID": first(bank), "BOB": first(bank, "bob")}
    own = {key: ids.get(value, value) if isinstance(value, str) else value
           for key, value in action.arguments.items()}  # fmt: skip
    mind = run(bank, in_tick(1, "alice", Action(action.name, own)))
    if why is None:  # a note is any JSON that metadata can keep
        assert errors(mind) == []
        return
    (error,) = errors(mind)
    assert error.startswith(f"{action.name} was refused: ")
    assert why in error
    assert NEWS not in contents(bank, "bob")


def test_what_may_be_full_is_refused_before_it_is_told(make_bank: MakeBank) -> None:
    bank = make_bank(memory={"on_tier_full": "reject"})
    mind = run(bank, in_tick(1, "alice", tell(bank, as_tier="critical")))
    assert "may be full for a listener" in errors(mind)[0]


def test_an_agent_sets_its_trust(bank: MemoryBank) -> None:
    run(bank, in_tick(1, "alice", Action("set_trust", {"agent": "bob", "trust": 0.25})))
    assert bank.agent("alice").social.trust_of("bob") == 0.25


def test_what_is_told_in_a_tick_is_delivered_in_one_order(bank: MemoryBank) -> None:
    """Whatever the order of acting, so that parts of a run can be recorded apart."""

    def does(seen: Observation) -> list[Action]:
        if seen.tick == 1 and seen.agent_id in ("alice", "bob"):
            text = first(bank, seen.agent_id)
            return [Action("tell", {"to": "carol", "memory_id": text})]
        return []

    run(bank, does)
    assert contents(bank, "carol") == [NEWS, "mine <0 1>"]


def test_two_tellers_in_one_tick_are_counted(bank: MemoryBank) -> None:
    def does(seen: Observation) -> list[Action]:
        own = bank.agent(seen.agent_id).all()
        news = [each.id for each in own if each.content == NEWS]
        if seen.tick == 1 and seen.agent_id == "alice":
            return [Action("tell", {"to": "bob", "memory_id": news[0]})]
        if seen.tick == 2 and news:
            return [Action("tell", {"to": "carol", "memory_id": news[0]})]
        return []

    run(bank, does)
    carol = bank.agent("carol")
    (copy,) = carol.all()
    assert carol.social.heard(copy.id) == (2, "bob", 2)
    assert copy.source is not None
    assert copy.source.teller == "alice"


def test_an_order_of_messages_is_data() -> None:
    source = Source("alice", 1, "a", "alice", "a", 1)
    one = Telling("bob", "alice", 0, "x", source, 3, "fact", (), None, {"a": 1})
    row = json.loads(json.dumps(one))
    assert Telling.of(row) == one


def test_the_same_run_again_is_the_same(make_bank: MakeBank) -> None:
    def does(seen: Observation) -> list[Action]:
        own = banks[-1].agent(seen.agent_id).all()
        others = [each for each in AGENTS if each != seen.agent_id]
        return [
            Action("tell", {"to": others[(seen.tick + at) % 2], "memory_id": each.id})
            for at, each in enumerate(own[-3:])
        ]

    banks = []
    for _ in range(2):
        banks.append(make_bank())
        run(banks[-1], does, 6)
    first_bank, second = banks
    assert first_bank.state_hash() == second.state_hash()
    first_records, second_records = (ticks_of(bank).records() for bank in banks)
    assert [record for record, _ in first_records] == [record for record, _ in second_records]


def test_a_pinned_memory_that_outlived_its_end_is_told(bank: MemoryBank) -> None:
    store = Action("store_memory", {"content": "soon over", "ttl": 3})

    def does(seen: Observation) -> list[Action]:
        own = {each.content: each.id for each in bank.agent("alice").all()}
        which = {"memory_id": own.get("soon over", "")}
        by_tick = {1: store, 2: Action("pin_memory", which), 4: Action("broadcast", which)}
        return [by_tick[seen.tick]] if seen.agent_id == "alice" and seen.tick in by_tick else []

    mind = run(bank, does, 5)
    assert errors(mind) == []
    assert "soon over" in contents(bank, "carol")
