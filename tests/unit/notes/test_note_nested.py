"""Notes in folders below memory/: found, written, set aside, and never read through a link."""

import os
from pathlib import Path

import pytest
from note_banks import found

from agents import AgentMemory, MemoryBank
from agents.errors import NoteRefused
from agents.notes.index import Synced
from banks import MANUAL


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "bank/notes/alice/memory/projects/2026"
    place.mkdir(parents=True)
    return place


def test_a_note_in_a_folder_below_is_indexed_and_cited(alice: AgentMemory, folder: Path) -> None:
    (folder / "bridge.md").write_text("the dragon sleeps at noon\n")
    assert found(alice, "dragon") == ["memory/projects/2026/bridge.md#L1"]
    assert alice.notes.lines("memory/projects/2026/bridge.md").text == "the dragon sleeps at noon\n"
    assert alice.notes.paths() == ["memory/projects/2026/bridge.md"]
    (folder / "bridge.md").unlink()
    assert alice.notes.sync().removed == ("memory/projects/2026/bridge.md",)


def test_an_agent_writes_notes_in_folders_below(alice: AgentMemory, tmp_path: Path) -> None:
    alice.notes.append("one", "memory/a/b/c.md")
    alice.notes.edit("memory/a/b/c.md", "one", "two")
    assert (tmp_path / "bank/notes/alice/memory/a/b/c.md").read_text() == "two\n"
    assert os.listdir(tmp_path / "bank/notes/alice/memory/a/b") == ["c.md"]


def test_the_order_of_notes_is_that_of_their_paths(alice: AgentMemory, folder: Path) -> None:
    above = folder.parent.parent
    for place in (folder / "z.md", above / "b.md", above / "projects/a.md", above / "projects.md"):
        place.write_text(f"about {place.name}\n")
    assert alice.notes.sync().changed == (
        "memory/b.md", "memory/projects.md", "memory/projects/2026/z.md", "memory/projects/a.md",
    )  # fmt: skip


def test_a_link_to_a_folder_is_named_and_not_followed(
    alice: AgentMemory, folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("the secret of another\n")
    (folder / "link").symlink_to(outside)
    (folder / "inner.md").symlink_to(outside / "secret.md")
    (folder / "own.md").write_text("the dragon sleeps at noon\n")
    synced = alice.notes.sync()
    assert synced.changed == ("memory/projects/2026/own.md",)
    assert [problem.partition(": ")[0] for problem in synced.problems] == [
        "memory/projects/2026/link", "memory/projects/2026/inner.md",
    ]  # fmt: skip
    assert "symbolic link" in synced.problems[0]
    assert found(alice, "secret of another") == []
    with pytest.raises(NoteRefused, match="symbolic link"):
        alice.notes.read("memory/projects/2026/link/secret.md")
    with pytest.raises(NoteRefused, match="symbolic link"):
        alice.notes.write("memory/projects/2026/link/new.md", "x")
    assert os.listdir(outside) == ["secret.md"]


def test_what_a_folder_that_can_not_be_read_holds_is_kept(alice: AgentMemory, folder: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads every folder")
    (folder / "bridge.md").write_text("the dragon sleeps at noon\n")
    alice.notes.sync()
    folder.chmod(0)
    try:
        synced = alice.notes.sync()
        assert synced.removed == ()
        assert synced.problems[0].startswith("memory/projects/2026: ")
        assert found(alice, "dragon") == ["memory/projects/2026/bridge.md#L1"]
    finally:
        folder.chmod(0o700)


def test_hidden_folders_are_left_alone(alice: AgentMemory, folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git" / "secret.md").write_text("the secret of another\n")
    assert alice.notes.sync() == Synced((), (), 0, ())


def test_a_bank_that_goes_back_writes_the_notes_below_as_they_were(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    with MemoryBank.open(folder, storage=MANUAL) as bank:
        alice = bank.agent("alice")
        alice.notes.write("memory/a/b.md", "one\n")
        bank.checkpoint(tmp_path / "then.checkpoint")
        alice.notes.write("memory/a/b.md", "two\n")
        alice.notes.write("memory/a/c.md", "three\n")
    with MemoryBank.restore(tmp_path / "then.checkpoint", tmp_path / "other") as bank:
        assert bank.agent("alice").notes.read("memory/a/b.md") == "one\n"
    assert (tmp_path / "other/notes/alice/memory/a/b.md").read_text() == "one\n"


def test_a_note_below_that_a_killed_process_left_staged_is_finished(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    with MemoryBank.open(folder, storage=MANUAL) as bank:
        bank.agent("alice").notes.write("memory/a/b.md", "one\n")
        token = bank.engine.state.block("alice").notes["memory/a/b.md"].token
    below = folder / "notes/alice/memory/a"
    (below / "b.md").rename(below / f".b.md.{token}-none.new")
    with MemoryBank.open(folder, storage=MANUAL) as bank:
        assert bank.agent("alice").notes.paths() == ["memory/a/b.md"]
    assert os.listdir(below) == ["b.md"]
