"""Notes are looked at from outside: copies, links, other folders."""

import shutil
from pathlib import Path

import pytest
from note_banks import note_texts

from agents import MemoryBank
from agents.errors import InvalidAgentId
from agents.notes.agent_notes import AgentNotes
from agents.notes.opening import look_at_files
from banks import MANUAL


def test_a_folder_of_notes_that_is_a_link_is_not_followed(tmp_path: Path, file: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        bank.agent("alice").notes.write("MEMORY.md", "first\n")
    (tmp_path / "bank/notes").rename(tmp_path / "elsewhere")
    (tmp_path / "bank/notes").symlink_to(tmp_path / "elsewhere")
    file.write_text("through a link\n")
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        assert note_texts(bank.agent("alice")) == ["first\n"]
        assert bank.sync_notes()["alice"].problems


@pytest.mark.parametrize("agent", ["../../out", "..", "*", "", "/etc", ".hidden"])
def test_files_are_looked_at_for_agents_only(tmp_path: Path, agent: str) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        bank.agent("alice").notes.write("MEMORY.md", "first\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/MEMORY.md").write_text("a secret\n")
    with MemoryBank.at(tmp_path / "bank") as copy, pytest.raises(InvalidAgentId):
        look_at_files(copy.engine, tmp_path / "bank", agent)


def test_a_copy_of_a_killed_bank_is_looked_at_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        bank.agent("alice").notes.write("MEMORY.md", "first\n")
        monkeypatch.setattr(bank.engine, "settle_notes", lambda: None)
        bank.agent("alice").notes.append("second", "MEMORY.md")
        shutil.copytree(tmp_path / "bank", tmp_path / "killed")
    with MemoryBank.at(tmp_path / "killed") as copy:
        own, _ = look_at_files(copy.engine, tmp_path / "killed", "alice")
        for _ in range(2):
            assert own.sync().changed == ()
            assert AgentNotes(own).read() == "first\nsecond\n"
