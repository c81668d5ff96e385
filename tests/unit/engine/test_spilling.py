"""Hot memories that no longer fit spill, the least relevant first."""

from typing import Any

import pytest

from agents import AgentMemory, InvalidInput, MemoryBank, MemoryNotFound, MemoryPinned
from agents.memory.records import Spill
from asking import asked
from banks import MakeBank
from movements import COLD, HOT, WARM, added_hot, hot, small, temperatures, used


def test_hot_over_its_tokens_after_an_add_spills_until_it_fits(make_bank: MakeBank) -> None:
    alice = small(make_bank)
    added_hot(alice, "a" * 7, "b" * 7, "c" * 7)  # 30, just full
    assert len(hot(alice)) == 3
    added_hot(alice, "d" * 17)  # 20: two have to go
    assert hot(alice) == ["c" * 7, "d" * 17]
    assert temperatures(alice)["a" * 7] is temperatures(alice)["b" * 7] is COLD


def test_hot_over_its_facts_after_an_add_spills(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 2}).agent("alice")
    added_hot(alice, "a", "b", "c", "d")
    assert hot(alice) == ["c", "d"]


def test_hot_over_its_tokens_after_a_promotion_spills(make_bank: MakeBank) -> None:
    alice = small(make_bank)
    added_hot(alice, "a" * 7, "b" * 7, "c" * 7)
    warm = alice.add("d" * 7)
    assert alice.update(warm.id, temperature="hot")
    assert hot(alice) == ["b" * 7, "c" * 7, "d" * 7]


def test_pinning_spills_what_no_longer_fits(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 2}).agent("alice")
    added_hot(alice, "a", "b")
    alice.pin(alice.add("pin").id)
    assert hot(alice) == ["b", "pin"]
    alice.add("another pin", "pinned")
    assert hot(alice) == ["pin", "another pin"]


def test_restoring_a_hot_memory_spills_what_no_longer_fits(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 2}).agent("alice")
    first, *_ = added_hot(alice, "a", "b")
    alice.update(first.id, retention="archived")
    added_hot(alice, "c")
    alice.update(first.id, retention="active")
    assert hot(alice) == ["a", "c"]


def test_the_least_relevant_spills_first(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 3}).agent("alice")
    oldest, middle, _ = added_hot(alice, "a <1 0>", "b <0 1>", "c <1 1>")
    used(alice, oldest, "<1 0>", 1)  # relevance 0.75, the others 0.5
    alice.search("<1 0>", 3)  # b gets 0.25
    added_hot(alice, "d")
    assert hot(alice) == ["a", "c", "d"]
    assert alice.get(middle.id).temperature is COLD


def test_among_equally_relevant_the_oldest_spills_first(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"hot_max_facts": 3})
    alice = bank.agent("alice")
    for name in "abc":
        added_hot(alice, name)
        bank.advance(bank.tick + 1)
    added_hot(alice, "d")
    assert hot(alice) == ["b", "c", "d"]


def test_what_was_accessed_three_times_spills_to_warm_what_was_not_to_cold(
    make_bank: MakeBank,
) -> None:
    alice = make_bank(temperature={"hot_max_facts": 2}).agent("alice")
    often, less = added_hot(alice, "often <1 0>", "less <0 1>")
    used(alice, often, "<1 0>", 3)
    used(alice, less, "<0 1>", 2)
    assert alice.spill(count=2).moved == {often.id: WARM, less.id: COLD}


def test_the_threshold_for_warm_is_a_setting(make_bank: MakeBank) -> None:
    own = {"hot_max_facts": 1, "warm_access_threshold": 0}
    alice = make_bank(temperature=own).agent("alice")
    added_hot(alice, "a", "b")
    assert temperatures(alice) == {"a": WARM, "b": HOT}


def test_the_newcomer_is_not_the_one_to_go(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 1}).agent("alice")
    first = alice.add("relevant <1 0>", temperature="hot")
    used(alice, first, "<1 0>", 5)
    added_hot(alice, "newcomer")
    assert hot(alice) == ["newcomer"]


def test_an_item_larger_than_the_whole_budget_goes_to_warm_and_none_other_leaves(
    make_bank: MakeBank,
) -> None:
    alice = small(make_bank)
    added_hot(alice, "a" * 7)
    assert alice.add("x" * 28, temperature="hot").temperature is WARM  # 31 with its line
    assert alice.add("x" * 27).temperature is WARM
    assert hot(alice) == ["a" * 7]


def test_a_recall_of_an_item_larger_than_the_whole_budget_says_so(make_bank: MakeBank) -> None:
    alice = small(make_bank)
    giant = alice.add("x" * 40 + " <1 0>", temperature="cold")
    result = alice.recall("<1 0>")
    assert result.promoted == ()
    (note,) = result.notes
    assert "49 tokens" in note
    assert "hot_max_tokens is 30" in note
    assert alice.get(giant.id).temperature is WARM


def test_promoting_an_item_larger_than_the_whole_budget_is_false(make_bank: MakeBank) -> None:
    alice = small(make_bank)
    giant = alice.add("x" * 40)
    assert asked(alice, "promote", giant.id) is False
    assert alice.get(giant.id).temperature is WARM


def test_pinned_memories_never_spill_but_count(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 2}).agent("alice")
    alice.add_many([("p1", "pinned"), ("p2", "pinned"), ("p3", "pinned")])
    memory = alice.add("a", temperature="hot")
    assert memory.temperature is WARM  # as returned, so as it is
    assert alice.get(memory.id) == memory
    assert hot(alice) == ["p1", "p2", "p3"]
    assert alice.spill().moved == {}


