"""Damage in the journal's write-ahead log, and an older journal in the place of a newer one."""

import shutil
from pathlib import Path

import pytest
from damaged_journals import listing

from agents import BankDamaged, CommitFailed, MemoryBank
from agents.bank import history
from agents.exchange.salvage import salvage
from embedders import Directions

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
    assert f"tiermem repair {folder}" in error.hint
    with _open(folder) as bank:  # which leaves the store alone
        with pytest.raises(BankDamaged, match=LOST):
            bank.sync()
        bank.repair_store()  # as the hint says
    with MemoryBank.open(folder, embedder=Directions()) as bank:
        assert not bank.parts.store.behind


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
        assert not bank.parts.store.behind


def test_opening_and_closing_writes_no_record_again(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    with _open(folder) as bank:
        bank.agent("alice").add("one")
    before = (folder / "bank.head").stat().st_mtime_ns
    with _open(folder):
        pass
    assert (folder / "bank.head").stat().st_mtime_ns == before
