"""Someone swaps a note or its folder for a link while it is read or written: nothing leaks."""

import contextlib
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents.notes import files
from agents.notes.files import NoteFiles, NoteRefused
from waiting import LONG, ended

pytestmark = pytest.mark.slow

ROUNDS = 1_000
TEXT = "alice's own\n"
SECRET = "the secret of another\n"

# A round of each swaps the link in and out again. It goes on until told, and for all rounds.
SWAP = """
import contextlib, os, sys, time
kind, note, other, enough, rounds = sys.argv[1:]
spare, done = note + ".spare", 0
print("ready", flush=True)
while done < int(rounds) or not os.path.exists(enough):
    if kind == "file":
        os.symlink(other, spare)
        os.replace(spare, note)
        with open(spare, "w") as file:
            file.write("alice's own\\n")
        os.replace(spare, note)
    else:
        os.rename(note, spare)
        with contextlib.suppress(FileExistsError):  # a writer makes the folder that is gone
            os.symlink(other, note)
        while os.path.exists(spare):
            try:
                os.unlink(note)
            except FileNotFoundError:
                pass
            except OSError:
                os.rename(note, f"{note}.{done}.{time.monotonic_ns()}")
            with contextlib.suppress(OSError):
                os.rename(spare, note)
    done += 1
print(done)
"""


class Swapped:
    """A folder of notes, and another that the swapped link leads to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notes = NoteFiles(folder / "alice")
        self.memory = folder / "alice" / "memory"
        self.elsewhere = folder / "elsewhere"
        for place, text in ((self.memory, TEXT), (self.elsewhere, SECRET)):
            place.mkdir(parents=True)
            (place / "day.md").write_text(text)

    @contextlib.contextmanager
    def swapping(self, kind: str) -> Iterator[Callable[[], bool]]:
        """While another process swaps; gives whether it still does so."""
        names = ["day.md"] if kind == "file" else []
        note, other = self.memory.joinpath(*names), self.elsewhere.joinpath(*names)
        enough = self.folder / "enough"
        swapper = subprocess.Popen(
            [sys.executable, "-c", SWAP, kind, note, other, enough, str(ROUNDS)],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert swapper.stdout
            assert swapper.stdout.readline() == "ready\n"
            yield lambda: swapper.poll() is None
            enough.touch()
            output, _ = ended(swapper)
            assert swapper.returncode == 0
            assert int(output) >= ROUNDS
        finally:
            swapper.kill()
            swapper.communicate()


def outcome(call: Callable[[], str | None]) -> str | None:
    try:
        return call()
    except NoteRefused:
        return "refused"


@pytest.fixture
def swapped(tmp_path: Path) -> Swapped:
    return Swapped(tmp_path)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_link_swapped_in_while_reading_is_never_followed(swapped: Swapped, kind: str) -> None:
    seen: Counter[str | None] = Counter()
    deadline = time.monotonic() + LONG
    with swapped.swapping(kind) as still:
        # On a busy machine a thousand reads fit into moments when the swapper stands still.
        while seen.total() < ROUNDS or not 0 < seen[TEXT] < seen.total():
            seen[outcome(lambda: swapped.notes.read("memory/day.md"))] += 1
            assert still()
            assert time.monotonic() < deadline, f"only saw {seen}"
    # The swapped file is replaced at once: it is there all the time, as a note or as a link.
    assert set(seen) <= ({TEXT, "refused"} if kind == "file" else {TEXT, "refused", None})


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_link_swapped_in_while_listing_is_never_followed(swapped: Swapped, kind: str) -> None:
    (swapped.elsewhere / "secret.md").write_text(SECRET)
    listed = refused = 0
    deadline = time.monotonic() + LONG
    with swapped.swapping(kind) as still:
        while listed + refused < ROUNDS or not listed or (kind == "folder" and not refused):
            try:
                assert set(swapped.notes.paths()) <= {"memory/day.md"}
                listed += 1
            except NoteRefused:
                refused += 1
            assert time.monotonic() < deadline, f"{listed} listed, {refused} refused"
        assert still()


def test_a_link_swapped_in_while_writing_is_never_followed(
    swapped: Swapped, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files.os, "fsync", lambda file: None)
    seen: Counter[str | None] = Counter()

    def write() -> None:
        swapped.notes.stage("memory/new.md", TEXT)
        swapped.notes.publish("memory/new.md")
        swapped.notes.set_aside("memory/new.md", ".aside-1/new.md")

    with swapped.swapping("folder") as still:
        while seen.total() < ROUNDS:
            seen[outcome(write)] += 1
        assert still()
    assert set(seen) <= {None, "refused"}
    assert [path.name for path in swapped.elsewhere.iterdir()] == ["day.md"]
    assert (swapped.elsewhere / "day.md").read_text() == SECRET
