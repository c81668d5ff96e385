"""Damage in the journal's write-ahead log, and an older journal in the place of a newer one."""

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import pytest
from damaged_journals import listing

from agents import BankDamaged, CommitFailed, MemoryBank
from agents.bank import history
from agents.exchange.salvage import salvage
from agents.storage import beside_journal, files
from agents.storage.beside_journal import HeadRecord
from agents.storage.journal.journal import Journal
from embedders import Directions

pytestmark = pytest.mark.slow_after(1)

LOST = "has lost commits"


def _open(folder: Path) -> MemoryBank:
    return MemoryBank.open(folder, embedder=Directions(), storage={"sync": "manual"})


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The files of a bank whose process was killed, and the hash of its state."""
    folder = tmp_path_factory.mktemp("bank")
    copy = tmp_path_factory.mktemp("copy") / "bank"
    with _open(folder) as bank:
        for number in range(30):
            bank.agent("alice").add(f"memory {number}")
        copy.mkdir()
        for name in ("journal.db", "journal.db-wal", "journal.db-head"):
            shutil.copy2(folder / name, copy / name)
        return copy, bank.state_hash()


@pytest.mark.parametrize("place", range(24))
@pytest.mark.parametrize("how", ["cut", "flip", "zero"])
def test_a_damaged_log_never_takes_acknowledged_commits_along_in_silence(
    left_behind: tuple[Path, str], tmp_path: Path, place: int, how: str
) -> None:
    template, state = left_behind
    folder = tmp_path / "bank"
    shutil.copytree(template, folder)
    log = folder / "journal.db-wal"
    data = bytearray(log.read_bytes())
    start = len(data) * place // 24
    if how == "cut":
        del data[start:]
    elif how == "flip":
        data[start] ^= 1
    else:
        data[start : start + 512] = bytes(min(512, len(data) - start))
    log.write_bytes(data)
    try:
        bank = _open(folder)
    except BankDamaged:
        return
    with bank:
        assert bank.state_hash() == state


def test_the_error_says_how_many_commits_are_missing_and_what_to_do(
    left_behind: tuple[Path, str], tmp_path: Path
) -> None:
    folder = tmp_path / "bank"
    shutil.copytree(left_behind[0], folder)
    (folder / "journal.db-wal").write_bytes(b"")
    with pytest.raises(BankDamaged, match=LOST) as caught:
        _open(folder)
    assert "ends at commit 0, and 30 were acknowledged" in str(caught.value)
    head = folder / "journal.db-head"
    assert str(head) in caught.value.hint
    head.unlink()
    with _open(folder) as bank:  # as the hint says
        assert bank.agents() == []


def test_an_older_copy_of_the_journal_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    with _open(folder) as bank:
        bank.agent("alice").add("one")
    shutil.copy2(folder / "journal.db", tmp_path / "older.db")
    with _open(folder) as bank:
        bank.agent("alice").add("two")
    shutil.copy2(tmp_path / "older.db", folder / "journal.db")
    with pytest.raises(BankDamaged, match=LOST):
        _open(folder)
    with pytest.raises(BankDamaged, match=LOST):
        MemoryBank.at(folder)


def test_a_bank_that_goes_back_on_purpose_opens(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    with _open(folder) as bank:
        bank.agent("alice").add("one")
        bank.checkpoint(tmp_path / "one.tmck")
        bank.advance(1)
        bank.agent("alice").add("two")
    history.rewind(folder, 0)
    with _open(folder) as bank:
        assert [memory.content for memory in bank.agent("alice").all()] == ["one"]
        bank.agent("alice").add("three")
        bank.agent("alice").add("four")
    options = {"embedder": Directions(), "storage": {"sync": "manual"}}
    with MemoryBank.restore(tmp_path / "one.tmck", folder, **options) as bank:
        assert [memory.content for memory in bank.agent("alice").all()] == ["one"]
    with _open(folder) as bank:
        bank.agent("alice").add("five")
    with _open(folder) as bank:
        assert [memory.content for memory in bank.agent("alice").all()] == ["one", "five"]


def test_a_bank_does_not_go_back_if_its_record_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bank"
    with _open(folder) as bank:
        bank.agent("alice").add("one")
        bank.advance(1)
        bank.agent("alice").add("two")
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.name == "journal.db-head":
            raise PermissionError(13, "Permission denied")
        unlink(path, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        with pytest.raises(CommitFailed, match="nothing was changed"):
            history.rewind(folder, 0)
    with _open(folder) as bank:
        assert [memory.content for memory in bank.agent("alice").all()] == ["one", "two"]


@pytest.mark.parametrize("name", ["journal.db-head", "bank.head"])
@pytest.mark.parametrize("data", [b"", b"tmhd", bytes(48), b"x" * 100])
def test_a_record_that_is_not_whole_is_no_record_and_is_told(
    tmp_path: Path, data: bytes, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "bank"
    with _open(folder) as bank:
        bank.agent("alice").add("one")
        state = bank.state_hash()
    (folder / name).write_bytes(data)
    with _open(folder) as bank:
        assert bank.state_hash() == state
        (said,) = caplog.messages
        assert f"the record {folder / name} is damaged" in said
        bank.agent("alice").add("two")
    caplog.clear()
    with _open(folder):
        assert not caplog.messages


# Damage to the log and to a record of the last commit at once


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a bank that was closed, opened again and killed, and the hash of its state."""
    folder = tmp_path_factory.mktemp("killed") / "bank"
    with _open(folder) as bank:
        bank.add_many([("alice", f"base {number}") for number in range(5)])
    copy = folder.with_name("copy")
    with _open(folder) as bank:
        for number in range(8):
            bank.agent("alice").add(f"acknowledged {number}")
        shutil.copytree(folder, copy)
        return copy, bank.state_hash()


