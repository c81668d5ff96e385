"""What moves memories: spill, recall, promotion, use, compaction, decay and pruning."""

from pathlib import Path
from typing import Any

import pytest
from test_loop import Diary, Mind

from agents import (
    AgentMemory,
    InvalidInput,
    Memory,
    MemoryBank,
    MemoryNotFound,
    MemoryPinned,
    Retention,
    Temperature,
    Tier,
)
from agents.memory.results import Compaction, Recall, Spill
from agents.simulation.loop.loop import Loop
from banks import OpenBank, value

HOT, WARM, COLD = Temperature


def temperatures(agent: AgentMemory) -> dict[str, Temperature]:
    return {memory.content.split(" <")[0]: memory.temperature for memory in agent.all()}


def hot(agent: AgentMemory) -> list[str]:
    return [memory.content.split(" <")[0] for memory in agent.all(temperature="hot")]


def added_hot(agent: AgentMemory, *contents: str) -> list[Memory]:
    return [agent.add(content, temperature="hot") for content in contents]


def used(agent: AgentMemory, memory: Memory, query: str, times: int) -> None:
    for _ in range(times):
        (hit,) = agent.search(query, 1)
        assert hit.memory.id == memory.id


def commits(folder: Path) -> int:
    return int(value(folder, "SELECT count(*) FROM commits"))


def moved(result: Compaction) -> tuple[int, int, int]:
    return result.hot, result.warm, result.cold


def small(make_bank: OpenBank, **own: Any) -> AgentMemory:
    """Hot has room for 30 characters; a line has three more than its text."""
    own = {"hot_max_tokens": 30, **own}
    return make_bank(temperature=own, count_tokens=len).agent("alice")


# Spill


def test_hot_over_its_tokens_after_an_add_spills_until_it_fits(make_bank: OpenBank) -> None:
    alice = small(make_bank)
    added_hot(alice, "a" * 7, "b" * 7, "c" * 7)  # 30, just full
    assert len(hot(alice)) == 3
    added_hot(alice, "d" * 17)  # 20: two have to go
    assert hot(alice) == ["c" * 7, "d" * 17]
    assert temperatures(alice)["a" * 7] is temperatures(alice)["b" * 7] is COLD


def test_hot_over_its_facts_after_an_add_spills(make_bank: OpenBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 2}).agent("alice")
    added_hot(alice, "a", "b", "c", "d")
    assert hot(alice) == ["c", "d"]


def test_hot_over_its_tokens_after_a_promotion_spills(make_bank: OpenBank) -> None:
    alice = small(make_bank)
    added_hot(alice, "a" * 7, "b" * 7, "c" * 7)
    warm = alice.add("d" * 7)
    assert alice.promote(warm.id)
    assert hot(alice) == ["b" * 7, "c" * 7, "d" * 7]


def test_pinning_spills_what_no_longer_fits(make_bank: OpenBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 2}).agent("alice")
    added_hot(alice, "a", "b")
    alice.pin(alice.add("pin").id)
    assert hot(alice) == ["b", "pin"]
    alice.add("another pin", "pinned")
    assert hot(alice) == ["pin", "another pin"]


def test_restoring_a_hot_memory_spills_what_no_longer_fits(make_bank: OpenBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 2}).agent("alice")
    first, *_ = added_hot(alice, "a", "b")
    alice.archive(first.id)
    added_hot(alice, "c")
    alice.restore(first.id)
    assert hot(alice) == ["a", "c"]


def test_the_least_relevant_spills_first(make_bank: OpenBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 3}).agent("alice")
    oldest, middle, _ = added_hot(alice, "a <1 0>", "b <0 1>", "c <1 1>")
    used(alice, oldest, "<1 0>", 1)  # relevance 0.75, the others 0.5
    alice.search("<1 0>", 3)  # b gets 0.25
    added_hot(alice, "d")
    assert hot(alice) == ["a", "c", "d"]
    assert alice.get(middle.id).temperature is COLD


def test_among_equally_relevant_the_oldest_spills_first(make_bank: OpenBank) -> None:
    bank = make_bank(temperature={"hot_max_facts": 3})
    alice = bank.agent("alice")
    late = alice.add("created first")
    bank.advance(1)
    added_hot(alice, "a", "b")
    alice.promote(late.id)
    added_hot(alice, "c")
    assert hot(alice) == ["a", "b", "c"]  # it was created first, though it became hot last


def test_what_was_accessed_three_times_spills_to_warm_what_was_not_to_cold(
    make_bank: OpenBank,
) -> None:
    alice = make_bank(temperature={"hot_max_facts": 2}).agent("alice")
    often, less = added_hot(alice, "often <1 0>", "less <0 1>")
    used(alice, often, "<1 0>", 3)
    used(alice, less, "<0 1>", 2)
    assert alice.spill(count=2).moved == {often.id: WARM, less.id: COLD}


def test_the_threshold_for_warm_is_a_setting(make_bank: OpenBank) -> None:
    own = {"hot_max_facts": 1, "warm_access_threshold": 0}
    alice = make_bank(temperature=own).agent("alice")
    added_hot(alice, "a", "b")
    assert temperatures(alice) == {"a": WARM, "b": HOT}


def test_the_newcomer_is_not_the_one_to_go(make_bank: OpenBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 1}).agent("alice")
    first = alice.add("relevant <1 0>", temperature="hot")
    used(alice, first, "<1 0>", 5)
    added_hot(alice, "newcomer")
    assert hot(alice) == ["newcomer"]


