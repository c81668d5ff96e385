"""A process that moves a bank's memories between temperatures until it is killed.

Run as ``python temperature_writer.py FOLDER SEED``. After each commit that returned, it says the
hash of the bank's state. What it does depends on the seed and on what the bank holds, so whoever
starts with an equal bank can follow it.
"""

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "property"))

from agents import InvalidInput, MemoryBank, MemoryNotFound, MemoryPinned
from agents.engine import read
from asking import asked
from tiermem.testing import SmallEmbedder

AGENTS = ("alice", "bob")
SETTINGS: dict[str, Any] = {
    "memory": {"max_pinned": 2, "max_critical": 3},
    "temperature": {
        "hot_max_tokens": 60,
        "hot_max_facts": 4,
        "max_cold_items": 6,
        "promote_accesses": 2,
        "promote_window": 3,
    },
    "decay": {"enabled": True, "half_life": {"critical": 4, "important": 3, "normal": 2, "low": 1}},
    "retention": {"grace": 3},
    "storage": {"sync": "manual"},
}
READY = b"ready\n"

_NAMES = (
    ["add"] * 6
    + ["archive", "delete", "restore", "restore", "forget", "pin", "unpin", "set_tier"]
    + ["promote", "warm", "cold", "spill", "recall", "search", "search_all"]
    + ["compact", "prune", "sweep", "advance"]
    + ["add_key", "add_key", "add_key", "update", "update"]
)


def open_bank(folder: Path) -> MemoryBank:
    return MemoryBank.open(folder, embedder=SmallEmbedder(), **SETTINGS)


def text_of(seed: int, step: int, index: int) -> str:
    """Nothing else has this text in it."""
    return f"zq{seed}x{step}x{index}qz"


def steps(bank: MemoryBank, seed: int) -> Iterator[list[str]]:
    """Do one commit after the other, without end; gives the texts that each made it forget."""
    rng = random.Random(seed)
    for step in range(1, 1_000_000):
        forgotten: list[str] = []
        size = rng.choice([1, 1, 1, 3, 8])
        if size == 1:
            act(bank, rng, text_of(seed, step, 0), forgotten)
            bank.commit()  # a search is kept with the next commit: this one
        else:
            with bank.transaction():
                for index in range(size):
                    act(bank, rng, text_of(seed, step, index), forgotten)
        yield forgotten


def act(bank: MemoryBank, rng: random.Random, text: str, forgotten: list[str]) -> None:
    """Do one thing, if the memory that was chosen for it allows it."""
    name, view = rng.choice(_NAMES), bank.agent(rng.choice(AGENTS))
    tier, delta, count = rng.randrange(5), rng.randrange(1, 3), rng.randrange(4)
    options = {
        "kind": rng.choice(["fact", "decision", "preference"]),
        "tags": rng.choice([(), (), ("task",), ("blocker",), ("task", "open")]),
        "temperature": rng.choice([None, "hot", "cold"]) if tier else None,
        "ttl": rng.choice([None, None, 2, 5]) if tier else None,
    }
    longer = " and so on" * rng.choice([0, 1, 5, 30])
    block = bank.engine.state.block(view.agent_id)
    pick = rng.randrange(1, block.next_sequence + 1)
    identifier = f"{block.prefix}{pick:012x}"
    try:
        if name == "add":
            view.add(text + longer, tier, {"pick": pick}, **options)
        elif name == "add_key":
            view.add(text + longer, tier if pick % 2 else None, key=f"key {count}")
        elif name == "update":
            view.update(identifier, text + longer)
        elif name in ("archive", "delete", "restore", "promote", "pin", "unpin"):
            asked(view, name, identifier)
        elif name == "forget":
            content = read.find(view.engine, view.agent_id, identifier, deleted=True).content
            view.forget(identifier)
            forgotten.append(content.split()[0])
        elif name == "set_tier":
            view.set_tier(identifier, tier)
        elif name in ("warm", "cold"):
            view.update(identifier, temperature=name)
        elif name == "spill":
            view.spill(count)
        elif name == "recall":
            view.recall(text, count)
        elif name in ("search", "search_all"):
            view.search(text, count, include_cold=name == "search_all")
        elif name == "advance":
            bank.advance(bank.tick + delta)
        else:
            getattr(bank, name)()
    except (MemoryNotFound, MemoryPinned, InvalidInput):
        pass  # it has gone, is pinned, or is archived


def main(folder: str, seed: str) -> None:
    from agents.storage.state.ledger import Ledger

    if int(seed) % 2:
        Ledger.SNAPSHOT_ON_COMMIT = 10  # so that kills meet snapshots too
    os.write(1, READY)
    bank = open_bank(Path(folder))
    for _ in steps(bank, int(seed)):
        os.write(1, bank.state_hash().encode() + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
