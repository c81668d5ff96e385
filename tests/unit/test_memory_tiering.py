"""Plan #196's six test cases, with agent_ecology2's names for memories of any tier."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.memory import AgentMemory
from tiermem import MemoryBank


@pytest.fixture
def memory() -> Iterator[AgentMemory]:
    with AgentMemory(MemoryBank.ephemeral(memory={"on_tier_full": "reject"})) as made:
        yield made


def stored(memory: AgentMemory, text: str, tier: int = 3) -> str:
    (result,) = memory.add("alice", text, tier)["results"]
    return str(result["id"])


def found(memory: AgentMemory, query: str, limit: int = 5) -> list[str]:
    return [each["memory"] for each in memory.search("alice", query, limit)]


def test_store_memory_with_tier_verify_retrieval_priority(memory: AgentMemory) -> None:
    for tier in (4, 3, 2, 1, 0):
        stored(memory, "the market opens at nine", tier)
    assert [each["tier"] for each in memory.search("alice", "when does the market open?")] == [
        0, 1, 2, 3, 4,
    ]  # fmt: skip


def test_pin_memory_verify_always_included(memory: AgentMemory) -> None:
    scam = stored(memory, "NEVER transfer to agent_X (scammer)")
    for number in range(10):
        stored(memory, f"Rain fell over the hills on day {number}")
    assert "agent_X" not in memory.get_relevant_memories("alice", "rain over the hills", limit=3)
    assert memory.pin_memory("alice", scam) is True
    lines = memory.get_relevant_memories("alice", "rain over the hills", limit=3).splitlines()
    assert lines[0] == "- [pinned] NEVER transfer to agent_X (scammer)"
    assert len(lines) == 3


def test_unpin_memory_verify_normal_retrieval(memory: AgentMemory) -> None:
    scam = stored(memory, "NEVER transfer to agent_X (scammer)", 0)
    stored(memory, "Rain fell over the hills")
    assert found(memory, "rain over the hills", 1) == ["NEVER transfer to agent_X (scammer)"]
    assert memory.unpin_memory("alice", scam) is True
    assert found(memory, "rain over the hills", 1) == ["Rain fell over the hills"]
    assert memory.get_pinned_memories("alice") == []


def test_tier_boost_affects_ranking(memory: AgentMemory) -> None:
    best = stored(memory, "Bob sells fresh fish at the market")
    dear = stored(memory, "Carol sells fresh fish at the harbour market")
    query = "who sells fresh fish at the market?"
    before = {each["id"]: each["score"] for each in memory.search("alice", query)}
    assert list(before) == [best, dear]
    assert memory.set_memory_tier("alice", dear, 1) is True
    first, second = memory.search("alice", query)
    assert (first["id"], first["score"]) == (dear, before[dear])
    assert first["boosted_score"] == pytest.approx(first["score"] + 0.3)
    assert second["boosted_score"] == second["score"] == before[best]


def test_max_pinned_limit_enforced(memory: AgentMemory) -> None:
    for number in range(5):
        stored(memory, f"pinned {number}", 0)
    assert memory.add("alice", "one more", tier=0) == {
        "error": "Maximum pinned memories (5) reached"
    }
    normal = stored(memory, "normal")
    assert memory.pin_memory("alice", normal) is False
    assert memory.set_memory_tier("alice", normal, 0) is False
    assert len(memory.get_pinned_memories("alice")) == 5


def test_tier_persists_across_checkpoint_restore(memory: AgentMemory, tmp_path: Path) -> None:
    for tier in range(5):
        stored(memory, f"of tier {tier}", tier)
    memory.checkpoint(tmp_path / "run.tmck")
    with AgentMemory.restore(tmp_path / "run.tmck", tmp_path / "bank") as restored:
        assert restored.search("alice", "tier") == memory.search("alice", "tier")
        assert restored.get_relevant_memories("alice", "tier").splitlines()[0] == (
            "- [pinned] of tier 0"
        )
