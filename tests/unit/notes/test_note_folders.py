"""Agents whose names differ only by case have folders that differ by more."""

import string
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import CommitFailed, MemoryBank
from agents.notes.files import agent_of_folder, folder_of_agent
from banks import MANUAL

_FIRST = f"{string.ascii_letters}{string.digits}_@-"
IDS = st.builds(str.__add__, st.sampled_from(_FIRST), st.text(f"{_FIRST}.", max_size=127))


def test_folders_are_different_where_case_is_ignored() -> None:
    names = ["".join(letters) for letters in product("aA", "lL", "iI", "cC", "eE")]
    names += [f"{name}." for name in names]
    folders = [folder_of_agent(name) for name in names]
    # What some file systems ignore: case, and dots at the end.
    assert len({folder.casefold().rstrip(".") for folder in folders}) == len(names)


@given(IDS, IDS)
def test_a_folder_has_one_agent(one: str, other: str) -> None:
    folder = folder_of_agent(one)
    assert agent_of_folder(folder) == one
    assert len(folder) <= 200
    if one != other:
        assert folder.casefold() != folder_of_agent(other).casefold()


@pytest.mark.parametrize(
    "name", ["", ".x", "Alice", "alice%1", "Alice%2", "Alice%01", "a b", "a%0"]
)
def test_other_names_are_of_no_agent(name: str) -> None:
    assert agent_of_folder(name) is None


def test_a_folder_that_a_person_named_gets_the_name_of_the_agents(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        bank.agent("alice").notes.append("tea")
    mine = tmp_path / "bank" / "notes" / "Alice"
    mine.mkdir()
    (mine / "MEMORY.md").write_text("coffee\n")
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        assert bank.agent("Alice").notes.read() == "coffee\n"
        assert bank.agent("alice").notes.paths() != ["MEMORY.md"]
    assert not mine.exists()
    assert (tmp_path / "bank/notes/Alice%1/MEMORY.md").read_text() == "coffee\n"


def test_a_folder_that_is_there_already_stays(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        bank.agent("Alice").notes.write("MEMORY.md", "tea\n")
    (tmp_path / "bank/notes/Alice").mkdir()
    (tmp_path / "bank/notes/Alice/MEMORY.md").write_text("coffee\n")
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        assert bank.agent("Alice").notes.read() == "tea\n"
    assert (tmp_path / "bank/notes/Alice/MEMORY.md").read_text() == "coffee\n"


# A bank that is moved while it is open


def test_no_notes_are_made_where_the_bank_was(tmp_path: Path) -> None:
    bank = MemoryBank.open(tmp_path / "bank", storage=MANUAL)
    bank.agent("alice").notes.append("before", "MEMORY.md")
    (tmp_path / "bank").rename(tmp_path / "moved")
    with pytest.raises(CommitFailed, match="is gone"):
        bank.agent("alice").notes.append("after", "MEMORY.md")
    with pytest.raises(CommitFailed, match="is gone"):
        bank.watch_notes()
    bank.close()
    assert [path.name for path in tmp_path.iterdir()] == ["moved"]
    with MemoryBank.open(tmp_path / "moved", storage=MANUAL) as bank:
        assert bank.agent("alice").notes.read() == "before\n"
