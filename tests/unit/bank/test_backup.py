"""A backup has all that the bank's journal has, is a bank of its own, and is made whole or not."""

import asyncio
import os
import resource
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agents import AsyncMemoryBank, BankDamaged, BankError, BankNotFound, InvalidInput, MemoryBank
from agents.storage import checkpoint
from agents.storage.journal.journal import Journal
from banks import MANUAL, busy, everything, flipped
from strangers import stranger
from tiermem import simulate

KEPT = ("commits", "ticks", "decisions", "snapshots", "redactions", "embeddings", "shelf")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A bank with cold, archived and forgotten memories, a board and a note."""
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        busy(bank)
        bank.group("friends", ["a0", "a1"]).post("a0", "the bridge is closed")
        bank.agent("a0").notes.write("MEMORY.md", "# Plan\n\nNever trade fish.\n")
    return tmp_path / "bank"


def rows(folder: Path, table: str) -> list[tuple[object, ...]]:
    database = sqlite3.connect(folder / "journal.db")
    try:
        return database.execute(f"SELECT * FROM {table}").fetchall()
    finally:
        database.close()


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def test_a_backup_of_an_open_bank_has_everything(folder: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    with MemoryBank.open(folder) as bank:
        bank.agent("a1").add("the last one", temperature="cold")
        made = MemoryBank.backup(
            folder, tmp_path / "backup", progress=lambda *each: told.append(each)
        )
        expected = everything(bank)
        assert (made.tick, made.commits) == (bank.tick, bank.engine.journal.head)
        assert made.hash == bank.engine.journal.hash.hex()
        for table in KEPT:
            assert rows(tmp_path / "backup", table) == rows(folder, table)
        bank.agent("a1").add("after it")
    assert told[-1][0] == told[-1][1] > 0
    with MemoryBank.open(tmp_path / "backup") as copy:
        assert everything(copy) == expected
        assert copy.agent("a0").notes.read("MEMORY.md") == "# Plan\n\nNever trade fish.\n"
        assert copy.group("friends").all()[0].content == "the bridge is closed"
    assert (tmp_path / "backup/notes/a0/MEMORY.md").exists()
    assert not list(tmp_path.glob(".*"))


def test_a_backup_does_not_begin_anew_when_the_bank_is_written_to(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.storage.sqlite._PAGES_AT_ONCE", 4)
    copied: list[int] = []
    with MemoryBank.open(folder) as bank:
        before = bank.engine.journal.head

        def write(done: int, _: int) -> None:
            copied.append(done)
            if len(copied) < 9:
                bank.agent("a1").add(f"meanwhile {done}")

        made = MemoryBank.backup(folder, tmp_path / "backup", progress=write)
        assert bank.engine.journal.head == before + 8
    assert made.commits == before
    assert copied == sorted(copied)


def test_a_backup_knows_of_no_store_until_it_has_its_own(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank") as bank:
        bank.agent("alice").add("NEVER trade with agent_X")
    MemoryBank.backup(tmp_path / "bank", tmp_path / "backup")
    known = []
    for each in ("bank", "backup"):
        with closing(Journal(None, seen=tmp_path / each / "journal.db")) as journal:
            known.append(journal.get("store") is not None)
    assert known == [True, False]


def test_a_damaged_record_of_a_decision_gets_no_backup(tmp_path: Path) -> None:
    simulate("market", agents=6, ticks=3, out=tmp_path / "run").close()
    database = sqlite3.connect(tmp_path / "run/bank/journal.db")
    with database:
        database.execute("UPDATE decisions SET data = x'01' WHERE tick = 2")
    database.close()
    with pytest.raises(BankDamaged, match="no backup was made"):
        MemoryBank.backup(tmp_path / "run/bank", tmp_path / "backup")
    assert names(tmp_path) == {"run"}


def test_a_backup_is_another_bank_which_leaves_the_store_of_the_first_alone(
    folder: Path, tmp_path: Path
) -> None:
    MemoryBank.backup(folder, tmp_path / "backup")
    ids = []
    for each in (folder, tmp_path / "backup"):
        with MemoryBank.open(each) as bank:
            ids.append(bank.engine.journal.get("bank")["id"])
            assert bank.engine.guard is not None
            assert bank.engine.guard.is_trusted
    assert ids[0] != ids[1]


def test_a_backup_of_a_strangers_bank_is_no_more_trusted(tmp_path: Path) -> None:
    with stranger(tmp_path), MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        bank.agent("alice").add("hello")
    secret = tmp_path / "secret"
    secret.write_text("mine")
    (tmp_path / "bank/tokens.json").symlink_to(secret)
    MemoryBank.backup(tmp_path / "bank", tmp_path / "backup")
    assert names(tmp_path / "backup") == {"journal.db", "bank.head"}
    with MemoryBank.open(tmp_path / "backup", storage=MANUAL) as bank:
        assert bank.engine.guard is not None
        assert not bank.engine.guard.is_trusted
        assert bank.agent("alice").all()[0].content == "hello"


def test_tokens_go_along_and_only_the_owner_reads_a_backup(folder: Path, tmp_path: Path) -> None:
    (folder / "tokens.json").write_text('{"version": 1, "tokens": []}')
    made = MemoryBank.backup(folder, tmp_path / "backup")
    files = list((tmp_path / "backup").iterdir())
    assert {each.name for each in files} == {"journal.db", "bank.head", "tokens.json"}
    assert (tmp_path / "backup/tokens.json").read_text() == '{"version": 1, "tokens": []}'
    assert {each.stat().st_mode & 0o777 for each in files} == {0o600}
    assert (tmp_path / "backup").stat().st_mode & 0o777 == 0o700
    assert made.bytes == sum(each.stat().st_size for each in files)


@pytest.mark.parametrize("to", ["bank", "file", "empty", "link", "bank/inside", "linked/inside"])
def test_a_backup_replaces_nothing_and_is_not_in_its_bank(
    folder: Path, tmp_path: Path, to: str
) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "linked").symlink_to(folder)
    before = names(folder), names(tmp_path)
    with pytest.raises(BankError, match=r"exists already|in the bank's own folder"):
        MemoryBank.backup(folder, tmp_path / to)
    assert (names(folder), names(tmp_path)) == before


def test_what_came_to_the_place_meanwhile_stays(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(journal: Journal) -> None:
        (tmp_path / "backup").mkdir()
        (tmp_path / "backup/mine").write_text("mine")

    monkeypatch.setattr("agents.bank.backup.check_all", slow)
    with pytest.raises(BankError, match="exists already"):
        MemoryBank.backup(folder, tmp_path / "backup")
    assert (tmp_path / "backup/mine").read_text() == "mine"
    assert not list(tmp_path.glob(".*"))


def test_two_backups_to_one_place_at_once_are_one_backup(folder: Path, tmp_path: Path) -> None:
    refused: list[str] = []

    def again(*_: int) -> None:
        with pytest.raises(BankError, match="is being made") as caught:
            MemoryBank.backup(folder, tmp_path / "backup")
        refused.append(str(caught.value))

    made = MemoryBank.backup(folder, tmp_path / "backup", progress=again)
    assert refused
    assert names(tmp_path / "backup") == {"journal.db", "bank.head"}
    with MemoryBank.at(tmp_path / "backup") as bank:
        assert bank.engine.journal.hash.hex() == made.hash
    with pytest.raises(BankError, match="exists already"):
        MemoryBank.backup(folder, tmp_path / "backup")


def test_a_damaged_bank_gets_no_backup(folder: Path, tmp_path: Path) -> None:
    database = sqlite3.connect(folder / "journal.db")
    (events,) = database.execute("SELECT events FROM commits WHERE id = 3").fetchone()
    with database:
        database.execute("UPDATE commits SET events = ? WHERE id = 3", (flipped(events),))
    database.close()
    with pytest.raises(BankDamaged, match="no backup was made") as caught:
        MemoryBank.backup(folder, tmp_path / "backup")
    assert f"{folder}/journal.db" in str(caught.value)
    assert ".tmp" not in str(caught.value)
    assert names(tmp_path) == {"bank"}


def test_a_copy_that_does_not_fit_together_is_made_once_more(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = []

    def torn(journal: Journal) -> None:
        checks.append(journal)
        if len(checks) == 1:
            raise BankDamaged("torn")
        checkpoint.check_all(journal)

    monkeypatch.setattr("agents.bank.backup.check_all", torn)
    MemoryBank.backup(folder, tmp_path / "backup")
    assert len(checks) == 2
    assert names(tmp_path / "backup") == {"journal.db", "bank.head"}


def test_what_is_no_bank_gets_no_backup(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(BankNotFound):
        MemoryBank.backup(tmp_path / "empty", tmp_path / "deep/backup")
    with pytest.raises(InvalidInput, match="empty path"):
        MemoryBank.backup(tmp_path / "empty", "")
    Journal(tmp_path / "empty/journal.db").close()
    with pytest.raises(BankError, match="never made"):
        MemoryBank.backup(tmp_path / "empty", tmp_path / "backup")
    assert names(tmp_path) == {"empty"}


@pytest.mark.parametrize("to", ["x" * 300, "nul\0", "nul\0/in", "round/in", "round/in/deep"])
def test_a_name_that_no_folder_can_have_is_one_clear_error(
    folder: Path, tmp_path: Path, to: str
) -> None:
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(BankError, match=r"backup|can't"):
        MemoryBank.backup(folder, tmp_path / to)
    assert names(tmp_path) == {"bank", "round"}


@pytest.mark.parametrize("identity", ["x", [1], 5])
def test_a_strangers_journal_that_says_nonsense_of_its_bank_is_damaged(
    folder: Path, tmp_path: Path, identity: object
) -> None:
    with closing(Journal(folder / "journal.db")) as journal:
        journal.set(bank=identity)
    with pytest.raises(BankDamaged, match=r"which bank it is of.*no backup was made") as caught:
        MemoryBank.backup(folder, tmp_path / "backup")
    assert ".tmp" not in str(caught.value)
    assert names(tmp_path) == {"bank"}


def test_a_full_disk_gets_no_backup(folder: Path, tmp_path: Path) -> None:
    size = (folder / "journal.db").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for least in (4096, size // 2, size - 4096):
        resource.setrlimit(resource.RLIMIT_FSIZE, (least, before[1]))
        try:
            with pytest.raises(BankError, match="no backup was made"):
                MemoryBank.backup(folder, tmp_path / "backup")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert names(tmp_path) == {"bank"}


def test_what_a_dead_process_left_of_a_backup_goes(folder: Path, tmp_path: Path) -> None:
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    left = tmp_path / f".backup.{pid}.tmp"
    left.mkdir()
    MemoryBank.backup(folder, tmp_path / "backup")
    assert not left.exists()


def test_it_can_be_awaited(folder: Path, tmp_path: Path) -> None:
    made = asyncio.run(AsyncMemoryBank.backup(folder, tmp_path / "backup"))
    assert made.folder == str(tmp_path / "backup")
