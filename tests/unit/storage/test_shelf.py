"""Memories that became cold together: on the shelf, out of it, and back at an earlier tick."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank, MemoryNotFound, Retention, Temperature
from agents.bank.history import rewind
from agents.engine.status import Status, StoreStatus
from agents.storage.shelf import SHELF_SCHEMA, ShelfTable
from asking import asked
from banks import MakeBank, undone
from embedders import Directions

COLD = Temperature.COLD
DECISION = {"kind": "decision", "tags": ["x"]}


def fill(bank: MemoryBank, number: int = 8, agent: str = "alice", **options: Any) -> list[str]:
    """Memories that a compaction makes cold; their ids."""
    items = [
        (agent, f"text{n:03}ä <{n} 1>", 2 + n % 3, {"n": n} if n % 2 else None, DECISION | options)
        for n in range(number)
    ]
    return [memory.id for memory in bank.add_many(items)]


def shelved(folder: Path) -> list[int]:
    """The sequence numbers of what is on the shelf now."""
    database = sqlite3.connect(folder / "journal.db")
    try:
        found = database.execute("SELECT sequence FROM shelf WHERE until IS NULL ORDER BY sequence")
        return [number for (number,) in found]
    finally:
        database.close()


def test_what_came_and_went_in_one_transaction_is_where_it_went_last(
    open_bank: MakeBank, folder: Path
) -> None:
    bank = open_bank()
    ids = fill(bank)
    alice = bank.agent("alice")
    with bank.transaction():
        bank.compact()
        alice.update(ids[0], temperature="cold")
        alice.update(ids[3], temperature="hot")
        alice.update(ids[3], temperature="cold")
        alice.update(ids[4], temperature="hot")
        assert [each.id for each in alice.all()] == ids
    assert shelved(folder) == [1, 2, 3, 4, 6, 7, 8]
    state = bank.state_hash()
    again = open_bank()
    assert again.state_hash() == state
    assert [each.id for each in again.agent("alice").all(temperature="cold")] == ids[:4] + ids[5:]


def test_what_was_cold_before_the_transaction_is_cold_after_it(
    open_bank: MakeBank, folder: Path
) -> None:
    bank = open_bank()
    ids = fill(bank)
    bank.compact()
    alice = bank.agent("alice")
    with bank.transaction():
        for each in ids[:5]:
            alice.update(each, temperature="hot")
        assert bank.compact().cold == 5
        assert [each.id for each in alice.all(temperature="cold")] == ids
        assert [alice.get(each).id for each in ids] == ids
        assert bank.status().temperatures["cold"].items == 8
    assert shelved(folder) == [*range(1, 9)]
    assert [each.id for each in alice.all(temperature="cold")] == ids


def test_what_became_cold_out_of_order_is_read_in_order(open_bank: MakeBank) -> None:
    bank = open_bank()
    alice, shelf = bank.agent("alice"), bank.engine.state.shelf
    ids = fill(bank, 24, kind="fact")
    for part in (ids[::3], ids[1::3], ids[2::3]):
        with bank.transaction():
            bank.engine.ledger.move("alice", [int(each[-6:], 16) for each in part], COLD, "spill")
    assert [each.id for each in alice.all(temperature="cold")] == ids
    assert [row[1] for row in shelf.table.all_now()] == [*range(1, 25)]


@pytest.mark.parametrize("leaving", [63, 64, 65, 100, 130])
def test_a_hash_that_is_kept_up_to_date_is_that_of_a_bank_that_is_opened(
    open_bank: MakeBank, leaving: int
) -> None:
    """Whether fewer memories leave than stay, or more."""
    bank = open_bank()
    fill(bank, 130 - leaving, kind="fact")
    ids = fill(bank, leaving)
    bank.agent("alice").search("<1 1>")
    bank.agent("alice").recall("<2 1>")
    before = bank.state_hash()
    assert bank.compact().cold == len(bank.agent("alice").all(temperature="cold"))
    after = bank.state_hash()
    assert before != after
    bank = open_bank()
    assert bank.state_hash() == after
    assert bank.agent("alice").get(ids[-1]).temperature is COLD


def leave(bank: MemoryBank, memory_id: str, how: str) -> None:
    asked(bank.agent("alice"), how, memory_id)


@pytest.mark.parametrize("how", ["promote", "archive", "delete", "forget", "pin"])
def test_what_leaves_the_shelf_is_elsewhere_and_the_others_stay(
    open_bank: MakeBank, how: str
) -> None:
    bank = open_bank()
    ids = fill(bank)
    bank.compact()
    leave(bank, ids[4], how)
    status, state = bank.status(), bank.state_hash()
    assert status.temperatures["cold"].items == 7
    bank = open_bank()
    assert (bank.status(), bank.state_hash()) == (status, state)
    alice = bank.agent("alice")
    assert [each.id for each in alice.all(temperature="cold")] == ids[:4] + ids[5:]
    if how in ("delete", "forget"):
        with pytest.raises(MemoryNotFound):
            alice.get(ids[4])
    else:
        assert alice.get(ids[4]).content == "text004ä <4 1>"


def held(bank: MemoryBank) -> Status:
    """The status of the bank, without that of mem0's store."""
    return bank.status()._replace(store=StoreStatus("", 0, None))


