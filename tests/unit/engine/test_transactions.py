"""Calls commit together or not at all."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agents import BankError, InvalidContent, MemoryBank, TierMemError
from agents.simulation.kept_ticks import keep_tick, ticks_of
from banks import MakeBank, connection, contents, undone, value


def test_a_transaction_commits_together(open_bank: MakeBank, folder: Path) -> None:
    bank = open_bank()
    with bank.transaction():
        bank.agent("alice").add("a")
        bank.advance(3)
        bank.agent("bob").add("b")
    assert value(folder, "SELECT count(*) FROM commits") == 1
    again = open_bank()
    assert (contents(again), contents(again, "bob"), again.tick) == (["a"], ["b"], 3)


def test_a_transaction_that_fails_leaves_the_bank_as_it_was(open_bank: MakeBank) -> None:
    bank = open_bank(memory={"max_pinned": 1})
    alice = bank.agent("alice")
    pin, other = alice.add_many([("pin", "pinned"), "other"])
    bank.advance(2)
    before, everything = bank.state_hash(), alice.all()

    def fail() -> None:
        with bank.transaction():
            alice.add("new", "pinned")
            alice.delete(other.id)
            alice.set_tier(pin.id, "low")
            bank.advance(9)
            bank.agent("bob").add("b")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (bank.state_hash(), bank.tick, alice.all()) == (before, 2, everything)
    assert bank.agents() == ["alice"]
    assert open_bank().state_hash() == before


def test_a_bank_works_on_after_a_failed_transaction(open_bank: MakeBank) -> None:
    bank = open_bank()
    with undone(bank):
        bank.agent("alice").add("lost")
    kept = bank.agent("alice").add("kept")
    assert kept.sequence == 1
    assert [hit.memory for hit in bank.agent("alice").search("kept")] == [kept]
    assert contents(open_bank()) == ["kept"]


def test_changes_inside_a_transaction_are_seen_inside_it(bank: MemoryBank) -> None:
    with bank.transaction():
        memory = bank.agent("alice").add("x <1 0>")
        assert [hit.memory for hit in bank.agent("alice").search("<1 0>")] == [memory]


def test_a_refused_call_inside_a_transaction_does_not_end_it(bank: MemoryBank) -> None:
    with bank.transaction():
        bank.agent("alice").add("first")
        with pytest.raises(InvalidContent):
            bank.agent("alice").add("")
        with pytest.raises(TierMemError):
            bank.agent("alice").get("nope")
        bank.agent("alice").add("second")
    assert contents(bank) == ["first", "second"]


def test_a_nested_transaction_that_fails_undoes_itself_alone(open_bank: MakeBank) -> None:
    bank = open_bank()
    with bank.transaction():
        bank.agent("alice").add("outer 1")
        with undone(bank):
            bank.agent("alice").add("inner")
            bank.agent("bob").add("inner")
            bank.advance(5)
        bank.agent("alice").add("outer 2")
    assert (contents(bank), bank.tick, bank.agents()) == (["outer 1", "outer 2"], 0, ["alice"])
    assert contents(open_bank()) == ["outer 1", "outer 2"]


def test_an_outer_transaction_that_fails_undoes_the_inner_too(open_bank: MakeBank) -> None:
    bank = open_bank()
    with undone(bank), bank.transaction():
        bank.agent("alice").add("inner")
    assert bank.agents() == []
    assert open_bank().agents() == []


def test_commit_inside_a_transaction_keeps_what_came_before_it(open_bank: MakeBank) -> None:
    bank = open_bank()
    with undone(bank):
        bank.agent("alice").add("kept")
        bank.commit()
        bank.agent("alice").add("lost")
    assert contents(bank) == ["kept"]
    assert contents(open_bank()) == ["kept"]


def test_commit_inside_a_nested_transaction_keeps_only_what_came_before_it(
    open_bank: MakeBank,
) -> None:
    bank = open_bank()
    with bank.transaction():
        bank.agent("alice").add_many(["outer 1", "outer 2"])
        with undone(bank):
            bank.commit()
            bank.agent("alice").add("lost")
    assert contents(bank) == ["outer 1", "outer 2"]
    assert contents(open_bank()) == ["outer 1", "outer 2"]


def test_commit_with_nothing_to_commit_writes_nothing(open_bank: MakeBank, folder: Path) -> None:
    bank = open_bank()
    bank.commit()
    with bank.transaction():
        pass
    assert value(folder, "SELECT count(*) FROM commits") == 0


def test_what_is_not_committed_is_not_in_the_journal(open_bank: MakeBank, folder: Path) -> None:
    bank = open_bank()
    with bank.transaction():
        bank.agent("alice").add("x")
        assert value(folder, "SELECT count(*) FROM commits") == 0
    assert value(folder, "SELECT count(*) FROM commits") == 1


def test_every_call_outside_a_transaction_is_in_the_journal_when_it_returns(
    open_bank: MakeBank, folder: Path
) -> None:
    bank = open_bank()
    alice = bank.agent("alice")
    memory = alice.add("x")
    steps: list[Callable[[], object]] = [
        lambda: alice.pin(memory.id),
        lambda: alice.unpin(memory.id),
        lambda: bank.advance(1),
        lambda: alice.record_observation("y"),
        lambda: alice.add_many(["1", "2"]),
        lambda: alice.update(memory.id, temperature="hot"),
        lambda: alice.update(memory.id, retention="archived"),
        lambda: alice.update(memory.id, retention="active"),
        lambda: alice.delete(memory.id),
        lambda: alice.forget(memory.id),
    ]
    for count, step in enumerate(steps, start=2):
        step()
        assert value(folder, "SELECT count(*) FROM commits") == count


def test_sqlite_is_told_to_wait_for_the_disk_at_each_commit(
    open_bank: MakeBank, folder: Path
) -> None:
    open_bank()
    database = connection(folder)
    (mode,) = database.execute("PRAGMA journal_mode").fetchone()
    (synchronous,) = database.execute("PRAGMA synchronous").fetchone()
    assert (mode, synchronous) == ("wal", 2)  # 2 is FULL: an fsync of the log before COMMIT returns


def test_no_code_of_the_user_runs_while_a_transaction_is_undone(open_bank: MakeBank) -> None:
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return len(text)

    bank = open_bank(count_tokens=count)
    alice = bank.agent("alice")
    alice.add_many([("hot", "pinned"), "warm"])
    alice.add("cold", temperature="cold")
    with undone(bank):
        alice.add("new", temperature="cold")
        alice.update(alice.all()[1].id, temperature="hot")
        asked.clear()
    assert asked == []
    assert contents(bank) == ["hot", "warm", "cold"]


def test_a_database_tool_sees_each_event(open_bank: MakeBank, folder: Path) -> None:
    bank = open_bank()
    with bank.transaction():
        bank.agent("alice").add_many(["one", "two"])
        bank.agent("bob").add("three")
    database = sqlite3.connect(folder / "journal.db")
    rows = database.execute("SELECT kind, content FROM events WHERE agent = 'alice'").fetchall()
    database.close()
    assert rows == [("add", "one"), ("add", "two")]


def test_a_bank_cannot_be_closed_inside_a_transaction(bank: MemoryBank) -> None:
    with bank.transaction():
        bank.agent("alice").add("x")
        with pytest.raises(BankError, match="transaction"):
            bank.close()
    assert contents(bank) == ["x"]


def test_threads_take_turns(bank: MemoryBank) -> None:
    def work(name: str) -> None:
        for n in range(25):
            bank.agent(name).add(f"{n} <1 {n}>")
            bank.agent("shared").add(f"{name} {n}")
            bank.agent(name).search("<1 0>")

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(contents(bank, f"t{n}")) for n in range(4)] == [25] * 4
    assert len({memory.id for memory in bank.agent("shared").all()}) == 100


def test_an_undone_inner_transaction_keeps_the_outer_ones_tick(bank: MemoryBank) -> None:
    with bank.transaction():
        bank.advance(1)
        keep_tick(bank, {"n": 1}, {"s": 1})
        bank.compact(dry_run=True)
    assert [record for record, _ in ticks_of(bank).records()] == [{"n": 1}]
    assert ticks_of(bank).state() == {"s": 1}


def test_the_store_is_not_rebuilt_inside_a_transaction(bank: MemoryBank) -> None:
    with bank.transaction(), pytest.raises(BankError, match="transaction"):
        bank.repair_store()
