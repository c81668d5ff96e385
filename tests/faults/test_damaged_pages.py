"""Damage on any page of a closed journal is named; what is whole can be saved."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from damaged_journals import AGENTS, OPTIONS, PAGE, damages, listing, make, place, untyped

from agents import BankDamaged, BankError, BankNotFound, InvalidInput, Memory, MemoryBank
from agents.bank import history
from agents.exchange.salvage import Salvaged, salvage
from agents.storage.state.ledger import Ledger
from banks import MakeBank, change
from embedders import Directions

Row = dict[str, Any]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages") / "bank"
    make(folder)
    return folder


@pytest.fixture(scope="module")
def with_snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("snapshots") / "bank"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "SNAPSHOT_ON_CLOSE", 1)
        make(folder)
    return folder


@pytest.fixture
def copy(sound: Path, tmp_path: Path) -> Path:
    shutil.copytree(sound, tmp_path / "bank")
    return tmp_path / "bank"


def page_of(folder: Path, table: str) -> int:
    """The number of the first page of a table."""
    database = sqlite3.connect(folder / "journal.db")
    try:
        query = "SELECT rootpage - 1 FROM sqlite_master WHERE name = ?"
        return int(database.execute(query, (table,)).fetchone()[0])
    finally:
        database.close()


@pytest.mark.slow
@pytest.mark.long_after(1)
@pytest.mark.parametrize("table", ["shelf", "shelf_now"])
def test_a_damaged_page_under_cold_memories_is_named(
    sound: Path, tmp_path: Path, table: str
) -> None:
    data = (sound / "journal.db").read_bytes()
    page = page_of(sound, table)
    for name, broken in damages(data, range(page, page + 1), seed=3):
        assert untyped(sound, broken, tmp_path / "work") == [], name


@pytest.mark.slow
@pytest.mark.parametrize("index", ["shelf_now", "shelf_versions"])
def test_no_damage_to_an_index_hides_a_memory(sound: Path, tmp_path: Path, index: str) -> None:
    def read(folder: Path) -> list[list[Memory]]:
        with MemoryBank.open(folder, **OPTIONS) as bank:
            own = [bank.agent(name).all() for name in AGENTS]
            for name, memories in zip(AGENTS, own, strict=True):
                assert [bank.agent(name).get(memory.id) for memory in memories] == memories
            return own

    data, page = (sound / "journal.db").read_bytes(), page_of(sound, index)
    place(tmp_path / "work", data)
    whole = read(tmp_path / "work")
    for seed in range(8):
        for name, broken in damages(data, range(page, page + 1), seed):
            place(tmp_path / "work", broken)
            try:
                assert read(tmp_path / "work") == whole, (seed, name)
            except BankDamaged:
                continue


@pytest.mark.slow
@pytest.mark.long_after(2)
@pytest.mark.parametrize("seed", range(4))
def test_damage_on_any_page_is_named(
    sound: Path, with_snapshots: Path, tmp_path: Path, seed: int
) -> None:
    bank = with_snapshots if seed % 2 else sound
    data = (bank / "journal.db").read_bytes()
    assert untyped(bank, data, tmp_path / "work") == []
    step = 4 if os.environ.get("TIERMEM_STEPS") == "0" else 40  # `make faults` tries every page
    for name, broken in damages(data, range(seed, len(data) // PAGE, step), seed):
        assert untyped(bank, broken, tmp_path / "work") == [], name


def test_the_error_says_what_to_do(copy: Path) -> None:
    change(copy, "UPDATE shelf SET content = 'x' WHERE agent = 'bob' AND until IS NULL")
    change(copy, "UPDATE shelf SET tier = 'x' WHERE agent = 'carol' AND until IS NULL")
    with MemoryBank.open(copy, **OPTIONS) as bank:
        assert bank.agent("alice").all()
        for call in (bank.agent("bob").all, bank.status):
            with pytest.raises(BankDamaged) as raised:
                call()
            assert "tiermem store export BANK --salvage" in raised.value.hint


@pytest.mark.parametrize("damaged", ["x'01'", "'text'"])
def test_a_damaged_vector_of_a_text_is_named(
    open_bank: MakeBank, folder: Path, damaged: str
) -> None:
    class Paid(Directions):
        reproducible = False

    open_bank(embedder=Paid()).agent("alice").add("x <1 1>")
    open_bank(embedder=Paid()).close()
    change(folder, f"UPDATE embeddings SET vector = {damaged}")
    with pytest.raises(BankDamaged, match="a vector"):
        open_bank(embedder=Paid()).agent("alice").add("x <1 1>")


# What is whole


def rows_of(found: Salvaged) -> dict[tuple[str, str], Row]:
    """The rows of an export by agent and text; closes the copy."""
    with found.bank:
        return {(row["agent_id"], row["content"]): row for row in found.rows(archived=True)}


def test_a_sound_bank_is_salvaged_completely(sound: Path) -> None:
    found = salvage(sound)
    assert (found.problems, found.touched, found.lost) == ((), (), {})
    assert found.is_complete
    with MemoryBank.at(sound, embedder=OPTIONS["embedder"]) as bank:
        assert found.bank.state_hash() == bank.state_hash()
    assert len(rows_of(found)) > 200


@pytest.mark.slow
@pytest.mark.parametrize("table", ["shelf", "snapshots"])
def test_whole_commits_give_back_everything(
    with_snapshots: Path, tmp_path: Path, table: str
) -> None:
    """The shelf and the snapshots only save time."""
    before = rows_of(salvage(with_snapshots))
    data = (with_snapshots / "journal.db").read_bytes()
    page = page_of(with_snapshots, table)
    for name, broken in damages(data, range(page, page + 1), seed=5):
        place(tmp_path / "work", broken)
        now = listing(tmp_path / "work")
        found = salvage(tmp_path / "work")
        assert found.is_complete, name
        assert rows_of(found) == before, name
        assert listing(tmp_path / "work") == now


def test_memories_of_lost_commits_are_missing_and_counted(copy: Path) -> None:
    before = rows_of(salvage(copy))
    change(copy, "DELETE FROM shelf WHERE agent = 'bob' AND sequence = 3")
    change(copy, "UPDATE commits SET vectors = x'00' WHERE id = 1")
    found = salvage(copy)
    assert not found.is_complete
    assert "bob" in found.touched
    assert found.lost["bob"] >= 1
    assert any("commits (1" in problem for problem in found.problems)
    saved = rows_of(found)
    assert 0 < len(saved) < len(before)
    assert all(before[key] == row for key, row in saved.items())


def test_a_bank_that_forgot_who_it_is_is_salvaged_without_ids(copy: Path) -> None:
    before = rows_of(salvage(copy))
    change(copy, "UPDATE meta SET value = 'x' WHERE key = 'bank'")
    found = salvage(copy)
    assert not found.is_complete
    assert rows_of(found) == {key: {**row, "id": None} for key, row in before.items()}


@pytest.mark.slow
def test_a_file_that_was_cut_short_gives_what_is_left(sound: Path, tmp_path: Path) -> None:
    before = rows_of(salvage(sound))
    data = (sound / "journal.db").read_bytes()
    place(tmp_path / "work", data[: len(data) * 3 // 4])
    found = salvage(tmp_path / "work")
    assert not found.is_complete
    assert 0 < len(rows_of(found)) < len(before)


def test_what_is_no_journal_can_not_be_salvaged(tmp_path: Path) -> None:
    place(tmp_path / "bank", b"not a database at all " * 500)
    with pytest.raises(BankDamaged, match=str(tmp_path / "bank" / "journal.db")):
        salvage(tmp_path / "bank")
    with pytest.raises(BankNotFound):
        salvage(tmp_path / "nowhere")
    with pytest.raises(InvalidInput):
        salvage(5)  # type: ignore[arg-type]


# Opening is refused


DAMAGE: dict[str, Callable[[Path], object]] = {
    "last commit": lambda folder: change(
        folder, "UPDATE commits SET hash = x'00' WHERE id = (SELECT max(id) FROM commits)"
    ),
    "commit that only the store lacks": lambda folder: change(
        folder, "UPDATE commits SET tick = 9 WHERE id = 3"
    ),
    "cold memory": lambda folder: change(folder, "UPDATE shelf SET content = 'x'"),
    "identity": lambda folder: change(folder, "UPDATE meta SET value = '{}' WHERE key = 'bank'"),
    "cut short": lambda folder: (folder / "journal.db").write_bytes(
        (folder / "journal.db").read_bytes()[:9000]
    ),
    "noise": lambda folder: (folder / "journal.db").write_bytes(b"noise" * 5000),
    "empty": lambda folder: (folder / "journal.db").write_bytes(b""),
    "gone": lambda folder: (folder / "journal.db").unlink(),
}


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank with a store that lacks the last commits, as after a kill; snapshots have them."""
    folder = tmp_path_factory.mktemp("behind") / "bank"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "SNAPSHOT_ON_CLOSE", 1)
        with MemoryBank.open(folder) as bank:
            bank.agent("alice").add("in the store")
        with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
            for number in range(3):
                bank.agent("alice").add(f"cold {number}", temperature="cold")
            bank.agent("alice").notes.append("Never trade fish with Bob.", "MEMORY.md")
    return folder


