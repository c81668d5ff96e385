"""A preset does what its text says: each sentence that promises something is tried."""

import math
from collections.abc import Callable

import pytest

from agents import AgentMemory, MemoryBank, Temperature
from agents.engine.upkeep import sweep_tick
from banks import ROOT
from embedders import Directions

HOT, WARM, COLD = Temperature
DAY = 24
VECTOR = {"mode": "vector", "sif": 0}


def a_search_makes_nothing_hot(alice: AgentMemory) -> None:
    memory = alice.add("a <1 0>", temperature="warm")
    for _ in range(20):
        alice.search("<1 0>")
    alice.compact()
    assert alice.get(memory.id).temperature is WARM


def use_makes_hot(alice: AgentMemory) -> None:
    memory, twice = (alice.add(text, temperature="warm") for text in ("a <1 0>", "b <0 1>"))
    for _ in range(3):
        alice.search("<1 0>", 1)
    for _ in range(2):
        alice.search("<0 1>", 1)
    alice.compact()
    assert (alice.get(memory.id).temperature, alice.get(twice.id).temperature) == (HOT, WARM)


def nothing_moves_unless_asked(alice: AgentMemory) -> None:
    for kind in ("decision", "preference", "fact"):
        alice.add(f"{kind} <1 0>", kind=kind, tags=["blocker"])
    for tick in range(1, 300):
        alice.engine.ledger.advance(tick)
        sweep_tick(alice.engine)
        alice.search("<1 0>")
    assert {each.temperature for each in alice.all()} == {WARM}


def hot_is_over_4000_tokens(alice: AgentMemory) -> None:
    alice.add_many([f"{number:04}" * 15 for number in range(250)])  # 16 tokens a line
    assert {each.temperature for each in alice.all()} == {HOT}
    alice.add_many(["more"] * 2)
    assert [each.temperature for each in alice.all()].count(COLD) == 1


def more_than_three_accesses_are_warm(alice: AgentMemory) -> None:
    three, four = alice.add("three <1 0>"), alice.add("four <0 1>")
    for memory, times in ((three, 3), (four, 4)):
        for _ in range(times):
            alice.search(memory.content, 1)
    assert alice.spill(count=2).moved == {three.id: COLD, four.id: WARM}


def recall_brings_back(alice: AgentMemory) -> None:
    same, vague = (alice.add(text, temperature="cold") for text in ("a <1 0>", "b <1 1>"))
    assert alice.recall("<1 0>").promoted == (same.id,)
    assert alice.recall("<1 0>").promoted == ()
    assert alice.recall("<1 0>").promoted == (vague.id,)


def lifetime_decides_the_start(alice: AgentMemory) -> None:
    starts = [alice.add("a", ttl=ttl).temperature for ttl in (DAY - 1, 7 * DAY - 1, 7 * DAY)]
    assert starts == [COLD, WARM, HOT]


def a_full_hot_leaves_the_rest_warm_and_findable(alice: AgentMemory) -> None:
    alice.add_many([f"memory {number} <{number} 1>" for number in range(80)])
    heats = [each.temperature for each in alice.all()]
    assert (heats.count(HOT), heats.count(WARM), heats.count(COLD)) == (50, 30, 0)
    for memory in alice.all():
        assert memory.content in [hit.memory.content for hit in alice.search(memory.content, 80)]


def idle_days_fade(alice: AgentMemory) -> None:
    never, once, four = (alice.add(f"{n} <{n} 1>") for n in range(3))
    alice.search(once.content, 1)
    for _ in range(4):
        alice.search(four.content, 1)
    found: dict[str, list[int]] = {each.id: [] for each in (never, once, four)}
    for day in range(1, 300):
        alice.engine.ledger.advance(day * DAY)
        sweep_tick(alice.engine)
        for memory in (never, once, four):
            found[memory.id].append(alice.get(memory.id).temperature)
    firsts = [[own.index(WARM) + 1, own.index(COLD) + 1] for own in found.values()]
    assert firsts == [[31, 61], [61, 121], [121, 241]]


def compaction_moves(alice: AgentMemory) -> None:
    done = alice.add("done", kind="decision")
    blocker = alice.add("blocker", tags=["blocker"])
    other = alice.add("other", temperature="hot")
    alice.compact()
    found = [alice.get(each.id).temperature for each in (done, blocker, other)]
    assert found == [COLD, HOT, WARM]


