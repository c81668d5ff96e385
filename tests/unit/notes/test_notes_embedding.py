"""Chunks of several notes are embedded together, and nobody can tell."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank
from agents.notes import index
from banks import MANUAL
from embedders import Directions

NAMES = [f"memory/day-{n}.md" for n in range(7)]


def bank_with_notes(folder: Path, **given: Any) -> MemoryBank:
    place = folder / "notes" / "alice" / "memory"
    place.mkdir(parents=True)
    for n, name in enumerate(NAMES):
        (folder / "notes" / "alice" / name).write_text(f"# Day {n}\n\nalice saw {n} ships <1 0>\n")
    return MemoryBank.open(folder, storage=MANUAL, **given)


@pytest.fixture(params=[1, 3, 1024])
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_CHUNKS_AT_ONCE", request.param)


@pytest.mark.usefixtures("at_once")
def test_notes_are_the_same_memories_however_many_are_embedded_at_once(tmp_path: Path) -> None:
    with bank_with_notes(tmp_path / "many") as bank:
        synced = [memory.content for memory in bank.agent("alice").all()]
        hashed = bank.state_hash()
    place = tmp_path / "single" / "notes" / "alice" / "memory"
    with MemoryBank.open(tmp_path / "single", storage=MANUAL) as bank:
        place.mkdir(parents=True)
        for n, name in enumerate(NAMES):
            (place.parent / name).write_text(f"# Day {n}\n\nalice saw {n} ships <1 0>\n")
            bank.agent("alice").notes.sync()
        assert [memory.content for memory in bank.agent("alice").all()] == synced
        assert bank.state_hash() == hashed
    assert len(synced) == len(NAMES)


class Picky(Directions):
    """Fails for one text."""

    def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        if any("3 ships" in text for text in texts):
            raise OSError("the model is gone")
        return super().embed(texts)


@pytest.mark.usefixtures("at_once")
def test_a_note_that_can_not_be_embedded_keeps_no_other_out(tmp_path: Path) -> None:
    with bank_with_notes(tmp_path, embedder=Picky()) as bank:
        synced = bank.agent("alice").notes.sync()
        assert [problem.partition(":")[0] for problem in synced.problems] == ["memory/day-3.md"]
        assert "the model is gone" in synced.problems[0]
        assert len(bank.agent("alice").all()) == len(NAMES) - 1
