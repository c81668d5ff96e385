"""A reader begins while nobody has the bank open, and another process changes it meanwhile."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import BankDamaged, MemoryBank, analysis
from agents.simulation.runs import study
from agents.storage import sqlite
from banks import contents
from embedders import Directions


def opened(folder: Path) -> MemoryBank:
    return MemoryBank.open(folder, embedder=Directions(), preset="vector", store=None)


@pytest.fixture
def bank(folder: Path) -> Path:
    with opened(folder) as bank:
        for number in range(150):
            bank.agent("alice").add(f"text {number} " + "word " * 400)
    return folder


def change(folder: Path) -> None:
    """Forget memories, and write the journal's file anew."""
    with opened(folder) as bank:
        alice = bank.agent("alice")
        for memory in alice.all()[50:80]:
            alice.forget(memory.id)
        bank.vacuum()


def test_a_study_reads_again_what_another_process_changed(
    bank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = study.read_columns
    damaged: list[str] = []

    def disturbed(journal: Any, *given: Any) -> Any:
        if damaged:
            return real(journal, *given)
        commits = journal.commits(after=0)
        try:
            for commit in commits:
                if commit.id == 10:
                    change(bank)
        except BankDamaged as error:
            damaged.append(error.why)
            raise
        raise AssertionError("the change disturbed nothing")

    monkeypatch.setattr(study, "read_columns", disturbed)
    assert analysis.study(bank).agents
    assert damaged


def test_a_study_of_a_damaged_journal_says_so(bank: Path) -> None:
    with sqlite3.connect(bank / "journal.db") as database:
        database.execute("UPDATE commits SET events = '[]' WHERE id = 7")
    database.close()
    with pytest.raises(BankDamaged, match="commit 7"):
        analysis.study(bank)


class _Slow:
    """A connection whose copy takes so long that another process changes the file."""

    def __init__(self, real: sqlite3.Connection, meanwhile: Callable[[], None]) -> None:
        self._real, self._meanwhile, self.close = real, meanwhile, real.close

    def backup(self, target: sqlite3.Connection) -> None:
        self._real.backup(target)
        self._meanwhile()
        target.execute("DELETE FROM commits WHERE id = 7")  # pages of two times


def test_a_copy_is_made_again_if_another_process_changed_the_journal(
    bank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = sqlite.open_to_read
    made: list[Path] = []

    def slow(path: Path) -> Any:
        made.append(path)
        return real(path) if len(made) > 1 else _Slow(real(path), lambda: change(bank))

    monkeypatch.setattr(sqlite, "open_to_read", slow)
    with MemoryBank.at(bank, 0, embedder=Directions()) as past:
        assert len(contents(past)) == 120
    assert len(made) == 2