def recency_importance_and_relevance_add_up(alice: AgentMemory) -> None:
    alice.add("old <1 0>", importance=10)
    alice.engine.ledger.advance(10 * DAY)
    alice.add("new <0 1>", importance=1)
    rows = {row.memory.content: row for row in alice.explain("<1 0>", 2)}
    old, new = rows["old <1 0>"], rows["new <0 1>"]
    assert [(row.recency, row.importance, row.vector) for row in (old, new)] == [
        (0, 1, 1),
        (1, 0, 0),
    ]
    assert (old.score, new.score) == (pytest.approx(2 / 3), pytest.approx(1 / 3))


def the_tier_is_the_importance(alice: AgentMemory) -> None:
    alice.add("pin <1 0>", "pinned")
    alice.add("low <1 0>", "low")
    assert [row.importance for row in alice.explain("<1 0>", 2)] == [1.0, 0.0]


def pinned_memories_are_ranked(alice: AgentMemory) -> None:
    alice.add("pin <0 1>", "pinned")
    alice.engine.ledger.advance(90 * DAY)
    alice.add_many([("a <1 0>", 0), ("b <1 0>", 0)])
    assert [hit.memory.content for hit in alice.search("<1 0>", 2)] == ["b <1 0>", "a <1 0>"]


def each_search_adds_strength(alice: AgentMemory) -> None:
    memory = alice.add("a <1 0>")
    for recalls in range(4):
        alice.engine.ledger.advance(alice.engine.tick + 2 * DAY)
        (row,) = alice.explain("<1 0>", 1)
        assert row.recency == pytest.approx(math.exp(-2 / (1 + recalls)), abs=1e-6)
        assert alice.search("<1 0>", 1)[0].memory.id == memory.id


def the_last_memories_come_whatever_is_asked(alice: AgentMemory) -> None:
    alice.add_many([f"{n} <1 {n}>" for n in range(9)])
    for query in ("<1 0>", "<0 1>"):
        assert [hit.memory.content[0] for hit in alice.search(query, 3)] == ["8", "7", "6"]


PROMISES: list[tuple[str, str, Callable[[AgentMemory], None]]] = [
    ("tiers", "use makes nothing hot", a_search_makes_nothing_hot),
    ("tiers", "nothing is moved between temperatures", nothing_moves_unless_asked),
    ("hot-cold-session", "over 4,000 tokens, however many memories", hot_is_over_4000_tokens),
    ("hot-cold-session", "more than three times", more_than_three_accesses_are_warm),
    ("hot-cold-session", "recalled three times within a week", recall_brings_back),
    ("hot-cold-session", "Searches make nothing hot", a_search_makes_nothing_hot),
    ("hot-warm-cold", "that are done to cold, blockers", compaction_moves),
    ("hot-warm-cold", "what is in use (three accesses or more", use_makes_hot),
    ("lifetime", "a day starts cold, one of less than a week warm", lifetime_decides_the_start),
    ("lifetime", "or warm where hot is full", a_full_hot_leaves_the_rest_warm_and_findable),
    ("lifetime", "each doubling of the uses adds as much again", idle_days_fade),
    ("lifetime", "use (three accesses or more", use_makes_hot),
    (
        "generative-agents",
        "importance (1 to 10) + relevance (the similarity of vectors), each scaled to 0 to 1",
        recency_importance_and_relevance_add_up,
    ),
    (
        "generative-agents",
        "tier is the importance of a memory that was given none",
        the_tier_is_the_importance,
    ),
    ("generative-agents", "pinned memory is ranked like all others", pinned_memories_are_ranked),
    ("memorybank", "exp(-t/S), with t the days since its last access", each_search_adds_strength),
    ("memorybank", "pinned memory is ranked like all others", pinned_memories_are_ranked),
    (
        "recency",
        "as many as its limit, whatever is asked",
        the_last_memories_come_whatever_is_asked,
    ),
    ("recency", "memory is ranked like all others", pinned_memories_are_ranked),
]


@pytest.mark.parametrize(("preset", "words", "holds"), PROMISES)
def test_a_preset_keeps_its_word(
    preset: str, words: str, holds: Callable[[AgentMemory], None]
) -> None:
    path = ROOT / "config" / "presets" / f"{preset}.yaml"
    lines = path.read_text(encoding="utf-8").splitlines()
    text = " ".join(line.removeprefix("# ") for line in lines if line.startswith("# "))
    assert words in text
    with MemoryBank.ephemeral(preset=preset, embedder=Directions(), retrieval=VECTOR) as bank:
        holds(bank.agent("alice"))
