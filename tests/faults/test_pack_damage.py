"""Damage to what is packed is found, and never taken for what was written."""

import sqlite3
from pathlib import Path

import pytest

from agents import BankDamaged, MemoryBank
from agents.storage.shelf.pack import Pack
from banks import OpenBank, change, flipped, value
from embedders import Directions

HEADER = ["id", "agent", "first", "last", "since", "ended", "amounts", "gone", "body", "seal"]
BODY = ["id", "tokens", "numbers", "digests", "labels", "texts", "vectors"]


@pytest.fixture
def ids(
    open_bank: OpenBank, monkeypatch: pytest.MonkeyPatch, snapshots_on_close: None
) -> list[str]:
    """Of memories in one pack; the first of them has left it."""
    monkeypatch.setattr(Pack, "FEWEST", 2)
    bank = open_bank()
    options = {"kind": "decision", "tags": ["x"]}
    items = [("alice", f"text {n} <{n} 1>", 3, {"n": n}, options) for n in range(1, 6)]
    found = [memory.id for memory in bank.add_many(items)]
    bank.compact()
    bank.agent("alice").archive(found[0])
    bank.close()
    return found


def look_at_all(bank: MemoryBank, ids: list[str]) -> None:
    alice = bank.agent("alice")
    for each in ids:
        alice.get(each)


def assert_found(open_bank: OpenBank, ids: list[str]) -> None:
    with pytest.raises(BankDamaged):
        look_at_all(open_bank(), ids[1:])


@pytest.mark.parametrize(
    ("table", "column"),
    [("shelf_packs", each) for each in HEADER] + [("shelf_bodies", each) for each in BODY],
)
def test_a_flipped_bit_is_bank_damaged(
    open_bank: OpenBank, folder: Path, ids: list[str], table: str, column: str
) -> None:
    data = value(folder, f"SELECT {column} FROM {table}")
    change(folder, f"UPDATE {table} SET {column} = ?", flipped(data))
    assert_found(open_bank, ids)


@pytest.mark.parametrize(
    ("table", "column"),
    [("shelf_packs", each) for each in ("agent", "amounts", "gone", "body", "seal")]
    + [("shelf_bodies", each) for each in BODY[1:]],
)
def test_a_value_of_another_type_is_bank_damaged(
    open_bank: OpenBank, folder: Path, ids: list[str], table: str, column: str
) -> None:
    """One bit makes a text of bytes; they are the same otherwise."""
    other = "BLOB" if column == "agent" else "TEXT"
    change(folder, f"UPDATE {table} SET {column} = CAST({column} AS {other})")
    assert_found(open_bank, ids)


@pytest.mark.parametrize("table", ["shelf_packs", "shelf_bodies"])
def test_a_lost_pack_is_bank_damaged(
    open_bank: OpenBank, folder: Path, ids: list[str], table: str
) -> None:
    change(folder, f"DELETE FROM {table}")
    assert_found(open_bank, ids)


@pytest.mark.parametrize("table", ["shelf_packs", "shelf_bodies"])
def test_what_counts_rules_and_lists_look_at_is_checked_too(
    open_bank: OpenBank, folder: Path, ids: list[str], table: str
) -> None:
    column = "amounts" if table == "shelf_packs" else "numbers"
    data = value(folder, f"SELECT {column} FROM {table}")
    change(folder, f"UPDATE {table} SET {column} = ?", flipped(data))
    bank = open_bank()
    alice, shelf = bank.agent("alice"), bank.parts.ledger.resident.shelf
    for call in (
        alice.all,
        lambda: shelf.cold("alice"),
        lambda: shelf.with_words("alice", ["text"], 9),
        lambda: alice.recall("text 1 <1 1>"),
        lambda: bank.checkpoint(folder / "checkpoint"),
        lambda: alice.promote(ids[1]),
        *([bank.status] if table == "shelf_packs" else []),
    ):
        with pytest.raises(BankDamaged):
            call()
    assert not (folder / "checkpoint").exists()


def test_no_flipped_bit_of_a_body_changes_a_memory_unnoticed(
    open_bank: OpenBank, folder: Path, ids: list[str]
) -> None:
    bank = open_bank()
    sound = [bank.agent("alice").get(each) for each in ids]
    bank.close()
    database = sqlite3.connect(folder / "journal.db")
    for column in BODY[1:]:
        data = value(folder, f"SELECT {column} FROM shelf_bodies")
        unused = len(data) // len(ids) if column == "vectors" else 0  # of what has left
        for place in range(unused, len(data), 7):
            broken = bytearray(data)
            broken[place] ^= 1 << place % 8
            with database:
                database.execute(f"UPDATE shelf_bodies SET {column} = ?", (bytes(broken),))
            with MemoryBank.at(folder, embedder=Directions()) as copy:
                alice = copy.agent("alice")
                damaged = 0
                for memory in sound[1:]:
                    try:
                        assert alice.get(memory.id) == memory
                    except BankDamaged:
                        damaged += 1
                assert damaged, (column, place)
        with database:
            database.execute(f"UPDATE shelf_bodies SET {column} = ?", (data,))
    database.close()
    bank = open_bank()
    assert [bank.agent("alice").get(each) for each in ids] == sound
