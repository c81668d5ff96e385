"""A full disk and damaged journals."""

import contextlib
import gc
import hashlib
import os
import random
import sqlite3
from pathlib import Path

import pytest

from agents import (
    BankDamaged,
    BankTooNew,
    BankTooOld,
    CommitFailed,
    MemoryBank,
    MemoryNotFound,
    TierMemError,
)
from banks import (
    MANUAL,
    MakeBank,
    busy,
    change,
    connection,
    contents,
    everything,
    flipped,
    value,
)
from embedders import Directions


def fill(folder: Path) -> sqlite3.Connection:
    """Let the journal grow no further, as on a full disk."""
    database = connection(folder)
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count = {pages}")
    return database


def test_a_full_disk_is_commit_failed_and_the_bank_is_as_before(
    open_bank: MakeBank, folder: Path
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
    open_bank: MakeBank, folder: Path
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
    open_bank: MakeBank, folder: Path
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


def test_an_empty_journal_file_is_a_new_bank(open_bank: MakeBank, folder: Path) -> None:
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


@pytest.mark.parametrize(
    ("version", "error", "hint"),
    [
        (99, BankTooNew, "pip install -U tiermem"),
        (5, BankTooOld, "use the version of TierMem that wrote it"),
        (1, BankTooOld, "use the version of TierMem that wrote it"),
        (0, BankDamaged, "backup"),
        (-1, BankDamaged, "backup"),
    ],
)
def test_a_journal_of_another_format_is_refused_and_not_changed(
    open_bank: MakeBank, folder: Path, version: int, error: type[BankDamaged], hint: str
) -> None:
    open_bank().agent("alice").add("x")
    open_bank().close()
    database = sqlite3.connect(folder / "journal.db")
    database.execute(f"PRAGMA user_version = {version}")
    database.close()
    before = (folder / "journal.db").read_bytes()
    with pytest.raises(error, match=f"format {version}") as raised:
        open_bank()
    assert type(raised.value) is error
    assert hint in raised.value.hint
    assert (folder / "journal.db").read_bytes() == before


def test_a_journal_whose_schema_is_garbled_is_bank_damaged(
    open_bank: MakeBank, folder: Path
) -> None:
    """A byte that is not a UTF-8 in a table's definition; SQLite quotes it in its message."""
    open_bank().agent("alice").add("x")
    open_bank().close()
    data = (folder / "journal.db").read_bytes()
    assert b"NOT NULL" in data
    (folder / "journal.db").write_bytes(data.replace(b"NOT NULL", b"NOT N\xd5LL"))
    with pytest.raises(BankDamaged):
        open_bank()


def test_a_truncated_journal_is_bank_damaged(open_bank: MakeBank, folder: Path) -> None:
    open_bank().agent("alice").add_many(["x" * 10_000 for _ in range(20)])
    open_bank().close()
    data = (folder / "journal.db").read_bytes()
    (folder / "journal.db").write_bytes(data[: len(data) // 2])
    with pytest.raises(BankDamaged):
        open_bank()


@pytest.mark.parametrize("column", ["tick", "events", "vectors", "hash", "id"])
def test_a_bit_flipped_in_a_commit_is_bank_damaged(
    open_bank: MakeBank, folder: Path, column: str
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
def test_a_missing_commit_is_bank_damaged(open_bank: MakeBank, folder: Path, row: int) -> None:
    bank = open_bank()
    for text in "abc":
        bank.agent("alice").add(text)
    bank.close()
    change(folder, "DELETE FROM commits WHERE id = ?", row)
    with pytest.raises(BankDamaged):
        open_bank()


@pytest.mark.usefixtures("snapshots_on_close")
@pytest.mark.parametrize(
    "column", ["agent", "next_sequence", "columns", "contents", "extras", "vectors", "digest"]
)
def test_a_bit_flipped_in_a_snapshot_is_bank_damaged(
    open_bank: MakeBank, folder: Path, column: str
) -> None:
    open_bank().agent("alice").add("first <1 2>", metadata={"a": 1}, kind="decision", tags=["x"])
    open_bank().close()
    data = value(folder, f"SELECT {column} FROM snapshots")
    change(folder, f"UPDATE snapshots SET {column} = ?", flipped(data))
    with pytest.raises(BankDamaged):
        open_bank()


@pytest.mark.usefixtures("snapshots_on_close")
@pytest.mark.parametrize("column", ["tick", "hash"])
def test_a_bit_flipped_in_the_commit_of_a_snapshot_is_bank_damaged(
    open_bank: MakeBank, folder: Path, column: str
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


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("snapshots", [False, True])
@pytest.mark.parametrize(
    "column",
    [
        "sequence", "since", "seal", "digest", "tier", "temperature", "retention",
        "retained_tick", "created_tick", "tier_tick", "expires_tick", "access_count",
        "last_access_tick", "recalls", "traits", "metadata", "content", "vector",
    ],
)  # fmt: skip
@pytest.mark.parametrize("what", ["cold", "archived"])
def test_a_bit_flipped_in_what_is_not_resident_is_bank_damaged(
    open_bank: MakeBank,
    folder: Path,
    column: str,
    what: str,
    snapshots: bool,
    request: pytest.FixtureRequest,
) -> None:
    """When the bank is opened, or at the latest when somebody looks at the memory."""
    if snapshots:
        request.getfixturevalue("snapshots_on_close")
    bank = open_bank()
    alice = bank.agent("alice")
    memory = alice.add(
        "first <1 2>", metadata={"a": 1}, kind="decision", tags=["x"], ttl=9,
        temperature="cold" if what == "cold" else "warm",
    )  # fmt: skip
    alice.recall("<1 2>", auto_promote=False)
    if what == "archived":
        alice.update(memory.id, retention="archived")
    bank.close()
    data = value(folder, f"SELECT {column} FROM shelf WHERE until IS NULL")
    assert data is not None
    change(folder, f"UPDATE shelf SET {column} = ? WHERE until IS NULL", flipped(data))
    with pytest.raises(BankDamaged):
        look_at_all(open_bank(), memory.id)


def test_a_lost_row_is_not_taken_for_a_purged_memory(open_bank: MakeBank, folder: Path) -> None:
    """A replay skips what was purged; the sum over the shelf tells what it must not skip."""
    bank = open_bank()
    alice = bank.agent("alice")
    lost = alice.add("lost", temperature="cold")
    alice.forget(alice.add("purged", temperature="cold").id)
    alice.update(lost.id, temperature="hot")
    bank.close()
    open_bank().close()
    change(folder, "DELETE FROM shelf")
    with pytest.raises(BankDamaged, match="has lost memories"):
        open_bank()


def look_at_all(bank: MemoryBank, memory_id: str) -> None:
    alice = bank.agent("alice")
    alice.all()
    with contextlib.suppress(MemoryNotFound):  # the row says that it is another, or deleted
        alice.get(memory_id)
    with contextlib.suppress(MemoryNotFound):
        alice.update(memory_id, retention="active")
    bank.advance(100)
    bank.sweep()


@pytest.mark.slow
def test_no_flipped_byte_of_the_file_changes_a_memory_unnoticed(
    open_bank: MakeBank, folder: Path, tmp_path: Path
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


def test_a_damaged_bank_is_not_changed_by_trying_it(open_bank: MakeBank, folder: Path) -> None:
    open_bank().agent("alice").add("x")
    open_bank().close()
    change(folder, "UPDATE commits SET hash = ?", bytes(32))
    before = hashlib.sha256((folder / "journal.db").read_bytes()).digest()
    for _ in range(2):
        with pytest.raises(BankDamaged):
            open_bank()
    assert hashlib.sha256((folder / "journal.db").read_bytes()).digest() == before
