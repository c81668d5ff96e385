"""Compaction and counting from 100 to 10,000 agents: a memory should cost the same in each.

Each number of agents has a bank in a process of its own; they take turns, so that a noisy moment
hits all of them. Every agent has as many memories in each bank.
"""

import argparse
import json
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from children import Child
from report import Goal, console, goals, machine, number, table
from temperature import Drawn

_PARTS = {
    "compact": "compaction, all become cold",
    "again": "compaction, nothing moves",
    "count": "count() of each agent",
}


def serve(folder: Path, agents: int, memories: int) -> Generator[Any, Any, None]:
    """For each question a new bank; the seconds of each part for a memory."""
    from tiermem import MemoryBank

    settings = {"storage": {"sync": "manual"}, "seed": 7}
    names = [f"agent_{n:05}" for n in range(agents)]
    embedder = Drawn()
    yield None
    turn = 0
    while True:
        turn += 1
        bank = MemoryBank.open(folder / str(turn), settings, preset="vector", embedder=embedder)
        for start in range(0, agents, 1000):
            bank.add_many(
                [
                    (name, f"text {n}", "normal", None, {"kind": "decision"})
                    for name in names[start : start + 1000]
                    for n in range(memories)
                ]
            )
        seconds = {}
        for part in _PARTS:
            begun = process_time()
            if part == "count":
                assert all(bank.agent(name).count() == memories for name in names)
            else:
                assert bank.compact().cold == (agents * memories if part == "compact" else 0)
            seconds[part] = (process_time() - begun) / (agents * memories)
        bank.close()
        yield seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--memories", type=int, default=60, help="of each agent")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where to write; a disk, not a tmpfs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    console.quiet = options.json
    console.print(machine())
    sizes = sorted(options.agents)
    taken: dict[int, list[dict[str, float]]] = {agents: [] for agents in sizes}
    with ExitStack() as stack:
        children = {}
        for agents in sizes:
            child = Child(serve, agents, options.memories, folder=options.folder)
            children[agents] = stack.enter_context(child)
            child.wait()
        for turn in range(options.turns):
            for agents, child in children.items():
                taken[agents].append(child.ask(None))
            console.log(f"turn {turn + 1} of {options.turns}")
    found = {
        agents: {part: median(own[part] for own in seconds) * 1e6 for part in _PARTS}
        for agents, seconds in taken.items()
    }
    if options.json:
        print(json.dumps(found, indent=2))
        return
    table(
        f"Processor time, µs a memory, {options.memories} memories an agent",
        ("agents", *_PARTS.values()),
        [(f"{agents:,}", *map(number, own.values())) for agents, own in found.items()],
    )
    first, last = sizes[0], sizes[-1]
    goals(
        [
            Goal(f"{what}: a memory of {last:,} agents to one of {first:,}", 1.5,
                 found[last][part] / found[first][part])
            for part, what in _PARTS.items()
        ]
    )  # fmt: skip


if __name__ == "__main__":
    main()
