"""A writer killed at any moment loses nothing acknowledged, and leaves a bank that opens."""

import itertools
import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model.bank import ModelBank
from model.memories import RETENTIONS, TEMPERATURES
from model.reading import quantise
from writer import AGENTS, CAPS, HEAT, READY, RULES, commits, imagine

import warm_children
from agents import BankLocked, MemoryBank, StoreError
from plain_mem0 import PlainMem0, assert_store_is_exact
from tiermem.testing import SmallEmbedder
from tiermem.testing.small import embed

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("TIERMEM_KILLS", "6"))
KILLS_OF_A_BANK = 50  # a bank that is never replaced grows, and so does each kill's check
BIRTHS = max(10, KILLS // 5)
STORE_KILLS = max(5, KILLS // 50)


class Writer:
    """The process in writer.py, from its start to its violent end."""

    def __init__(self, folder: Path, seed: int, sync: str = "manual") -> None:
        self.errors = folder.parent / "errors.txt"
        self._stderr = self.errors.open("w")
        self._process = warm_children.Popen(
            [sys.executable, str(Path(__file__).with_name("writer.py")), folder, str(seed), sync],
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        assert self._process.stdout is not None
        self._acknowledgements = self._process.stdout

    def read(self, lines: int) -> list[bytes]:
        return list(itertools.islice(self._acknowledgements, lines))

    def kill_after(self, acknowledgements: int, seconds: float) -> int:
        """Kill it so many acknowledgements and seconds on; the number of all it ever gave."""
        try:
            got = self.read(acknowledgements)
            time.sleep(seconds)
        finally:
            self._process.kill()
        got += list(self._acknowledgements)
        self._acknowledgements.close()
        self._process.wait()
        self._stderr.close()
        assert self._process.returncode == -9, self.errors.read_text()
        numbers = [int(line) for line in got if line != READY]
        assert numbers == list(range(1, len(numbers) + 1))
        return len(numbers)


def open_bank(folder: Path, sync: str = "manual") -> MemoryBank:
    return MemoryBank.open(
        folder,
        embedder=SmallEmbedder(),
        memory=CAPS,
        temperature=HEAT,
        storage={"sync": sync},
        retention={"grace": 10**6},  # the model knows no end of it
    )


def in_bank(bank: MemoryBank) -> dict[str, Any]:
    """Everything the bank holds, what is deleted too; but for how often it was used."""
    resident = bank.engine.state
    rows = {
        agent: [
            (
                m.sequence,
                m.content,
                int(m.tier),
                m.created_tick,
                m.tier_tick,
                dict(m.metadata),
                m.kind,
                m.tags,
                m.temperature.name.lower(),
                m.retention.name.lower(),
            )
            for sequence in range(1, resident.block(agent).next_sequence)
            if (m := resident.memory(agent, sequence))
        ]
        for agent in AGENTS
    }
    return {"tick": bank.tick, **rows}


def in_model(model: ModelBank) -> dict[str, Any]:
    rows = {
        agent: [
            (
                m.sequence,
                m.content,
                m.tier,
                m.created_tick,
                m.tier_tick,
                m.metadata,
                m.kind,
                m.tags,
                TEMPERATURES[m.temperature],
                RETENTIONS[m.retention],
            )
            for m in model.every(agent)
        ]
        for agent in AGENTS
    }
    return {"tick": model.tick, **rows}


def check_and_follow(bank: MemoryBank, model: ModelBank, seed: int, acknowledged: int) -> None:
    """The bank is as after the last acknowledged commit, or after the one under way as a whole.

    The model comes to the same state.
    """
    written = commits(seed)
    for operations in itertools.islice(written, acknowledged):
        for operation in operations:
            imagine(model, operation)
    found = in_bank(bank)
    if found != in_model(model):
        for operation in next(written):
            imagine(model, operation)
        assert found == in_model(model)
    for agent in AGENTS:
        assert bank.agent(agent).count("pinned") <= CAPS["max_pinned"]
        assert bank.agent(agent).count("critical") <= CAPS["max_critical"]
        ids = [memory.id for memory in bank.agent(agent).all()]
        assert len(set(ids)) == len(ids)
    assert len(bank.state_hash()) == 64


def new_model() -> ModelBank:
    return ModelBank(RULES)


def moments(kills: int, longest: float) -> Iterator[tuple[int, int, float]]:
    """Seeds, and when to kill: after how many lines, and how many seconds later."""
    for seed in range(kills):
        rng = random.Random(f"kill {seed}")
        yield seed, rng.randint(1, 40), rng.uniform(0, longest)


def test_kills_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    model = new_model()
    for seed, lines, seconds in moments(KILLS, longest=0.006):
        folder = tmp_path / f"bank-{seed // KILLS_OF_A_BANK}"
        if not folder.exists():
            model = new_model()
        acknowledged = Writer(folder, seed).kill_after(lines, seconds)
        with open_bank(folder) as bank:
            check_and_follow(bank, model, seed, acknowledged)
            before = bank.state_hash()
        with open_bank(folder) as bank:
            assert bank.state_hash() == before


def test_kills_while_a_bank_is_made_leave_one_that_opens(tmp_path: Path) -> None:
    for seed, _, seconds in moments(BIRTHS, longest=0.03):
        folder = tmp_path / str(seed)
        acknowledged = Writer(folder, seed).kill_after(1, seconds)
        with open_bank(folder) as bank:
            check_and_follow(bank, new_model(), seed, acknowledged)
            bank.agent("alice").add("still writable")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # in Chroma's and mem0's own code
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # mem0 leaves a history database open
def test_kills_leave_a_chroma_store_that_syncs_or_asks_for_repair(tmp_path: Path) -> None:
    folder, model = tmp_path / "bank", new_model()
    for seed, _, seconds in moments(STORE_KILLS, longest=0.2):
        acknowledged = Writer(folder, seed, "commit").kill_after(4 + seed, seconds)
        try:
            bank = open_bank(folder, "commit")
        except StoreError as error:
            message = str(error)
            bank = open_bank(folder, "manual")
            bank.repair_store()
        else:
            message = f"tiermem store rebuild {folder}"
            bank.sync()
        with bank:
            assert f"tiermem store rebuild {folder}" in message
            check_and_follow(bank, model, seed, acknowledged)
            assert_store_is_exact(bank)
            assert_vectors_are_in_the_store(bank)


def assert_vectors_are_in_the_store(bank: MemoryBank) -> None:
    """Chroma keeps rows and vectors in different files; a kill may come between the two."""
    with PlainMem0.of(bank) as plain:
        found = plain.memory.vector_store.collection.get(include=["embeddings"])
    vectors = dict(zip(found["ids"], found["embeddings"].tolist(), strict=True))
    for agent in AGENTS:
        for memory in bank.agent(agent).all():
            whole = quantise(embed(memory.content))
            length = math.hypot(*whole) or 1.0
            assert vectors[memory.id] == pytest.approx([number / length for number in whole])


def test_a_killed_writer_leaves_no_lock(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    writer = Writer(folder, 0)
    writer.read(3)
    with pytest.raises(BankLocked):
        open_bank(folder)
    writer.kill_after(0, 0)
    open_bank(folder).close()
