"""Two processes restore a checkpoint into the same new folder at the same time."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agents import EmbedderError, MemoryBank
from banks import MANUAL, busy
from waiting import ended

RESTORES = """
import os, sys
from agents import MemoryBank, TierMemError
checkpoint, folder, rounds = sys.argv[1:]
for each in range(int(rounds)):
    sys.stdin.readline()
    try:
        bank = MemoryBank.restore(checkpoint, f"{folder}/{each}", storage={"sync": "manual"})
    except TierMemError as error:
        print(type(error).__name__, flush=True)
    else:
        bank.agent("alice").add(f"from {os.getpid()}")
        print("won", flush=True)
        sys.stdin.readline()
        bank.close()
        continue
    sys.stdin.readline()
"""
ROUNDS = 40


class Asked(Mapping[str, Any]):
    """Settings that restore the checkpoint into the same folder each time they are read."""

    def __init__(self, checkpoint: Path, folder: Path) -> None:
        self._checkpoint, self._folder = checkpoint, folder
        self.came_to: list[str] = []

    def __getitem__(self, key: str) -> Any:
        return MANUAL

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        if self._folder.exists():
            try:
                MemoryBank.restore(self._checkpoint, self._folder, storage=MANUAL).close()
            except Exception as error:
                self.came_to.append(type(error).__name__)
        return iter(["storage"])


def test_nobody_comes_between_a_restored_bank_and_its_opening(tmp_path: Path) -> None:
    with MemoryBank.ephemeral() as bank:
        bank.agent("alice").add("kept")
        bank.checkpoint(tmp_path / "kept.tmck")
    asked = Asked(tmp_path / "kept.tmck", tmp_path / "new")
    with MemoryBank.restore(tmp_path / "kept.tmck", tmp_path / "new", asked) as bank:
        assert bank.agent("alice").count() == 1
    assert set(asked.came_to) == {"BankLocked"}


def test_a_refused_opening_of_a_restored_bank_leaves_no_lock(tmp_path: Path) -> None:
    with MemoryBank.ephemeral() as bank:
        bank.agent("alice").add("kept")
        bank.checkpoint(tmp_path / "kept.tmck")
    with pytest.raises(EmbedderError):
        MemoryBank.restore(
            tmp_path / "kept.tmck", tmp_path / "new", storage=MANUAL, embedder={"provider": "none"}
        )
    MemoryBank.open(tmp_path / "new", storage=MANUAL).close()


@pytest.mark.slow
def test_one_of_two_restores_wins_and_the_other_is_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "kept.tmck"
    with MemoryBank.open(tmp_path / "first", storage=MANUAL) as bank:
        busy(bank)
        bank.checkpoint(checkpoint)
        count = bank.agent("a1").count()
    command = [sys.executable, "-c", RESTORES, checkpoint, tmp_path / "new", ROUNDS]
    both = [
        subprocess.Popen(
            [str(each) for each in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        for _ in range(2)
    ]
    said = []
    try:
        for _ in range(ROUNDS):
            for process in both:
                process.stdin.write("go\n")
            said.append(sorted(process.stdout.readline().strip() for process in both))
            for process in both:
                process.stdin.write("close\n")
    finally:
        errors = [ended(process)[1] for process in both]
    assert errors == ["", ""]
    assert {"won" in each for each in said} == {True}, Counter(map(str, said))
    assert {tuple(each) for each in said} <= {("BankLocked", "won"), ("BankError", "won")}
    for each in range(ROUNDS):
        with MemoryBank.open(tmp_path / "new" / str(each), storage=MANUAL) as bank:
            assert bank.agent("alice").count() == 1
            assert bank.agent("a1").count() == count
