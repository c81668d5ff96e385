"""Searching as classic agents do: recency, importance and relevance, forgetting, or a window."""

from pathlib import Path
from typing import Any

import pytest
from hybrid import Make, contents

from agents import AgentMemory, InvalidInput, MemoryBank
from agents.errors import ConfigError
from embedders import Directions

CLASSIC = ["generative-agents", "memorybank", "recency"]


def bank_of(agent: AgentMemory) -> MemoryBank:
    return MemoryBank(agent.engine)


def test_generative_agents_rank_by_recency_importance_and_relevance(make: Make) -> None:
    alice = make(preset="generative-agents", embedder=Directions())
    alice.add("scam <0 1>", importance=9)
    alice.add("harvest <1 1>", importance=5)
    bank_of(alice).advance(100)
    alice.add("bread <1 0>", importance=2)
    # Recency 0, 0, 1; importance 1, 3/7, 0; the similarities 0, 0.7071 and 1 are on their scale.
    bread, scam, harvest = (
        {row.memory.content: row for row in alice.explain("<1 0>", 3)}[name]
        for name in ("bread <1 0>", "scam <0 1>", "harvest <1 1>")
    )
    assert [bread.score, scam.score] == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
    assert harvest.score == pytest.approx((3 / 7 + 0.5**0.5) / 3, abs=1e-3)
    assert [row.recency for row in (bread, scam, harvest)] == [1.0, 0.0, 0.0]
    assert [row.importance for row in (bread, scam)] == [0.0, 1.0]
    found = alice.search("<1 0>", 3)
    assert contents(found) == ["bread <1 0>", "harvest <1 1>", "scam <0 1>"]
    assert [hit.score for hit in found] == [bread.score, harvest.score, scam.score]


def test_an_access_makes_a_memory_recent_again(make: Make) -> None:
    alice = make(preset="generative-agents", embedder=Directions())
    alice.add_many(["old <1 0>", "older <0 1>"])
    bank_of(alice).advance(1000)
    alice.search("<1 0>", 1)
    bank_of(alice).advance(1001)
    rows = {row.memory.content: row.recency for row in alice.explain("<1 1>", 2)}
    assert rows == {"old <1 0>": 1.0, "older <0 1>": 0.0}


def test_without_an_importance_the_tier_stands_for_it(make: Make) -> None:
    alice = make(preset="generative-agents", embedder=Directions())
    for tier in ("low", "normal", "important", "critical", "pinned"):
        alice.add(f"{tier} <1 0>", tier)
    alice.add("given <1 0>", "low", importance=7)
    rows = {row.memory.content[:-6]: row.importance for row in alice.explain("<1 0>", 9)}
    assert {name: round(1 + 9 * own, 6) for name, own in rows.items()} == {
        "low": 1.0, "normal": 3.0, "important": 6.0, "critical": 8.0, "pinned": 10.0, "given": 7.0
    }  # fmt: skip


def test_a_memory_that_is_recalled_is_forgotten_more_slowly(make: Make) -> None:
    alice = make(preset="memorybank", embedder=Directions())
    alice.add_many(["once <1 0.1>", "never <1 0>"])
    alice.search("<1 0.1>", 1)
    bank_of(alice).advance(48)
    rows = {row.memory.content: row.recency for row in alice.explain("<1 0>", 2)}
    # Two days: exp(-2/2) with a recall, exp(-2/1) without one.
    assert rows["once <1 0.1>"] == pytest.approx(0.367879, abs=1e-6)
    assert rows["never <1 0>"] == pytest.approx(0.135335, abs=1e-6)
    assert contents(alice.search("<1 0>", 1)) == ["once <1 0.1>"]


@pytest.mark.parametrize("query", ["<1 0>", "nothing", ""])
def test_a_window_has_the_last_memories_whatever_is_asked(make: Make, query: str) -> None:
    alice = make(preset="recency", embedder=Directions())
    alice.add("pin <1 0>", "pinned")
    alice.add_many([f"{n} <{n % 3} 1>" for n in range(9)])
    assert [text[0] for text in contents(alice.search(query, 4))] == ["8", "7", "6", "5"]
    assert len(alice.search(query)) == 5
    assert contents(alice.search(query, 99))[-1] == "pin <1 0>"


@pytest.mark.parametrize("preset", CLASSIC)
def test_a_pinned_or_hot_memory_has_no_place_of_its_own(make: Make, preset: str) -> None:
    alice = make(preset=preset, embedder=Directions())
    alice.add("pin <0 1>", "pinned", importance=1)
    alice.add("hot <0 1>", temperature="hot", importance=1)
    bank_of(alice).advance(240)
    alice.add_many([(f"{n} <1 0>", 3, None, {"importance": 9}) for n in range(4)])
    assert contents(alice.search("<1 0>", 4)) == ["3 <1 0>", "2 <1 0>", "1 <1 0>", "0 <1 0>"]
    for context in (False, True):
        rows = alice.explain("<1 0>", 4, context=context)
        assert {row.reason for row in rows} == {"chosen", "below the cut"}
    assert "pin" not in alice.get_relevant_memories("<1 0>", 4)


