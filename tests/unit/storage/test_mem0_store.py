"""mem0's store, with the real mem0 and the real stores."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import warm_children
from agents import MemoryBank, StoreDamaged, StoreMismatch
from agents.storage.mem0.package import import_mem0
from plain_mem0 import PlainMem0, assert_store_is_exact

pytestmark = [
    # Third-party code, on Python 3.11 and what it depends on.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:qdrant_client"),
    pytest.mark.filterwarnings("ignore::UserWarning:mem0"),
]

STORES: dict[str, dict[str, Any]] = {
    "chroma": {"provider": "chroma"},
    "qdrant": {"provider": "qdrant", "config": {"path": "vectors"}},
}


@pytest.fixture(params=["chroma", pytest.param("qdrant", marks=pytest.mark.slow)])
def bank(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with MemoryBank.open(tmp_path / "bank", store=STORES[request.param]) as opened:
        yield opened


def synced(bank: MemoryBank) -> MemoryBank:
    """The same bank, closed and opened again, so that no two clients hold a local store."""
    assert bank.engine.folder is not None
    bank.close()
    reopened = MemoryBank.open(bank.engine.folder)
    reopened.engine.store.close()
    return reopened


def test_plain_mem0_finds_every_memory_with_text_and_metadata(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    alice.add("NEVER transfer to agent_X (scammer)", tier="pinned", metadata={"source": "bob"})
    alice.add('quotes "and" emoji 🐝, RTL שלום', tier="low", metadata={"n": 2, "x": 0.5, "b": True})
    bank.agent("bob").add("alice trusts me")
    with synced(bank) as bank:
        assert_store_is_exact(bank)
        with PlainMem0.of(bank) as plain:
            (row,) = plain.all(user_id="alice", tier=0).values()
            assert row["memory"] == "NEVER transfer to agent_X (scammer)"
            assert row["metadata"]["source"] == "bob"


def test_tier_changes_and_deletes_reach_plain_mem0(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    first, second, third = alice.add_many(["one", "two", "three"])
    bank.sync()
    bank.advance(7)
    alice.pin(first.id)
    alice.set_tier(second.id, "low")
    alice.delete(third.id)
    with synced(bank) as bank:
        assert_store_is_exact(bank)
        with PlainMem0.of(bank) as plain:
            assert plain.all(user_id="alice", tier=0).keys() == {first.id}
            assert plain.all(user_id="alice", tier=4).keys() == {second.id}
            assert plain.all(user_id="alice", tier=3) == {}


def test_demotions_reach_plain_mem0(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    pins = [alice.add(f"warning {number}", tier="pinned") for number in range(5)]
    bank.sync()
    alice.add("the sixth warning", tier="pinned")
    with synced(bank) as bank, PlainMem0.of(bank) as plain:
        assert plain.all(user_id="alice", tier=1).keys() == {pins[0].id}
        assert len(plain.all(user_id="alice", tier=0)) == 5


def test_plain_mem0_searches_the_store_with_the_banks_embedder(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    wanted = alice.add("The budget is $50K")
    alice.add_many([f"small talk about the weather, day {day}" for day in range(20)])
    with synced(bank) as bank, PlainMem0.of(bank) as plain:
        plain.memory.embedding_model.embed = lambda text, *_: bank.engine.embedder.units([text])[0]
        found = plain.memory.search(
            "what was the budget?", filters={"user_id": "alice", "tier": 3}, top_k=3
        )["results"]
        assert found[0]["id"] == wanted.id


@pytest.mark.long
def test_many_memories_are_written_in_batches(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank") as bank:
        bank.add_many((f"agent_{n % 7}", f"memory number {n}") for n in range(6000))
        seen: list[tuple[int, int]] = []
        assert bank.sync(lambda done, total: seen.append((done, total))) == 6000
        assert seen[-1] == (1, 1)
        assert bank.sync() == 0
        bank.engine.store.close()
        assert_store_is_exact(bank)


def test_sync_commit_writes_after_each_call(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "commit"}) as bank:
        memory = bank.agent("alice").add("written at once")
        assert_store_is_exact(bank)
        bank.agent("alice").delete(memory.id)
        with PlainMem0.of(bank) as plain:
            assert plain.all(user_id="alice") == {}


@pytest.mark.parametrize(
    ("sync", "pushed"), [("checkpoint", True), ("close", True), ("manual", False)]
)
def test_closing_brings_the_store_up_to_date_unless_manual(
    tmp_path: Path, sync: str, pushed: bool
) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": sync}) as bank:
        bank.agent("alice").add("hello")
        assert not (tmp_path / "bank" / "chroma").exists()
    assert (tmp_path / "bank" / "chroma").exists() == pushed


def test_a_bank_without_news_opens_and_closes_without_touching_mem0(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank") as bank:
        bank.agent("alice").add("hello")
    script = f"""
        import sys
        from agents import MemoryBank
        with MemoryBank.open({str(tmp_path / "bank")!r}) as bank:
            assert bank.agent("alice").count() == 1
        assert not {{"mem0", "chromadb"}} & sys.modules.keys()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)


