"""The bank as a whole: its clock, its agents, and adding many memories."""

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest

from agents import AsyncMemoryBank, BankError, InvalidInput, MemoryBank, Tier, TierFull
from banks import MakeBank, value
from embedders import Counting


@pytest.mark.parametrize("how", [copy.deepcopy, pickle.dumps])
def test_a_bank_and_what_refers_to_it_are_not_copied(bank: MemoryBank, how: Any) -> None:
    group = bank.group("club", ["alice"])
    for each in (bank, bank.agent("alice"), group, AsyncMemoryBank(bank), [bank]):
        with pytest.raises(BankError, match="copied or pickled"):
            how(each)
    with pytest.raises(BankError, match="copied or pickled"):
        copy.copy(bank)
    assert bank.agent("alice").add("x").sequence == 1


def test_a_new_bank_is_at_tick_0(bank: MemoryBank) -> None:
    assert bank.tick == 0


def test_advance_moves_the_clock_and_new_memories_are_of_that_tick(bank: MemoryBank) -> None:
    bank.advance(5)
    memory = bank.agent("alice").add("x")
    assert (bank.tick, memory.created_tick, memory.tier_tick) == (5, 5, 5)


def test_the_clock_never_goes_back(bank: MemoryBank) -> None:
    bank.advance(5)
    with pytest.raises(InvalidInput, match=r"5.*4"):
        bank.advance(4)
    assert bank.tick == 5


def test_advancing_to_the_same_tick_changes_nothing(bank: MemoryBank) -> None:
    bank.advance(5)
    before = bank.state_hash()
    bank.advance(5)
    assert bank.state_hash() == before


@pytest.mark.parametrize("tick", [-1, 1.0, "1", True, None, 2**63], ids=repr)
def test_a_tick_is_a_whole_number_from_0_on(bank: MemoryBank, tick: Any) -> None:
    with pytest.raises(InvalidInput, match="tick"):
        bank.advance(tick)
    assert bank.tick == 0


def test_the_tick_survives_reopening(open_bank: MakeBank) -> None:
    open_bank().advance(12)
    assert open_bank().tick == 12


def test_agents_are_listed_in_order_from_their_first_memory_on(bank: MemoryBank) -> None:
    bank.agent("nobody")
    bank.agent("bob").add("x")
    bank.agent("alice").add("x")
    assert bank.agents() == ["alice", "bob"]


def test_an_agent_that_deleted_all_is_still_listed(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    alice.delete(alice.add("x").id)
    assert bank.agents() == ["alice"]


def test_add_many_gives_the_memories_in_order(bank: MemoryBank) -> None:
    added = bank.add_many([("a", "1"), ("b", "2", "low"), ("a", "3", 0, {"k": 1})])
    assert [(m.agent_id, m.content, m.tier, dict(m.metadata)) for m in added] == [
        ("a", "1", Tier.NORMAL, {}),
        ("b", "2", Tier.LOW, {}),
        ("a", "3", Tier.PINNED, {"k": 1}),
    ]


def test_what_add_many_gives_is_what_was_stored_however_late_one_looks(make_bank: MakeBank) -> None:
    bank = make_bank(memory={"max_pinned": 1})
    new = [("a", "1"), ("a", "2", "pinned", {"k": 1}), ("b", "3", "low", None, {"tags": ["t"]})]
    late, early = bank.add_many(new), []
    with make_bank(memory={"max_pinned": 1}) as other:
        early = list(other.add_many(new))
    bank.advance(4)
    bank.agent("a").add("4", "pinned")
    bank.agent("b").delete(bank.agent("b").all()[0].id)
    assert late == early
    assert early == late
    assert late != early[:2]
    assert (len(late), late[-1], late[:2], repr(late)) == (3, early[2], early[:2], repr(early))
    assert [memory.content for memory in late] == ["1", "2", "3"]


def test_add_many_is_one_commit(open_bank: MakeBank, folder: Path) -> None:
    open_bank().add_many([(f"agent{n}", "x") for n in range(50)])
    assert value(folder, "SELECT count(*) FROM commits") == 1


def test_add_many_embeds_all_in_one_call(make_bank: MakeBank) -> None:
    embedder = Counting()
    make_bank(embedder=embedder).add_many([("a", "x"), ("b", "y"), ("c", "x")])
    assert embedder.batches == [["x", "y"]]


@pytest.mark.parametrize(
    "bad", [("*", "x"), ("a", ""), ("a", "x", "urgent"), ("a", "x", 3, {"tier": 0})]
)
def test_add_many_stores_all_or_none(make_bank: MakeBank, bad: tuple[Any, ...]) -> None:
    bank = make_bank()
    bank.agent("a").add("before")
    before = bank.state_hash()
    with pytest.raises(InvalidInput):
        bank.add_many([("a", "1"), ("b", "2"), bad])
    assert bank.state_hash() == before
    assert bank.agents() == ["a"]


def test_add_many_that_meets_a_full_tier_stores_none(make_bank: MakeBank) -> None:
    bank = make_bank(memory={"max_pinned": 1, "on_tier_full": "reject"})
    bank.agent("b").add("before")
    before = bank.state_hash()
    with pytest.raises(TierFull):
        bank.add_many([("a", "1", 0), ("b", "2", 0), ("a", "3", 0)])
    assert bank.state_hash() == before
    assert bank.agents() == ["b"]
