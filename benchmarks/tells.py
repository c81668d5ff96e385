"""Telling: does a tell cost the same, whatever was told before?

Agents tell memories in batches, in one bank. The time of a tell in the first part of the tells is
compared with the last part's. A tenth of the tells says something that its listener knows already.
"""

import argparse
import tempfile
from pathlib import Path
from statistics import median
from time import process_time

from report import Goal, console, goals, machine, number, table
from temperature import Drawn

_PARTS = 10
_FLAT = 1.5


def measured(folder: Path, tells: int, agents: int) -> list[float]:
    """The seconds of processor time of a tell, for each part of the tells."""
    from tiermem import MemoryBank
    from tiermem.engine.telling import deliver, telling

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
                    said.append(telling(bank.parts, memory, to))
                    if place % 10 == 0:
                        said.append(said[-1])
                deliver(bank.parts, said)
                seconds.append((process_time() - begun) / len(said))
            parts.append(median(seconds))
    return parts


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
    goals([Goal("a tell among the last, to one among the first", _FLAT, ratio)])


if __name__ == "__main__":
    main()
