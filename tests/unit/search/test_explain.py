"""Why each memory was chosen, and why it was dropped."""

from collections.abc import Callable

import pytest

from agents import AgentMemory, Explanation, MemoryBank
from embedders import Noise

MakeBank = Callable[..., MemoryBank]


def reasons(rows: list[Explanation]) -> dict[str, str]:
    return {row.memory.content: row.reason for row in rows}


@pytest.fixture
def busy(make_bank: MakeBank) -> AgentMemory:
    alice = make_bank(embedder=Noise(16)).agent("alice")
    alice.add_many([(f"memory {n} " + "x" * (n % 7 * 10), n * 3 % 5) for n in range(60)])
    return alice


@pytest.mark.slow
@pytest.mark.parametrize("query", ["one", "two", ""])
@pytest.mark.parametrize("limit", [0, 3, 5, 8, 30, 100])
@pytest.mark.parametrize("tokens", [None, 1, 30, 120])
def test_what_has_a_rank_is_what_search_returns(
    busy: AgentMemory, query: str, limit: int, tokens: int | None
) -> None:
    found = busy.search(query, limit, context_tokens=tokens)
    ranked = [row for row in busy.explain(query, limit, context_tokens=tokens) if row.rank]
    assert [tuple(row[:4]) for row in ranked] == [tuple(hit[:4]) for hit in found]
    assert [row.rank for row in ranked] == list(range(1, len(found) + 1))


@pytest.mark.parametrize("query", ["one", ""])
@pytest.mark.parametrize("limit", [0, 5, 8, 100])
@pytest.mark.parametrize("tokens", [None, 40])
def test_every_memory_appears_exactly_once(
    busy: AgentMemory, query: str, limit: int, tokens: int | None
) -> None:
    rows = busy.explain(query, limit, context_tokens=tokens)
    assert sorted(row.memory.sequence for row in rows) == [m.sequence for m in busy.all()]


@pytest.mark.parametrize("query", ["one", ""])
def test_similarity_boost_and_their_sum_are_given_for_all(busy: AgentMemory, query: str) -> None:
    boosts = MemoryBank(busy.engine).settings.memory.tier_boosts
    for row in busy.explain(query, 8):
        assert 0.0 <= row.score <= 1.0
        assert row.boost == boosts[row.memory.tier]
        assert row.boosted_score == row.score + row.boost


def test_scores_of_dropped_memories_are_what_a_wider_search_gives(busy: AgentMemory) -> None:
    wide = {hit.memory.id: tuple(hit) for hit in busy.search("one", 1000)}
    for row in busy.explain("one", 7):
        assert tuple(row[:4]) == tuple(wide[row.memory.id][:4])


def test_each_reason_is_told(alice: AgentMemory) -> None:
    alice.add("pin", "pinned")
    for n in range(9):
        alice.add(f"{n} <1 0.{n}>" + " long" * (30 if n == 1 else 0))
    told = reasons(alice.explain("<1 0>", 3, context_tokens=20))
    assert told["pin"] == "pinned"
    assert told["0 <1 0.0>"] == "chosen"
    assert told["1 <1 0.1>" + " long" * 30] == "over the token budget"
    assert {told[f"{n} <1 0.{n}>"] for n in (2, 3, 4, 5)} == {"below the cut"}
    assert {told[f"{n} <1 0.{n}>"] for n in (6, 7, 8)} == {"outside the 6 candidates"}


def test_dropped_memories_have_no_rank(busy: AgentMemory) -> None:
    for row in busy.explain("one", 8, context_tokens=40):
        assert (row.rank is None) == (row.reason not in ("pinned", "chosen"))


def test_a_pinned_memory_over_the_budget_is_explained(alice: AgentMemory) -> None:
    alice.add_many([("old " + "x" * 100, "pinned"), ("new", "pinned")])
    rows = alice.explain("q", context_tokens=10)
    assert [(row.memory.content[:3], row.rank, row.reason) for row in rows] == [
        ("new", 1, "pinned"),
        ("old", None, "over the token budget"),
    ]


def test_with_limit_0_all_but_the_pinned_are_dropped(busy: AgentMemory) -> None:
    rows = busy.explain("one", 0)
    assert [row.memory for row in rows if row.rank] == busy.get_pinned_memories()
    assert all(row.reason == "outside the 0 candidates" for row in rows if not row.rank)


def test_the_default_limit_is_used(busy: AgentMemory) -> None:
    assert busy.explain("one") == busy.explain("one", 5)


def test_the_candidates_count_follows_the_multiplier(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"candidate_multiplier": 2}).agent("alice")
    alice.add_many([f"{n} <1 0.{n}>" for n in range(6)])
    told = [row.reason for row in alice.explain("<1 0>", 2)]
    assert told == ["chosen"] * 2 + ["below the cut"] * 2 + ["outside the 4 candidates"] * 2


def test_an_agent_without_memories_has_nothing_to_explain(alice: AgentMemory) -> None:
    assert alice.explain("x") == []
    assert alice.explain("") == []


def test_explaining_changes_nothing(bank: MemoryBank) -> None:
    bank.agent("alice").add("x")
    before = bank.state_hash()
    bank.agent("alice").explain("x")
    bank.agent("bob").explain("x")
    assert bank.state_hash() == before
    assert bank.agents() == ["alice"]


def test_another_agents_memories_are_not_explained(bank: MemoryBank) -> None:
    bank.add_many([("alice", "mine <1 0>"), ("bob", "theirs <1 0>")])
    assert [row.memory.content for row in bank.agent("alice").explain("<1 0>")] == ["mine <1 0>"]
