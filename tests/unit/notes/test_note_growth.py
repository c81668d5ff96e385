"""What it costs to append to a note: about the same, however long the note is."""

from pathlib import Path

import pytest

from agents import MemoryBank
from banks import MANUAL
from embedders import Counting

LINES = {"lines": "some words in a line of a note\n", "short": "x\n", "sections": "# A\nwords\n\n"}


class Work:
    """Counts the characters of lines whose tokens are counted."""

    def __init__(self) -> None:
        self.characters = 0

    def __call__(self, text: str, /) -> int:
        self.characters += len(text)
        return -(-len(text) // 4)


def work_of_appending(folder: Path, text: str) -> tuple[int, int]:
    """The characters that were counted, and the texts that were embedded, for one more line."""
    work, embedder = Work(), Counting()
    with MemoryBank.open(folder, storage=MANUAL, embedder=embedder, count_tokens=work) as bank:
        notes = bank.agent("alice").notes
        notes.write("MEMORY.md", text)
        work.characters, embedded = 0, len(embedder.texts)
        notes.append("x", "MEMORY.md")
        counted = work.characters, len(embedder.texts) - embedded
        assert notes.read() == f"{text}x\n"
        found = bank.agent("alice").all()
        assert len(found) == len(
            bank.parts.ledger.resident.block("alice").notes["MEMORY.md"].chunks
        )
    with MemoryBank.open(folder, storage=MANUAL, embedder=embedder) as again:
        assert again.agent("alice").notes.read() == f"{text}x\n"
    return counted


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_line_costs_the_same_in_a_long_note_as_in_a_short_one(tmp_path: Path, line: str) -> None:
    short = work_of_appending(tmp_path / "short", line * (30_000 // len(line)))
    long = work_of_appending(tmp_path / "long", line * (600_000 // len(line)))
    assert long[1] == short[1] <= 2
    assert long[0] <= 1.5 * short[0]
    assert long[0] < 60_000


def test_a_chunk_that_was_deleted_comes_back_when_the_note_grows(tmp_path: Path) -> None:
    """As it does when any other part of the note changes."""
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, embedder=Counting()) as bank:
        alice = bank.agent("alice")
        alice.notes.write("MEMORY.md", "".join(f"line {n} of a note\n" for n in range(3000)))
        first, count = alice.all()[0], alice.count()
        alice.delete(first.id)
        alice.notes.append("more", "MEMORY.md")
        assert alice.count() == count
        assert first.content in {memory.content for memory in alice.all()}
