"""A bank whose folder is deleted or replaced while it is open acknowledges nothing more."""

import shutil
from pathlib import Path

import pytest

from agents import MemoryBank
from agents.errors import CommitFailed
from banks import MANUAL


def test_nothing_is_acknowledged_once_the_folder_is_gone(tmp_path: Path) -> None:
    bank = MemoryBank.open(tmp_path / "bank", storage=MANUAL)
    alice = bank.agent("alice")
    alice.add("before")
    shutil.rmtree(tmp_path / "bank")
    with pytest.raises(CommitFailed, match="is gone"):
        alice.add("after")
    assert [memory.content for memory in alice.all()] == ["before"]
    bank.close()
    assert not (tmp_path / "bank").exists()


def test_another_journal_in_its_place_is_not_written_to(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "other", storage=MANUAL) as other:
        other.agent("bob").add("mine")
    bank = MemoryBank.open(tmp_path / "bank", storage=MANUAL)
    bank.agent("alice").add("before")
    shutil.move(tmp_path / "bank", tmp_path / "moved")
    shutil.copytree(tmp_path / "other", tmp_path / "bank")
    with pytest.raises(CommitFailed, match="another file is in its place"):
        bank.agent("alice").add("after")
    bank.close()
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as other:
        assert [memory.content for memory in other.agent("bob").all()] == ["mine"]
        assert other.agents() == ["bob"]


def test_no_store_is_made_where_the_bank_was(tmp_path: Path) -> None:
    bank = MemoryBank.open(tmp_path / "bank")
    bank.agent("alice").add("before")
    shutil.rmtree(tmp_path / "bank")
    with pytest.raises(CommitFailed, match="is gone"):
        bank.close()
    assert not (tmp_path / "bank").exists()


def test_the_process_may_go_to_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with MemoryBank.open("bank", storage=MANUAL) as bank:
        monkeypatch.chdir(tmp_path.parent)
        bank.agent("alice").add("from elsewhere")
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        assert [memory.content for memory in bank.agent("alice").all()] == ["from elsewhere"]
