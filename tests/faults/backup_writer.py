"""A process that writes to a bank as fast as it can, until it is killed: ``FOLDER SEED [CLOSES]``.

After each commit it says on standard output which commit that was, and the hash of the bank's state
after it. With CLOSES, it closes the bank and opens it again now and then.
"""

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from agents import MemoryBank
from tiermem.testing import SmallEmbedder

SETTINGS = {"storage": {"sync": "manual"}, "memory": {"max_pinned": 2, "max_critical": 3}}


def opened(folder: Path) -> MemoryBank:
    return MemoryBank.open(folder, embedder=SmallEmbedder(), **SETTINGS)


def change(bank: MemoryBank, rng: random.Random, number: int) -> None:
    """One commit, of any kind."""
    alice, bob = bank.agent("alice"), bank.agent("bob")
    kind = rng.randrange(8)
    if kind == 0:
        bank.advance(bank.tick + 1)
    elif kind == 1:
        alice.notes.write("MEMORY.md", f"# Plan {number}\n\nNever trade fish.\n")
    elif kind == 2 and (own := alice.all("low")):
        alice.forget(rng.choice(own).id)
    elif kind == 3:
        bob.add(f"cold {number}", temperature="cold", kind="decision")
    elif kind == 4:
        bank.group("friends", ["alice", "bob"]).post("bob", f"posted {number}")
    elif kind == 5:
        bank.add_many([("bob", f"{number} of {each} " + "x" * 2000) for each in range(40)])
    else:
        alice.add(f"memory {number}", rng.randrange(5), session="talk")


def main(folder: str, seed: str, closes: str = "") -> None:
    rng = random.Random(int(seed))
    bank = opened(Path(folder))
    print("ready", flush=True)
    number = 0
    while True:
        number += 1
        if closes and number % 5 == 0:
            bank.close()
            bank = opened(Path(folder))
        with bank.transaction():
            change(bank, rng, number)
        print(bank.engine.journal.head, bank.state_hash(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