def _flip(place: int) -> Callable[[bytes], bytes]:
    def flip(data: bytes) -> bytes:
        at = place % len(data)
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    return flip


OF_THE_LOG: dict[str, Callable[[bytes], bytes] | None] = {
    "whole": lambda data: data,
    "without its last commit": lambda data: data[:-100],
    "cut": lambda data: data[: len(data) * 2 // 3],
    "flipped": lambda data: _flip(len(data) // 2)(data),
    "empty": lambda data: b"",
    "gone": None,
}
OF_A_RECORD: dict[str, Callable[[bytes], bytes] | None] = {
    "gone": None,
    "empty": lambda data: b"",
    "cut": lambda data: data[:20],
    "zeros": lambda data: bytes(len(data)),
    "garbage": lambda data: b"x" * 100,
    "flipped at the start": _flip(0),
    "flipped in the number": _flip(4),
    "flipped in the hash": _flip(20),
    "flipped in the check": _flip(47),
    "flipped at the end": _flip(-10),
}


def _damage(path: Path, how: Callable[[bytes], bytes] | None) -> None:
    if how is None:
        path.unlink()
    else:
        path.write_bytes(how(path.read_bytes()))


@pytest.mark.parametrize("name", ["journal.db-head", "bank.head"])
@pytest.mark.parametrize("log", OF_THE_LOG)
def test_a_damaged_log_and_a_damaged_record_lose_nothing_in_silence(
    killed: tuple[Path, str], tmp_path: Path, name: str, log: str
) -> None:
    for number, how in enumerate(OF_A_RECORD.values()):
        folder = tmp_path / str(number)
        shutil.copytree(killed[0], folder)
        (folder / "journal.db-shm").unlink()
        _damage(folder / "journal.db-wal", OF_THE_LOG[log])
        _damage(folder / name, how)
        if name != "journal.db-head" and log == "whole":
            with _open(folder) as bank:
                assert bank.state_hash() == killed[1]
        elif log == "whole":  # whether it is whole is not known
            with suppress(BankDamaged), _open(folder) as bank:
                assert bank.state_hash() == killed[1]
        else:
            with pytest.raises(BankDamaged, match="lost commits"):
                _open(folder)
            assert not salvage(folder).is_complete


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("gone", "journal.db-head of the last one is missing; how many commits are missing is not"),
        ("empty", "journal.db-head of the last one is damaged; how many are missing is not known"),
        ("flipped at the start", "ends at commit 1, and 9 were acknowledged"),
        ("flipped at the end", "ends at commit 1, and 8 were acknowledged"),
    ],
)
def test_the_error_says_what_is_known_of_the_commits_that_are_missing(
    killed: tuple[Path, str], tmp_path: Path, how: str, said: str
) -> None:
    folder = tmp_path / "bank"
    shutil.copytree(killed[0], folder)
    (folder / "journal.db-wal").unlink()
    _damage(folder / "journal.db-head", OF_A_RECORD[how])
    before = listing(folder)
    with pytest.raises(BankDamaged, match="lost commits: it ends at commit 1, and ") as caught:
        _open(folder)
    assert listing(folder) == before
    assert said in str(caught.value)
    for name in ("journal.db-head", "bank.head"):
        if (folder / name).exists():
            assert str(folder / name) in caught.value.hint
            (folder / name).unlink()
    with _open(folder) as bank:  # as the hint says
        assert len(bank.agent("alice").all()) == 5