@pytest.mark.parametrize("snapshots", [False, True])
def test_going_back_brings_back_what_left(
    open_bank: MakeBank, folder: Path, snapshots: bool, request: pytest.FixtureRequest
) -> None:
    if snapshots:
        request.getfixturevalue("snapshots_on_close")
    bank = open_bank()
    ids = fill(bank)
    states, statuses = [], []
    steps: list[Callable[[], object]] = [
        bank.compact,
        lambda: bank.agent("alice").update(ids[1], temperature="hot"),
        lambda: bank.agent("alice").update(ids[1], temperature="cold"),
        lambda: [bank.agent("alice").update(each, retention="archived") for each in ids[2:7]],
    ]
    for tick, step in enumerate(steps):
        bank.advance(tick)
        step()
        states.append(bank.state_hash())
        statuses.append(held(bank))
    bank.close()
    for tick in (3, 2, 1, 0):
        with MemoryBank.at(folder, tick, embedder=Directions()) as past:
            assert (past.state_hash(), held(past)) == (states[tick], statuses[tick])
    for tick in (2, 1, 0):
        rewind(folder, tick)
        bank = open_bank()
        assert (bank.state_hash(), held(bank)) == (states[tick], statuses[tick])
        assert [each.id for each in bank.agent("alice").all()] == ids
        bank.close()


def test_an_undone_compaction_leaves_nothing(open_bank: MakeBank, folder: Path) -> None:
    bank = open_bank()
    ids = fill(bank)
    before, status = bank.state_hash(), bank.status()
    with undone(bank):
        bank.compact()
        assert bank.status().temperatures["cold"].items == 8
    assert (bank.state_hash(), bank.status(), shelved(folder)) == (before, status, [])
    bank.compact()
    with undone(bank):
        for each in ids[:5]:
            bank.agent("alice").update(each, temperature="hot")
    assert bank.status().temperatures["cold"].items == 8
    assert len(bank.agent("alice").all(temperature="cold")) == 8


def test_a_checkpoint_has_what_is_on_the_shelf(open_bank: MakeBank, tmp_path: Path) -> None:
    bank = open_bank()
    ids = fill(bank)
    fill(bank, 5, "bob")
    bank.compact()
    bank.agent("alice").update(ids[3], temperature="hot")
    bank.checkpoint(tmp_path / "checkpoint")
    copy = MemoryBank.restore(tmp_path / "checkpoint", tmp_path / "copy", embedder=Directions())
    with copy:
        assert copy.state_hash() == bank.state_hash()
        assert copy.status() == bank.status()
        assert copy.agent("alice").all() == bank.agent("alice").all()


@pytest.mark.parametrize("first", ["", "promote", "archive"])
def test_what_is_forgotten_is_in_no_file(open_bank: MakeBank, folder: Path, first: str) -> None:
    """Even what left the shelf before: an earlier version is in there."""
    bank = open_bank()
    ids = fill(bank)
    bank.compact()
    alice = bank.agent("alice")
    if first:
        leave(bank, ids[4], first)
    alice.forget(ids[4])
    assert [each.id for each in alice.all()] == ids[:4] + ids[5:]
    state = bank.state_hash()
    bank.vacuum()
    bank.close()
    for file in folder.rglob("*"):
        assert not file.is_file() or b"text004" not in file.read_bytes(), file.name
    bank = open_bank()
    assert bank.state_hash() == state
    assert [each.id for each in bank.agent("alice").all()] == ids[:4] + ids[5:]


def test_no_question_is_planned_again_for_another_agent() -> None:
    database = sqlite3.connect(":memory:")
    database.executescript(SHELF_SCHEMA)
    table = ShelfTable(database)
    for agent in ("alice", "bob", "carol"):
        for retention in Retention:
            list(table.of_agent(agent, retention, None, 0))
            list(table.of_agent(agent, retention, COLD, 0))
        list(table.due(3, 2, agent))
        list(table.cold(agent))
        list(table.texts(agent))
        list(table.critical(agent, 5))
        list(table.many(agent, [1, 2], 5))
        table.get((agent, 1), 5)
        table.counts(agent)
        table.sum_of(agent)
        table.with_metadata(agent, "x")
    try:
        planned = database.execute("SELECT sql, reprep FROM sqlite_stmt WHERE run > 0").fetchall()
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no table of its statements")
    assert len(planned) > 10
    assert [sql for sql, again in planned if again] == []
