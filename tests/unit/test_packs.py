"""Memories that become cold together are kept together."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank, MemoryNotFound, Temperature
from agents.bank.history import rewind
from agents.storage.shelf.pack import WIDEST, Pack
from banks import OpenBank, change, contents, undone
from embedders import Directions

COLD = Temperature.COLD
DECISION = {"kind": "decision", "tags": ["x"]}


@pytest.fixture(autouse=True)
def _small_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pack, "FEWEST", 4)
    monkeypatch.setattr(Pack, "MOST", 3)


def fill(bank: MemoryBank, number: int = 8, agent: str = "alice", **options: Any) -> list[str]:
    """Memories that a compaction makes cold; their ids."""
    items = [
        (agent, f"text{n:03}ä <{n} 1>", 2 + n % 3, {"n": n} if n % 2 else None, DECISION | options)
        for n in range(number)
    ]
    return [memory.id for memory in bank.add_many(items)]


def rows(folder: Path, statement: str) -> list[tuple[Any, ...]]:
    database = sqlite3.connect(folder / "journal.db")
    try:
        return database.execute(statement).fetchall()
    finally:
        database.close()


def packed(folder: Path) -> int:
    """How many packs there are."""
    return int(rows(folder, "SELECT count(*) FROM shelf_packs")[0][0])


def in_rows(folder: Path) -> list[int]:
    """The sequence numbers of what is there by itself."""
    found = rows(folder, "SELECT sequence FROM shelf WHERE until IS NULL ORDER BY sequence")
    return [number for (number,) in found]


# What is packed


def test_what_becomes_cold_together_is_in_packs_and_as_it_was(
    open_bank: OpenBank, folder: Path
) -> None:
    bank = open_bank()
    fill(bank)
    alice = bank.agent("alice")
    before = alice.all()
    assert bank.compact().cold == 8
    assert (packed(folder), in_rows(folder)) == (3, [])
    after = alice.all()
    assert after == [each._replace(temperature=COLD) for each in before]
    assert [alice.get(each.id) for each in before] == after
    assert open_bank().agent("alice").all() == after


def test_few_are_rows(open_bank: OpenBank, folder: Path) -> None:
    bank = open_bank()
    fill(bank, 3)
    bank.compact()
    assert (packed(folder), in_rows(folder)) == (0, [1, 2, 3])


def test_memories_that_are_added_cold_are_packed_as_well(open_bank: OpenBank, folder: Path) -> None:
    fill(open_bank(), temperature="cold")
    assert (packed(folder), in_rows(folder)) == (3, [])


def test_what_somebody_looks_for_among_all_is_a_row(open_bank: OpenBank, folder: Path) -> None:
    """Critical ones at each opening, expiring ones in each tick; and recalls few have."""
    bank = open_bank()
    alice = bank.agent("alice")
    fill(bank)
    alice.add("critical", "critical", **DECISION)
    alice.add("expiring", ttl=5, **DECISION)
    alice.add("recalled <9 9 1>", **DECISION)
    assert alice.recall("<9 9 1>", 1, auto_promote=False).items[0].sequence == 11
    assert bank.compact().cold == 11
    assert (packed(folder), in_rows(folder)) == (3, [9, 10, 11])
    assert len(contents(bank)) == 11
    bank.advance(5)
    bank.sweep()
    assert len(contents(bank)) == 10


def test_what_is_long_is_a_row(open_bank: OpenBank, folder: Path) -> None:
    """Who reads one memory of a pack reads all of it."""
    bank = open_bank()
    fill(bank)
    bank.agent("alice").add("long " * 500, **DECISION)
    bank.agent("alice").add("short", 3, {"long": "x" * 3000}, **DECISION)
    bank.compact()
    assert (packed(folder), in_rows(folder)) == (3, [9, 10])


def test_what_lies_far_apart_is_in_rows(open_bank: OpenBank, folder: Path) -> None:
    """One memory is in the range of few packs, however many there are."""
    bank = open_bank()
    alice = bank.agent("alice")
    for _ in range(4):
        alice.add("far", **DECISION)
        bank.add_many([("alice", "near")] * WIDEST)
    assert bank.compact().cold == 4
    assert (packed(folder), len(in_rows(folder))) == (0, 4)


def test_what_came_and_went_in_one_transaction_is_a_row(open_bank: OpenBank, folder: Path) -> None:
    bank = open_bank()
    ids = fill(bank)
    alice = bank.agent("alice")
    with bank.transaction():
        bank.compact()
        alice.demote(ids[0], "cold")
        alice.promote(ids[3])
        alice.demote(ids[3], "cold")
        alice.promote(ids[4])
        assert [each.id for each in alice.all()] == ids
    assert in_rows(folder) == [4]
    state = bank.state_hash()
    again = open_bank()
    assert again.state_hash() == state
    assert [each.id for each in again.agent("alice").all(temperature="cold")] == ids[:4] + ids[5:]


def test_what_was_cold_before_the_transaction_is_a_row_after_it(
    open_bank: OpenBank, folder: Path
) -> None:
    bank = open_bank()
    ids = fill(bank)
    bank.compact()
    alice = bank.agent("alice")
    with bank.transaction():
        for each in ids[:5]:
            alice.promote(each)
        assert bank.compact().cold == 5
        assert [each.id for each in alice.all(temperature="cold")] == ids
        assert [alice.get(each).id for each in ids] == ids
        assert bank.status().temperatures["cold"].items == 8
    assert in_rows(folder) == [1, 2, 3, 4, 5]
    assert [each.id for each in alice.all(temperature="cold")] == ids


def test_packs_that_overlap_are_read_in_order(open_bank: OpenBank) -> None:
    bank = open_bank()
    alice, shelf = bank.agent("alice"), bank.parts.ledger.resident.shelf
    ids = fill(bank, 24, kind="fact")
    for part in (ids[::3], ids[1::3], ids[2::3]):
        with bank.transaction():
            bank.parts.ledger.move("alice", [int(each[-6:], 16) for each in part], COLD, "spill")
    assert [each.id for each in alice.all(temperature="cold")] == ids
    assert [row[1] for row in shelf.table.all_now()] == [*range(1, 25)]
    assert shelf.with_words("alice", ["TEXT"], 5) == [24, 23, 22, 21, 20]
    assert shelf.with_words("alice", ["text00", "text021"], 4) == [22, 10, 9, 8]


def test_packs_change_no_state(make_bank: OpenBank, monkeypatch: pytest.MonkeyPatch) -> None:
    banks = [make_bank(), make_bank()]
    for bank, fewest in zip(banks, (4, 100), strict=True):
        monkeypatch.setattr(Pack, "FEWEST", fewest)
        fill(bank)
        bank.state_hash()  # from now on it is kept up to date
        fill(bank, 20, "bob", kind="fact")
        bank.compact()
    assert banks[0].state_hash() == banks[1].state_hash()
    assert banks[0].status() == banks[1].status()


# What leaves


def leave(bank: MemoryBank, memory_id: str, how: str) -> None:
    getattr(bank.agent("alice"), how)(memory_id)


@pytest.mark.parametrize("how", ["promote", "archive", "delete", "forget", "pin"])
def test_what_leaves_a_pack_is_elsewhere_and_the_others_stay(open_bank: OpenBank, how: str) -> None:
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


@pytest.mark.parametrize("snapshots", [False, True])
def test_going_back_brings_back_what_left(
    open_bank: OpenBank, folder: Path, snapshots: bool, request: pytest.FixtureRequest
) -> None:
    if snapshots:
        request.getfixturevalue("snapshots_on_close")
    bank = open_bank()
    ids = fill(bank)
    states, statuses = [], []
    steps: list[Callable[[], object]] = [
        bank.compact,
        lambda: bank.agent("alice").promote(ids[1]),
        lambda: bank.agent("alice").demote(ids[1], "cold"),
        lambda: [bank.agent("alice").archive(each) for each in ids[2:7]],
    ]
    for tick, step in enumerate(steps):
        bank.advance(tick)
        step()
        states.append(bank.state_hash())
        statuses.append(bank.status())
    bank.close()
    for tick in (3, 2, 1, 0):
        with MemoryBank.at(folder, tick, embedder=Directions()) as past:
            assert (past.state_hash(), past.status()) == (states[tick], statuses[tick])
    for tick in (2, 1, 0):
        rewind(folder, tick)
        bank = open_bank()
        assert (bank.state_hash(), bank.status()) == (states[tick], statuses[tick])
        assert [each.id for each in bank.agent("alice").all()] == ids
        bank.close()


def test_an_undone_compaction_leaves_nothing(open_bank: OpenBank, folder: Path) -> None:
    bank = open_bank()
    ids = fill(bank)
    before, status = bank.state_hash(), bank.status()
    with undone(bank):
        bank.compact()
        assert bank.status().temperatures["cold"].items == 8
    assert (bank.state_hash(), bank.status(), packed(folder)) == (before, status, 0)
    bank.compact()
    with undone(bank):
        for each in ids[:5]:
            bank.agent("alice").promote(each)
    assert bank.status().temperatures["cold"].items == 8
    assert len(bank.agent("alice").all(temperature="cold")) == 8


def test_a_checkpoint_has_what_is_in_packs(open_bank: OpenBank, tmp_path: Path) -> None:
    bank = open_bank()
    ids = fill(bank)
    fill(bank, 5, "bob")
    bank.compact()
    bank.agent("alice").promote(ids[3])
    bank.checkpoint(tmp_path / "checkpoint")
    copy = MemoryBank.restore(tmp_path / "checkpoint", tmp_path / "copy", embedder=Directions())
    with copy:
        assert copy.state_hash() == bank.state_hash()
        assert copy.status() == bank.status()
        assert copy.agent("alice").all() == bank.agent("alice").all()


def test_a_pack_of_which_half_left_is_written_anew(
    open_bank: OpenBank, folder: Path, snapshots_on_close: None
) -> None:
    bank = open_bank()
    ids = fill(bank, 9)
    bank.compact()
    for each in (*ids[:3], *ids[3:5], ids[6]):  # all of a pack, most of one, one of one
        bank.agent("alice").archive(each)
    state = bank.state_hash()
    bank.close()
    found = rows(folder, "SELECT first, last, length(gone) FROM shelf_packs ORDER BY first")
    assert found == [(6, 6, 0), (7, 9, 16)]
    assert rows(folder, "SELECT count(*) FROM shelf_bodies") == [(2,)]
    bank = open_bank()
    assert bank.state_hash() == state
    assert [each.id for each in bank.agent("alice").all()] == [ids[5], *ids[7:]]


# Forgetting


@pytest.mark.parametrize("first", ["", "promote", "archive"])
def test_what_is_forgotten_is_in_no_file(open_bank: OpenBank, folder: Path, first: str) -> None:
    """Even what left its pack before: an earlier version is in there."""
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


# Opening


def test_opening_reads_no_pack(open_bank: OpenBank, folder: Path, snapshots_on_close: None) -> None:
    bank = open_bank()
    fill(bank)
    bank.compact()
    bank.agent("alice").add("warm <1 0>")
    bank.close()
    change(folder, "UPDATE shelf_packs SET seal = x'00'")
    change(folder, "UPDATE shelf_bodies SET numbers = x'00', texts = x'00'")
    alice = open_bank().agent("alice")
    assert [hit.memory.content for hit in alice.search("<1 0>")] == ["warm <1 0>"]
