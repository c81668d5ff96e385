"""Who learns of a correction, and what becomes of insights that rest on what was retracted."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from agents import AgentMemory, MemoryBank, MemoryNotFound, Retention
from agents.memory.sources import HEARD, Heard, Telling
from agents.simulation.protocols import Action, Observation
from agents.simulation.tick.loop import Loop
from agents.storage.state.state import State
from agents.telling import tell
from agents.telling.tell import copied, correcting, deliver
from agents.telling.trust import copies_of
from asking import asked
from banks import MakeBank, contents
from worlds import Diary, Mind

MANY = [f"agent-{number:02}" for number in range(60)]
LIE, TRUTH = "the well is poisoned <1 0>", "the well is clean <1 0>"


def roundabout(bank: MemoryBank) -> tuple[str, str, str]:
    """Ann tells cat, cat tells bob, and then ann tells bob; the ids of the three memories."""
    ann, cat = bank.agent("ann"), bank.agent("cat")
    lie = ann.add(LIE).id
    at_cat = ann.social.tell("cat", lie).memory_id
    at_bob = cat.social.tell("bob", at_cat).memory_id
    assert not ann.social.tell("bob", lie).is_new
    return lie, at_cat, at_bob


# Who is told


def test_a_listener_that_knew_it_from_another_teller_is_told(bank: MemoryBank) -> None:
    lie, at_cat, at_bob = roundabout(bank)
    bank.agent("cat").delete(at_cat)
    told = bank.agent("ann").social.retract(lie, TRUTH)
    assert [each.listener for each in told] == ["bob"]
    assert contents(bank, "bob") == [TRUTH]
    assert bank.agent("bob").links(at_bob).superseded_by == told[0].memory_id


def test_each_listener_is_told_once(bank: MemoryBank) -> None:
    lie, _, at_bob = roundabout(bank)
    bank.agent("bob").social.tell("cat", at_bob)  # a circle
    bank.agent("bob").social.tell("ann", at_bob)
    told = bank.agent("ann").social.retract(lie, TRUTH)
    assert [each.listener for each in told] == ["bob", "cat"]
    assert all(contents(bank, name) == [TRUTH] for name in ("ann", "bob", "cat"))


def test_one_in_the_middle_of_a_circle_takes_back_what_it_told(bank: MemoryBank) -> None:
    _, at_cat, at_bob = roundabout(bank)
    bank.agent("bob").social.tell("cat", at_bob)
    told = bank.agent("cat").social.retract(at_cat, TRUTH)
    assert [each.listener for each in told] == ["bob"]
    assert contents(bank, "ann") == [LIE]  # ann knows it of herself


def test_an_agent_that_knows_it_of_itself_keeps_it(bank: MemoryBank) -> None:
    lie, at_cat, _ = roundabout(bank)
    bank.agent("cat").social.tell("ann", at_cat)
    bank.agent("cat").social.retract(at_cat, TRUTH)
    assert bank.agent("ann").get(lie).retention is Retention.ACTIVE


def test_earlier_tellers_are_kept(open_bank: MakeBank) -> None:
    bank = open_bank()
    lie = bank.agent("ann").add(LIE).id
    bank.agent("ann").social.broadcast(lie, ["cat", "dan", "eve"])
    copies = {name: bank.agent(name).all()[0].id for name in ("cat", "dan", "eve")}
    for name in ("cat", "dan", "eve", "dan", "cat"):
        bank.agent(name).social.tell("bob", copies[name])
    (at_bob,) = bank.agent("bob").all()
    assert bank.agent("bob").social.heard(at_bob.id) == Heard(5, "cat", bank.tick)
    bank.close()
    for name in ("dan", "eve"):
        with open_bank() as again, again.transaction():
            told = again.agent(name).social.retract(copies[name], f"{TRUTH} {name}")
            assert [each.listener for each in told] == ["bob"]


def test_what_two_tellers_leave_is_as_before(bank: MemoryBank) -> None:
    roundabout(bank)
    held = bank.engine.state.block("bob").holdings
    assert held is not None
    assert held.of(HEARD) == {"1": [2, "ann", bank.tick]}


def test_as_many_tellers_as_are_kept_bound_what_is_held(bank: MemoryBank) -> None:
    lie = bank.agent("ann").add(LIE).id
    names = [f"agent-{number:02}" for number in range(40)]
    for told in bank.agent("ann").social.broadcast(lie, names):
        bank.agent(told.listener).social.tell("bob", told.memory_id)
    held = bank.engine.state.block("bob").holdings
    assert held is not None
    ((times, teller, _, others),) = held.of(HEARD).values()
    assert (times, teller, others) == (40, names[-1], names[7:39])


def test_in_a_simulation_it_reaches_all_whom_the_agent_told(bank: MemoryBank) -> None:
    first = {name: bank.engine.state.block(name).prefix + f"{1:012x}" for name in ("ann", "cat")}
    script = {
        (1, "ann"): Action("tell", {"to": "cat", "memory_id": first["ann"]}),
        (2, "cat"): Action("tell", {"to": "bob", "memory_id": first["cat"]}),
        (3, "ann"): Action("tell", {"to": "bob", "memory_id": first["ann"]}),
        (4, "ann"): Action("store_memory", {"content": TRUTH, "supersedes": first["ann"]}),
        (5, "ann"): Action("retract", {"memory_id": first["ann"]}),
    }

    def does(seen: Observation) -> list[Action]:
        action = script.get((seen.tick, seen.agent_id))
        return [] if action is None else [action]

    loop = Loop(bank, Diary(), Mind(does), ["ann", "bob", "cat"])
    loop.begin([("ann", LIE)])
    for _ in range(5):
        loop.tick()
    assert contents(bank, "cat") == contents(bank, "bob") == [TRUTH]


def test_in_a_simulation_what_was_superseded_is_not_told(bank: MemoryBank) -> None:
    prefix = bank.engine.state.block("ann").prefix
    lie, truth = (prefix + f"{number:012x}" for number in (1, 2))
    script = {
        1: Action("store_memory", {"content": TRUTH, "supersedes": lie}),
        2: Action("tell", {"to": "bob", "memory_id": lie}),
        3: Action("broadcast", {"memory_id": lie}),
        4: Action("tell", {"to": "bob", "memory_id": truth}),
    }
    told: list[str] = []

    def does(seen: Observation) -> list[Action]:
        if seen.agent_id != "ann":
            return []
        told.extend(seen.errors)
        return [script[seen.tick]]

    loop = Loop(bank, Diary(), Mind(does), ["ann", "bob"])
    loop.begin([("ann", LIE)])
    for _ in range(4):
        loop.tick()
    assert contents(bank, "bob") == [TRUTH]
    assert told == [
        f"{name} was refused: memory {lie} was superseded; tell {truth}, which stands in its place"
        for name in ("tell", "broadcast")
    ]


def test_a_correction_crosses_as_json_also_one_of_before(bank: MemoryBank) -> None:
    _, at_cat, _ = roundabout(bank)
    copy = bank.agent("cat").get(at_cat)
    one = correcting(copied(bank.engine, copy), copy, ["an origin"])
    row = json.loads(json.dumps(one))
    assert Telling.of(row) == one
    assert Telling.of(row[:-1]) == one._replace(instead_of=())
    assert Telling.of(row[:-2]) == one._replace(instead_of=(), corrects_origin=None)


# Corrected again

SALTY = "the well is salty <1 0>"


def told_on(bank: MemoryBank) -> tuple[str, str, str]:
    """Ann tells bob, and bob tells cat; the ids of the three memories."""
    lie = bank.agent("ann").add(LIE).id
    at_bob = bank.agent("ann").social.tell("bob", lie).memory_id
    return lie, at_bob, bank.agent("bob").social.tell("cat", at_bob).memory_id


def test_a_second_correction_supersedes_the_first(bank: MemoryBank) -> None:
    lie, at_bob, _ = told_on(bank)
    first = bank.agent("ann").social.retract(lie, SALTY)
    second = bank.agent("ann").social.retract(lie, TRUTH)
    assert [contents(bank, name) for name in ("ann", "bob", "cat")] == [[TRUTH]] * 3
    assert [each.listener for each in second] == ["bob", "cat"]
    assert bank.agent("bob").links(at_bob).superseded_by == first[0].memory_id
    assert bank.agent("bob").links(first[0].memory_id).superseded_by == second[0].memory_id


def test_the_same_correction_again_is_counted(bank: MemoryBank) -> None:
    lie, _, _ = told_on(bank)
    first = bank.agent("ann").social.retract(lie, TRUTH)
    again = bank.agent("ann").social.retract(lie, TRUTH)
    assert again == [each._replace(is_new=False) for each in first]
    assert [contents(bank, name) for name in ("ann", "bob", "cat")] == [[TRUTH]] * 3
    for each in first:
        assert bank.agent(each.listener).social.heard(each.memory_id).times == 2
    bank.agent("ann").social.retract(lie, SALTY)
    bank.agent("ann").social.retract(lie, TRUTH)
    assert [contents(bank, name) for name in ("ann", "bob", "cat")] == [[TRUTH]] * 3


def test_a_correction_beside_the_listeners_own_is_superseded(bank: MemoryBank) -> None:
    lie, at_bob, _ = told_on(bank)
    own = bank.agent("bob").update(at_bob, "I looked: it is dry <1 0>")
    bank.agent("ann").social.retract(lie, SALTY)
    bank.agent("ann").social.retract(lie, TRUTH)
    assert contents(bank, "bob") == [own.content, TRUTH]
    assert contents(bank, "cat") == [TRUTH]


def test_a_correction_that_contradicts_a_pinned_copy_is_superseded(bank: MemoryBank) -> None:
    lie, at_bob, _ = told_on(bank)
    bank.agent("bob").pin(at_bob)
    bank.agent("ann").social.retract(lie, SALTY)
    bank.agent("ann").social.retract(lie, TRUTH)
    assert contents(bank, "bob") == [LIE, TRUTH]
    assert contents(bank, "cat") == [TRUTH]


def test_a_pinned_correction_stays(bank: MemoryBank) -> None:
    lie, _, _ = told_on(bank)
    first = bank.agent("ann").social.retract(lie, SALTY)[0].memory_id
    bank.agent("bob").pin(first)
    second = bank.agent("ann").social.retract(lie, TRUTH)[0].memory_id
    assert sorted(contents(bank, "bob")) == [TRUTH, SALTY]
    assert bank.agent("bob").links(first).contradicts == (second,)


def test_what_another_told_stays(bank: MemoryBank) -> None:
    lie, _, _ = told_on(bank)
    (told, _) = bank.agent("ann").social.retract(lie, SALTY)
    bank.agent("dan").social.tell("bob", bank.agent("dan").add(SALTY).id)
    bank.agent("ann").social.retract(lie, TRUTH)
    assert contents(bank, "bob") == [SALTY, TRUTH]
    assert bank.agent("bob").get(told.memory_id).retention is Retention.ARCHIVED


def test_in_a_simulation_a_second_correction_supersedes_the_first(bank: MemoryBank) -> None:
    prefix = bank.engine.state.block("ann").prefix
    lie, first = (prefix + f"{number:012x}" for number in (1, 2))
    script = {
        1: Action("tell", {"to": "bob", "memory_id": lie}),
        2: Action("store_memory", {"content": SALTY, "supersedes": lie}),
        3: Action("retract", {"memory_id": lie}),
        4: Action("store_memory", {"content": TRUTH, "supersedes": first}),
        5: Action("retract", {"memory_id": lie}),
    }

    def does(seen: Observation) -> list[Action]:
        return [script[seen.tick]] if seen.agent_id == "ann" else []

    loop = Loop(bank, Diary(), Mind(does), ["ann", "bob"])
    loop.begin([("ann", LIE)])
    for _ in range(5):
        loop.tick()
    assert contents(bank, "ann") == contents(bank, "bob") == [TRUTH]


# What it costs


def chain_of(bank: MemoryBank, names: Sequence[str]) -> str:
    """The first agent tells the second, the second the third, and so on; the first memory."""
    first = last = bank.agent(names[0]).add(LIE).id
    for teller, listener in pairwise(names):
        last = bank.agent(teller).social.tell(listener, last).memory_id
    return first


def told_to_all(bank: MemoryBank, names: Sequence[str]) -> str:
    memory = bank.agent(names[0]).add(LIE).id
    bank.agent(names[0]).social.broadcast(memory, names[1:])
    return memory


def told_again(bank: MemoryBank, names: Sequence[str]) -> str:
    """The first agent tells all, and each tells the next what it has already."""
    memory = told_to_all(bank, names)
    for teller, listener in pairwise(names[1:]):
        bank.agent(teller).social.tell(listener, bank.agent(teller).all()[0].id)
    return memory


def looks_counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the copies of each agent are looked up, from now on."""
    looks = Counter[str]()

    def looked(state: State, agent_id: str, origin_id: str) -> Sequence[int]:
        looks[agent_id] += 1
        return copies_of(state, agent_id, origin_id)

    monkeypatch.setattr(tell, "copies_of", looked)
    return looks