def test_a_damaged_number_is_told_if_it_can_be_read(
    killed: tuple[Path, str], tmp_path: Path
) -> None:
    folder = tmp_path / "bank"
    shutil.copytree(killed[0], folder)
    (folder / "journal.db-wal").unlink()
    record = folder / "journal.db-head"
    record.write_bytes(_flip(20)(_flip(68)(record.read_bytes())))  # the hashes of both slots
    with pytest.raises(BankDamaged, match="as far as it can be read, 9 were acknowledged"):
        _open(folder)


class Kills:
    """Copies a bank's folder wherever the records of its last commit may be half written."""

    CODE = frozenset(
        each.__code__
        for owner in (HeadRecord, Journal)
        for each in vars(owner).values()
        if isinstance(each, FunctionType)
    ) | {files.replace_file.__code__}

    def __init__(self, folder: Path, into: Path) -> None:
        self._folder = folder
        self._into = into
        self._seen: set[tuple[tuple[str, bytes], ...]] = set()
        self.contents: list[str] = []
        """What was acknowledged."""
        self.left: list[tuple[Path, int]] = []
        """The copies, and how many memories were acknowledged by then."""

    def look(self, *_: object) -> None:
        """Copy the folder, if it is not as it was before."""
        if not (self._folder / "journal.db").exists():
            return
        files = sorted(path for path in self._folder.iterdir() if path.is_file())
        state = tuple((path.name.split(".tmp")[0][:12], path.read_bytes()) for path in files)
        if state not in self._seen:
            self._seen.add(state)
            copy = self._into / str(len(self.left))
            shutil.copytree(self._folder, copy)
            self.left.append((copy, len(self.contents)))

    def trace(self, frame: FrameType, event: str, _: object) -> Any:
        """A trace function that looks before each line that writes records."""
        if frame.f_code not in self.CODE:
            return None
        self.look()
        return self.trace

    def add(self, bank: MemoryBank) -> None:
        text = f"memory {len(self.contents)}"
        bank.agent("alice").add(text)
        self.contents.append(text)


