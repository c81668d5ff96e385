"""Opening, closing, and one writer at a time."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import warm_children
from agents import (
    BankClosed,
    BankDamaged,
    BankError,
    BankLocked,
    BankNotFound,
    ConfigError,
    MemoryBank,
)
from banks import MANUAL, TESTS, MakeBank, busy, child, contents, everything, undone, value
from embedders import Directions


def test_every_call_on_a_closed_bank_says_so() -> None:
    bank = MemoryBank.ephemeral(embedder=Directions())
    alice = bank.agent("alice")
    memory = alice.add("x")
    bank.close()
    calls: list[Callable[[], object]] = [
        bank.agents,
        bank.commit,
        bank.state_hash,
        lambda: bank.advance(1),
        lambda: bank.add_many([("alice", "x")]),
        lambda: bank.search_many([("alice", "x")]),
        lambda: bank.relevant_many([("alice", "x")]),
        lambda: bank.transaction().__enter__(),
        bank.sync,
        alice.all,
        alice.count,
        alice.get_pinned_memories,
        lambda: alice.add("x"),
        lambda: alice.get(memory.id),
        lambda: alice.pin(memory.id),
        lambda: alice.delete(memory.id),
        lambda: alice.search("x"),
        lambda: alice.explain("x"),
        lambda: alice.record_observation("x"),
    ]
    for call in calls:
        with pytest.raises(BankClosed, match="open it again"):
            call()


def test_closing_twice_is_fine(open_bank: MakeBank) -> None:
    bank = open_bank()
    bank.close()
    bank.close()
    assert "closed" in repr(bank)


def test_leaving_the_with_block_closes_the_bank(folder: Path) -> None:
    bank = MemoryBank.open(folder, embedder=Directions(), storage=MANUAL)

    def fail() -> None:
        with bank:
            bank.agent("alice").add("x")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with pytest.raises(BankClosed):
        bank.agents()
    with MemoryBank.open(folder, embedder=Directions()) as again:
        assert contents(again) == ["x"]


def test_reopening_gives_equal_memories_and_hash(open_bank: MakeBank) -> None:
    bank = open_bank()
    busy(bank)
    before = everything(bank)
    assert everything(open_bank()) == before


@pytest.mark.usefixtures("snapshots_on_close")
def test_reopening_from_a_snapshot_gives_equal_memories_and_hash(
    open_bank: MakeBank, folder: Path
) -> None:
    bank = open_bank()
    busy(bank)
    before = everything(bank)
    again = open_bank()
    assert value(folder, "SELECT count(*) FROM snapshots") == 3
    assert everything(again) == before
    again.agent("a0").add("after the snapshot")
    bank = open_bank()
    assert contents(bank, "a0")[-1] == "after the snapshot"


@pytest.mark.usefixtures("snapshots_on_close")
def test_a_failed_transaction_after_a_snapshot_is_undone(open_bank: MakeBank) -> None:
    busy(open_bank())
    bank = open_bank()
    before = everything(bank)
    with undone(bank):
        busy_agent = bank.agent("a1")
        busy_agent.add("x", 0)
        busy_agent.delete(busy_agent.all()[0].id)
        bank.advance(99)
    assert everything(bank) == before


def test_a_bank_left_without_closing_has_all_that_was_committed(folder: Path) -> None:
    code = """
import os, sys
from embedders import Directions
from agents import MemoryBank
bank = MemoryBank.open(sys.argv[1], embedder=Directions(), storage={"sync": "manual"})
for n in range(20): bank.agent("alice").add(f"m{n}")
print(bank.state_hash(), flush=True)
os._exit(0)
"""
    state = child(code, folder)
    with MemoryBank.open(folder, embedder=Directions(), storage=MANUAL) as bank:
        assert bank.state_hash() == state
        assert contents(bank) == [f"m{n}" for n in range(20)]


def test_an_ephemeral_bank_leaves_no_file(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with MemoryBank.ephemeral(embedder=Directions()) as bank:
        bank.agent("alice").add("x")
    assert list(tmp_path.iterdir()) == []


def test_open_without_create_wants_a_bank(tmp_path: Path) -> None:
    with pytest.raises(BankNotFound, match="no bank in"):
        MemoryBank.open(tmp_path / "none", create=False)
    assert not (tmp_path / "none").exists()


def test_a_file_where_the_folder_should_be_is_a_bank_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BankError, match="file"):
        MemoryBank.open(tmp_path / "file", embedder=Directions(), storage=MANUAL)


def test_a_bad_setting_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        MemoryBank.open(tmp_path / "new", memory={"max_pinned": -1})
    assert not (tmp_path / "new").exists()


def test_another_process_gets_bank_locked_with_the_pid(open_bank: MakeBank, folder: Path) -> None:
    open_bank().agent("alice").add("x")
    code = """
import sys, time
from embedders import Directions
from agents import BankLocked, MemoryBank
try:
    MemoryBank.open(sys.argv[1], embedder=Directions(), storage={"sync": "manual"})
except BankLocked as error:
    print(error.pid, str(error.pid) in str(error))
"""
    assert child(code, folder) == f"{os.getpid()} True"


def test_a_bank_held_by_another_process_is_locked_here_and_free_after_its_death(
    folder: Path,
) -> None:
    code = """
import sys
from embedders import Directions
from agents import MemoryBank
bank = MemoryBank.open(sys.argv[1], embedder=Directions(), storage={"sync": "manual"})
bank.agent("alice").add("x")
print("open", flush=True)
sys.stdin.read()
"""
    holder = warm_children.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(BankLocked) as caught:
            MemoryBank.open(folder, embedder=Directions(), storage=MANUAL)
        assert caught.value.pid == holder.pid
        holder.kill()
    with MemoryBank.open(folder, embedder=Directions(), storage=MANUAL) as bank:
        assert contents(bank) == ["x"]


def test_the_same_process_cannot_open_a_bank_twice(open_bank: MakeBank, folder: Path) -> None:
    bank = open_bank()
    with pytest.raises(BankLocked, match="this process") as caught:
        MemoryBank.open(folder, embedder=Directions(), storage=MANUAL)
    assert caught.value.pid == os.getpid()
    bank.agent("alice").add("still works")


def test_a_failed_opening_holds_no_lock(open_bank: MakeBank, folder: Path) -> None:
    open_bank().close()
    with pytest.raises(ConfigError):
        MemoryBank.open(folder, embedder=Directions(), memory={"max_pinned": "many"})
    open_bank().agent("alice").add("x")


def test_a_refused_open_leaves_a_lost_journal_as_it_was(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank") as bank:
        bank.agent("alice").add("in the store")
    journal = tmp_path / "bank" / "journal.db"
    journal.write_bytes(b"")
    for _ in range(2):  # the second would find a bank where the first had made one
        with pytest.raises(BankDamaged, match="the journal was lost"):
            MemoryBank.open(tmp_path / "bank")
        assert journal.read_bytes() == b""
        assert [each.name for each in journal.parent.glob("journal.db-*")] == ["journal.db-head"]
