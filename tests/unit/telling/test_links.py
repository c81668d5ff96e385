"""Links between an agent's memories, and corrections that follow what was told."""

import asyncio
from pathlib import Path

import pytest

from agents import (
    AgentMemory,
    AsyncMemoryBank,
    InvalidInput,
    MemoryBank,
    MemoryNotFound,
    Retention,
)
from agents.memory.sources import Links
from agents.simulation.protocols import Action, Observation
from agents.simulation.tick.loop import Loop
from banks import MakeBank, contents, everything, undone
from worlds import Diary, Mind

LIE, TRUTH = "the well is poisoned <1 0>", "the well is clean <1 0>"


def found(agent: AgentMemory, **options: bool) -> list[str]:
    return [hit.memory.content for hit in agent.search("<1 0>", **options)]


def test_a_superseded_memory_is_found_only_if_asked_for(
    bank: MemoryBank, alice: AgentMemory
) -> None:
    lie = alice.add(LIE, "important")
    truth = alice.add(TRUTH, supersedes=lie.id)
    other = alice.add("archived by hand <1 0>")
    alice.update(other.id, retention="archived")
    assert found(alice) == [TRUTH]
    assert sorted(found(alice, include_superseded=True)) == [TRUTH, LIE]
    assert (truth.tier.name, truth.key) == ("IMPORTANT", lie.id)
    assert alice.links(lie.id) == Links(truth.id, ())
    assert alice.links(truth.id) == Links(None, ())
    assert [each.id for each in alice.history(lie.id)] == [lie.id, truth.id]
    with pytest.raises(InvalidInput, match="it was superseded"):
        alice.update(lie.id, retention="active")
    with pytest.raises(InvalidInput, match=f"update {truth.id}"):
        alice.add("again", supersedes=lie.id)


def test_two_memories_that_exist_can_be_linked(bank: MemoryBank, alice: AgentMemory) -> None:
    lie, truth = alice.add(LIE), alice.add(TRUTH)
    assert alice.link(truth.id, supersedes=lie.id) == Links(None, ())
    assert found(alice) == [TRUTH]
    assert sorted(found(alice, include_superseded=True)) == [TRUTH, LIE]
    assert alice.links(lie.id).superseded_by == truth.id
    reasons = {row.memory.id: row.reason for row in alice.explain("<1 0>")}
    assert reasons[lie.id] == f"superseded by {truth.id}"
    with pytest.raises(InvalidInput, match="superseded"):
        alice.pin(lie.id)
    alice.update(truth.id, retention="archived")
    assert alice.update(lie.id, retention="active").retention is Retention.ACTIVE


def test_memories_that_contradict_are_both_found(bank: MemoryBank, alice: AgentMemory) -> None:
    lie = alice.add(LIE)
    truth = alice.add(TRUTH, contradicts=lie.id)
    third = alice.add("the well is dry <1 0>")
    alice.link(third.id, contradicts=lie.id)
    alice.link(lie.id, contradicts=third.id)
    assert len(found(alice)) == 3
    assert alice.links(lie.id).contradicts == (truth.id, third.id)
    assert alice.links(truth.id).contradicts == (lie.id,)
    alice.forget(truth.id)
    assert alice.links(lie.id).contradicts == (third.id,)


def test_only_ones_own_memories_are_linked(bank: MemoryBank, alice: AgentMemory) -> None:
    own, other = alice.add(LIE), bank.agent("bob").add(TRUTH)
    before = everything(bank)
    for options in ({"supersedes": other.id}, {"contradicts": other.id}, {"contradicts": "x"}):
        with pytest.raises(MemoryNotFound):
            alice.add("new", **options)  # type: ignore[arg-type]
        with pytest.raises(MemoryNotFound):
            alice.link(own.id, **options)
    with pytest.raises(InvalidInput, match="itself"):
        alice.link(own.id, contradicts=own.id)
    with pytest.raises(InvalidInput, match="names a memory"):
        alice.link(own.id)
    with pytest.raises(InvalidInput, match="not both"):
        alice.add("new", key="k", supersedes=own.id)
    assert everything(bank) == before


def test_links_are_kept(open_bank: MakeBank, snapshots_on_close: None) -> None:
    bank = open_bank()
    alice = bank.agent("alice")
    lie, truth, third = alice.add(LIE), alice.add(TRUTH), alice.add("third", contradicts=None)
    alice.link(truth.id, supersedes=lie.id, contradicts=third.id)
    state = bank.state_hash()
    with undone(bank):
        alice.link(third.id, supersedes=truth.id)
    assert bank.state_hash() == state
    for _ in range(2):
        alice = open_bank().agent("alice")
        assert alice.links(lie.id) == Links(truth.id, ())
        assert alice.links(truth.id) == Links(None, (third.id,))


def chain(bank: MemoryBank) -> list[str]:
    """The lie goes from alice to bob, and from bob to carol and dave; the ids of the copies."""
    lie = bank.agent("alice").add(LIE)
    at_bob = bank.agent("alice").social.tell("bob", lie.id).memory_id
    told = bank.agent("bob").social.broadcast(at_bob, ["carol", "dave"])
    return [lie.id, at_bob, *(each.memory_id for each in told)]