@pytest.mark.parametrize("preset", CLASSIC)
def test_many_searches_give_the_bits_of_one(make: Make, preset: str) -> None:
    alice = make(preset=preset)
    bank = bank_of(alice)
    for tick in range(0, 400, 7):
        bank.advance(tick)
        for agent in ("alice", "bob", "carol"):
            text = f"{agent} saw {tick % 13} ships and {tick % 5} gulls"
            bank.add_many([(agent, text, tick % 5, {"importance": 1 + tick % 10})])
        if tick % 4 == 0:
            bank.agent("bob").search(f"{tick % 13} ships", 3)
    asked = [(agent, "how many gulls?") for agent in ("alice", "bob", "carol")]
    alone = [bank.agent(agent).explain(query, 7)[:7] for agent, query in asked]
    together = bank.search_many(asked, 7)
    assert [[tuple(hit[:4]) for hit in hits] for hits in together] == [
        [tuple(row[:4]) for row in rows] for rows in alone
    ]


@pytest.mark.parametrize("preset", CLASSIC)
def test_a_bank_that_is_opened_again_gives_the_same_scores(tmp_path: Path, preset: str) -> None:
    options: dict[str, Any] = {"embedder": Directions(), "storage": {"sync": "manual"}}
    with MemoryBank.open(tmp_path / "b", preset=preset, **options) as bank:
        alice = bank.agent("alice")
        for tick in range(60):
            bank.advance(tick)
            alice.add(f"{tick} <{tick % 7} {tick % 3}>", importance=1 + tick % 10)
            if tick % 5 == 0:
                alice.search(f"<{tick % 4} 1>", 2)
        before = [tuple(row[1:]) for row in alice.explain("<2 1>", 9)]
    with MemoryBank.open(tmp_path / "b", **options) as bank:
        assert [tuple(row[1:]) for row in bank.agent("alice").explain("<2 1>", 9)] == before


@pytest.mark.parametrize("preset", CLASSIC)
def test_cold_memories_are_scored_on_the_same_scale(make: Make, preset: str) -> None:
    found = []
    for temperature in ("warm", "cold"):
        alice = make(preset=preset, embedder=Directions())
        bank = bank_of(alice)
        alice.add("first <1 0>", importance=8, temperature=temperature)
        bank.advance(30)
        alice.add_many([("second <1 1>", 3, None, {"importance": 2}), ("third <0 1>", 1)])
        bank.advance(40)
        hits = alice.search("<1 0>", 3, include_cold=True)
        found.append([(hit.memory.content, hit.score) for hit in hits])
    assert found[0] == found[1]


def test_a_filter_leaves_the_scale_to_what_is_seen(make: Make) -> None:
    alice = make(preset="generative-agents", embedder=Directions())
    alice.add("a <1 0>", importance=2, kind="decision")
    alice.add("b <0 1>", importance=4, kind="decision")
    alice.add("other <1 1>", importance=10)
    rows = {row.memory.content: row for row in alice.explain("<1 0>", 9, kind="decision")}
    assert [rows[name].importance for name in ("a <1 0>", "b <0 1>")] == [0.0, 1.0]
    hits = alice.search("<1 0>", 9, kind="decision")
    assert {hit.memory.content: hit.score for hit in hits} == {
        name: rows[name].score for name in ("a <1 0>", "b <0 1>")
    }


@pytest.mark.parametrize("wrong", [0, 11, -1, 5.5, True, "7", [7], float("nan")])
def test_an_importance_is_a_whole_number_from_1_to_10(make: Make, wrong: Any) -> None:
    alice = make()
    with pytest.raises(InvalidInput, match="is not a whole number from 1 to 10"):
        alice.add("x", importance=wrong)
    assert alice.count() == 0


def test_an_importance_is_kept_as_metadata(make: Make) -> None:
    alice = make()
    memory = alice.add("x", importance=7, metadata={"place": "bay"})
    assert (memory.importance, dict(memory.metadata)) == (7.0, {"importance": 7, "place": "bay"})
    assert alice.add("y").importance is None
    assert alice.update(memory.id, "z").importance == 7.0
    with pytest.raises(InvalidInput, match="metadata says another importance"):
        alice.add("x", importance=7, metadata={"importance": 8})


@pytest.mark.parametrize("own", ["high", True, 0, 11, None, -3.5])
def test_metadata_of_that_name_that_is_no_importance_counts_as_none(make: Make, own: Any) -> None:
    alice = make(preset="generative-agents", embedder=Directions())
    assert alice.add("x <1 0>", metadata={"importance": own}).importance is None
    alice.add("y <1 0>", importance=10)
    rows = {row.memory.content: row.importance for row in alice.explain("<1 0>", 2)}
    assert rows == {"x <1 0>": 0.0, "y <1 0>": 1.0}


def test_weights_that_are_all_0_are_refused() -> None:
    weights = {"recency": 0, "importance": 0, "relevance": 0}
    with pytest.raises(ConfigError, match="recency, importance and relevance are all 0"):
        MemoryBank.ephemeral(retrieval={"generative": weights})
