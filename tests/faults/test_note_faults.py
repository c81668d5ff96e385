"""What a full disk, a failing one or a kill does to notes: nothing that was committed is lost, and
nothing that a person wrote."""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import AgentMemory, MemoryBank
from agents.engine.engine import Engine
from agents.errors import CommitFailed, NoteRefused
from agents.notes import files as note_files
from agents.notes.files import NoteFiles
from agents.storage.journal.journal import Journal, JournalFile

MANUAL = {"sync": "manual"}


def opened(folder: Path) -> MemoryBank:
    return MemoryBank.open(folder, storage=MANUAL)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "bank"


@pytest.fixture
def bank(place: Path) -> Iterator[MemoryBank]:
    with opened(place) as bank:
        yield bank


@pytest.fixture
def alice(bank: MemoryBank) -> AgentMemory:
    alice = bank.agent("alice")
    alice.notes.write("MEMORY.md", "first\n")
    return alice


@pytest.fixture
def file(place: Path) -> Path:
    return place / "notes/alice/MEMORY.md"


def refusing(*_: object, **__: object) -> Any:
    """As the operating system does when it has run out of something."""
    error = OSError(errno.EMFILE, "Too many open files")
    raise NoteRefused("a note can't be used: too many open files") from error


def full(name: str, folder: object, *_: object) -> None:
    if isinstance(folder, int):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
    raise OSError(errno.ENOSPC, "No space left on device")


@contextlib.contextmanager
def copied(place: Path, where: type, name: str) -> Iterator[list[Path]]:
    """Copies the bank whenever this is called, as a kill right then would leave it."""
    original: Any = getattr(where, name)
    copies: list[Path] = []

    def call(*arguments: object) -> Any:
        copies.append(place.with_name(f"killed-{len(copies)}"))
        shutil.copytree(place, copies[-1])
        return original(*arguments)

    setattr(where, name, call)
    try:
        yield copies
    finally:
        setattr(where, name, original)


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".*") if path.is_file()]


# Publishing fails


