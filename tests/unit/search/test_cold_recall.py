"""Very many cold memories are searched in mem0's store, with the real mem0 and the real Chroma."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agents import Memory, MemoryBank, StoreDamaged
from agents.storage.mem0.package import import_mem0
from agents.storage.mem0.store import Mem0Store
from asking import asked
from embedders import Directions, Noise
from plain_mem0 import PlainMem0, assert_store_is_exact

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # third-party code
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def open_bank(folder: Path, **options: Any) -> MemoryBank:
    options.setdefault("storage", {"sync": "manual"})
    options.setdefault("embedder", Directions())
    options.setdefault("preset", "vector")
    return MemoryBank.open(folder, **options)


@pytest.fixture
def bank(folder: Path) -> Iterator[MemoryBank]:
    with open_bank(folder) as opened:
        yield opened


@pytest.fixture(autouse=True)
def none_is_read_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is asked from the first cold memory on."""
    monkeypatch.setattr("agents.search.cold._MOST_EXACT", 0)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """The filters of every search of the store."""
    seen: list[dict[str, object]] = []
    search = Mem0Store.search

    def spy(self: Mem0Store, vector: Any, most: int, filters: Mapping[str, object]) -> list[str]:
        seen.append(dict(filters))
        return search(self, vector, most, filters)

    monkeypatch.setattr(Mem0Store, "search", spy)
    return seen


def test_without_cold_memories_the_store_is_not_opened(
    bank: MemoryBank, searches: list[dict[str, object]]
) -> None:
    alice = bank.agent("alice")
    alice.add("east <1 2 3 4>")
    bank.sync()
    assert alice.recall("east <1 2 3 4>").items
    assert alice.search("east <1 2 3 4>", include_cold=True)
    assert searches == []
    alice.add("north <1 2 3 5>", temperature="cold")
    bank.sync()
    assert alice.recall("north <1 2 3 5>").items
    assert searches


def rows(bank: MemoryBank, agent: str = "alice") -> dict[str, dict[str, Any]]:
    """What a plain mem0.Memory sees of an agent."""
    bank.engine.store.close()  # no two clients may hold a local store
    with PlainMem0.of(bank) as plain:
        return plain.all(user_id=agent)


def fill(bank: MemoryBank) -> list[Memory]:
    """Memories that point everywhere, cold and synced."""
    options = {"temperature": "cold", "kind": "decision", "tags": ["task"]}
    items = [
        (f"memory <{n % 5} {n % 7} {n % 3} 1>", 1 + n % 4, {"n": n}, options) for n in range(40)
    ]
    memories = bank.agent("alice").add_many(items)
    bank.sync()
    return memories


def test_recall_from_the_store_gives_the_memory_to_the_bit_with_its_warm_score(
    bank: MemoryBank, searches: list[dict[str, object]]
) -> None:
    alice = bank.agent("alice")
    wanted = alice.add("quotes “and” 🐝 <1 2 3 4>", "low", {"x": 0.1}, kind="entity", ttl=50)
    fill(bank)
    (warm,) = alice.search("q <1 2 3 5>", 1, kind="entity")
    before = alice.get(wanted.id)
    alice.update(wanted.id, temperature="cold")
    bank.sync()
    found = alice.recall("q <1 2 3 5>", 1, auto_promote=False, kinds="entity")
    assert searches
    assert found.scores == (warm.score,)
    (item,) = found.items
    assert tuple(item) == tuple(
        before._replace(
            temperature=item.temperature,
            access_count=2,
            last_access_tick=0,
            relevance=item.relevance,
        )
    )
    assert item.temperature.name == "COLD"
    assert item.relevance > before.relevance


