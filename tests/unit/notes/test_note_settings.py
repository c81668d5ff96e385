"""When notes are indexed, as the settings say."""

import importlib.util
import threading
from pathlib import Path

import pytest
from note_banks import found, market

from agents import MemoryBank
from agents.errors import ConfigError
from agents.interfaces.cli.banks import watched
from agents.simulation.runs.run import Run
from banks import MANUAL

DRAGON = "the dragon sleeps at noon\n"


def write(folder: Path, text: str) -> None:
    note = folder / "notes/alice/MEMORY.md"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(text)


@pytest.mark.parametrize("indexed", [True, False])
def test_opening_indexes_notes_if_the_settings_say_so(tmp_path: Path, indexed: bool) -> None:
    write(tmp_path, DRAGON)
    with MemoryBank.open(tmp_path, storage=MANUAL, notes={"sync_on_open": indexed}) as bank:
        assert len(bank.agent("alice").search("dragon")) == indexed
        assert found(bank.agent("alice"), "dragon") == ["MEMORY.md#L1"]


@pytest.mark.parametrize("indexed", [True, False])
def test_a_search_of_notes_indexes_them_if_the_settings_say_so(
    tmp_path: Path, indexed: bool
) -> None:
    with MemoryBank.open(tmp_path, storage=MANUAL, notes={"sync_on_search": indexed}) as bank:
        write(tmp_path, DRAGON)
        alice = bank.agent("alice")
        assert found(alice, "dragon") == (["MEMORY.md#L1"] if indexed else [])
        alice.notes.sync()
        assert found(alice, "dragon") == ["MEMORY.md#L1"]


def test_a_killed_write_is_finished_even_if_opening_indexes_nothing(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        bank.agent("alice").notes.write("MEMORY.md", DRAGON)
        token = bank.engine.state.block("alice").notes["MEMORY.md"].token
    note = tmp_path / "notes/alice/MEMORY.md"
    note.rename(note.parent / f".MEMORY.md.{token}-none.new")
    with MemoryBank.open(tmp_path, storage=MANUAL, notes={"sync_on_open": False}):
        assert note.read_text() == DRAGON


def test_a_run_has_no_transcripts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"notes\.transcripts: a run has none"):
        Run.create(tmp_path / "run", market(notes={"transcripts": True}))


def watchers() -> int:
    return sum(thread.name == "tiermem-notes" for thread in threading.enumerate())


@pytest.mark.parametrize("is_installed", [True, False])
@pytest.mark.parametrize("watch", [True, False])
def test_a_server_watches_notes_where_the_settings_and_the_library_allow_it(
    tmp_path: Path, watch: bool, is_installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryBank.open(tmp_path, storage=MANUAL, notes={"watch": watch}) as bank:
        if not is_installed:
            monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        with watched(bank):
            assert watchers() == (watch and is_installed)
        assert watchers() == 0


def test_a_server_starts_even_if_notes_can_not_be_watched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "bank/notes").symlink_to(tmp_path / "elsewhere")
        with watched(bank):
            assert watchers() == 0
    assert "notes are not watched: " in capsys.readouterr().err
