"""A process that writes to a bank until it is killed, and says on standard output what it did.

Run as ``python writer.py FOLDER SEED SYNC``. A line follows each commit that returned. What it
writes depends on the seed alone, so whoever has read n lines knows what the bank must hold.
"""

import contextlib
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "property"))

from model.bank import ModelBank
from model.memories import Refused, Rules

from agents import MemoryBank, MemoryNotFound, MemoryPinned
from agents.memory.records import id_prefix, memory_id
from asking import asked
from tiermem.testing import SmallEmbedder

AGENTS = ("alice", "bob")
CAPS = {"max_pinned": 2, "max_critical": 3}
RULES = Rules(**CAPS)
HEAT = {"hot_max_tokens": 10**9, "hot_max_facts": 10**6}
HEATS = ("hot", "warm", "cold")
NAMES = (
    "add", "add", "add", "delete", "delete", "pin", "set_tier", "advance", "archive", "bring_back",
    "forget", "promote", "demote", "search",
)  # fmt: skip
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
            name = rng.choice(NAMES)
            text = f"{seed}.{number}.{index} " + "ñ🙂x\n" * rng.randrange(length // 4)
            operation = (name, rng.choice(AGENTS), rng.randrange(1000), rng.randrange(5), text)
            operations.append(operation)
        yield operations


def more(pick: int, tier: int) -> dict[str, Any]:
    """What else is said of a new memory."""
    options: dict[str, Any] = {"kind": ("fact", "decision")[pick % 2], "tags": ["x"] * (pick % 3)}
    return options if tier == 0 else options | {"temperature": HEATS[pick % 3]}


def write(bank: MemoryBank, operation: Operation) -> None:
    """Do it to a bank."""
    name, agent, pick, tier, text = operation
    view = bank.agent(agent)
    memories = view.all()
    if name == "add":
        view.add(text, tier, {"pick": pick}, **more(pick, tier))
    elif name == "advance":
        bank.advance(bank.tick + 1)
    elif name == "bring_back":
        with contextlib.suppress(MemoryNotFound):
            view.update(
                memory_id(id_prefix(bank.settings.seed, agent), pick % 40 + 1), retention="active"
            )
    elif memories:
        chosen = memories[pick % len(memories)].id
        with contextlib.suppress(MemoryPinned):
            if name == "demote":
                asked(view, "demote", chosen, HEATS[1 + pick % 2])
            elif name == "set_tier":
                view.set_tier(chosen, tier)
            elif name == "search":  # is written with the next commit, so what it did may be lost
                view.search(text[:9])
            else:
                asked(view, name, chosen)


def imagine(model: ModelBank, operation: Operation) -> None:
    """Do the same to the model."""
    name, agent, pick, tier, text = operation
    memories = model.of(agent)
    if name == "add":
        model.add_many([(agent, text, tier, {"pick": pick}, more(pick, tier))])
    elif name == "advance":
        model.advance(model.tick + 1)
    elif name == "bring_back":
        with contextlib.suppress(Refused):
            model.restore(agent, pick % 40 + 1)
    elif memories and name != "search":
        chosen = memories[pick % len(memories)].sequence
        with contextlib.suppress(Refused):
            if name == "demote":
                model.demote(agent, chosen, HEATS[1 + pick % 2])
            elif name == "set_tier":
                model.set_tier(agent, chosen, tier)
            else:
                getattr(model, name)(agent, chosen)


def main(folder: str, seed: str, sync: str) -> None:
    from agents.storage.state.ledger import Ledger

    if int(seed) % 2:
        Ledger.SNAPSHOT_ON_COMMIT = 50  # so that kills meet snapshots too
    os.write(1, READY)
    bank = MemoryBank.open(
        folder,
        embedder=SmallEmbedder(),
        memory=CAPS,
        temperature=HEAT,
        storage={"sync": sync},
        retention={"grace": 10**6},  # the model knows no end of it
    )
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
