"""A process ends without a close after memories left mem0's store."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agents import MemoryBank
from embedders import Directions
from plain_mem0 import assert_store_is_exact

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # third-party code
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

ENDS = """
import os, signal, sys
from agents import MemoryBank
from agents.storage.mem0.store import Mem0Store
from embedders import Directions

folder, way, end = sys.argv[1:4]
bank = MemoryBank.open(folder, embedder=Directions(), preset="vector", retention={"grace": 1})
if end == "half-way":
    deletes = Mem0Store.delete
    def dies(self, ids):
        deletes(self, ids)
        os.kill(os.getpid(), signal.SIGKILL)
    Mem0Store.delete = dies
if way == "repair":
    moves = Mem0Store.set_aside
    def dies(self, *names):
        moves(self, *names)
        os.kill(os.getpid(), signal.SIGKILL)
    Mem0Store.set_aside = dies
    bank.repair_store()
alice = bank.agent("alice")
gone = [memory for memory in alice.all() if memory.content.startswith("secret")]
if way == "forget":
    for memory in gone:
        alice.forget(memory.id)
elif way == "group":
    bank.group("crew").forget(bank.group("crew").all()[0].id)
elif way == "sweep":
    for memory in gone:
        alice.delete(memory.id)
    bank.pass_time(bank.tick + 5)
    bank.sync()
if end == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.long_after(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "end"),
    [
        ("forget", "kill"),
        ("forget", "exit"),
        ("forget", "half-way"),
        ("group", "kill"),
        ("sweep", "kill"),
        ("sweep", "half-way"),
        ("repair", "half-way"),
    ],
)
def test_a_bank_opens_after_a_process_that_emptied_its_store_and_did_not_close_it(
    folder: Path, way: str, end: str
) -> None:
    with MemoryBank.open(folder, embedder=Directions(), preset="vector") as bank:
        bank.agent("alice").add_many(["first <1 0>", "secret <0 1>", "secret <1 1>"])
        if way == "group":
            bank.group("crew", ["alice"]).post("alice", "on the board <1 0>")
    ended = subprocess.run(
        [sys.executable, "-c", ENDS, str(folder), way, end],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == (0 if end == "exit" else -signal.SIGKILL), ended.stderr
    for _ in range(2):
        with MemoryBank.open(folder, embedder=Directions(), preset="vector") as bank:
            left = [memory.content for memory in bank.agent("alice").all()]
            bank.sync()
            bank.engine.store.close()
            assert_store_is_exact(bank)
    assert (
        len(left)
        == {"forget": 2 if end == "half-way" else 1, "group": 3, "sweep": 1, "repair": 3}[way]
    )