def test_a_note_that_cannot_be_published_is_committed_and_published_later(
    bank: MemoryBank, alice: AgentMemory, file: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    with monkeypatch.context() as broken:
        broken.setattr(NoteFiles, "publish", refusing)
        with bank.transaction():
            alice.add("a fish")
            alice.notes.append("second", "MEMORY.md")
        assert "not all notes of alice are on disk yet" in caplog.text
        assert alice.notes.read() == "first\nsecond\n"
        alice.notes.sync()
        assert alice.notes.read() == "first\nsecond\n"
    assert file.read_text() == "first\n"
    alice.notes.sync()
    assert file.read_text() == "first\nsecond\n"
    assert alice.notes.read() == "first\nsecond\n"
    assert leftovers(file.parent) == []


def test_a_note_that_was_never_published_is_when_the_bank_is_opened_again(
    place: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(place) as bank:
        bank.agent("alice").notes.write("MEMORY.md", "first\n")
        with monkeypatch.context() as broken:
            broken.setattr(NoteFiles, "publish", refusing)
            bank.agent("alice").notes.append("second", "MEMORY.md")
    with opened(place) as bank:
        assert bank.agent("alice").notes.read() == "first\nsecond\n"
    assert file.read_text() == "first\nsecond\n"


@pytest.mark.parametrize("step", ["publish", "read_staged", "staged"])
def test_a_recovery_that_fails_loses_nothing_that_was_committed(
    place: Path, bank: MemoryBank, alice: AgentMemory, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with copied(place, NoteFiles, "publish") as killed:
        alice.notes.append("second", "MEMORY.md")
    with monkeypatch.context() as broken:
        broken.setattr(NoteFiles, step, refusing)
        with opened(killed[-1]) as again:
            assert again.agent("alice").notes.read() == "first\nsecond\n"
            assert again.sync_notes()["alice"].changed == ()
    with opened(killed[-1]) as again:
        assert again.agent("alice").notes.read() == "first\nsecond\n"
        assert [memory.content for memory in again.agent("alice").all()] == ["first\nsecond\n"]
    assert (killed[-1] / "notes/alice/MEMORY.md").read_text() == "first\nsecond\n"
    assert leftovers(killed[-1] / "notes") == []


def test_a_recovery_that_failed_is_finished_by_the_next_look(
    place: Path, bank: MemoryBank, alice: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with copied(place, NoteFiles, "publish") as killed:
        alice.notes.append("second", "MEMORY.md")
    with monkeypatch.context() as broken:
        broken.setattr(NoteFiles, "publish", refusing)
        again = opened(killed[-1])
    with again:
        again.sync_notes()
        assert (killed[-1] / "notes/alice/MEMORY.md").read_text() == "first\nsecond\n"


def test_a_full_disk_at_a_second_write_leaves_the_first(
    bank: MemoryBank, alice: AgentMemory, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bank.transaction():
        alice.notes.append("one", "MEMORY.md")
        with monkeypatch.context() as broken:
            broken.setattr(note_files, "_write", full)
            with pytest.raises(NoteRefused, match="No space left"):
                alice.notes.append("two", "MEMORY.md")
    assert alice.notes.read() == "first\none\n"
    assert file.read_text() == "first\none\n"
    assert leftovers(file.parent) == []


def test_an_edit_counts_though_a_leftover_cannot_be_deleted(
    bank: MemoryBank, alice: AgentMemory, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(note_files, "_unlink", full)
        with bank.transaction():
            alice.notes.append("one", "MEMORY.md")
            alice.notes.append("two", "MEMORY.md")
        assert file.read_text() == "first\none\ntwo\n"
        file.write_text("by hand\n")
        assert alice.notes.read() == "by hand\n"
    alice.notes.sync()
    assert alice.notes.paths() == ["MEMORY.md"]
    assert file.read_text() == "by hand\n"
    assert leftovers(file.parent) == []


# Restoring fails


def test_notes_that_cannot_be_written_after_a_restore_are_written_later(
    place: Path, bank: MemoryBank, alice: AgentMemory, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    bank.checkpoint(tmp_path / "one.tmck")
    with monkeypatch.context() as broken:
        broken.setattr(note_files, "_write", full)
        with MemoryBank.restore(tmp_path / "one.tmck", tmp_path / "new", storage=MANUAL) as again:
            assert again.agent("alice").notes.read() == "first\n"
            assert again.sync_notes()["alice"].removed == ()
    with opened(tmp_path / "new") as again:
        assert again.agent("alice").notes.paths() == ["MEMORY.md"]
    assert (tmp_path / "new/notes/alice/MEMORY.md").read_text() == "first\n"


def test_once_they_are_written_a_persons_edits_count_again(
    place: Path, bank: MemoryBank, alice: AgentMemory, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    bank.agent("bob").notes.write("MEMORY.md", "bob's\n")
    bank.checkpoint(tmp_path / "one.tmck")
    with monkeypatch.context() as broken:
        broken.setattr(note_files, "_write", full)
        again = MemoryBank.restore(tmp_path / "one.tmck", tmp_path / "new", storage=MANUAL)
    with again:
        again.sync_notes()
    (tmp_path / "new/notes/alice/MEMORY.md").write_text("by hand\n")
    with opened(tmp_path / "new") as again:
        assert again.agent("alice").notes.read() == "by hand\n"
        assert again.agent("bob").notes.read() == "bob's\n"


# Undone writes


def test_a_failed_commit_leaves_a_persons_edit(
    alice: AgentMemory, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("by hand\n")

    def failing(*_: object, **__: object) -> None:
        raise CommitFailed("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(Journal, "append", failing)
        with pytest.raises(CommitFailed):
            alice.notes.append("second", "MEMORY.md")
    assert file.read_text() == "by hand\n"
    assert alice.notes.read() == "by hand\n"


# Kills


def test_what_was_committed_inside_a_transaction_survives_a_kill_after_another_write(
    place: Path, bank: MemoryBank, alice: AgentMemory
) -> None:
    with bank.transaction():
        alice.notes.append("acknowledged", "MEMORY.md")
        bank.commit()
        alice.notes.append("not yet", "MEMORY.md")
        shutil.copytree(place, place.with_name("killed"))
    with opened(place.with_name("killed")) as again:
        assert again.agent("alice").notes.read() == "first\nacknowledged\n"
    assert alice.notes.read() == "first\nacknowledged\nnot yet\n"


def test_a_kill_after_an_inner_transaction_was_undone_leaves_what_the_outer_one_wrote(
    place: Path, bank: MemoryBank, alice: AgentMemory
) -> None:
    with copied(place, Engine, "settle_notes") as killed, bank.transaction():
        alice.notes.append("outer", "MEMORY.md")
        with contextlib.suppress(KeyError), bank.transaction():
            alice.notes.append("inner", "MEMORY.md")
            raise KeyError
    with opened(killed[-1]) as again:
        assert again.agent("alice").notes.read() == "first\nouter\n"
    assert leftovers(killed[-1] / "notes") == []


def test_a_kill_before_the_commit_leaves_a_persons_edit_though_the_old_text_was_written(
    place: Path, bank: MemoryBank, alice: AgentMemory, file: Path
) -> None:
    file.write_text("by hand\n")
    with copied(place, JournalFile, "writing") as killed:
        alice.notes.write("MEMORY.md", "first\n")
    with opened(killed[0]) as again:
        assert again.agent("alice").notes.read() == "by hand\n"


def test_what_a_person_wrote_after_a_kill_is_kept_beside_what_was_committed(
    place: Path, bank: MemoryBank, alice: AgentMemory
) -> None:
    with copied(place, NoteFiles, "publish") as killed:
        alice.notes.append("second", "MEMORY.md")
    folder = killed[-1] / "notes/alice"
    (folder / "MEMORY.md").write_text("a whole afternoon of work\n")
    with opened(killed[-1]) as again:
        notes = again.agent("alice").notes
        assert notes.read() == "first\nsecond\n"
        assert notes.read("memory/MEMORY-conflict-1.md") == "a whole afternoon of work\n"
        assert again.agent("alice").memory_search("work in the afternoon")[0].citation == (
            "memory/MEMORY-conflict-1.md#L1"
        )