def test_a_correction_follows_the_chain_as_tells(bank: MemoryBank, alice: AgentMemory) -> None:
    lie, at_bob, at_carol, _ = chain(bank)
    bank.agent("erin").add(LIE)
    bank.advance(4)
    told = alice.social.retract(lie, TRUTH)
    assert [each.listener for each in told] == ["bob", "carol", "dave"]
    for name in ("alice", "bob", "carol", "dave"):
        assert found(bank.agent(name)) == [TRUTH]
    assert found(bank.agent("erin")) == [LIE]
    correction = bank.agent("carol").get(told[1].memory_id)
    assert correction.source is not None
    assert (correction.source.teller, correction.source.hands, correction.source.tick) == (
        "bob", 2, 4,
    )  # fmt: skip
    assert bank.agent("carol").links(at_carol).superseded_by == correction.id
    assert bank.chain(correction).memories[-1].agent_id == "alice"
    assert bank.agent("bob").get(at_bob).retention is Retention.ARCHIVED


def test_a_correction_that_was_stored_before_is_the_one_that_is_told(
    bank: MemoryBank, alice: AgentMemory
) -> None:
    lie, *_ = chain(bank)
    truth = alice.add(TRUTH, supersedes=lie)
    alice.social.retract(lie)
    assert alice.count() == 1
    (copy,) = bank.agent("bob").all()
    assert copy.source is not None
    assert copy.source.memory_id == truth.id
    assert not any(each.is_new for each in alice.social.retract(lie))  # counted, as any tell again
    assert bank.agent("bob").count() == 1


def test_without_a_correction_it_says_that_it_is_retracted(
    bank: MemoryBank, alice: AgentMemory
) -> None:
    lie, *_ = chain(bank)
    alice.social.retract(lie)
    assert contents(bank) == contents(bank, "carol") == [f"Retracted: {LIE}"]


def test_one_in_the_middle_takes_back_what_it_told(bank: MemoryBank) -> None:
    _, at_bob, *_ = chain(bank)
    told = bank.agent("bob").social.retract(at_bob, TRUTH)
    assert [each.listener for each in told] == ["carol", "dave"]
    assert contents(bank) == [LIE]


def test_what_a_listener_pinned_stays_and_is_contradicted(
    bank: MemoryBank, alice: AgentMemory
) -> None:
    lie, at_bob, *_ = chain(bank)
    bob = bank.agent("bob")
    bob.pin(at_bob)
    told = alice.social.retract(lie, TRUTH)
    assert sorted(contents(bank, "bob")) == [TRUTH, LIE]
    assert bob.links(at_bob).contradicts == (told[0].memory_id,)


def test_what_is_retracted_and_told_again_stays_superseded(
    bank: MemoryBank, alice: AgentMemory
) -> None:
    lie, _, at_carol, _ = chain(bank)
    alice.social.retract(lie, TRUTH)
    carol = bank.agent("carol")
    for correction in carol.all():  # she believes the lie again
        carol.update(correction.id, retention="archived")
    carol.update(at_carol, retention="active")
    assert not carol.social.tell("bob", at_carol).is_new
    assert found(bank.agent("bob")) == [TRUTH]


def test_nobody_is_told_of_what_was_told_to_nobody(bank: MemoryBank, alice: AgentMemory) -> None:
    assert alice.social.retract(alice.add(LIE).id, TRUTH) == []
    with pytest.raises(MemoryNotFound):
        alice.social.retract("x")


def test_in_a_simulation_a_correction_reaches_those_that_were_told(bank: MemoryBank) -> None:
    prefix = bank.engine.state.block("alice").prefix
    lie = prefix + f"{1:012x}"
    script = {
        1: Action("tell", {"to": "bob", "memory_id": lie}),
        2: Action("store_memory", {"content": TRUTH, "supersedes": lie}),
        3: Action("retract", {"memory_id": lie}),
    }

    def does(seen: Observation) -> list[Action]:
        return [script[seen.tick]] if seen.agent_id == "alice" and seen.tick in script else []

    loop = Loop(bank, Diary(), Mind(does), ["alice", "bob", "carol"])
    loop.begin([("alice", LIE)])
    for _ in range(3):
        loop.tick()
    assert contents(bank, "bob") == contents(bank) == [TRUTH]
    assert contents(bank, "carol") == []


def test_in_a_simulation_there_must_be_a_correction(bank: MemoryBank) -> None:
    prefix = bank.engine.state.block("alice").prefix
    retract = Action("retract", {"memory_id": prefix + f"{1:012x}"})
    mind = Mind(lambda seen: [retract] if (seen.agent_id, seen.tick) == ("alice", 1) else [])
    loop = Loop(bank, Diary(), mind, ["alice", "bob"])
    loop.begin([("alice", LIE)])
    loop.tick()
    loop.tick()
    (error,) = [error for seen in mind.seen for error in seen.errors]
    assert "retract was refused: no memory of alice superseded" in error


async def _awaited(folder: Path) -> list[str]:
    async with AsyncMemoryBank.open(folder, preset="vector", store=None) as bank:
        alice = bank.agent("alice")
        lie = await alice.add(LIE)
        other = await alice.add("other", contradicts=lie.id)
        await alice.link(other.id, contradicts=lie.id)
        assert (await alice.links(lie.id)).contradicts == (other.id,)
        await alice.social.tell("bob", lie.id)
        return [each.listener for each in await alice.social.retract(lie.id, TRUTH)]


def test_it_all_can_be_awaited(folder: Path) -> None:
    assert asyncio.run(_awaited(folder)) == ["bob"]


def test_a_correction_that_expired_is_no_correction(bank: MemoryBank, alice: AgentMemory) -> None:
    lie = alice.add("the well is poisoned <1 0>")
    alice.social.tell("bob", lie.id)
    alice.add("the well is clean <1 0>", supersedes=lie.id, ttl=2)
    bank.advance(2)
    (told,) = alice.social.retract(lie.id)
    assert told.is_new
    assert bank.agent("bob").get(told.memory_id).content.startswith("Retracted: the well is pois")
