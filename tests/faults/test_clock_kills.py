"""A process killed while a wall clock moves its bank leaves whole steps, and time goes on."""

import itertools
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from clock_writer import AHEAD, READY, SmallEmbedder, open_bank

import warm_children
from agents import MemoryBank
from agents.engine import clock

pytestmark = pytest.mark.slow_after(1)

KILLS = int(os.environ.get("TIERMEM_CLOCK_KILLS", "6"))


def acknowledged(folder: Path, seed: int) -> list[tuple[int, int]]:
    """What a writer said until it was killed: commits and ticks."""
    rng = random.Random(f"clock {seed}")
    errors = folder.parent / "errors.txt"
    writer = Path(__file__).with_name("clock_writer.py")
    with errors.open("w") as stderr:
        process = warm_children.Popen(
            [sys.executable, str(writer), folder, str(seed)],
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
        assert process.stdout is not None
        try:
            got = list(itertools.islice(process.stdout, rng.randint(30, 150)))
            time.sleep(rng.uniform(0, 0.01))
        finally:
            process.kill()
        got += list(process.stdout)
        process.stdout.close()
        process.wait()
    assert process.returncode == -9, errors.read_text()
    assert got[0] == READY
    whole = [line.split() for line in got[1:] if line.endswith(b"\n")]
    return [(int(commit), int(tick)) for commit, tick in whole]


def assert_steps_are_whole(bank: MemoryBank) -> int:
    """After each commit in which the clock moved, all that had expired by then is deleted.

    The events are read here, and not by the package. Gives how many memories expired.
    """
    ends: dict[tuple[str, int], int] = {}
    tick = expired = 0
    for commit in bank.engine.journal.commits(after=0):
        events: list[list[Any]] = json.loads(commit.events)
        moved = [event[1] for event in events if event[0] == "tick"]
        assert [tick, *moved] == sorted([tick, *moved]), "the tick went back"
        tick = max([tick, *moved])
        assert commit.tick == tick
        for kind, agent, *rest in (event for event in events if event[0] != "tick"):
            if kind == "add" and rest[-1] is not None and rest[-1][3] is not None:
                ends[agent, rest[0]] = rest[-1][3]
            elif kind == "retain" and rest[-1] == "expire":
                expired += len(rest[0])
                for sequence in rest[0]:
                    # The journal no longer has the end of a memory that was purged since.
                    assert ends.pop((agent, sequence), tick) <= tick
        if moved:
            assert all(end > tick for end in ends.values()), "a step without what was due"
    return expired


@pytest.mark.long_after(3)
@pytest.mark.parametrize("seed", range(KILLS))
def test_a_killed_process_leaves_whole_steps_of_the_clock(tmp_path: Path, seed: int) -> None:
    folder, expired = tmp_path / "bank", 0
    for life in range(2):  # the second goes on with what the first left
        said = acknowledged(folder, seed + life)
        with open_bank(folder, "ticks") as bank:
            journal, anchor = bank.engine.journal, clock.anchor_of(bank.engine)
            assert (journal.head, bank.tick) >= said[-1]
            ticks = {commit.id: commit.tick for commit in journal.commits(after=0)}
            assert all(ticks.get(commit, tick) == tick for commit, tick in said)
            assert anchor is not None
            assert anchor.tick // AHEAD == bank.tick // AHEAD, "an advance without its anchor"
            expired = assert_steps_are_whole(bank)
            state, tick = bank.state_hash(), bank.tick
        with MemoryBank.at(folder, embedder=SmallEmbedder()) as copy:
            assert copy.state_hash() == state
        least = anchor.tick_at(clock.now_ms())
        with open_bank(folder) as bank:
            assert max(tick, least) <= bank.tick <= anchor.tick_at(clock.now_ms())
            assert_steps_are_whole(bank)
    assert expired
