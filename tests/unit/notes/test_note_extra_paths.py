"""Notes that are read from elsewhere and never written."""

from pathlib import Path

import pytest
from note_banks import found, market, note_texts

from agents import MemoryBank
from agents.errors import ConfigError, NoteRefused
from agents.simulation.runs.run import Run
from banks import MANUAL


def test_a_run_has_no_extra_paths(tmp_path: Path) -> None:
    (tmp_path / "rules.md").write_text("fish is cheap\n")
    with pytest.raises(ConfigError, match=r"notes\.extra_paths: a run has none"):
        Run.create(tmp_path / "run", market(notes={"extra_paths": [str(tmp_path / "rules.md")]}))
    assert not (tmp_path / "run").exists()


def test_all_agents_have_the_extra_notes_when_a_bank_is_opened(tmp_path: Path) -> None:
    (tmp_path / "rules.md").write_text("the dragon sleeps at noon\n")
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        bank.agent("alice").add("a fish")
    notes = {"extra_paths": [str(tmp_path / "rules.md")]}
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, notes=notes) as bank:
        assert note_texts(bank.agent("alice")) == ["the dragon sleeps at noon\n"]


def test_an_extra_path_that_cannot_be_listed_leaves_the_other_notes(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "docs")
    notes = {"extra_paths": [str(tmp_path / "link")]}
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, notes=notes) as bank:
        folder = tmp_path / "bank/notes/alice"
        folder.mkdir(parents=True)
        (folder / "MEMORY.md").write_text("hello\n")
        synced = bank.agent("alice").notes.sync()
        assert synced.changed == ("MEMORY.md",)
        assert "extra/link" in synced.problems[0]


def test_a_folder_that_cannot_be_listed_takes_no_note_away(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/rules.md").write_text("fish is cheap\n")
    notes = {"extra_paths": [str(tmp_path / "docs")]}
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, notes=notes) as bank:
        alice = bank.agent("alice")
        assert alice.notes.paths() == ["extra/docs/rules.md"]
        (tmp_path / "docs").rename(tmp_path / "elsewhere")
        (tmp_path / "docs").symlink_to(tmp_path / "elsewhere")
        assert alice.notes.paths() == ["extra/docs/rules.md"]


def test_a_folder_may_have_the_name_of_a_note(tmp_path: Path) -> None:
    vault = tmp_path / "vault.md"
    vault.mkdir()
    (vault / "a.md").write_text("the heron is blue\n")
    notes = {"extra_paths": [str(vault)]}
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, notes=notes) as bank:
        alice = bank.agent("alice")
        own = tmp_path / "bank/notes/alice/memory/b.md"
        own.mkdir(parents=True)
        (own / "c.md").write_text("the crane is grey\n")
        assert alice.notes.sync().changed == ("memory/b.md/c.md", "extra/vault.md/a.md")
        alice.notes.write("memory/b.md/c.md", "the crane is white\n")
        assert note_texts(alice) == ["the heron is blue\n", "the crane is white\n"]
        (own / "c.md").unlink()
        assert alice.notes.sync().removed == ("memory/b.md/c.md",)
        assert note_texts(alice) == ["the heron is blue\n"]


@pytest.mark.parametrize(
    "extra",
    [["a/docs", "b/docs"], [".."], ["."], ["/"], ["notes"], ["notes/bob"], ["../bank"], ["x/.."]],
)
def test_extra_paths_that_cannot_be_used_are_said_at_opening(
    tmp_path: Path, extra: list[str]
) -> None:
    with pytest.raises(ConfigError, match=r"notes\.extra_paths"):
        MemoryBank.open(tmp_path / "bank", storage=MANUAL, notes={"extra_paths": extra})


def test_extra_paths_are_read_and_searched_and_never_written(tmp_path: Path) -> None:
    shared = tmp_path / "handbook"
    (shared / "deep").mkdir(parents=True)
    (shared / "deep/rules.md").write_text("the dragon sleeps at noon\n")
    notes = {"extra_paths": [str(shared)]}
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, notes=notes) as bank:
        alice = bank.agent("alice")
        assert found(alice, "dragon") == ["extra/handbook/deep/rules.md#L1"]
        assert alice.notes.lines("extra/handbook/deep/rules.md").text.startswith("the dragon")
        with pytest.raises(NoteRefused, match="only read"):
            alice.notes.write("extra/handbook/deep/rules.md", "x")
    assert (shared / "deep/rules.md").read_text() == "the dragon sleeps at noon\n"


def test_a_copy_of_a_bank_reads_extra_notes(tmp_path: Path) -> None:
    (tmp_path / "rules.md").write_text("the dragon sleeps at noon\n")
    options = {"storage": MANUAL, "notes": {"extra_paths": [str(tmp_path / "rules.md")]}}
    with MemoryBank.open(tmp_path / "bank", **options) as bank:  # type: ignore[arg-type]
        bank.agent("alice").notes.append("hello", "MEMORY.md")
        assert bank.agent("alice").notes.paths() == ["MEMORY.md", "extra/rules.md"]
    with MemoryBank.at(tmp_path / "bank") as copy:
        assert copy.agent("alice").notes.read("extra/rules.md") == "the dragon sleeps at noon\n"