def test_without_auto_spill_hot_keeps_all(make_bank: MakeBank) -> None:
    alice = small(make_bank, auto_spill=False, hot_max_facts=2)
    added_hot(alice, *("a" * 20, "b" * 20, "c" * 60))
    assert alice.update(alice.add("d" * 20).id, temperature="hot")
    assert len(hot(alice)) == 4
    assert set(alice.spill().moved.values()) <= {WARM, COLD}  # asked for, it spills
    assert hot(alice) == ["d" * 20]


def test_a_spill_without_arguments_frees_one_at_least(alice: AgentMemory) -> None:
    first, _ = added_hot(alice, "a", "b")
    alice.add("p", "pinned")
    assert alice.spill() == Spill({first.id: COLD}, ())
    assert hot(alice) == ["b", "p"]
    assert len(alice.spill().moved) == 1
    assert alice.spill() == Spill({}, ())  # the pinned one stays


def test_a_spill_without_arguments_frees_all_that_is_too_much(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"hot_max_facts": 1, "auto_spill": False})
    added_hot(bank.agent("alice"), "a", "b", "c")
    assert len(bank.agent("alice").spill().moved) == 2


def test_a_spill_of_tokens_frees_at_least_these(make_bank: MakeBank) -> None:
    alice = make_bank(count_tokens=len).agent("alice")
    first, second, third = added_hot(alice, "a" * 7, "b" * 7, "c" * 7)  # each takes ten
    assert alice.spill(tokens=0).moved == {}
    assert list(alice.spill(tokens=11).moved) == [first.id, second.id]
    assert list(alice.spill(tokens=99).moved) == [third.id]


@pytest.mark.parametrize("given", [{"count": 1, "tokens": 1}, {"tokens": 1, "ids": []}])
def test_a_spill_takes_one_of_its_arguments(alice: AgentMemory, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="only one of them"):
        alice.spill(**given)


def test_a_spill_does_not_count_what_expired(make_bank: MakeBank) -> None:
    bank = make_bank()
    alice = bank.agent("alice")
    alice.add("gone", temperature="hot", ttl=1)
    (there,) = added_hot(alice, "there")
    bank.advance(1)
    assert list(alice.spill().moved) == [there.id]


def test_a_spill_of_0_spills_none(alice: AgentMemory) -> None:
    added_hot(alice, "a", "b")
    assert alice.spill(count=0).moved == {}
    assert hot(alice) == ["a", "b"]


def test_a_spill_of_two_spills_the_two_least_relevant_and_says_where_to(
    alice: AgentMemory,
) -> None:
    first, second, third = added_hot(alice, "a <1 0>", "b <0 1>", "c <0 0 1>")
    used(alice, first, "<1 0>", 3)
    assert alice.spill(count=2).moved == {second.id: COLD, third.id: COLD}
    assert alice.spill(count=1).moved == {first.id: WARM}
    assert alice.spill(count=5).moved == {}


def test_a_spill_of_more_than_there_are_spills_all_but_the_pinned(alice: AgentMemory) -> None:
    added_hot(alice, "a", "b")
    alice.add("pin", "pinned")
    assert len(alice.spill(count=99).moved) == 2
    assert hot(alice) == ["pin"]


def test_a_spill_of_ids_spills_these(alice: AgentMemory) -> None:
    first, _, third = added_hot(alice, "a", "b", "c")
    result = alice.spill(ids=[third.id, first.id, third.id])
    assert result.moved == {third.id: COLD, first.id: COLD}
    assert hot(alice) == ["b"]
    assert alice.spill(ids=[]).moved == alice.spill(ids=[first.id]).moved == {}


def test_a_spill_of_another_agents_id_is_memory_not_found_and_nothing_moves(
    bank: MemoryBank,
) -> None:
    alice = bank.agent("alice")
    mine, theirs = alice.add("a", temperature="hot"), bank.agent("bob").add("b", temperature="hot")
    before = bank.state_hash()
    with pytest.raises(MemoryNotFound):
        alice.spill(ids=[mine.id, theirs.id])
    assert bank.state_hash() == before


def test_a_spill_of_a_pinned_id_says_to_unpin_and_nothing_moves(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    mine, pin = alice.add("a", temperature="hot"), alice.add("pin", "pinned")
    before = bank.state_hash()
    with pytest.raises(MemoryPinned, match=rf"{pin.id} is pinned.*unpin it first"):
        alice.spill(ids=[mine.id, pin.id])
    assert bank.state_hash() == before


@pytest.mark.parametrize("arguments", [{"count": -1}, {"count": 1.5}, {"count": 1, "ids": []}])
def test_a_spill_of_nonsense_is_refused(alice: AgentMemory, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        alice.spill(**arguments)


def test_adding_many_spills_as_adding_one_by_one(make_bank: MakeBank) -> None:
    texts = [f"memory {n}" * (n % 3 + 1) for n in range(12)]
    options = {"temperature": "hot"}
    own = {"hot_max_tokens": 60, "hot_max_facts": 4}
    many, single = (make_bank(temperature=own, count_tokens=len) for _ in range(2))
    at_once = many.agent("alice").add_many([(text, 3, None, options) for text in texts])
    for text in texts:
        single.agent("alice").add(text, temperature="hot")
    assert many.state_hash() == single.state_hash()
    assert len(at_once) == 12


def test_reopening_with_smaller_limits_spills(open_bank: MakeBank) -> None:
    alice = open_bank().agent("alice")
    for n in range(4):
        alice.add(f"{n}", temperature="hot")
    alice = open_bank(temperature={"hot_max_facts": 2}).agent("alice")
    assert len(alice.all(temperature="hot")) == 2


def test_spilling_takes_a_list_of_ids(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a", temperature="hot")
    with pytest.raises(InvalidInput, match="list of ids"):
        alice.spill(ids=memory.id)
