"""``tiermem show``: an agent's notes as they were."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank

Command = Callable[..., Any]


@pytest.fixture
def noted(whole: Path) -> Path:
    """A run whose bob had a note after tick 12, and two after tick 13."""
    with MemoryBank.open(whole / "bank") as bank:
        notes = bank.agent("bob").notes
        notes.write("MEMORY.md", "# Stones\n\nThey are heavy.\n")
        bank.advance(13)
        notes.append("They are still heavy.")
        notes.append("And grey.", "MEMORY.md")
    return whole


def notes_in(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if "note" in row]


@pytest.mark.parametrize(
    ("tick", "expected"),
    [
        (11, []),
        (12, [{"note": "MEMORY.md", "lines": 3}]),
        (13, [{"note": "MEMORY.md", "lines": 4}, {"note": "memory/tick-000013.md", "lines": 1}]),
    ],
)
def test_it_shows_notes_as_they_were_after_a_tick(
    tiermem: Command, noted: Path, tick: int, expected: list[dict[str, Any]]
) -> None:
    assert notes_in(tiermem("show", noted, "-a", "bob", "-t", tick, "--json").json) == expected


def test_it_shows_notes_after_the_memories(tiermem: Command, noted: Path) -> None:
    lines = tiermem("show", noted, "-a", "bob").out.splitlines()
    assert lines[-4:] == [
        "bob after tick 13: 2 notes",
        "note\tlines",
        "MEMORY.md\t4",
        "memory/tick-000013.md\t1",
    ]
    assert lines[0].startswith("bob after tick 13: ")
    assert lines[0].endswith(" memories")


def test_it_shows_nothing_of_notes_where_there_are_none(tiermem: Command, noted: Path) -> None:
    assert "notes" not in tiermem("show", noted, "-a", "alice").out
    assert notes_in(tiermem("show", noted, "-a", "alice", "--json").json) == []


def test_a_note_that_was_edited_since_is_shown_as_it_was(tiermem: Command, noted: Path) -> None:
    (noted / "bank" / "notes" / "bob" / "MEMORY.md").write_text("nothing left\n")
    (first, *_) = notes_in(tiermem("show", noted, "-a", "bob", "--json").json)
    assert first == {"note": "MEMORY.md", "lines": 4}
