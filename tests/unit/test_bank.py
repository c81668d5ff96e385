"""The bank as a whole: time, transactions, durability, determinism, settings."""

import gc
import hashlib
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from agents import (
    BankClosed,
    BankDamaged,
    BankError,
    BankLocked,
    BankNotFound,
    CommitFailed,
    ConfigError,
    InvalidContent,
    InvalidInput,
    MemoryBank,
    Tier,
    TierFull,
    TierMemError,
)
from agents.storage.ledger import Ledger
from embedders import Counting, Directions

OpenBank = Callable[..., MemoryBank]

TESTS = Path(__file__).parents[1]
MANUAL = {"sync": "manual"}


def connection(folder: Path) -> sqlite3.Connection:
    """The bank's own connection to its journal, wherever it keeps it."""
    for each in gc.get_objects():
        if isinstance(each, sqlite3.Connection):
            try:
                (row,) = each.execute("PRAGMA database_list").fetchall()
            except sqlite3.ProgrammingError:  # closed
                continue
            if row[2] and Path(row[2]).samefile(folder / "journal.db"):
                return each
    raise AssertionError("the bank has no connection")


def change(folder: Path, statement: str, *values: object) -> None:
    """Change the journal from outside."""
    database = sqlite3.connect(folder / "journal.db")
    with database:
        assert database.execute(statement, values).rowcount > 0
    database.close()


def value(folder: Path, statement: str) -> Any:
    database = sqlite3.connect(folder / "journal.db")
    try:
        return database.execute(statement).fetchone()[0]
    finally:
        database.close()


def flipped(data: bytes | str | int) -> bytes | str | int:
    """``data`` with one bit changed."""
    if isinstance(data, int):
        return data ^ 1
    if isinstance(data, str):
        middle = len(data) // 2
        return data[:middle] + chr(ord(data[middle]) ^ 1) + data[middle + 1 :]
    return data[:-1] + bytes([data[-1] ^ 1])


def child(code: str, *arguments: object, **environment: str) -> str:
    """Run ``code`` in a fresh process and give what it printed."""
    result = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(TESTS), **environment},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


class Undone(Exception):
    """Ends a transaction."""


@contextmanager
def undone(bank: MemoryBank) -> Iterator[None]:
    """A transaction that an error ends."""
    with suppress(Undone), bank.transaction():
        yield
        raise Undone


