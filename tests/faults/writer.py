"""A process that writes to a bank until it is killed, and says on standard output what it did.

Run as ``python writer.py FOLDER SEED SYNC``. A line follows each commit that returned. What it
writes depends on the seed alone, so whoever has read n lines knows what the bank must hold.
"""

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from agents import MemoryBank
from property.model import ModelBank, SmallEmbedder

AGENTS = ("alice", "bob")
CAPS = {"max_pinned": 2, "max_critical": 3}
READY = b"ready\n"

Operation = tuple[str, str, int, int, str]
"""What to do, for whom, to which of the agent's memories, which tier, and a text."""


def commits(seed: int) -> Iterator[list[Operation]]:
    """What the process with this seed writes, commit by commit, without end."""
    rng = random.Random(seed)
    number = 0
    while True:
        number += 1
        # Single calls, transactions, and now and then one of several hundred kilobytes.
        size, length = rng.choice([(1, 20), (1, 20), (1, 20), (3, 20), (8, 200), (60, 4000)])
        operations = []
        for index in range(size):
            name = rng.choice(["add", "add", "delete", "delete", "pin", "set_tier", "advance"])
            text = f"{seed}.{number}.{index} " + "ñ🙂x\n" * rng.randrange(length // 4)
            operation = (name, rng.choice(AGENTS), rng.randrange(1000), rng.randrange(5), text)
            operations.append(operation)
        yield operations


def write(bank: MemoryBank, operation: Operation) -> None:
    """Do it to a bank."""
    name, agent, pick, tier, text = operation
    view = bank.agent(agent)
    memories = view.all()
    if name == "add":
        view.add(text, tier, {"pick": pick})
    elif name == "advance":
        bank.advance(bank.tick + 1)
    elif memories:
        chosen = memories[pick % len(memories)].id
        if name == "delete":
            view.delete(chosen)
        elif name == "pin":
            view.pin(chosen)
        else:
            view.set_tier(chosen, tier)


def imagine(model: ModelBank, operation: Operation) -> None:
    """Do the same to the model."""
    name, agent, pick, tier, text = operation
    memories = model.of(agent)
    if name == "add":
        model.add(agent, text, tier, {"pick": pick})
    elif name == "advance":
        model.advance(model.tick + 1)
    elif memories:
        chosen = memories[pick % len(memories)].sequence
        if name == "delete":
            model.delete(agent, chosen)
        else:
            model.set_tier(agent, chosen, 0 if name == "pin" else tier)


def main(folder: str, seed: str, sync: str) -> None:
    from agents.storage.ledger import Ledger

    if int(seed) % 2:
        Ledger.SNAPSHOT_ON_COMMIT = 50  # so that kills meet snapshots too
    os.write(1, READY)
    bank = MemoryBank.open(folder, embedder=SmallEmbedder(), memory=CAPS, storage={"sync": sync})
    for number, operations in enumerate(commits(int(seed)), 1):
        if len(operations) == 1:
            write(bank, operations[0])
        else:
            with bank.transaction():
                for operation in operations:
                    write(bank, operation)
        os.write(1, b"%d\n" % number)


if __name__ == "__main__":
    main(*sys.argv[1:])
