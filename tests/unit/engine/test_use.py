"""What a search gives counts as use."""

from pathlib import Path
from typing import Any

import pytest

from agents import AgentMemory, MemoryBank
from agents.simulation.tick.loop import Loop
from banks import MakeBank
from movements import commits
from worlds import Diary, Mind


def test_each_retrieval_counts(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a <1 0>")
    bank.advance(3)
    alice.search("<1 0>")
    alice.get_relevant_memories("<1 0>")
    bank.search_many([("alice", "<1 0>"), ("alice", "<1 0>")])
    now = alice.get(memory.id)
    assert (now.access_count, now.last_access_tick) == (4, 3)


def test_each_use_halves_what_is_missing_to_full_relevance(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"min_score": 0}).agent("alice")
    memory = alice.add("a <1 0>")
    means = [("<1 0>", 0.75), ("<1 0>", 0.875), ("<0 1>", 0.4375)]
    for uses, (query, mean) in enumerate(means, 1):
        alice.search(query)
        assert alice.get(memory.id).relevance == 1 - (0.75 - mean / 2) / 2**uses


def test_what_was_not_returned_is_not_counted(alice: AgentMemory) -> None:
    alice.add("near <1 0>")
    far = alice.add("far <0 1>")
    alice.search("<1 0>", 1)
    assert tuple(alice.get(far.id))[-3:] == (0, None, 0.5)


def test_what_the_token_budget_cut_is_not_counted(make_bank: MakeBank) -> None:
    alice = make_bank(count_tokens=len).agent("alice")
    memory = alice.add("a long text <1 0>")
    alice.search("<1 0>", context_tokens=3)
    alice.get_relevant_memories("<1 0>", context_tokens=3)
    alice.search("<1 0>", context_tokens=3, include_cold=True)
    assert alice.get(memory.id).access_count == 0


def test_hits_under_the_least_score_do_not_count(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"min_score": 0.6}).agent("alice")
    near, far = alice.add("near <4 3>"), alice.add("far <1 2>")
    assert len(alice.search("<1 0>")) == 2
    assert alice.get(near.id).access_count == 1
    assert tuple(alice.get(far.id))[-3:] == (0, None, 0.5)


@pytest.mark.parametrize("way", ["search", "search_many", "budget", "context", "recall"])
@pytest.mark.parametrize(("measure", "used"), [("score", 21), ("probability", 1)])
def test_where_all_scores_crowd_a_probability_says_what_counts(
    make_bank: MakeBank, measure: str, used: int, way: str
) -> None:
    options = {"measure": measure, "min_score": 0.5, "auto_promote": False}
    bank = make_bank(temperature=options, preset="vector")
    alice = bank.agent("alice")
    alice.add("near <10 8>")
    alice.add_many([f"far {n} <10 12>" for n in range(20)])  # 0.97 similar
    found: list[Any] = {
        "search": lambda: alice.search("<10 8>", 30),
        "search_many": lambda: bank.search_many([("alice", "<10 8>"), ("bob", "<10 8>")], 30)[0],
        "budget": lambda: alice.search("<10 8>", 30, context_tokens=1000),
        "context": lambda: bank.context_many([("alice", "<10 8>")], 30)[0],
        "recall": lambda: alice.recall("<10 8>", 30).items,
    }[way]()
    assert len(found) == 21
    assert sum(memory.access_count > 0 for memory in alice.all()) == used


@pytest.mark.parametrize(("measure", "promoted"), [("score", 21), ("probability", 1)])
def test_where_all_texts_are_alike_a_probability_says_what_a_recall_promotes(
    make_bank: MakeBank, measure: str, promoted: int
) -> None:
    bank = make_bank(temperature={"measure": measure, "promote_threshold": 0.8}, preset="vector")
    alice = bank.agent("alice")
    alice.add("near <10 8>")
    alice.add_many([f"far {n} <10 12>" for n in range(20)])
    assert len(alice.recall("<10 8>", 30).promoted) == promoted


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
    alice.get_relevant_memories()
    alice.all()
    for each in (memory, cold):
        assert tuple(alice.get(each.id))[-3:] == (0, None, 0.5)


def test_searches_make_no_commits_of_their_own(open_bank: MakeBank, folder: Path) -> None:
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


def test_use_is_kept_when_the_bank_is_closed_right_after(open_bank: MakeBank) -> None:
    alice = open_bank().agent("alice")
    memory, cold = alice.add("a <1 0>"), alice.add("b <1 0>", temperature="cold")
    alice.search("<1 0>", include_cold=True)
    for each in (memory, cold):
        now = open_bank().agent("alice").get(each.id)
        assert (now.access_count, now.last_access_tick, now.relevance) == (1, 0, 0.8125)


def test_a_tick_with_many_searches_is_one_commit(open_bank: MakeBank, folder: Path) -> None:
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


def test_the_same_searches_leave_the_same_state(make_bank: MakeBank) -> None:
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
