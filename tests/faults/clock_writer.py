"""A process that stores memories with short lives while a wall clock moves its bank, until killed.

Run as ``python clock_writer.py FOLDER SEED``. After each call that returned, it says the number of
the last commit, and the tick. A tick is a millisecond.
"""

import os
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "property"))

from agents import MemoryBank
from tiermem.testing import SmallEmbedder

AHEAD = 10**9
"""How many ticks an advance moves the clock: as many milliseconds as no test takes."""
SETTINGS: dict[str, Any] = {
    "decay": {"enabled": True, "half_life": {"normal": 20, "low": 5}, "every": 3},
    "retention": {"grace": 200},
    "temperature": {"compact_every": 25},
    "storage": {"sync": "manual"},
}
READY = b"ready\n"


def open_bank(folder: Path, mode: str = "wall") -> MemoryBank:
    clock = {"mode": mode, "ticks_per_day": 86_400_000}
    return MemoryBank.open(folder, embedder=SmallEmbedder(), clock=clock, **SETTINGS)


def main(folder: str, seed: str) -> None:
    from agents.storage.state.ledger import Ledger

    if int(seed) % 2:
        Ledger.SNAPSHOT_ON_COMMIT = 10  # so that kills meet snapshots too
    rng = random.Random(int(seed))
    os.write(1, READY)
    bank = open_bank(Path(folder))
    while True:
        agent = bank.agent(rng.choice(("alice", "bob")))
        what = rng.randrange(10)
        if what < 6:
            text, life = f"memory {rng.random()}", rng.choice((None, 1, 5, 40))
            options = {"ttl": life, "temperature": rng.choice((None, "hot", "cold"))}
            agent.add(text, rng.choice(("critical", "normal", "low")), **options)
        elif what == 6 and rng.random() < 0.2:
            bank.pass_time((bank.tick // AHEAD + 1) * AHEAD)
        else:
            bank.follow_clock()
        os.write(1, f"{bank.engine.journal.head} {bank.tick}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