@pytest.mark.slow_after(1)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_refused_opening_changes_no_file(behind: Path, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "bank"
    shutil.copytree(behind, folder)
    DAMAGE[damage](folder)
    before = listing(folder)
    for _ in range(2):
        with pytest.raises(BankDamaged):
            MemoryBank.open(folder)
        assert listing(folder) == before


def test_a_refused_opening_leaves_the_log_of_a_killed_process(copy: Path) -> None:
    change(copy, "UPDATE meta SET value = '{}' WHERE key = 'bank'")
    writer = sqlite3.connect(copy / "journal.db")
    writer.execute("PRAGMA journal_mode = WAL")
    with writer:
        writer.execute("UPDATE shelf SET tokens = tokens + 1")
    killed = copy.with_name("killed")
    shutil.copytree(copy, killed)
    writer.close()
    assert (killed / "journal.db-wal").stat().st_size
    before = listing(killed)
    with pytest.raises(BankDamaged):
        MemoryBank.open(killed, **OPTIONS)
    assert listing(killed) == before


# A journal that was lost

MARKS = ("bank.head", "journal.db-head")
"""The files that show that a bank was made."""


@pytest.mark.parametrize("how", ["empty", "gone"])
def test_a_lost_journal_is_damage_and_its_checkpoints_are_named(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "bank"
    with MemoryBank.open(folder, **OPTIONS) as bank:
        bank.agent("alice").add("x")
        bank.agent("alice").notes.append("Never trade fish with Bob.", "MEMORY.md")
        bank.checkpoint(tmp_path / "kept.tmck")
        state = bank.state_hash()
    with MemoryBank.open(tmp_path / "other", **OPTIONS) as bank:
        bank.checkpoint(folder / "others.tmck")
    DAMAGE[how](folder)
    before = listing(folder)
    for create in (True, False):
        with pytest.raises(BankDamaged, match="the journal was lost") as raised:
            MemoryBank.open(folder, create=create, **OPTIONS)
        assert "kept.tmck" in raised.value.hint
        assert "others.tmck" not in raised.value.hint
    for call in (MemoryBank.at, salvage):
        with pytest.raises(BankDamaged, match="the journal was lost"):
            call(folder)
    assert listing(folder) == before
    with MemoryBank.restore(tmp_path / "kept.tmck", folder, **OPTIONS) as bank:
        assert bank.state_hash() == state


def test_a_bank_that_went_back_and_lost_its_journal_is_still_known_by_its_id(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "bank"
    with MemoryBank.open(folder, **OPTIONS) as bank:
        bank.agent("alice").add("x")
        bank.checkpoint(tmp_path / "kept.tmck")
        bank.advance(1)
        identity = bank.engine.journal.get("bank")["id"]
    with MemoryBank.open(tmp_path / "other", **OPTIONS) as bank:
        bank.checkpoint(folder / "others.tmck")
    history.rewind(folder, 0)
    (folder / "journal.db").unlink()
    with pytest.raises(BankDamaged, match="the journal was lost") as raised:
        MemoryBank.open(folder, **OPTIONS)
    assert "kept.tmck" in raised.value.hint
    assert "others.tmck" not in raised.value.hint
    with MemoryBank.restore(tmp_path / "kept.tmck", folder, **OPTIONS) as bank:
        assert bank.engine.journal.get("bank")["id"] == identity


def test_notes_that_a_person_wrote_are_no_lost_bank(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    (folder / "notes" / "alice").mkdir(parents=True)
    (folder / "notes" / "alice" / "MEMORY.md").write_text("Never trade fish with Bob.\n")
    with pytest.raises(BankError):  # a failed attempt to make the bank leaves no mark
        MemoryBank.open(folder, create=False, **OPTIONS)
    with MemoryBank.open(folder, **OPTIONS) as bank:
        assert "fish" in bank.agent("alice").all()[0].content


def test_an_emptied_journal_beside_a_checkpoint_needs_no_mark(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    with MemoryBank.open(folder, **OPTIONS) as bank:
        bank.agent("alice").add("x")
        bank.checkpoint(folder / "kept.tmck")
    for name in MARKS:
        (folder / name).unlink()
    (folder / "journal.db").write_bytes(b"")
    with pytest.raises(BankDamaged, match="the journal was lost"):
        MemoryBank.open(folder, **OPTIONS)


@pytest.mark.parametrize("how", ["empty", "gone"])
@pytest.mark.parametrize("left", MARKS)
def test_each_mark_alone_tells_a_lost_journal_beside_notes(
    tmp_path: Path, left: str, how: str
) -> None:
    folder = tmp_path / "bank"
    with MemoryBank.open(folder, **OPTIONS) as bank:
        bank.agent("alice").notes.append("Never trade fish with Bob.", "MEMORY.md")
        bank.checkpoint(tmp_path / "kept.tmck")
    for name in MARKS:
        if name != left:
            (folder / name).unlink()
    DAMAGE[how](folder)
    before = listing(folder)
    with pytest.raises(BankDamaged, match="the journal was lost") as raised:
        MemoryBank.open(folder, **OPTIONS)
    assert "kept.tmck" in raised.value.hint
    assert listing(folder) == before


def test_an_emptied_journal_beside_the_log_of_a_killed_process_is_lost(tmp_path: Path) -> None:
    folder, killed = tmp_path / "bank", tmp_path / "killed"
    with MemoryBank.open(folder, **OPTIONS) as bank:
        bank.agent("alice").add("x")
        killed.mkdir()
        shutil.copy2(folder / "journal.db-wal", killed / "journal.db-wal")
    (killed / "journal.db").write_bytes(b"")
    before = listing(killed)
    with pytest.raises(BankDamaged, match="the journal was lost"):
        MemoryBank.open(killed, **OPTIONS)
    assert listing(killed) == before


def test_an_empty_journal_and_notes_alone_are_a_bank_that_was_never_made(tmp_path: Path) -> None:
    """A process that was killed when it began to make the bank leaves no more."""
    folder = tmp_path / "bank"
    (folder / "notes" / "alice").mkdir(parents=True)
    (folder / "notes" / "alice" / "MEMORY.md").write_text("Never trade fish with Bob.\n")
    (folder / "journal.db").write_bytes(b"")
    with MemoryBank.open(folder, **OPTIONS) as bank:
        assert "fish" in bank.agent("alice").all()[0].content


def test_agents_of_the_harness_have_memories(sound: Path) -> None:
    """The harness would find nothing in an empty bank."""
    with MemoryBank.at(sound, embedder=OPTIONS["embedder"]) as bank:
        assert bank.agents() == sorted(AGENTS)
        assert json.dumps(bank.status().retention)