def test_the_store_and_the_journal_find_the_same_cold_memories(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    fill(bank)
    with MemoryBank.ephemeral(embedder=Directions(), preset="vector") as unsynced:
        for memory in alice.all():
            unsynced.agent("alice").add(memory.content, memory.tier, temperature="cold")
        for query in ("<1 0 0 0>", "<0 1 0 0>", "<4 6 2 1>", "<-1 0 0 1>", "no direction"):
            ours = alice.search(query, 5, include_cold=True)
            theirs = unsynced.agent("alice").search(query, 5, include_cold=True)
            assert [(h.memory.sequence, h.boosted_score) for h in ours] == [
                (h.memory.sequence, h.boosted_score) for h in theirs
            ]


def test_a_row_that_is_not_the_agents_is_ignored_whatever_the_store_says(
    bank: MemoryBank, folder: Path
) -> None:
    alice, bob = bank.agent("alice"), bank.agent("bob")
    own = alice.add("own <1 1>", temperature="cold")
    foreign = bob.add("secret of bob <1 0>", temperature="cold")
    bank.sync()
    bank.engine.store.close()
    client = import_mem0("chromadb").PersistentClient(path=str(folder / "chroma"))
    collection = client.get_collection("tiermem")
    # Bob's own row, and one that no journal knows, both claim to be Alice's.
    stranger = f"{own.id[:24]}{99:012x}"
    claims = {"user_id": "alice", "agent_id": "alice", "temperature": "cold", "data": "false"}
    collection.update(ids=[foreign.id], metadatas=[claims])
    collection.upsert(ids=[stranger], embeddings=[[1.0, 0.0, 0.0, 0.0]], metadatas=[claims])
    client.close()
    for hits in (
        alice.search("<1 0>", 5, include_cold=True),
        alice.search("<1 0>", 5, temperature="cold"),
    ):
        assert [hit.memory.content for hit in hits] == ["own <1 1>"]
    assert [item.id for item in alice.recall("<1 0>", 5, auto_promote=False).items] == [own.id]


def test_tier_kind_and_agent_are_filtered_by_the_store(
    bank: MemoryBank, searches: list[dict[str, object]]
) -> None:
    fill(bank)
    alice = bank.agent("alice")
    hits = alice.search("<1 1>", 3, temperature="cold", tier="low", kind="decision", since_tick=0)
    assert hits
    assert all(hit.memory.tier.name == "LOW" for hit in hits)
    first = {"user_id": "alice", "temperature": "cold", "tier": 4, "kind": "decision"}
    assert searches[0] == first
    searches.clear()
    assert alice.search("<1 1>", 3, include_cold=True, tier=["low", "critical"], kind="fact") == []
    assert searches[0]["tier"] == {"in": [1, 4]}
    assert searches[0]["kind"] == "fact"


def test_the_store_is_asked_again_where_others_took_the_places(
    bank: MemoryBank, searches: list[dict[str, object]]
) -> None:
    """What became warm since the last sync is in the store as cold, and no answer."""
    alice = bank.agent("alice")
    memories = fill(bank)
    nearest = alice.search("<1 1 1 1>", 12, temperature="cold")
    for hit in nearest:
        alice.update(hit.memory.id, temperature="hot")
        alice.update(hit.memory.id, temperature="warm")
    left = {memory.id for memory in memories} - {hit.memory.id for hit in nearest}
    searches.clear()
    hits = alice.search("<1 1 1 1>", 4, temperature="cold")
    assert len(hits) == 4
    assert {hit.memory.id for hit in hits} <= left


def test_plain_mem0_sees_temperature_kind_and_tags(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    cold = alice.add("cold", temperature="cold", kind="decision", tags=["b", "a"], ttl=9)
    hot = alice.add("hot", temperature="hot", kind="preference")
    warm = alice.add("warm")
    bank.sync()
    seen = rows(bank)
    assert {seen[m.id]["metadata"]["temperature"] for m in (cold, hot, warm)} == {
        "cold", "hot", "warm"
    }  # fmt: skip
    metadata = seen[cold.id]["metadata"]
    assert (metadata["kind"], metadata["tags"], metadata["expires_tick"]) == ("decision", "a,b", 9)
    bank.engine.store.close()
    with PlainMem0.of(bank) as plain:
        assert plain.all(user_id="alice", temperature="cold").keys() == {cold.id}


def test_the_row_follows_a_memory_through_all_temperatures(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    memory = alice.add("one <1>", temperature="cold")
    seen = []
    for move in (
        lambda: None,
        lambda: alice.update(memory.id, temperature="hot"),
        lambda: alice.update(memory.id, temperature="warm"),
        lambda: alice.update(memory.id, temperature="cold"),
        lambda: alice.pin(memory.id),
    ):
        move()
        bank.sync()
        seen.append(rows(bank)[memory.id]["metadata"]["temperature"])
        bank.engine.store.close()
        assert_store_is_exact(bank)
    assert seen == ["cold", "hot", "warm", "cold", "hot"]


@pytest.mark.parametrize("temperature", ["warm", "cold"])
@pytest.mark.parametrize("hide", ["archive", "delete"])
def test_what_is_hidden_leaves_the_store_and_comes_back_when_restored(
    bank: MemoryBank, temperature: str, hide: str
) -> None:
    alice = bank.agent("alice")
    memory = alice.add("one <1 2>", temperature=temperature)
    other = alice.add("other <2 1>", temperature="cold")
    bank.sync()
    asked(alice, hide, memory.id)
    bank.sync()
    assert rows(bank).keys() == {other.id}
    hits = alice.search("<1 2>", include_cold=True)
    assert [hit.memory.id for hit in hits] == [other.id]
    alice.update(memory.id, retention="active")
    bank.sync()
    row = rows(bank)[memory.id]
    assert (row["memory"], row["metadata"]["temperature"]) == ("one <1 2>", temperature)
    bank.engine.store.close()
    assert_store_is_exact(bank)
    (hit, _) = alice.search("<1 2>", include_cold=True)
    assert (hit.memory.id, hit.score) == (memory.id, pytest.approx(1.0))


@pytest.mark.parametrize("temperature", ["warm", "cold"])
def test_forget_deletes_from_the_store_at_once(bank: MemoryBank, temperature: str) -> None:
    alice = bank.agent("alice")
    memory = alice.add("zqsecretqz <1>", temperature=temperature)
    kept = alice.add("kept <2>", temperature="cold")
    bank.sync()
    alice.forget(memory.id)
    assert rows(bank).keys() == {kept.id}


def test_forget_in_a_transaction_deletes_from_the_store_when_it_commits(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    memory = alice.add("zqsecretqz <1>", temperature="cold")
    bank.sync()
    with bank.transaction():
        alice.forget(memory.id)
    assert rows(bank) == {}


@pytest.mark.slow
def test_what_was_forgotten_is_in_no_file_after_a_vacuum(bank: MemoryBank, folder: Path) -> None:
    alice = bank.agent("alice")
    texts = {name: f"zq{name}qz <1>" for name in ("hot", "warm", "cold")}
    secrets = [alice.add(text, temperature=name) for name, text in texts.items()]
    alice.add("kept <2>", temperature="cold")
    bank.sync()
    for memory in secrets:
        alice.forget(memory.id)
    bank.vacuum()
    bank.close()
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert any("chroma" in file.parts for file in files)
    for file in files:
        data = file.read_bytes()
        assert not [name for name in texts if f"zq{name}qz".encode() in data], file


def test_vacuum_makes_no_store_where_there_was_none(bank: MemoryBank, folder: Path) -> None:
    bank.agent("alice").add("one <1>")
    bank.vacuum()
    assert not (folder / "chroma").exists()


@pytest.mark.slow
def test_a_store_that_is_gone_names_the_repair_which_brings_the_cold_back(folder: Path) -> None:
    with open_bank(folder) as bank:
        memories = fill(bank)
    shutil.rmtree(folder / "chroma")
    with open_bank(folder) as bank:
        alice = bank.agent("alice")
        with pytest.raises(StoreDamaged, match=f"tiermem store rebuild {folder}"):
            alice.recall("<1 1>", 3)
        assert alice.search("<1 1>", 3) == []  # what is resident needs no store
        bank.repair_store()
        assert len(alice.recall("<1 1>", 3, auto_promote=False).items) == 3
        bank.engine.store.close()
        assert_store_is_exact(bank)
        assert rows(bank).keys() == {memory.id for memory in memories}


def test_more_than_a_thousand_unsynced_cold_memories_are_written_first(folder: Path) -> None:
    with open_bank(folder, storage={"sync": "close"}, embedder=Noise()) as bank:
        alice = bank.agent("alice")
        options = {"temperature": "cold"}
        alice.add_many([(f"memory {n}", 3, None, options) for n in range(1001)])
        assert bank.engine.store.written == 0
        (hit,) = alice.search("memory 7", 1, include_cold=True)
        assert hit.memory.content == "memory 7"
        assert bank.engine.store.written > 0