def test_an_item_larger_than_the_whole_budget_goes_to_warm_and_none_other_leaves(
    make_bank: OpenBank,
) -> None:
    alice = small(make_bank)
    added_hot(alice, "a" * 7)
    assert alice.add("x" * 28, temperature="hot").temperature is WARM  # 31 with its line
    assert alice.add("x" * 27).temperature is WARM
    assert hot(alice) == ["a" * 7]


def test_a_recall_of_an_item_larger_than_the_whole_budget_says_so(make_bank: OpenBank) -> None:
    alice = small(make_bank)
    giant = alice.add("x" * 40 + " <1 0>", temperature="cold")
    result = alice.recall("<1 0>")
    assert result.promoted == ()
    (note,) = result.notes
    assert "49 tokens" in note
    assert "hot_max_tokens is 30" in note
    assert alice.get(giant.id).temperature is WARM


def test_promoting_an_item_larger_than_the_whole_budget_is_false(make_bank: OpenBank) -> None:
    alice = small(make_bank)
    giant = alice.add("x" * 40)
    assert alice.promote(giant.id) is False
    assert alice.get(giant.id).temperature is WARM


def test_pinned_memories_never_spill_but_count(make_bank: OpenBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 2}).agent("alice")
    alice.add_many([("p1", "pinned"), ("p2", "pinned"), ("p3", "pinned")])
    memory = alice.add("a", temperature="hot")
    assert memory.temperature is WARM  # as returned, so as it is
    assert alice.get(memory.id) == memory
    assert hot(alice) == ["p1", "p2", "p3"]
    assert alice.spill().moved == {}


def test_without_auto_spill_hot_keeps_all(make_bank: OpenBank) -> None:
    alice = small(make_bank, auto_spill=False, hot_max_facts=2)
    added_hot(alice, *("a" * 20, "b" * 20, "c" * 60))
    assert alice.promote(alice.add("d" * 20).id)
    assert len(hot(alice)) == 4
    assert set(alice.spill().moved.values()) <= {WARM, COLD}  # asked for, it spills
    assert hot(alice) == ["d" * 20]


def test_a_spill_without_arguments_leaves_alone_what_fits(alice: AgentMemory) -> None:
    added_hot(alice, "a", "b")
    assert alice.spill() == Spill({}, ())
    assert hot(alice) == ["a", "b"]


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


def test_adding_many_spills_as_adding_one_by_one(make_bank: OpenBank) -> None:
    texts = [f"memory {n}" * (n % 3 + 1) for n in range(12)]
    options = {"temperature": "hot"}
    own = {"hot_max_tokens": 60, "hot_max_facts": 4}
    many, single = (make_bank(temperature=own, count_tokens=len) for _ in range(2))
    at_once = many.agent("alice").add_many([(text, 3, None, options) for text in texts])
    for text in texts:
        single.agent("alice").add(text, temperature="hot")
    assert many.state_hash() == single.state_hash()
    assert len(at_once) == 12


# Recall


def test_a_recall_finds_warm_and_cold_but_not_hot(alice: AgentMemory) -> None:
    alice.add("hot <1 0>", temperature="hot")
    alice.add("pin <1 0>", "pinned")
    alice.add("warm <1 1>")
    alice.add("cold <1 2>", temperature="cold")
    found = alice.recall("<1 0>", 9, auto_promote=False)
    assert [item.content for item in found.items] == ["warm <1 1>", "cold <1 2>"]


def test_a_recall_gives_three_unless_told(alice: AgentMemory) -> None:
    for number in range(6):
        alice.add(f"{number} <1 0>", temperature="cold")
    assert len(alice.recall("<1 0>", auto_promote=False).items) == 3
    assert len(alice.recall("<1 0>", limit=5, auto_promote=False).items) == 5
    assert alice.recall("<1 0>", limit=0).items == ()


def test_a_recall_gives_the_score_of_each_item(alice: AgentMemory) -> None:
    alice.add("a <1 0>", temperature="cold")
    alice.add("b <3 4>", temperature="cold")
    result = alice.recall("<1 0>", auto_promote=False)
    assert [item.content for item in result.items] == ["a <1 0>", "b <3 4>"]
    assert result.scores == pytest.approx((1.0, 0.6), abs=0.01)


def test_a_recall_of_kinds(alice: AgentMemory) -> None:
    alice.add("fact <1 0>", temperature="cold")
    alice.add("decision <1 0>", kind="decision", temperature="cold")
    alice.add("entity <1 0>", kind="entity")
    assert {m.kind for m in alice.recall("<1 0>", 9, kinds=["decision", "entity"]).items} == {
        "decision", "entity",
    }  # fmt: skip
    assert [m.kind for m in alice.recall("<1 0>", kinds="fact").items] == ["fact"]
    with pytest.raises(InvalidInput, match="rumour"):
        alice.recall("<1 0>", kinds=["rumour"])


def test_a_recall_of_a_least_relevance(alice: AgentMemory) -> None:
    alice.add("near <1 0>", temperature="cold")
    alice.add("far <1 1>", temperature="cold")
    near = alice.recall("<1 0>", min_relevance=0.8, auto_promote=False)
    assert [item.content for item in near.items] == ["near <1 0>"]
    with pytest.raises(InvalidInput):
        alice.recall("<1 0>", min_relevance=2)


def test_a_recall_promotes_what_reaches_the_threshold(alice: AgentMemory) -> None:
    near = alice.add("near <1 0>", temperature="cold")
    far = alice.add("far <1 1>", temperature="cold")
    result = alice.recall("<1 0>")
    assert result.promoted == (near.id,)
    assert [item.temperature for item in result.items] == [HOT, COLD]
    assert alice.get(far.id).temperature is COLD


