"""A person edits a note while an agent writes it: nothing the person wrote is lost."""

import contextlib
import os
from pathlib import Path

import pytest

from agents import AgentMemory, MemoryBank
from agents.errors import TierFull
from agents.notes.agent_notes import AgentNotes
from banks import MANUAL


@pytest.fixture
def notes(alice: AgentMemory) -> AgentNotes:
    alice.notes.write("MEMORY.md", "first\n")
    return alice.notes


def test_what_a_person_writes_while_a_transaction_is_undone_stays(
    bank: MemoryBank, notes: AgentNotes, file: Path
) -> None:
    with contextlib.suppress(KeyError), bank.transaction():
        notes.append("second", "MEMORY.md")
        file.write_text("by hand\n")
        raise KeyError
    assert notes.read() == "by hand\n"
    assert file.read_text() == "by hand\n"


def test_a_persons_edit_is_kept_where_a_first_try_was_undone(
    bank: MemoryBank, notes: AgentNotes, file: Path
) -> None:
    file.write_text("by hand\n")
    with bank.transaction():
        with contextlib.suppress(KeyError), bank.transaction():
            notes.append("a failed try", "MEMORY.md")
            raise KeyError
        notes.append("second", "MEMORY.md")
    assert notes.read() == "by hand\nsecond\n"
    assert file.read_text() == "by hand\nsecond\n"


# A person's edit, and a write that is undone


@pytest.mark.parametrize("inside_another", [False, True])
@pytest.mark.parametrize("text", ["first\n", "first\nsecond\n"], ids=["old text", "new text"])
def test_an_undone_write_leaves_a_persons_edit(
    bank: MemoryBank, notes: AgentNotes, file: Path, text: str, inside_another: bool
) -> None:
    file.write_text("by hand\n")
    with bank.transaction() if inside_another else contextlib.nullcontext():
        if inside_another:
            bank.agent("alice").add("a fish")
        with contextlib.suppress(KeyError), bank.transaction():
            notes.write("MEMORY.md", text)
            raise KeyError
    assert file.read_text() == "by hand\n"
    assert notes.read() == "by hand\n"


def test_a_refused_append_leaves_a_persons_edit(tmp_path: Path, file: Path) -> None:
    memory = {"on_tier_full": "reject", "max_critical": 1}
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, memory=memory) as bank:
        alice = bank.agent("alice")
        alice.notes.write("MEMORY.md", "first\n")
        alice.add("by hand", "critical")
        file.write_text("by hand\n")
        with pytest.raises(TierFull):
            alice.notes.append("# Never <!-- tier: critical -->\n\ntrust X", "MEMORY.md")
        assert file.read_text() == "by hand\n"
        assert alice.notes.read() == "by hand\n"


def test_an_undone_append_leaves_a_persons_edit(
    bank: MemoryBank, notes: AgentNotes, file: Path
) -> None:
    file.write_text("by hand\n")
    with contextlib.suppress(KeyError), bank.transaction():
        notes.append("second", "MEMORY.md")
        raise KeyError
    assert file.read_text() == "by hand\n"
    assert notes.read() == "by hand\n"


def test_an_undone_transaction_does_not_bring_a_deleted_file_back(
    bank: MemoryBank, notes: AgentNotes, file: Path
) -> None:
    file.unlink()
    with contextlib.suppress(KeyError), bank.transaction():
        notes.append("second", "MEMORY.md")
        raise KeyError
    assert not file.exists()
    assert notes.paths() == []


# A person's edit, and a write that is kept


def test_what_a_person_wrote_during_a_transaction_becomes_a_note_of_its_own(
    bank: MemoryBank, notes: AgentNotes, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (1, 2):
        with bank.transaction():
            notes.append(f"line {number}", "MEMORY.md")
            file.write_text(f"by hand {number}\n")
        assert f"memory/MEMORY-conflict-{number}.md" in caplog.text
    assert file.read_text() == "first\nline 1\nline 2\n"
    assert notes.paths()[1:] == ["memory/MEMORY-conflict-1.md", "memory/MEMORY-conflict-2.md"]
    assert notes.read("memory/MEMORY-conflict-2.md") == "by hand 2\n"


def test_the_conflict_of_a_note_with_a_long_name_is_kept_too(
    bank: MemoryBank, alice: AgentMemory, tmp_path: Path
) -> None:
    path = f"memory/{'ü' * 90}.md"
    with bank.transaction():
        alice.notes.append("one", path)
        (tmp_path / "bank/notes/alice" / path).write_text("by hand\n")
    assert alice.notes.sync().problems == ()
    assert sorted(map(alice.notes.read, alice.notes.paths())) == ["by hand\n", "one\n"]


@pytest.mark.parametrize("by_hand", [None, "", "first\nsecond\n"])
def test_where_a_person_lost_nothing_there_is_no_conflict(
    bank: MemoryBank, notes: AgentNotes, file: Path, by_hand: str | None
) -> None:
    with bank.transaction():
        notes.append("second", "MEMORY.md")
        file.unlink() if by_hand is None else file.write_text(by_hand)
    assert notes.paths() == ["MEMORY.md"]
    assert file.read_text() == "first\nsecond\n"
    assert os.listdir(file.parent) == ["MEMORY.md"]


def test_what_is_no_note_any_more_is_kept_too(
    bank: MemoryBank, notes: AgentNotes, file: Path
) -> None:
    with bank.transaction():
        notes.append("second", "MEMORY.md")
        file.write_bytes(b"\xff")
    assert file.read_text() == "first\nsecond\n"
    assert (file.parent / "memory/MEMORY-conflict-1.md").read_bytes() == b"\xff"
