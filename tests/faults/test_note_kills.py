"""A process that is killed while it writes notes loses none that it acknowledged, and half of none:
the files and the journal tell the same story."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import warm_children
from agents import MemoryBank

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("TIERMEM_NOTE_KILLS", "15"))
KILLS_OF_A_BANK = 50  # a bank that is never replaced grows, and so does each kill's check


def write_until_killed(folder: Path, seconds: float, script: str = "note_writer.py") -> int:
    """The last line that it acknowledged."""
    process = warm_children.Popen(
        [sys.executable, str(Path(__file__).with_name(script)), folder],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(seconds)
    process.kill()
    rest = process.stdout.readlines()
    process.stdout.close()
    assert process.wait() == -9
    return int([first, *rest][-1])


def lines_of(text: str) -> list[int]:
    return [int(line.removeprefix("line ")) for line in text.splitlines()]


def test_killed_at_any_moment_files_and_journal_agree(tmp_path: Path) -> None:
    rng = random.Random(7)
    for kill in range(KILLS):
        folder = tmp_path / f"bank-{kill // KILLS_OF_A_BANK}"
        acknowledged = write_until_killed(folder, rng.uniform(0.0, 0.25))
        with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
            notes = bank.agent("alice").notes
            written = lines_of(notes.read("MEMORY.md"))
            assert written == list(range(1, len(written) + 1))
            assert acknowledged <= len(written) <= acknowledged + 1
            by_day = [lines_of(notes.read(f"memory/{day}.md")) for day in range(3)]
            assert by_day == [[n for n in written if n % 3 == day] for day in range(3)]
            for path, note in bank.engine.state.block("alice").notes.items():
                assert (folder / "notes/alice" / path).read_text() == note.text
                found = [memory.content for memory in bank.agent("alice").all()
                         if memory.metadata["path"] == path]  # fmt: skip
                assert "".join(found).endswith(note.text[-8:])
        assert not list(folder.rglob("*.new"))


def test_killed_at_any_moment_a_transcript_is_indexed_once(tmp_path: Path) -> None:
    rng = random.Random(8)
    path = "sessions/talk.jsonl"
    for kill in range(KILLS):
        folder = tmp_path / f"bank-{kill // KILLS_OF_A_BANK}"
        acknowledged = write_until_killed(folder, rng.uniform(0.0, 0.25), "transcript_reader.py")
        with MemoryBank.at(folder) as bank:
            texts = [memory.content for memory in bank.agent("alice").all()]
            kept = [line for text in texts for line in text.splitlines()]
            assert kept == [f"user: line {n}" for n in range(1, len(kept) + 1)]
            assert len(kept) >= acknowledged
        file = folder / "notes/alice" / path
        whole, _, torn = file.read_bytes().rpartition(b"\n")
        file.write_bytes(whole + b"\n" if whole else b"")  # the writer begins its line anew
        with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
            alice = bank.agent("alice")
            assert "".join(memory.content for memory in alice.all()) == alice.notes.read(path), torn