def test_the_threshold_for_promotion_is_a_setting_that_may_be_just_reached(
    make_bank: OpenBank,
) -> None:
    alice = make_bank(temperature={"promote_threshold": 1.0}).agent("alice")
    same = alice.add("same <2 0>", temperature="cold")
    alice.add("almost <9 1>", temperature="cold")
    assert alice.recall("<1 0>").promoted == (same.id,)


def test_the_items_of_a_recall_are_as_they_are_after_it(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    alice.add("a <1 0>", temperature="cold")
    bank.advance(4)
    (item,) = alice.recall("<1 0>").items
    assert (item.temperature, item.access_count, item.last_access_tick) == (HOT, 1, 4)
    assert item.relevance == 0.75
    assert tuple(item) == tuple(alice.get(item.id))


def test_a_recall_may_leave_all_where_they_are(alice: AgentMemory) -> None:
    memory = alice.add("a <1 0>", temperature="cold")
    for _ in range(5):
        result = alice.recall("<1 0>", auto_promote=False)
        assert result.promoted == ()
    assert alice.get(memory.id).temperature is COLD
    assert alice.get(memory.id).access_count == 5


@pytest.mark.parametrize("temperature", ["warm", "cold"])
def test_the_third_recall_promotes_what_is_not_similar_enough(
    bank: MemoryBank, temperature: str
) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a <1 1>", temperature=temperature)
    for tick in (10, 20):
        bank.advance(tick)
        assert alice.recall("<1 0>").promoted == ()
    bank.advance(30)
    assert alice.recall("<1 0>").promoted == (memory.id,)


def test_recalls_outside_the_window_do_not_count(make_bank: OpenBank) -> None:
    bank = make_bank(temperature={"promote_window": 10})
    alice = bank.agent("alice")
    alice.add("a <1 1>", temperature="cold")
    for tick in (0, 6, 12, 18, 24):  # never three within ten
        bank.advance(tick)
        assert alice.recall("<1 0>").promoted == ()
    bank.advance(25)
    assert len(alice.recall("<1 0>").promoted) == 1


def test_searches_do_not_count_as_recalls(alice: AgentMemory) -> None:
    alice.add("a <1 1>")
    for _ in range(5):
        alice.search("<1 0>")
    assert alice.recall("<1 0>").promoted == ()


def test_recalls_are_remembered_after_reopening(open_bank: OpenBank) -> None:
    alice = open_bank().agent("alice")
    warm, cold = alice.add("warm <1 1>"), alice.add("cold <1 1>", temperature="cold")
    for _ in range(2):
        assert alice.recall("<1 0>").promoted == ()
    alice = open_bank().agent("alice")
    assert set(alice.recall("<1 0>").promoted) == {warm.id, cold.id}


def test_how_many_recalls_promote_is_a_setting(make_bank: OpenBank) -> None:
    alice = make_bank(temperature={"promote_accesses": 1}).agent("alice")
    alice.add("a <1 1>", temperature="cold")
    assert len(alice.recall("<1 0>").promoted) == 1


def test_hits_under_the_least_score_do_not_count_as_recalls(make_bank: OpenBank) -> None:
    own = {"min_score": 0.9, "promote_accesses": 1}
    alice = make_bank(temperature=own).agent("alice")
    memory = alice.add("a <1 1>", temperature="cold")
    assert alice.recall("<1 0>").promoted == ()
    assert alice.get(memory.id).access_count == 0


@pytest.mark.parametrize("query", ["", "  \n"])
def test_a_recall_of_a_blank_query_finds_nothing(alice: AgentMemory, query: str) -> None:
    memory = alice.add("a <1 0>", temperature="cold")
    assert alice.recall(query) == Recall((), (), (), ())
    assert alice.get(memory.id).access_count == 0


def test_a_recall_that_overfills_hot_spills_others_first(make_bank: OpenBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 2}).agent("alice")
    added_hot(alice, "a", "b")
    recalled = alice.add("c <1 0>", temperature="cold")
    assert alice.recall("<1 0>").promoted == (recalled.id,)
    assert hot(alice) == ["b", "c"]


def test_a_recall_promotes_no_more_than_fit(make_bank: OpenBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 2}).agent("alice")
    for number in range(4):
        alice.add(f"{number} <1 0>", temperature="cold")
    result = alice.recall("<1 0>", limit=4)
    assert len(result.promoted) == len(hot(alice)) == 2
    assert [item.temperature is HOT for item in result.items].count(True) == 2


def test_an_agent_recalls_only_its_own(bank: MemoryBank) -> None:
    bank.agent("bob").add("bob's <1 0>", temperature="cold")
    assert bank.agent("alice").recall("<1 0>") == Recall((), (), (), ())