@pytest.mark.slow
def test_a_kill_while_the_records_are_written_leaves_a_bank_that_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, before = tmp_path / "bank", sys.gettrace()
    kills = Kills(folder, tmp_path)
    write = os.pwrite

    def halfway(file: int, data: bytes, place: int) -> int:
        write(file, data[: len(data) // 2], place)
        kills.look()
        return write(file, data, place)

    monkeypatch.setattr(beside_journal.os, "pwrite", halfway)
    sys.settrace(kills.trace)
    try:
        for _ in range(2):
            with _open(folder) as bank:
                for _ in range(3):
                    kills.add(bank)
        (folder / "journal.db-head").write_bytes(b"x" * 100)  # the bank is closed, and needs none
        with _open(folder) as bank:
            kills.add(bank)
            bank.advance(1)
        monkeypatch.undo()
        history.rewind(folder, 0)
        with _open(folder) as bank:
            kills.add(bank)
    finally:
        sys.settrace(before)
    assert len(kills.left) > 30
    for copy, count in kills.left:
        with _open(copy) as bank:
            found = [memory.content for memory in bank.agent("alice").all()]
        assert found in (kills.contents[:count], kills.contents[: count + 1]), copy


# An older journal in the place of a newer one, and no record with it


def _older(folder: Path, tmp_path: Path, **options: object) -> None:
    """Make a bank, and put the journal of before its last commit in its place, without a log."""
    options = {"embedder": Directions(), "storage": {"sync": "manual"}} | options
    with MemoryBank.open(folder, **options) as bank:
        bank.agent("alice").add("one <1 0>")
    shutil.copy2(folder / "journal.db", tmp_path / "older.db")
    with MemoryBank.open(folder, **options) as bank:
        bank.agent("alice").add("two <0 1>")
        bank.agent("alice").notes.append("Never trade fish with Bob.", "MEMORY.md")
    for path in folder.glob("journal.db*"):
        path.unlink()
    shutil.copy2(tmp_path / "older.db", folder / "journal.db")


def _refused(folder: Path, **options: object) -> BankDamaged:
    before = listing(folder)
    with pytest.raises(BankDamaged, match="ends at commit 1, and 3 were acknowledged") as caught:
        MemoryBank.open(folder, embedder=Directions(), **options)
    assert listing(folder) == before
    return caught.value


def test_an_older_journal_without_its_record_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    _older(folder, tmp_path)
    error = _refused(folder, storage={"sync": "manual"})
    for read in (MemoryBank.at, lambda folder: history.rewind(folder, 0)):
        with pytest.raises(BankDamaged, match=LOST):
            read(folder)
    assert not salvage(folder).is_complete
    assert str(folder / "bank.head") in error.hint
    (folder / "bank.head").unlink()
    with _open(folder) as bank:  # as the hint says
        assert "one <1 0>" in [memory.content for memory in bank.agent("alice").all()]


def test_a_store_that_is_ahead_of_its_journal_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    _older(folder, tmp_path, storage={"sync": "close"}, store={})
    (folder / "bank.head").unlink()
    error = _refused(folder)
    assert f"tiermem store rebuild {folder}" in error.hint
    with _open(folder) as bank:  # which leaves the store alone
        with pytest.raises(BankDamaged, match=LOST):
            bank.sync()
        bank.repair_store()  # as the hint says
    with MemoryBank.open(folder, embedder=Directions()) as bank:
        assert not bank.engine.store.behind


def test_a_bank_that_went_back_on_purpose_makes_its_store_anew(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    with MemoryBank.open(folder, embedder=Directions()) as bank:
        bank.agent("alice").add("one <1 0>")
        bank.advance(1)
        bank.agent("alice").add("two <0 1>")
    history.rewind(folder, 0)
    with MemoryBank.open(folder, embedder=Directions()) as bank:
        assert [memory.content for memory in bank.agent("alice").all()] == ["one <1 0>"]
    with MemoryBank.open(folder, embedder=Directions()) as bank:
        assert not bank.engine.store.behind


def test_opening_and_closing_writes_no_record_again(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    with _open(folder) as bank:
        bank.agent("alice").add("one")
    before = (folder / "bank.head").stat().st_mtime_ns
    with _open(folder):
        pass
    assert (folder / "bank.head").stat().st_mtime_ns == before
