"""A process killed while it gives a bank another embedder leaves the bank with one of the two."""

import itertools
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import warm_children
from agents import EmbedderError, MemoryBank
from embedders import Noise

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("TIERMEM_REEMBED_KILLS", "4"))
TEXTS = 2_000
MANUAL = {"sync": "manual"}


def made(folder: Path, embedder: Noise | None) -> str:
    with MemoryBank.open(folder, embedder=embedder, storage=MANUAL) as bank:
        agent = bank.agent("ann")
        stored = agent.add_many([f"text {number}" for number in range(TEXTS)])
        for memory in stored[:50]:
            agent.update(memory.id, temperature="cold")
        return bank.state_hash()


def embedded_until_killed(folder: Path, lines: int, seconds: float) -> int:
    """How many texts were embedded until the process was killed, or had done all."""
    script = Path(__file__).with_name("reembedder.py")
    process = warm_children.Popen([sys.executable, str(script), folder], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        got = list(itertools.islice(process.stdout, lines))
        time.sleep(seconds)
    finally:
        process.kill()
    got += list(process.stdout)
    process.stdout.close()
    assert process.wait() in (-9, 0)
    return sum(int(line) for line in got if line.strip().isdigit())


def state(folder: Path) -> tuple[str, bool]:
    """The bank's hash, and whether it has the new embedder."""
    try:
        with MemoryBank.open(folder, storage=MANUAL) as bank:
            return bank.state_hash(), False
    except EmbedderError:
        with MemoryBank.open(folder, embedder=Noise(), storage=MANUAL) as bank:
            return bank.state_hash(), True


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_kill_leaves_the_old_or_the_new_and_the_next_call_goes_on(
    tmp_path: Path, seed: int
) -> None:
    old, new = made(tmp_path / "bank", None), made(tmp_path / "other", Noise())
    chance = random.Random(f"reembed {seed}")
    embedded = 0
    for _ in range(4):
        lines = chance.choice((1, 2, 8))  # the last batch is the eighth
        embedded += embedded_until_killed(tmp_path / "bank", lines, chance.uniform(0, 0.15))
        digest, is_new = state(tmp_path / "bank")
        assert digest == (new if is_new else old)
    MemoryBank.reembed(tmp_path / "bank", Noise())
    assert state(tmp_path / "bank") == (new, True)
    # What a killed process embedded and did not save is embedded again: one batch each time.
    assert embedded <= TEXTS + 4 * 256
