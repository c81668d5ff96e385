"""A process killed while it moves memories leaves each of them whole, in one place."""

import itertools
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from temperature_writer import AGENTS, READY, open_bank, steps

import warm_children
from agents import MemoryBank
from agents.memory.tiers import Retention

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("TIERMEM_TEMPERATURE_KILLS", "10"))


def acknowledged(folder: Path, seed: int, lines: int, seconds: float) -> list[str]:
    """What a writer said until it was killed, so many lines and seconds after its start."""
    errors = folder.parent / "errors.txt"
    writer = Path(__file__).with_name("temperature_writer.py")
    with errors.open("w") as stderr:
        process = warm_children.Popen(
            [sys.executable, str(writer), folder, str(seed)],
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
        assert process.stdout is not None
        try:
            got = list(itertools.islice(process.stdout, lines))
            time.sleep(seconds)
        finally:
            process.kill()
        got += list(process.stdout)
        process.stdout.close()
        process.wait()
    assert process.returncode == -9, errors.read_text()
    assert got[0] == READY
    return [line.decode().strip() for line in got[1:]]


def moments() -> Iterator[tuple[int, int, float]]:
    for seed in range(KILLS):
        rng = random.Random(f"temperature {seed}")
        yield seed, rng.randint(20, 90), rng.uniform(0, 0.01)


def assert_in_one_place(bank: MemoryBank) -> None:
    """What is in the columns is not on the shelf, and every memory there can be read."""
    resident = bank.engine.state
    for agent in AGENTS:
        block = resident.block(agent)
        here = {block.sequence(row) for row in range(block.size)}
        shelved = [
            record.sequence
            for retention in Retention
            for record in resident.shelf.of_agent(agent, retention)
        ]
        assert len(set(shelved)) == len(shelved)
        assert here.isdisjoint(shelved)
        memories = bank.agent(agent).all()
        for memory in memories:
            assert bank.agent(agent).get(memory.id) == memory
        keys = [memory.key for memory in memories if memory.key is not None]
        assert len(set(keys)) == len(keys), "two memories are active under one key"


def assert_nowhere(folder: Path, texts: list[str]) -> None:
    for file in folder.rglob("*"):
        data = file.read_bytes() if file.is_file() else b""
        for text in texts:
            assert text.encode() not in data, f"{text} is in {file.name}"


def test_kills_lose_no_move_that_was_acknowledged_and_bring_nothing_forgotten_back(
    tmp_path: Path,
) -> None:
    folder, forgotten = tmp_path / "bank", []
    with open_bank(tmp_path / "twin") as twin:
        for seed, lines, seconds in moments():
            said = acknowledged(folder, seed, lines, seconds)
            follow = steps(twin, seed)
            for state in said:
                forgotten += next(follow)
                assert twin.state_hash() == state
            with open_bank(folder) as bank:
                found = bank.state_hash()
                if found != twin.state_hash():
                    forgotten += next(follow)
                    assert found == twin.state_hash()
                assert_in_one_place(bank)
                bank.vacuum()
            assert_nowhere(folder, forgotten)
            with open_bank(folder) as bank:
                assert bank.state_hash() == found
    assert forgotten