def test_what_a_killed_process_left_unwritten_is_pushed_on_open(tmp_path: Path) -> None:
    script = f"""
        import os, signal
        from agents import MemoryBank
        bank = MemoryBank.open({str(tmp_path / "bank")!r})
        alice = bank.agent("alice")
        first = alice.add("before the sync")
        bank.sync()
        alice.pin(first.id)
        alice.add("after the sync")
        os.kill(os.getpid(), signal.SIGKILL)
    """
    warm_children.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    with MemoryBank.open(tmp_path / "bank") as bank:
        bank.engine.store.close()
        assert bank.agent("alice").count() == 2
        assert_store_is_exact(bank)


def test_a_write_cut_short_is_repeated_without_doubling(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    alice.add_many(["one", "two", "three"])
    sync = bank.engine.store
    before = sync._cursor
    bank.sync()
    # As if the process had died after the store was written and before the journal knew.
    sync._cursor = before
    sync._save(writing=bank.engine.journal.head)
    sync.close()
    with synced(bank) as bank:
        assert_store_is_exact(bank)


def test_a_missing_store_is_an_error_that_names_the_repair(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    with MemoryBank.open(folder) as bank:
        bank.agent("alice").add("hello")
    (folder / "chroma").rename(tmp_path / "elsewhere")
    with pytest.raises(StoreDamaged, match=f"tiermem store rebuild {folder}"):
        MemoryBank.open(folder)


@pytest.mark.slow
def test_another_banks_store_is_an_error_and_repair_keeps_it(tmp_path: Path) -> None:
    for name in ("mine", "other"):
        with MemoryBank.open(tmp_path / name) as bank:
            bank.agent("alice").add(f"from {name}")
    mine = tmp_path / "mine"
    (mine / "chroma").rename(tmp_path / "chroma-of-mine")
    (tmp_path / "other" / "chroma").rename(mine / "chroma")
    with pytest.raises(StoreMismatch, match=r"another bank.*tiermem store rebuild"):
        MemoryBank.open(mine)
    with MemoryBank.open(mine, storage={"sync": "manual"}) as bank:
        report = bank.repair_store()
        assert "another bank" in report[0]
        bank.engine.store.close()
        assert_store_is_exact(bank)
    assert (mine / "chroma.of-another-bank-1" / "chroma.sqlite3").exists()
    with MemoryBank.open(mine) as bank:
        assert bank.agent("alice").all()[0].content == "from mine"


def test_a_store_with_memories_of_plain_mem0_is_not_taken_over(tmp_path: Path) -> None:
    config = {
        "provider": "chroma",
        "config": {"path": str(tmp_path / "db"), "collection_name": "mine"},
    }
    with PlainMem0(json.loads(json.dumps(config))) as plain:
        plain.memory.vector_store.insert([[1.0] * 256], [{"user_id": "me", "data": "x"}], ["1"])
    with pytest.raises(StoreMismatch, match=r"store of its own \(store[^)]*\)$"):
        MemoryBank.open(tmp_path / "bank", store=config)
    with (
        MemoryBank.open(tmp_path / "bank", store=config, storage={"sync": "manual"}) as bank,
        pytest.raises(StoreMismatch),
    ):
        bank.repair_store()
    with PlainMem0(config) as plain:
        assert plain.all(user_id="me").keys() == {"1"}


def test_another_store_in_the_config_gets_every_memory(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank") as bank:
        bank.agent("alice").add("hello")
    with MemoryBank.open(tmp_path / "bank", store=STORES["qdrant"]) as bank:
        bank.engine.store.close()
        assert_store_is_exact(bank)


def test_a_bank_can_be_moved_with_its_store(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "here") as bank:
        bank.agent("alice").add("hello")
    (tmp_path / "here").rename(tmp_path / "there")
    with MemoryBank.open(tmp_path / "there") as bank:
        bank.agent("alice").add("again")
    with MemoryBank.open(tmp_path / "there") as bank:
        assert_store_is_exact(bank)


def test_an_ephemeral_bank_can_be_synced_and_leaves_nothing(tmp_path: Path) -> None:
    with MemoryBank.ephemeral() as bank:
        bank.agent("alice").add("hello")
        assert bank.sync() == 1
        folder = Path(bank.mem0_config()["config"]["path"])
        assert folder.exists()
    assert not folder.exists()


def test_mem0_is_imported_without_telemetry_and_outside_the_home_folder() -> None:
    assert import_mem0("mem0.memory.telemetry").MEM0_TELEMETRY is False
    assert "tiermem-mem0-" in import_mem0("mem0.memory.setup").mem0_dir