def test_recalls_of_a_failed_transaction_never_happened(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    alice.add("a <1 0>", temperature="cold")
    before = bank.state_hash(), [tuple(each) for each in alice.all()]

    def fail() -> None:
        with bank.transaction():
            assert alice.recall("<1 0>").promoted
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (bank.state_hash(), [tuple(each) for each in alice.all()]) == before


# Promote and demote


def test_promoting_makes_hot_and_counts_as_a_use(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a", temperature="cold")
    bank.advance(3)
    assert alice.promote(memory.id) is True
    now = alice.get(memory.id)
    assert (now.temperature, now.last_access_tick) == (HOT, 3)
    assert alice.promote(memory.id) is False


@pytest.mark.parametrize(
    ("start", "to", "moves"),
    [
        ("hot", "warm", True), ("hot", "cold", True), ("warm", "cold", True),
        ("warm", "warm", False), ("cold", "cold", False), ("cold", "warm", False),
    ],
)  # fmt: skip
def test_demoting_is_false_where_nothing_changes(
    bank: MemoryBank, start: str, to: str, moves: bool
) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a", temperature=start)
    before = bank.state_hash()
    assert alice.demote(memory.id, to) is moves
    assert alice.get(memory.id).temperature.name.lower() == (to if moves else start)
    assert (bank.state_hash() == before) is not moves


def test_demoting_makes_warm_unless_told(alice: AgentMemory) -> None:
    memory = alice.add("a", temperature="hot")
    assert alice.demote(memory.id)
    assert alice.get(memory.id).temperature is WARM


def test_demoting_to_hot_is_refused(alice: AgentMemory) -> None:
    memory = alice.add("a")
    with pytest.raises(InvalidInput, match="promote it"):
        alice.demote(memory.id, "hot")


def test_demoting_a_pinned_memory_says_to_unpin(alice: AgentMemory) -> None:
    pin = alice.add("a", "pinned")
    with pytest.raises(MemoryPinned, match="unpin it first"):
        alice.demote(pin.id)
    assert alice.promote(pin.id) is False
    assert alice.get(pin.id).temperature is HOT


@pytest.mark.parametrize("method", ["promote", "demote"])
def test_moving_an_archived_memory_says_to_restore_it(alice: AgentMemory, method: str) -> None:
    memory = alice.add("a")
    alice.archive(memory.id)
    with pytest.raises(InvalidInput, match="archived; restore it first"):
        getattr(alice, method)(memory.id)


@pytest.mark.parametrize("method", ["promote", "demote"])
def test_moving_another_agents_memory_is_memory_not_found(bank: MemoryBank, method: str) -> None:
    theirs = bank.agent("bob").add("b")
    with pytest.raises(MemoryNotFound):
        getattr(bank.agent("alice"), method)(theirs.id)


# Use


def test_each_retrieval_counts(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a <1 0>")
    bank.advance(3)
    alice.search("<1 0>")
    alice.get_relevant_memories("<1 0>")
    bank.search_many([("alice", "<1 0>"), ("alice", "<1 0>")])
    now = alice.get(memory.id)
    assert (now.access_count, now.last_access_tick) == (4, 3)


def test_relevance_is_the_mean_of_what_it_was_and_of_the_score(alice: AgentMemory) -> None:
    memory = alice.add("a <1 0>")
    for query, relevance in [("<1 0>", 0.75), ("<1 0>", 0.875), ("<0 1>", 0.4375)]:
        alice.search(query)
        assert alice.get(memory.id).relevance == relevance


def test_what_was_not_returned_is_not_counted(alice: AgentMemory) -> None:
    alice.add("near <1 0>")
    far = alice.add("far <0 1>")
    alice.search("<1 0>", 1)
    assert tuple(alice.get(far.id))[-3:] == (0, None, 0.5)


def test_what_the_token_budget_cut_is_not_counted(make_bank: OpenBank) -> None:
    alice = make_bank(count_tokens=len).agent("alice")
    memory = alice.add("a long text <1 0>")
    alice.search("<1 0>", context_tokens=3)
    alice.get_relevant_memories("<1 0>", context_tokens=3)
    alice.search("<1 0>", context_tokens=3, include_cold=True)
    assert alice.get(memory.id).access_count == 0


def test_hits_under_the_least_score_do_not_count(make_bank: OpenBank) -> None:
    alice = make_bank(temperature={"min_score": 0.6}).agent("alice")
    near, far = alice.add("near <4 3>"), alice.add("far <1 2>")
    assert len(alice.search("<1 0>")) == 2
    assert alice.get(near.id).access_count == 1
    assert tuple(alice.get(far.id))[-3:] == (0, None, 0.5)


def test_pinned_hot_and_cold_memories_count_where_they_were_given(alice: AgentMemory) -> None:
    pin, warm = alice.add("pin <1 0>", "pinned"), alice.add("hot <1 0>", temperature="hot")
    cold = alice.add("cold <1 0>", temperature="cold")
    alice.get_relevant_memories("<1 0>")
    alice.search("<1 0>", include_cold=True)
    assert [alice.get(each.id).access_count for each in (pin, warm, cold)] == [2, 2, 1]


def test_blank_queries_explanations_and_reading_do_not_count(alice: AgentMemory) -> None:
    memory, cold = alice.add("a <1 0>"), alice.add("b <1 0>", temperature="cold")
    alice.search("")
    alice.search(" ", include_cold=True)
    alice.get_relevant_memories("")
    alice.explain("<1 0>")
    alice.hot_context()
    alice.all()
    for each in (memory, cold):
        assert tuple(alice.get(each.id))[-3:] == (0, None, 0.5)


def test_searches_make_no_commits_of_their_own(open_bank: OpenBank, folder: Path) -> None:
    bank = open_bank()
    alice = bank.agent("alice")
    memory = alice.add("a <1 0>")
    cold = alice.add("b <1 1>", temperature="cold")
    before = commits(folder)
    for _ in range(10):
        alice.search("<1 0>")
        alice.get_relevant_memories("<1 0>")
        alice.recall("<0 1>", auto_promote=False)
    assert commits(folder) == before
    bank.advance(1)
    assert commits(folder) == before + 1
    expected = [tuple(alice.get(each.id)) for each in (memory, cold)]
    alice = open_bank().agent("alice")
    assert [tuple(alice.get(each.id)) for each in (memory, cold)] == expected


def test_use_is_kept_when_the_bank_is_closed_right_after(open_bank: OpenBank) -> None:
    alice = open_bank().agent("alice")
    memory, cold = alice.add("a <1 0>"), alice.add("b <1 0>", temperature="cold")
    alice.search("<1 0>", include_cold=True)
    for each in (memory, cold):
        now = open_bank().agent("alice").get(each.id)
        assert (now.access_count, now.last_access_tick, now.relevance) == (1, 0, 0.75)


def test_a_tick_with_many_searches_is_one_commit(open_bank: OpenBank, folder: Path) -> None:
    bank = open_bank()
    agents = [f"agent_{n}" for n in range(5)]

    def ask(*_: object) -> list[Any]:
        for name in agents:
            bank.agent(name).search("<1 0>")
            bank.agent(name).recall("<1 0>", auto_promote=False)
        return []

    world = Diary()
    world.says = lambda agent: f"{agent} <1 0>"
    loop = Loop(bank, world, Mind(ask), agents)
    loop.begin([(name, "a <1 0>") for name in agents])
    for _ in range(3):
        before = commits(folder)
        loop.tick()
        assert commits(folder) == before + 1
    assert bank.agent("agent_0").all()[0].access_count >= 3 * 5


def test_the_same_searches_leave_the_same_state(make_bank: OpenBank) -> None:
    def one() -> tuple[object, ...]:
        bank = make_bank()
        alice = bank.agent("alice")
        for number in range(20):
            heat = ("hot", "warm", "cold")[number % 3]
            alice.add(f"{number} <{number} {20 - number}>", temperature=heat)
        for tick in range(1, 5):
            bank.advance(tick)
            alice.search(f"<{tick} 3>")
            alice.recall(f"<3 {tick}>")
        return bank.state_hash(), [tuple(each) for each in alice.all()]

    assert one() == one()


# Compaction


@pytest.mark.parametrize("start", ["hot", "warm", "cold"])
@pytest.mark.parametrize(
    ("kind", "tags", "to"),
    [
        ("decision", (), {"hot": COLD, "warm": COLD, "cold": COLD}),
        ("fact", ("task",), {"hot": COLD, "warm": COLD, "cold": COLD}),
        ("decision", ("open",), {"hot": WARM, "warm": WARM, "cold": COLD}),
        ("fact", ("task", "open"), {"hot": WARM, "warm": WARM, "cold": COLD}),
        ("decision", ("blocker",), {"hot": HOT, "warm": HOT, "cold": HOT}),
        ("fact", ("task", "blocker"), {"hot": HOT, "warm": HOT, "cold": HOT}),
        ("fact", ("blocker",), {"hot": HOT, "warm": HOT, "cold": HOT}),
        ("preference", (), {"hot": HOT, "warm": WARM, "cold": COLD}),
        ("fact", (), {"hot": WARM, "warm": WARM, "cold": COLD}),
        ("message", ("other",), {"hot": WARM, "warm": WARM, "cold": COLD}),
    ],
    ids=str,
)
def test_the_default_rules(
    bank: MemoryBank, start: str, kind: str, tags: tuple[str, ...], to: dict[str, Temperature]
) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a", kind=kind, tags=tags, temperature=start)
    alice.compact()
    assert alice.get(memory.id).temperature is to[start]
    before = bank.state_hash()
    assert moved(alice.compact()) == (0, 0, 0)  # a second time moves nothing
    assert bank.state_hash() == before


def test_a_hot_preference_that_was_idle_for_seven_days_becomes_warm(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    alice.add("idle <1 0>", kind="preference", temperature="hot")
    alice.add("used <0 1>", kind="preference", temperature="hot")
    bank.advance(1)
    alice.search("<0 1>", 1)
    bank.advance(7 * 24 - 1)
    assert moved(alice.compact()) == (0, 0, 0)
    bank.advance(7 * 24)
    assert moved(alice.compact()) == (0, 1, 0)
    assert temperatures(alice) == {"idle": WARM, "used": HOT}


def test_compaction_never_moves_pinned_memories(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    for kind, tags in [("decision", ()), ("fact", ("task",)), ("preference", ()), ("fact", ())]:
        alice.add("pin", "pinned", kind=kind, tags=tags)
    bank.advance(9999)
    assert moved(bank.compact()) == (0, 0, 0)
    assert alice.count("pinned") == 4


def test_blockers_become_hot_newest_first_while_there_is_room(make_bank: OpenBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 3}).agent("alice")
    alice.add("pin", "pinned")
    for number in range(5):
        alice.add(f"blocker {number}", tags=["blocker"])
    assert alice.compact().hot == 2
    assert hot(alice) == ["pin", "blocker 3", "blocker 4"]


def test_blockers_that_are_hot_already_count_and_stay(make_bank: OpenBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 3}).agent("alice")
    for number in range(5):
        heat = "hot" if number < 2 else "warm"
        alice.add(f"blocker {number}", tags=["blocker"], temperature=heat)
    for _ in range(5):  # however often
        alice.compact()
        assert hot(alice) == ["blocker 0", "blocker 1", "blocker 4"]


def test_blockers_keep_within_the_tokens_and_a_smaller_one_still_goes_in(
    make_bank: OpenBank,
) -> None:
    alice = small(make_bank)
    alice.add("s" * 7, tags=["blocker"])
    alice.add("l" * 17, tags=["blocker"])
    alice.add("m" * 12, tags=["blocker"])
    alice.compact()
    assert hot(alice) == ["s" * 7, "m" * 12]  # 10 + 15; the one of 20 did not fit
    assert alice.spill().moved == {}


def test_what_leaves_hot_makes_room_for_blockers(make_bank: OpenBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 2}).agent("alice")
    added_hot(alice, "a", "b")
    alice.add("blocker 1", tags=["blocker"])
    alice.add("blocker 2", tags=["blocker"], temperature="cold")
    result = alice.compact()
    assert (result.hot, result.warm, result.cold) == (2, 2, 0)
    assert hot(alice) == ["blocker 1", "blocker 2"]


def test_a_decision_that_is_a_blocker_does_not_flip(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    alice.add("a", kind="decision", tags=["blocker"])
    assert bank.compact().hot == 1
    for _ in range(4):
        assert moved(bank.compact()) == (0, 0, 0)
    assert hot(alice) == ["a"]


def test_compaction_counts_what_it_moved_over_all_agents(bank: MemoryBank) -> None:
    for name in ("alice", "bob"):
        agent = bank.agent(name)
        agent.add("done", kind="decision")
        agent.add("blocker", tags=["blocker"])
        added_hot(agent, "a", "b")
    result = bank.compact("alice")
    assert (result.hot, result.warm, result.cold, result.pruned) == (1, 2, 1, 0)
    assert hot(bank.agent("bob")) == ["a", "b"]
    assert moved(bank.compact()) == (1, 2, 1)  # bob's


def test_a_dry_run_lists_the_rules_and_changes_nothing(open_bank: OpenBank, folder: Path) -> None:
    bank = open_bank()
    alice = bank.agent("alice")
    done = alice.add("done", kind="decision")
    blocker = alice.add("blocker", tags=["blocker"])
    chat = alice.add("chat", temperature="hot")
    before, number = bank.state_hash(), commits(folder)
    planned = bank.compact(dry_run=True)
    assert [(move.memory, move.to, move.rule) for move in planned.moves] == [
        (done, COLD, "completed"), (blocker, HOT, "blocker"), (chat, WARM, "cool down"),
    ]  # fmt: skip
    assert (bank.state_hash(), commits(folder)) == (before, number)
    assert moved(bank.compact()) == moved(planned) == (1, 1, 1)
    assert bank.compact(dry_run=True).moves == ()


def test_compaction_is_one_commit(open_bank: OpenBank, folder: Path) -> None:
    bank = open_bank()
    for name in ("alice", "bob", "carol"):
        bank.agent(name).add("done", kind="decision")
        bank.agent(name).add("chat", temperature="hot")
    before = commits(folder)
    bank.compact()
    assert commits(folder) == before + 1
    bank.compact()
    assert commits(folder) == before + 1  # nothing moved, nothing to write


def test_a_compaction_in_a_failed_transaction_never_happened(bank: MemoryBank) -> None:
    bank.agent("alice").add("done", kind="decision")
    before = bank.state_hash()

    def fail() -> None:
        with bank.transaction():
            assert bank.compact().cold == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert bank.state_hash() == before


def test_compaction_does_not_touch_what_is_archived(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    archived = alice.add("a", tags=["blocker"])
    alice.archive(archived.id)
    assert moved(bank.compact()) == (0, 0, 0)
    assert alice.get(archived.id).temperature is WARM


def test_rules_of_ones_own_replace_the_defaults(make_bank: OpenBank) -> None:
    rules = [
        {"name": "old", "when": {"age": "1d", "tier": "low", "accesses_below": 2}, "to": "cold"},
        {"name": "liked", "when": {"accesses": 2}, "to": "hot"},
    ]
    bank = make_bank(temperature={"rules": rules})
    alice = bank.agent("alice")
    alice.add("a", "low")
    alice.add("b", kind="decision")
    liked = alice.add("c <1 0>", "low")
    used(alice, liked, "<1 0>", 2)
    bank.advance(24)
    planned = bank.compact(dry_run=True).moves
    assert {(move.memory.content, move.rule) for move in planned} == {
        ("a", "old"), ("c <1 0>", "liked"),
    }  # fmt: skip
    bank.compact()
    assert temperatures(alice) == {"a": COLD, "b": WARM, "c": HOT}


def test_closing_compacts_where_the_settings_say_so(open_bank: OpenBank) -> None:
    own = {"compact_on_close": True}
    open_bank(temperature=own).agent("alice").add("done", kind="decision")
    assert temperatures(open_bank(temperature=own).agent("alice")) == {"done": COLD}


def test_a_simulation_compacts_every_so_many_ticks(make_bank: OpenBank) -> None:
    bank = make_bank(temperature={"compact_every": 3})
    loop = Loop(bank, Diary(), Mind(), ["alice"])
    loop.begin([("alice", "done", "normal", None, {"kind": "decision"})])
    found = []
    for _ in range(4):
        loop.tick()
        found.append(temperatures(bank.agent("alice"))["done"])
    assert found == [WARM, WARM, COLD, COLD]


# Decay

FADING = {
    "enabled": True,
    "half_life": {"critical": 40, "important": 20, "normal": 10, "low": 5},
}


def faded_at(bank: MemoryBank, memory: Memory, to: Temperature, until: int = 400) -> int:
    """The tick of the sweep that made a memory so."""
    while bank.agent(memory.agent_id).get(memory.id).temperature != to:
        assert bank.tick < until, "it did not fade"
        bank.advance(bank.tick + 1)
        bank.sweep()
    return bank.tick


def test_an_idle_hot_memory_becomes_warm_then_cold(make_bank: OpenBank) -> None:
    bank = make_bank(decay=FADING)
    memory = bank.agent("alice").add("a", temperature="hot")
    assert faded_at(bank, memory, WARM) == 11  # below a half, after more than one half-life
    assert faded_at(bank, memory, COLD) == 21
    bank.advance(9999)
    bank.sweep()
    assert bank.agent("alice").all() == [bank.agent("alice").get(memory.id)]


@pytest.mark.parametrize(
    ("tier", "expected"), [("critical", 81), ("important", 41), ("normal", 21), ("low", 11)]
)
def test_what_matters_more_fades_more_slowly(make_bank: OpenBank, tier: str, expected: int) -> None:
    bank = make_bank(decay=FADING)
    assert faded_at(bank, bank.agent("alice").add("a", tier), COLD) == expected


def test_what_was_used_fades_half_as_fast_from_its_last_use(make_bank: OpenBank) -> None:
    bank = make_bank(decay=FADING)
    alice = bank.agent("alice")
    memory = alice.add("a <1 0>")
    bank.advance(4)
    alice.search("<1 0>")
    assert faded_at(bank, memory, COLD) == 4 + 41


def test_many_memories_fade_each_at_its_time(make_bank: OpenBank) -> None:
    bank = make_bank(decay=FADING)
    expected = {}
    for tick in (0, 3, 7):
        bank.advance(tick)
        for name in ("alice", "bob"):
            agent = bank.agent(name)
            expected[agent.add("low", "low").id] = tick + 11
            expected[agent.add("normal").id] = tick + 21
            expected[agent.add("hot", temperature="hot").id] = tick + 21
    found: dict[str, int] = {}
    for tick in range(8, 60):
        bank.advance(tick)
        bank.sweep()
        for name in ("alice", "bob"):
            for memory in bank.agent(name).all(temperature="cold"):
                found.setdefault(memory.id, tick)
    assert found == expected


def test_a_sweep_after_a_long_pause_catches_up(make_bank: OpenBank) -> None:
    bank = make_bank(decay=FADING)
    alice = bank.agent("alice")
    memory = alice.add("a", temperature="hot")
    bank.advance(500)
    bank.sweep()
    assert alice.get(memory.id).temperature is WARM
    bank.sweep()
    assert alice.get(memory.id).temperature is COLD


def test_pinned_memories_never_fade(make_bank: OpenBank) -> None:
    bank = make_bank(decay=FADING)
    pin = bank.agent("alice").add("a", "pinned")
    bank.advance(10**6)
    bank.sweep()
    assert bank.agent("alice").get(pin.id).temperature is HOT


def test_an_unpinned_memory_fades_again(make_bank: OpenBank) -> None:
    bank = make_bank(decay=FADING)
    alice = bank.agent("alice")
    memory = alice.add("a", "pinned")
    bank.advance(100)
    bank.sweep()
    alice.unpin(memory.id)
    assert faded_at(bank, memory, COLD) <= 121


def test_decay_neither_deletes_nor_filters(make_bank: OpenBank) -> None:
    bank = make_bank(decay=FADING)
    alice = bank.agent("alice")
    added = [alice.add(f"{n} <1 {n}>", n % 4 + 1) for n in range(8)]
    for tick in (50, 100, 1000):
        bank.advance(tick)
        bank.sweep()
        assert {m.retention for m in alice.all()} == {Retention.ACTIVE}
        assert [m.id for m in alice.all()] == [m.id for m in added]
    assert len(alice.search("<1 0>", 50, include_cold=True)) == 8


def test_without_decay_nothing_fades(make_bank: OpenBank) -> None:
    bank = make_bank()
    memory = bank.agent("alice").add("a", temperature="hot")
    bank.advance(10**6)
    bank.sweep()
    assert bank.agent("alice").get(memory.id).temperature is HOT


def test_what_a_rule_keeps_hot_does_not_fade(make_bank: OpenBank) -> None:
    bank = make_bank(decay=FADING)
    alice = bank.agent("alice")
    blocker = alice.add("a", tags=["blocker"], temperature="hot")
    bank.advance(1000)
    bank.sweep()
    assert alice.get(blocker.id).temperature is HOT
    assert moved(bank.compact()) == (0, 0, 0)


def test_hot_memories_fade_where_there_are_no_rules(make_bank: OpenBank) -> None:
    bank = make_bank(decay=FADING, temperature={"rules": []})
    memory = bank.agent("alice").add("a", temperature="hot")
    assert faded_at(bank, memory, WARM) == 11


def test_hot_memories_fade_where_no_rule_speaks_of_them(make_bank: OpenBank) -> None:
    rules = [{"name": "completed", "when": {"kind": "decision"}, "to": "cold"}]
    bank = make_bank(decay=FADING, temperature={"rules": rules})
    memory = bank.agent("alice").add("a", temperature="hot")
    assert faded_at(bank, memory, WARM) == 11


def test_a_preference_fades_as_any_other_hot_memory(make_bank: OpenBank) -> None:
    bank = make_bank(decay=FADING)
    memory = bank.agent("alice").add("a", kind="preference", temperature="hot")
    assert faded_at(bank, memory, WARM) == 11


def test_in_a_simulation_each_agents_memories_fade_once_in_so_many_ticks(
    make_bank: OpenBank,
) -> None:
    bank = make_bank(decay={**FADING, "every": 4})
    world = Diary()
    world.says = lambda agent: ""
    names = ["alice", "bob", "carol"]
    loop = Loop(bank, world, Mind(), names)
    loop.begin([(name, "a", "low") for name in names])
    cold: dict[str, int] = {}
    for tick in range(1, 20):
        loop.tick()
        for name in names:
            if temperatures(bank.agent(name))["a"] is COLD:
                cold.setdefault(name, tick)
    # Due in tick 11, and each when it is its turn: that depends on its name alone.
    assert cold == {"alice": 13, "bob": 12, "carol": 13}


def test_each_tick_of_a_simulation_sweeps(make_bank: OpenBank) -> None:
    bank = make_bank(decay={**FADING, "every": 1})
    world = Diary()
    world.says = lambda agent: ""
    loop = Loop(bank, world, Mind(), ["alice"])
    loop.begin([("alice", "a", "low")])
    for _ in range(11):
        loop.tick()
    assert temperatures(bank.agent("alice"))["a"] is COLD


def test_decay_continues_after_reopening(open_bank: OpenBank) -> None:
    bank = open_bank(decay=FADING)
    memory = bank.agent("alice").add("a", temperature="hot")
    bank.advance(6)
    bank.sweep()
    assert faded_at(open_bank(decay=FADING), memory, WARM) == 11


# Pruning


def cold_ones(agent: AgentMemory, number: int, tier: str = "normal") -> list[Memory]:
    return [
        agent.add(f"{n} <{n} {number}>", tier, temperature="cold") for n in range(1, number + 1)
    ]


def test_up_to_the_most_nothing_is_pruned(make_bank: OpenBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 3})
    cold_ones(bank.agent("alice"), 3)
    assert bank.prune() == []


def test_the_least_worth_is_pruned_first_and_archived(make_bank: OpenBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 2})
    alice = bank.agent("alice")
    added = [alice.add(f"{n} <1 0>" if n else "0 <0 1>", temperature="cold") for n in range(4)]
    alice.recall("<1 0>", 9, auto_promote=False)  # 0: 0.25 + 0.1, the others: 0.75 + 0.1
    assert bank.prune() == [added[0].id, added[1].id]
    assert alice.get(added[0].id).retention is Retention.ARCHIVED
    assert [m.content for m in alice.all()] == ["2 <1 0>", "3 <1 0>"]
    assert bank.prune() == []


def test_each_access_is_worth_a_tenth(make_bank: OpenBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 1})
    alice = bank.agent("alice")
    often = alice.add("often <0 1>", temperature="cold", tags=["often"])
    never = alice.add("never <0 1>", temperature="cold")
    for _ in range(6):
        alice.search("<1 0>", include_cold=True, tags="often")
    assert alice.get(often.id).relevance < 0.01  # but six tenths are more than a half
    assert bank.prune() == [never.id]


def test_among_equals_the_oldest_is_pruned_first(make_bank: OpenBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 1})
    added = cold_ones(bank.agent("alice"), 3)
    assert bank.prune() == [added[0].id, added[1].id]


