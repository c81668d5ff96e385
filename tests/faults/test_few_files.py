"""Without file descriptors a call says so; what killed processes left behind is swept."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from few_files import calls, only

from agents import MemoryBank, TierMemError
from banks import MANUAL
from waiting import LONG

PROGRAM = Path(__file__).with_name("few_files.py")


@pytest.mark.slow
def test_every_call_works_or_says_what_is_wrong(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, PROGRAM, tmp_path], capture_output=True, text=True, timeout=LONG
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == ""


def test_a_bank_goes_on_when_there_are_file_descriptors_again(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        bank.checkpoint(tmp_path / "one.tmck")
        for name in ("append", "checkpoint", "open another", "restore"):
            call = (
                calls(bank, tmp_path)[name]
                if name != "restore"
                else partial(MemoryBank.restore, tmp_path / "one.tmck", tmp_path / "back")
            )
            with only(0), pytest.raises(TierMemError):
                call()
        bank.agent("alice").notes.append("a line", "MEMORY.md")
        assert bank.agent("alice").notes.read() == "a line\n"


# What killed processes left


@pytest.fixture(scope="module")
def dead() -> int:
    """The number of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_opening_a_bank_sweeps_what_dead_processes_left(tmp_path: Path, dead: int) -> None:
    folder = tmp_path / "bank"
    MemoryBank.open(folder, storage=MANUAL).close()
    left = [
        f".one.tmck.{dead}.tmp", f".tokens.json.{dead}.0a1b2c3d.tmp", "journal.db.restoring",
        "journal.db.restoring-wal", f".bank.head.{dead}.0a1b2c3d.tmp",
    ]  # fmt: skip
    kept = [
        f".one.tmck.{os.getpid()}.tmp", f".mine.{dead}.tmp", f"one.tmck.{dead}.tmp",
        ".one.tmck.tmp", "one.tmck",
    ]  # fmt: skip
    for name in (*left, *kept):
        (folder / name).write_bytes(b"")
    MemoryBank.open(folder, storage=MANUAL).close()
    there = {path.name for path in folder.iterdir()}
    assert not there.intersection(left)
    assert there.issuperset(kept)


def test_writing_a_checkpoint_sweeps_half_written_ones(tmp_path: Path, dead: int) -> None:
    names = [f".tick-1.tmck.{dead}.tmp", f".mine.{dead}.tmp", f".another.{dead}.tmp"]
    for name in names:
        (tmp_path / name).write_bytes(b"")
    with MemoryBank.ephemeral() as bank:
        bank.checkpoint(tmp_path / "mine")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f".another.{dead}.tmp", "mine"]
