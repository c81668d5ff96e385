"""Telling: does a tell cost the same, whatever was told before?

Agents tell memories in batches, in one bank. The time of a tell in the first part of the tells is
compared with the last part's. A tenth of the tells says something that its listener knows already.

Then one agent takes back what it told many, and what went from hand to hand: does a listener cost
the same, however many there are?
"""

import argparse
import tempfile
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import process_time

from report import Goal, console, goals, machine, number, table
from temperature import Drawn

_PARTS = 10
_FLAT = 1.5
_LISTENERS = (250, 500, 1000)


def measured(folder: Path, tells: int, agents: int) -> list[float]:
    """The seconds of processor time of a tell, for each part of the tells."""
    from tiermem import MemoryBank
    from tiermem.telling.tell import deliver, telling

    names = [f"agent_{n:05}" for n in range(agents)]
    settings = {"storage": {"sync": "manual"}, "seed": 7}
    parts, at_once = [], min(1000, max(1, tells // (4 * _PARTS)))
    with MemoryBank.open(folder, settings, preset="vector", embedder=Drawn()) as bank:
        for part in range(_PARTS):
            seconds = []
            for batch in range(tells // _PARTS // at_once):
                start = (part * tells // _PARTS) + batch * at_once
                news = [(names[n % agents], f"news {n}") for n in range(start, start + at_once)]
                memories = bank.add_many(news)
                begun = process_time()
                said = []
                for place, memory in enumerate(memories):
                    to = names[(start + place + 1 + place % 7) % agents]
                    said.append(telling(bank.engine, memory, to))
                    if place % 10 == 0:
                        said.append(said[-1])
                deliver(bank.engine, said)
                seconds.append((process_time() - begun) / len(said))
            parts.append(median(seconds))
    return parts


def retracted(listeners: int, *, is_chain: bool) -> float:
    """The seconds of processor time of a retract, for each agent that it reaches."""
    from tiermem import MemoryBank

    names = [f"agent_{n:05}" for n in range(listeners + 1)]
    with MemoryBank.ephemeral(preset="vector", embedder=Drawn(), seed=7) as bank:
        first = bank.agent(names[0])
        own = last = first.add("the well is poisoned").id
        with bank.transaction():
            if is_chain:
                for teller, listener in pairwise(names):
                    last = bank.agent(teller).social.tell(listener, last).memory_id
            else:
                first.social.broadcast(own, names[1:])
        begun = process_time()
        reached = len(first.social.retract(own, "the well is clean"))
        seconds = process_time() - begun
    if reached != listeners:
        raise SystemExit(f"the correction reached {reached} of {listeners} agents")
    return seconds / listeners


def retracts() -> tuple[list[list[str]], float]:
    """The rows of the table of retracts, and how the dearest listener compares with the first."""
    cases = [(listeners, False) for listeners in _LISTENERS] + [(_LISTENERS[-1], True)]
    rows, costs = [], []
    for listeners, is_chain in cases:
        costs.append(median(retracted(listeners, is_chain=is_chain) for _ in range(3)))
        how = "a chain of hands" if is_chain else "a broadcast"
        rows.append([f"{how}: {listeners:,}", number(costs[-1] * 1e6)])
    return rows, max(costs[1:]) / costs[0]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tells", type=int, default=1_000_000)
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--small", action="store_true", help="20,000 tells of 100 agents")
    given = parser.parse_args()
    tells, agents = (20_000, 100) if given.small else (given.tells, given.agents)
    with tempfile.TemporaryDirectory() as folder:
        parts = measured(Path(folder) / "bank", tells, agents)
    console.print(machine())
    rows = [
        [f"{place * 10} to {place * 10 + 10} %", number(own * 1e6)]
        for place, own in enumerate(parts)
    ]
    table(f"{tells:,} tells of {agents:,} agents", ["part", "µs of a tell"], rows)
    ratio = median(parts[-3:]) / median(parts[:3])
    taken_back, growth = retracts()
    table("retracts", ["what was told", "µs of a listener"], taken_back)
    goals(
        [
            Goal("a tell among the last, to one among the first", _FLAT, ratio),
            Goal("a listener of a retract, the dearest to that of 250", _FLAT, growth),
        ]
    )


if __name__ == "__main__":
    main()