def test_critical_memories_are_never_pruned(make_bank: OpenBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 0})
    alice = bank.agent("alice")
    cold_ones(alice, 3, "critical")
    low = alice.add("low", "low", temperature="cold")
    assert bank.prune() == [low.id]
    assert alice.count("critical") == 3


def test_hot_and_warm_and_pinned_memories_are_never_pruned(make_bank: OpenBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 0})
    alice = bank.agent("alice")
    added_hot(alice, "hot")
    alice.add_many(["warm", ("pin", "pinned")])
    assert bank.prune() == []


def test_a_dry_run_of_pruning_changes_nothing(make_bank: OpenBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 1})
    alice = bank.agent("alice")
    added = cold_ones(alice, 3)
    before = bank.state_hash()
    planned = bank.prune(dry_run=True)
    assert planned == [added[0].id, added[1].id]
    assert bank.state_hash() == before
    assert bank.prune() == planned


def test_the_most_is_for_each_agent(make_bank: OpenBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 2})
    for name in ("alice", "bob"):
        cold_ones(bank.agent(name), 3)
    assert len(bank.prune("bob")) == 1
    assert len(bank.agent("alice").all()) == 3
    assert len(bank.prune()) == 1


def test_compaction_prunes_where_the_settings_say_so(make_bank: OpenBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 1, "auto_prune": True})
    alice = bank.agent("alice")
    for number in range(3):
        alice.add(f"done {number}", kind="decision")
    result = bank.compact()
    assert (result.cold, result.pruned) == (3, 2)
    assert len(alice.all()) == 1
    assert bank.compact().pruned == 0


def test_a_dry_run_of_compaction_says_how_many_it_would_prune(make_bank: OpenBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 1, "auto_prune": True})
    for number in range(3):
        bank.agent("alice").add(f"done {number}", kind="decision")
    planned = bank.compact(dry_run=True)
    assert planned.pruned == bank.compact().pruned == 2


def test_pruned_memories_can_be_restored(make_bank: OpenBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 0})
    alice = bank.agent("alice")
    (memory,) = cold_ones(alice, 1)
    bank.prune()
    assert alice.restore(memory.id).temperature is COLD
    assert alice.all() == [memory]


def test_no_movement_changes_the_tier(make_bank: OpenBank) -> None:
    bank = make_bank(decay=FADING, temperature={"hot_max_facts": 2, "promote_threshold": 0.5})
    alice = bank.agent("alice")
    added = [alice.add(f"{n} <1 {n}>", n % 4 + 1, temperature="hot") for n in range(8)]
    alice.recall("<1 1>", 8)
    bank.compact()
    bank.advance(1000)
    bank.sweep()
    alice.spill(count=9)
    assert [m.tier for m in alice.all()] == [Tier(m.tier) for m in added]