@pytest.mark.parametrize("spread", [told_to_all, chain_of, told_again])
def test_a_retract_looks_at_each_agent_a_few_times(
    bank: MemoryBank, spread: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lie, looks = spread(bank, MANY), looks_counted(monkeypatch)
    told = bank.agent(MANY[0]).social.retract(lie, TRUTH)
    assert sorted(each.listener for each in told) == MANY[1:]
    assert max(looks.values()) <= 8


def test_a_correction_to_all_that_hear_looks_at_each_agent_a_few_times(
    bank: MemoryBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a simulation delivers it, or each cell of a spread one to its own agents."""
    first = bank.agent(MANY[0])
    lie = first.get(told_to_all(bank, MANY[:30]))
    said = correcting(copied(bank.engine, first.add(TRUTH)), lie)
    looks = looks_counted(monkeypatch)
    told = deliver(bank.engine, [said._replace(receiver=each) for each in MANY[1:]])
    assert [each.listener for each in told] == MANY[1:30]
    assert max(looks.values()) <= 8


# Insights


def concluded(agent: AgentMemory, *evidence: str) -> str:
    return agent.add("so it is", kind="insight", evidence=evidence).id


@pytest.mark.parametrize("text", [None, TRUTH])
def test_archived_evidence_can_be_retracted(
    bank: MemoryBank, alice: AgentMemory, text: str | None
) -> None:
    lie = alice.add(LIE).id
    insight = concluded(alice, lie)
    alice.update(lie, retention="archived")
    assert alice.links(insight).flags == ()
    alice.social.retract(lie, text)
    correction = alice.links(lie).superseded_by
    assert alice.links(insight).flags == (f"evidence {lie} was superseded by {correction}",)


@pytest.mark.parametrize("put", ["archive", "pin"])
def test_a_listeners_copy_is_evidence_wherever_it_is(
    bank: MemoryBank, alice: AgentMemory, put: str
) -> None:
    bob, lie = bank.agent("bob"), alice.add(LIE).id
    copy = alice.social.tell("bob", lie).memory_id
    insight = concluded(bob, copy)
    asked(bob, put, copy)
    assert bob.links(insight).flags == ()
    (told,) = alice.social.retract(lie, TRUTH)
    why = "was superseded" if put == "archive" else "is contradicted"
    assert bob.links(insight).flags == (f"evidence {copy} {why} by {told.memory_id}",)
    bob.delete(told.memory_id)
    assert bool(bob.links(insight).flags) is (put == "archive")


def test_what_superseded_a_copy_before_stays(bank: MemoryBank, alice: AgentMemory) -> None:
    bob, lie = bank.agent("bob"), alice.add(LIE).id
    copy = alice.social.tell("bob", lie).memory_id
    own = bob.update(copy, "I looked: it is dry <1 0>")
    alice.social.retract(lie, TRUTH)
    assert bob.links(copy).superseded_by == own.id


def test_an_insight_from_a_flagged_insight_is_flagged(bank: MemoryBank, alice: AgentMemory) -> None:
    lie, other = alice.add(LIE).id, alice.add("other <0 1>").id
    first = concluded(alice, other, lie)
    second = concluded(alice, other, first)
    third = concluded(alice, second, other)
    assert alice.links(third).flags == ()
    alice.delete(lie)
    assert alice.links(first).flags == (f"evidence {lie} was deleted",)
    why = f"rests on {lie}, which was deleted"
    assert alice.links(second).flags == (f"evidence {first} {why}",)
    assert alice.links(third).flags == (f"evidence {second} {why}",)


def test_a_long_row_of_insights_is_looked_through(bank: MemoryBank, alice: AgentMemory) -> None:
    lie = last = alice.add(LIE).id
    with bank.transaction():
        for _ in range(500):
            last = concluded(alice, last)
    alice.delete(lie)
    (flag,) = alice.links(last).flags
    assert flag.endswith(f"rests on {lie}, which was deleted")


# Limits


@pytest.mark.parametrize(("most", "hot"), [(3, 3), (50, 8)])
def test_hot_limits_hold_for_what_is_told(open_bank: MakeBank, most: int, hot: int) -> None:
    bank = open_bank(temperature={"hot_max_facts": most, "initial": "hot"})
    alice, bob = bank.agent("alice"), bank.agent("bob")
    told = [alice.social.tell("bob", alice.add(f"fact {n} <1 0>").id).memory_id for n in range(8)]
    assert bob.count() == 8
    found = {each.id for each in bob.all(temperature="hot")}
    assert len(found) == hot
    assert found <= set(told)


def test_evidence_is_a_memory_of_the_agent_in_a_batch_too(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    own, others = alice.add("it rained"), bank.agent("bob").add("it snowed")
    for wrong in ("no-such-id", others.id):
        options = {"kind": "insight", "evidence": [own.id, wrong]}
        with pytest.raises(MemoryNotFound):
            alice.add_many([("the roads are wet", None, None, options)])
        with pytest.raises(MemoryNotFound):
            alice.add("the roads are wet", evidence=iter([own.id, wrong]))
    assert alice.all() == [own]


def test_expired_evidence_is_gone_before_and_after_a_sweep(bank: MemoryBank) -> None:
    ann = bank.agent("ann")
    evidence = ann.add(LIE, ttl=2)
    insight = ann.add("do not drink <0 1>", kind="insight", evidence=[evidence.id])
    assert ann.links(insight.id).flags == ()
    bank.advance(3)
    before = ann.links(insight.id).flags
    bank.sweep()
    assert before == ann.links(insight.id).flags == (f"evidence {evidence.id} was deleted",)