def contents(bank: MemoryBank, agent: str = "alice") -> list[str]:
    return [memory.content for memory in bank.agent(agent).all()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "bank"


@pytest.fixture
def snapshots_on_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the threshold, so that the rare path runs."""
    monkeypatch.setattr(Ledger, "SNAPSHOT_ON_CLOSE", 1)


# Time


def test_a_new_bank_is_at_tick_0(bank: MemoryBank) -> None:
    assert bank.tick == 0


def test_advance_moves_the_clock_and_new_memories_are_of_that_tick(bank: MemoryBank) -> None:
    bank.advance(5)
    memory = bank.agent("alice").add("x")
    assert (bank.tick, memory.created_tick, memory.tier_tick) == (5, 5, 5)


def test_the_clock_never_goes_back(bank: MemoryBank) -> None:
    bank.advance(5)
    with pytest.raises(InvalidInput, match=r"5.*4"):
        bank.advance(4)
    assert bank.tick == 5


def test_advancing_to_the_same_tick_changes_nothing(bank: MemoryBank) -> None:
    bank.advance(5)
    before = bank.state_hash()
    bank.advance(5)
    assert bank.state_hash() == before


@pytest.mark.parametrize("tick", [-1, 1.0, "1", True, None, 2**63], ids=repr)
def test_a_tick_is_a_whole_number_from_0_on(bank: MemoryBank, tick: Any) -> None:
    with pytest.raises(InvalidInput, match="tick"):
        bank.advance(tick)
    assert bank.tick == 0


def test_the_tick_survives_reopening(open_bank: OpenBank) -> None:
    open_bank().advance(12)
    assert open_bank().tick == 12


# Agents


def test_agents_are_listed_in_order_from_their_first_memory_on(bank: MemoryBank) -> None:
    bank.agent("nobody")
    bank.agent("bob").add("x")
    bank.agent("alice").add("x")
    assert bank.agents() == ["alice", "bob"]


def test_an_agent_that_deleted_all_is_still_listed(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    alice.delete(alice.add("x").id)
    assert bank.agents() == ["alice"]


# Adding many


def test_add_many_gives_the_memories_in_order(bank: MemoryBank) -> None:
    added = bank.add_many([("a", "1"), ("b", "2", "low"), ("a", "3", 0, {"k": 1})])
    assert [(m.agent_id, m.content, m.tier, dict(m.metadata)) for m in added] == [
        ("a", "1", Tier.NORMAL, {}),
        ("b", "2", Tier.LOW, {}),
        ("a", "3", Tier.PINNED, {"k": 1}),
    ]


def test_add_many_is_one_commit(open_bank: OpenBank, folder: Path) -> None:
    open_bank().add_many([(f"agent{n}", "x") for n in range(50)])
    assert value(folder, "SELECT count(*) FROM commits") == 1


def test_add_many_embeds_all_in_one_call(make_bank: OpenBank) -> None:
    embedder = Counting()
    make_bank(embedder=embedder).add_many([("a", "x"), ("b", "y"), ("c", "x")])
    assert embedder.batches == [["x", "y"]]


@pytest.mark.parametrize(
    "bad", [("*", "x"), ("a", ""), ("a", "x", "urgent"), ("a", "x", 3, {"tier": 0})]
)
def test_add_many_stores_all_or_none(make_bank: OpenBank, bad: tuple[Any, ...]) -> None:
    bank = make_bank()
    bank.agent("a").add("before")
    before = bank.state_hash()
    with pytest.raises(InvalidInput):
        bank.add_many([("a", "1"), ("b", "2"), bad])
    assert bank.state_hash() == before
    assert bank.agents() == ["a"]


def test_add_many_that_meets_a_full_tier_stores_none(make_bank: OpenBank) -> None:
    bank = make_bank(memory={"max_pinned": 1, "on_tier_full": "reject"})
    bank.agent("b").add("before")
    before = bank.state_hash()
    with pytest.raises(TierFull):
        bank.add_many([("a", "1", 0), ("b", "2", 0), ("a", "3", 0)])
    assert bank.state_hash() == before
    assert bank.agents() == ["b"]


# Transactions


def test_a_transaction_commits_together(open_bank: OpenBank, folder: Path) -> None:
    bank = open_bank()
    with bank.transaction():
        bank.agent("alice").add("a")
        bank.advance(3)
        bank.agent("bob").add("b")
    assert value(folder, "SELECT count(*) FROM commits") == 1
    again = open_bank()
    assert (contents(again), contents(again, "bob"), again.tick) == (["a"], ["b"], 3)


def test_a_transaction_that_fails_leaves_the_bank_as_it_was(open_bank: OpenBank) -> None:
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


def test_a_bank_works_on_after_a_failed_transaction(open_bank: OpenBank) -> None:
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


def test_a_nested_transaction_that_fails_undoes_itself_alone(open_bank: OpenBank) -> None:
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


def test_an_outer_transaction_that_fails_undoes_the_inner_too(open_bank: OpenBank) -> None:
    bank = open_bank()
    with undone(bank), bank.transaction():
        bank.agent("alice").add("inner")
    assert bank.agents() == []
    assert open_bank().agents() == []


def test_commit_inside_a_transaction_keeps_what_came_before_it(open_bank: OpenBank) -> None:
    bank = open_bank()
    with undone(bank):
        bank.agent("alice").add("kept")
        bank.commit()
        bank.agent("alice").add("lost")
    assert contents(bank) == ["kept"]
    assert contents(open_bank()) == ["kept"]


def test_commit_inside_a_nested_transaction_keeps_only_what_came_before_it(
    open_bank: OpenBank,
) -> None:
    bank = open_bank()
    with bank.transaction():
        bank.agent("alice").add_many(["outer 1", "outer 2"])
        with undone(bank):
            bank.commit()
            bank.agent("alice").add("lost")
    assert contents(bank) == ["outer 1", "outer 2"]
    assert contents(open_bank()) == ["outer 1", "outer 2"]


def test_commit_with_nothing_to_commit_writes_nothing(open_bank: OpenBank, folder: Path) -> None:
    bank = open_bank()
    bank.commit()
    with bank.transaction():
        pass
    assert value(folder, "SELECT count(*) FROM commits") == 0


def test_what_is_not_committed_is_not_in_the_journal(open_bank: OpenBank, folder: Path) -> None:
    bank = open_bank()
    with bank.transaction():
        bank.agent("alice").add("x")
        assert value(folder, "SELECT count(*) FROM commits") == 0
    assert value(folder, "SELECT count(*) FROM commits") == 1


def test_every_call_outside_a_transaction_is_in_the_journal_when_it_returns(
    open_bank: OpenBank, folder: Path
) -> None:
    bank = open_bank()
    alice = bank.agent("alice")
    memory = alice.add("x")
    steps: list[Callable[[], object]] = [
        lambda: alice.pin(memory.id),
        lambda: alice.unpin(memory.id),
        lambda: bank.advance(1),
        lambda: alice.record_observation("y"),
        lambda: alice.delete(memory.id),
    ]
    for count, step in enumerate(steps, start=2):
        step()
        assert value(folder, "SELECT count(*) FROM commits") == count


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


# Determinism


SCRIPT = """
import sys
from embedders import Noise
from agents import MemoryBank
with MemoryBank.open(sys.argv[1], embedder=Noise(16), storage={"sync": "manual"}, seed=3) as bank:
    names = {"alice", "bob", "carol", "dave", "erin"}  # a set: its order depends on the hash seed
    for tick in range(4):
        bank.advance(tick)
        for name in names:
            agent = bank.agent(name)
            added = agent.add_many([(f"{name} {tick} {n}", n % 5, {"b": n, "a": tick})
                                    for n in range(12)])
            agent.delete(added[tick].id)
            agent.pin(added[-1].id)
    ids = [m.id for m in bank.agent("alice").all()]
    found = bank.relevant_many([(name, "what now?") for name in sorted(names)], 7)
    print(bank.state_hash(), ids, found)
"""


def test_state_and_results_are_equal_across_processes_and_hash_seeds(tmp_path: Path) -> None:
    outputs = {child(SCRIPT, tmp_path / seed, PYTHONHASHSEED=seed) for seed in ("0", "1", "4242")}
    assert len(outputs) == 1


def test_the_order_of_agents_does_not_change_the_state(make_bank: OpenBank) -> None:
    hashes = set()
    for order in (["a", "b", "c"], ["c", "a", "b"]):
        bank = make_bank()
        for agent in order:
            bank.agent(agent).add_many(["1", ("2", "pinned")])
        hashes.add(bank.state_hash())
    assert len(hashes) == 1


def test_how_calls_are_batched_does_not_change_the_state(make_bank: OpenBank) -> None:
    items = [(f"a{n % 4}", f"m{n}", n % 5) for n in range(40)]
    one_by_one, together, in_transaction = (make_bank() for _ in range(3))
    for agent, text, tier in items:
        one_by_one.agent(agent).add(text, tier)
    together.add_many(items)
    with in_transaction.transaction():
        for item in items:
            in_transaction.add_many([item])
    hashes = {bank.state_hash() for bank in (one_by_one, together, in_transaction)}
    assert len(hashes) == 1


CHANGES: dict[str, Callable[[MemoryBank], object]] = {
    "another text": lambda bank: bank.agent("alice").add("y"),
    "another tier": lambda bank: bank.agent("alice").pin(bank.agent("alice").all()[0].id),
    "a delete": lambda bank: bank.agent("alice").delete(bank.agent("alice").all()[0].id),
    "the tick": lambda bank: bank.advance(1),
    "another agent": lambda bank: bank.agent("bob").add("x"),
}


@pytest.mark.parametrize("step", CHANGES.values(), ids=CHANGES.keys())
def test_every_change_shows_in_the_state_hash(
    make_bank: OpenBank, step: Callable[[MemoryBank], object]
) -> None:
    bank, same = make_bank(), make_bank()
    for each in (bank, same):
        each.agent("alice").add("x", metadata={"a": 1})
    assert bank.state_hash() == same.state_hash()
    step(bank)
    assert bank.state_hash() != same.state_hash()


@pytest.mark.parametrize("metadata", [None, {"a": 2}, {"a": "1"}, {"a": 1.0}, {"b": 1}])
def test_metadata_shows_in_the_state_hash(make_bank: OpenBank, metadata: Any) -> None:
    one, other = make_bank(), make_bank()
    one.agent("alice").add("x", metadata={"a": 1})
    other.agent("alice").add("x", metadata=metadata)
    assert one.state_hash() != other.state_hash()


def test_the_order_of_metadata_keys_does_not_show(make_bank: OpenBank) -> None:
    one, other = make_bank(), make_bank()
    one.agent("alice").add("x", metadata={"a": 1, "b": 2})
    other.agent("alice").add("x", metadata={"b": 2, "a": 1})
    assert one.state_hash() == other.state_hash()


def test_the_seed_shows_in_the_state_hash(make_bank: OpenBank) -> None:
    assert make_bank(seed=1).state_hash() != make_bank(seed=2).state_hash()


def test_neither_folder_nor_wall_clock_show_in_the_state_hash(tmp_path: Path) -> None:
    hashes = set()
    for name in ("one", "two"):
        with MemoryBank.open(tmp_path / name, embedder=Directions(), storage=MANUAL) as bank:
            bank.agent("alice").add("x")
            hashes.add(bank.state_hash())
        time.sleep(0.01)
    assert len(hashes) == 1


# Opening and closing


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


def test_closing_twice_is_fine(open_bank: OpenBank) -> None:
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


def busy(bank: MemoryBank) -> None:
    """A bit of everything that a journal can hold."""
    for tick in range(5):
        bank.advance(tick * 2)
        bank.add_many(
            [(f"a{n % 3}", f"m{n} “{tick}”\n <{n} 1>", n % 5, {"n": n}) for n in range(20)]
        )
        for name in bank.agents():
            agent = bank.agent(name)
            agent.delete(agent.all()[tick].id)
            agent.unpin(agent.get_pinned_memories()[0].id, "low")


def everything(bank: MemoryBank) -> tuple[object, ...]:
    agents = bank.agents()
    return (
        bank.tick,
        bank.state_hash(),
        [bank.agent(name).all() for name in agents],
        [bank.agent(name).get_pinned_memories() for name in agents],
        bank.search_many([(name, "<1 2>") for name in agents], 9),
    )


def test_reopening_gives_equal_memories_and_hash(open_bank: OpenBank) -> None:
    bank = open_bank()
    busy(bank)
    before = everything(bank)
    assert everything(open_bank()) == before


@pytest.mark.usefixtures("snapshots_on_close")
def test_reopening_from_a_snapshot_gives_equal_memories_and_hash(
    open_bank: OpenBank, folder: Path
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
def test_a_failed_transaction_after_a_snapshot_is_undone(open_bank: OpenBank) -> None:
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


# One writer


def test_another_process_gets_bank_locked_within_a_second_with_the_pid(
    open_bank: OpenBank, folder: Path
) -> None:
    open_bank().agent("alice").add("x")
    code = """
import sys, time
from embedders import Directions
from agents import BankLocked, MemoryBank
start = time.perf_counter()
try:
    MemoryBank.open(sys.argv[1], embedder=Directions(), storage={"sync": "manual"})
except BankLocked as error:
    print(error.pid, time.perf_counter() - start < 1.0, str(error.pid) in str(error))
"""
    assert child(code, folder) == f"{os.getpid()} True True"


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
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        start = time.perf_counter()
        with pytest.raises(BankLocked) as caught:
            MemoryBank.open(folder, embedder=Directions(), storage=MANUAL)
        assert time.perf_counter() - start < 1.0
        assert caught.value.pid == holder.pid
        holder.kill()
    with MemoryBank.open(folder, embedder=Directions(), storage=MANUAL) as bank:
        assert contents(bank) == ["x"]


def test_the_same_process_cannot_open_a_bank_twice(open_bank: OpenBank, folder: Path) -> None:
    bank = open_bank()
    with pytest.raises(BankLocked, match="this process") as caught:
        MemoryBank.open(folder, embedder=Directions(), storage=MANUAL)
    assert caught.value.pid == os.getpid()
    bank.agent("alice").add("still works")


def test_a_failed_opening_holds_no_lock(open_bank: OpenBank, folder: Path) -> None:
    open_bank().close()
    with pytest.raises(ConfigError):
        MemoryBank.open(folder, embedder=Directions(), memory={"max_pinned": "many"})
    open_bank().agent("alice").add("x")


# A full disk


def fill(folder: Path) -> sqlite3.Connection:
    """Let the journal grow no further, as on a full disk."""
    database = connection(folder)
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count = {pages}")
    return database


def test_a_full_disk_is_commit_failed_and_the_bank_is_as_before(
    open_bank: OpenBank, folder: Path
) -> None:
    bank = open_bank()
    alice = bank.agent("alice")
    alice.add_many([("a", "pinned"), "b"])
    before = everything(bank)
    database = fill(folder)
    with pytest.raises(CommitFailed, match="full"):
        alice.add_many([("x" * 16_000, "pinned") for _ in range(10)])
    assert everything(bank) == before

    database.execute("PRAGMA max_page_count = 1073741823")
    memory = alice.add("after")
    assert memory.sequence == 3
    state = bank.state_hash()
    again = open_bank()
    assert again.state_hash() == state
    assert contents(again) == ["a", "b", "after"]


def test_a_full_disk_at_the_end_of_a_transaction_undoes_all_of_it(
    open_bank: OpenBank, folder: Path
) -> None:
    bank = open_bank()
    bank.agent("alice").add("a")
    before = everything(bank)
    fill(folder)
    transaction = bank.transaction()
    transaction.__enter__()
    bank.advance(4)
    bank.agent("bob").add("b")
    bank.agent("alice").add_many(["x" * 16_000 for _ in range(10)])
    with pytest.raises(CommitFailed):
        transaction.__exit__(None, None, None)
    assert everything(bank) == before
    assert everything(open_bank()) == before


def test_a_full_disk_at_a_commit_inside_a_transaction_loses_only_what_was_pending(
    open_bank: OpenBank, folder: Path
) -> None:
    bank = open_bank()
    with bank.transaction():
        bank.agent("alice").add("kept")
        bank.commit()
        database = fill(folder)
        bank.agent("alice").add_many(["x" * 16_000 for _ in range(10)])
        with pytest.raises(CommitFailed):
            bank.commit()
        database.execute("PRAGMA max_page_count = 1073741823")
        bank.agent("alice").add("kept too")
    assert contents(bank) == contents(open_bank()) == ["kept", "kept too"]


# Damage


def test_an_empty_journal_file_is_a_new_bank(open_bank: OpenBank, folder: Path) -> None:
    folder.mkdir()
    (folder / "journal.db").touch()
    open_bank().agent("alice").add("x")
    assert contents(open_bank()) == ["x"]


@pytest.mark.parametrize(
    "data", [b"xy", b"not a database at all " * 500, b"SQLite format 3\0", bytes(5000)]
)
def test_a_file_that_is_no_database_is_bank_damaged_and_stays(folder: Path, data: bytes) -> None:
    folder.mkdir()
    (folder / "journal.db").write_bytes(data)
    with pytest.raises(BankDamaged, match=r"journal\.db"):
        MemoryBank.open(folder, embedder=Directions(), storage=MANUAL)
    assert (folder / "journal.db").read_bytes() == data


def test_another_programs_database_is_bank_damaged_and_stays(folder: Path) -> None:
    folder.mkdir()
    database = sqlite3.connect(folder / "journal.db")
    with database:
        database.execute("CREATE TABLE bookmarks (url TEXT)")
    database.close()
    before = (folder / "journal.db").read_bytes()
    with pytest.raises(BankDamaged, match="another program"):
        MemoryBank.open(folder, embedder=Directions(), storage=MANUAL)
    assert (folder / "journal.db").read_bytes() == before


def test_a_journal_of_a_later_version_is_bank_damaged(open_bank: OpenBank, folder: Path) -> None:
    open_bank().agent("alice").add("x")
    open_bank().close()
    database = sqlite3.connect(folder / "journal.db")
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(BankDamaged, match="format 99"):
        open_bank()


def test_a_journal_whose_schema_is_garbled_is_bank_damaged(
    open_bank: OpenBank, folder: Path
) -> None:
    """A byte that is no UTF-8 in a table's definition; SQLite quotes it in its message."""
    open_bank().agent("alice").add("x")
    open_bank().close()
    data = (folder / "journal.db").read_bytes()
    assert b"NOT NULL" in data
    (folder / "journal.db").write_bytes(data.replace(b"NOT NULL", b"NOT N\xd5LL"))
    with pytest.raises(BankDamaged):
        open_bank()


def test_a_truncated_journal_is_bank_damaged(open_bank: OpenBank, folder: Path) -> None:
    open_bank().agent("alice").add_many(["x" * 10_000 for _ in range(20)])
    open_bank().close()
    data = (folder / "journal.db").read_bytes()
    (folder / "journal.db").write_bytes(data[: len(data) // 2])
    with pytest.raises(BankDamaged):
        open_bank()


@pytest.mark.parametrize("column", ["tick", "events", "vectors", "hash", "id"])
def test_a_bit_flipped_in_a_commit_is_bank_damaged(
    open_bank: OpenBank, folder: Path, column: str
) -> None:
    bank = open_bank()
    bank.advance(4)
    bank.agent("alice").add("first <1 2>")
    bank.agent("alice").add("second <3 4>")
    bank.close()
    where = "WHERE id = 2"
    data = value(folder, f"SELECT {column} FROM commits {where}")
    new = 9 if column == "id" else flipped(data)
    change(folder, f"UPDATE commits SET {column} = ? {where}", new)
    with pytest.raises(BankDamaged):
        open_bank()


@pytest.mark.parametrize("row", [1, 2])
def test_a_missing_commit_is_bank_damaged(open_bank: OpenBank, folder: Path, row: int) -> None:
    bank = open_bank()
    for text in "abc":
        bank.agent("alice").add(text)
    bank.close()
    change(folder, "DELETE FROM commits WHERE id = ?", row)
    with pytest.raises(BankDamaged):
        open_bank()


@pytest.mark.usefixtures("snapshots_on_close")
@pytest.mark.parametrize(
    "column", ["agent", "next_sequence", "columns", "contents", "metadata", "vectors", "digest"]
)
def test_a_bit_flipped_in_a_snapshot_is_bank_damaged(
    open_bank: OpenBank, folder: Path, column: str
) -> None:
    open_bank().agent("alice").add("first <1 2>", metadata={"a": 1})
    open_bank().close()
    data = value(folder, f"SELECT {column} FROM snapshots")
    change(folder, f"UPDATE snapshots SET {column} = ?", flipped(data))
    with pytest.raises(BankDamaged):
        open_bank()


@pytest.mark.usefixtures("snapshots_on_close")
@pytest.mark.parametrize("column", ["tick", "hash"])
def test_a_bit_flipped_in_the_commit_of_a_snapshot_is_bank_damaged(
    open_bank: OpenBank, folder: Path, column: str
) -> None:
    bank = open_bank()
    bank.advance(4)
    bank.agent("alice").add("x")
    bank.close()
    last = "WHERE id = (SELECT max(id) FROM commits)"
    data = value(folder, f"SELECT {column} FROM commits {last}")
    change(folder, f"UPDATE commits SET {column} = ? {last}", flipped(data))
    with pytest.raises(BankDamaged):
        open_bank()


def test_no_flipped_byte_of_the_file_changes_a_memory_unnoticed(
    open_bank: OpenBank, folder: Path, tmp_path: Path
) -> None:
    """Wherever a byte is changed: the bank is refused, or it is the one that was written."""
    busy(open_bank())
    sound = open_bank()
    state = sound.state_hash()
    sound.close()
    data = (folder / "journal.db").read_bytes()
    chance = random.Random(7)
    used = [place for place, byte in enumerate(data) if byte]
    opened = 0
    for number, place in enumerate([*range(100), *chance.sample(used, 150)]):
        broken = bytearray(data)
        broken[place] ^= 1 << chance.randrange(8)
        copy = tmp_path / str(number)
        copy.mkdir()
        (copy / "journal.db").write_bytes(bytes(broken))
        try:
            bank = MemoryBank.open(copy, embedder=Directions(), storage=MANUAL)
        except TierMemError:
            continue
        with bank:
            opened += 1
            assert bank.state_hash() == state, f"byte {place}"
    assert opened < 200


def test_a_refused_file_is_let_go(folder: Path) -> None:
    """No open file or lock of it stays behind, even before the garbage is collected."""
    folder.mkdir()
    database = sqlite3.connect(folder / "journal.db")
    with database:
        database.execute("CREATE TABLE bookmarks (url TEXT)")
    database.close()
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(BankDamaged):
            MemoryBank.open(folder, embedder=Directions(), storage=MANUAL)
        held = [os.path.realpath(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd")]
    finally:
        gc.enable()
    assert not [name for name in held if name.startswith(str(folder.resolve()))]


def test_a_damaged_bank_is_not_changed_by_trying_it(open_bank: OpenBank, folder: Path) -> None:
    open_bank().agent("alice").add("x")
    open_bank().close()
    change(folder, "UPDATE commits SET hash = ?", bytes(32))
    before = hashlib.sha256((folder / "journal.db").read_bytes()).digest()
    for _ in range(2):
        with pytest.raises(BankDamaged):
            open_bank()
    assert hashlib.sha256((folder / "journal.db").read_bytes()).digest() == before


# Settings


def test_a_bank_opened_without_a_config_uses_the_settings_it_was_made_with(folder: Path) -> None:
    made = {"memory": {"max_pinned": 2, "default_limit": 3}, "storage": MANUAL, "seed": 8}
    with MemoryBank.open(folder, made, embedder=Directions()) as bank:
        identifier = bank.agent("alice").add_many([(f"p{n}", 0) for n in range(3)])[0].id
    with MemoryBank.open(folder, embedder=Directions()) as bank:
        assert bank.settings.memory.max_pinned == 2
        assert bank.settings.storage.sync == "manual"
        assert bank.agent("alice").count("pinned") == 2
        bank.agent("alice").add_many([f"m{n}" for n in range(9)])
        assert len(bank.agent("alice").search("")) == 3
        assert bank.agent("alice").get(identifier).id == identifier


def test_overrides_go_on_top_of_the_stored_settings(folder: Path) -> None:
    with MemoryBank.open(folder, embedder=Directions(), storage=MANUAL, memory={"max_pinned": 2}):
        pass
    with MemoryBank.open(folder, embedder=Directions(), memory={"max_critical": 1}) as bank:
        assert (bank.settings.memory.max_pinned, bank.settings.memory.max_critical) == (2, 1)


def test_an_existing_bank_keeps_its_seed(open_bank: OpenBank) -> None:
    first = open_bank(seed=1).agent("alice").add("x")
    second = open_bank(seed=2).agent("alice").add("y")
    assert first.id[:24] == second.id[:24]
    assert len(open_bank().agent("alice").all()) == 2


def test_config_may_be_a_yaml_file(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("memory:\n  max_pinned: 1\n")
    with MemoryBank.ephemeral(tmp_path / "my.yaml", embedder=Directions()) as bank:
        bank.agent("alice").add_many([("a", 0), ("b", 0)])
        assert bank.agent("alice").count("pinned") == 1


def pinned_count(bank: MemoryBank) -> object:
    bank.agent("a").add_many([(f"p{n}", "pinned") for n in range(20)])
    return bank.agent("a").count("pinned")


def critical_count(bank: MemoryBank) -> object:
    bank.agent("a").add_many([(f"c{n}", "critical") for n in range(20)])
    return bank.agent("a").count("critical")


def when_full(bank: MemoryBank) -> object:
    try:
        bank.agent("a").add_many([(f"p{n}", "pinned") for n in range(6)])
    except TierFull:
        return "refused"
    return "demoted"


def boost_of(tier: str) -> Callable[[MemoryBank], object]:
    def shown(bank: MemoryBank) -> object:
        bank.agent("a").add("x <1 0>", tier)
        (hit,) = bank.agent("a").search("<1 0>")
        return hit.boosted_score

    return shown


def lifted(bank: MemoryBank) -> object:
    bank.agent("a").add("rule <1 0.5>", "critical")
    bank.agent("a").add_many([f"talk {n} <1 0.{n}>" for n in range(4)])
    return bank.agent("a").search("<1 0>", 1)[0].memory.content


def found(bank: MemoryBank) -> object:
    bank.agent("a").add_many([f"memory {n}" for n in range(20)])
    return len(bank.agent("a").search(""))


def longest(bank: MemoryBank) -> object:
    try:
        bank.agent("a").add("x" * 100)
    except InvalidContent:
        return "refused"
    return "stored"


KEYS: dict[str, tuple[Callable[[MemoryBank], object], object, object, object]] = {
    # key: what shows it, with the default, another value, and with that
    "memory.max_pinned": (pinned_count, 5, 3, 3),
    "memory.max_critical": (critical_count, 10, 4, 4),
    "memory.on_tier_full": (when_full, "demoted", "reject", "refused"),
    "memory.tier_boosts.pinned": (boost_of("pinned"), 2.0, 0.5, 1.5),
    "memory.tier_boosts.critical": (boost_of("critical"), 1.3, 0.5, 1.5),
    "memory.tier_boosts.important": (boost_of("important"), 1.15, 0.5, 1.5),
    "memory.tier_boosts.normal": (boost_of("normal"), 1.0, 0.5, 1.5),
    "memory.tier_boosts.low": (boost_of("low"), 0.9, 0.5, 1.5),
    "memory.candidate_multiplier": (lifted, "talk 0 <1 0.0>", 5, "rule <1 0.5>"),
    "memory.default_limit": (found, 5, 8, 8),
    "memory.context_tokens": (found, 5, 7, 2),
    "memory.max_content_bytes": (longest, "stored", 99, "refused"),
}


@pytest.mark.parametrize("key", KEYS)
def test_every_memory_setting_is_really_used(make_bank: OpenBank, key: str) -> None:
    shown, usual, setting, changed = KEYS[key]
    assert shown(make_bank()) == usual
    assert shown(make_bank(**{key: setting})) == changed


def test_no_memory_setting_is_left_untested() -> None:
    from agents.config import load_settings

    memory = load_settings().to_dict()["memory"]
    assert isinstance(memory, dict)
    names = {f"memory.{name}" for name in memory if name != "tier_boosts"}
    names |= {f"memory.tier_boosts.{name}" for name in memory["tier_boosts"]}
    assert names == set(KEYS)


@pytest.mark.parametrize(("size", "calls"), [(65536, 2), (2, 2), (1, 3), (0, 3)])
def test_the_embedders_cache_size_is_really_used(size: int, calls: int) -> None:
    embedder = Counting()
    settings = {"embedder": {"cache_size": size}}
    with MemoryBank.ephemeral(settings, embedder=embedder) as bank:
        for query in ("x", "y", "x"):
            bank.agent("a").search(query)
    assert len(embedder.batches) == calls


def test_manual_sync_writes_no_store_when_the_bank_closes(
    open_bank: OpenBank, folder: Path
) -> None:
    open_bank().agent("alice").add("x")
    open_bank().close()
    names = {path.name for path in folder.iterdir()}
    assert names <= {"journal.db", "journal.db-wal", "journal.db-shm", "bank.lock"}
