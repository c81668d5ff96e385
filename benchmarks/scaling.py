"""TierMem's cost per agent from 10 to 10,000 agents: it should not depend on how many there are.

Each number of agents has a bank in a process of its own; they take turns, so that a noisy moment
hits all of them. All run the same ticks, so an agent has as many memories in each.
"""

import argparse
import json
import os
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from children import Child
from contestants import TierMem
from report import Goal, console, goals, machine, number, table
from workload import TableEmbedder, Workload

_WARM_UP = 3
_PARTS = ("retrieval", "store", "commit", "tick")


def serve(folder: Path, workload: Workload, searches: int) -> Generator[Any, Any, None]:
    """Seed a bank; for each question the seconds per agent of each part, in one tick."""
    tiermem = TierMem(folder, TableEmbedder())
    everyone = range(workload.agents)
    for start in range(0, workload.agents, 100):
        tiermem.seed(workload.seed(everyone[start : start + 100]))
    yield None
    tick = 0
    while True:
        tick += 1
        split = tiermem.tick(
            tick, workload.requests(tick, everyone), workload.items(tick, everyone)
        )
        # Alone, and with new questions each time: enough of them for a steady clock.
        alone = [
            tiermem.search(workload.requests(tick * searches + n, everyone)) / workload.agents
            for n in range(searches)
        ]
        yield {
            "retrieval": median(alone),
            "store": split.store / workload.agents,
            "commit": split.commit / workload.agents,
            "tick": sum(split) / workload.agents,
        }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, nargs="+", default=[10, 100, 1000, 10_000])
    parser.add_argument("--memories", type=int, default=200)
    parser.add_argument("--ticks", type=int, default=15)
    parser.add_argument("--folder", type=Path, help="where to write; a disk, not a tmpfs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    console.quiet = options.json
    sizes = sorted(options.agents)
    taken: dict[int, list[dict[str, float]]] = {agents: [] for agents in sizes}
    with ExitStack() as stack:
        children = {}
        for agents in sizes:
            workload = Workload(agents, options.memories)
            searches = max(1, min(20, 1000 // agents))
            child = Child(serve, workload, searches, folder=options.folder)
            children[agents] = stack.enter_context(child)
            child.wait()
            console.log(f"{agents:,} agents × {options.memories} memories seeded")
        for tick in range(_WARM_UP + options.ticks):
            os.sync()
            for agents, child in children.items():
                split = child.ask(None)
                if tick >= _WARM_UP:
                    taken[agents].append(split)
    results = {
        agents: {part: median(split[part] for split in splits) * 1e6 for part in _PARTS}
        for agents, splits in taken.items()
    }
    if options.json:
        print(json.dumps({"machine": machine(), **vars(options), "us": results}, default=str))
    else:
        show(results, options.memories)


def show(results: dict[int, dict[str, float]], memories: int) -> None:
    """Print the tables."""
    rows = [
        (f"{agents:,}", *(number(result[part]) for part in _PARTS))
        for agents, result in results.items()
    ]
    last, first = list(results)[-1], next(iter(results))
    spread = {}
    for part in _PARTS:
        values = [result[part] for result in results.values()]
        spread[part] = max(values) / min(values)
    ends = (number(results[last][part] / results[first][part]) + "×" for part in _PARTS)
    rows.append((f"{last:,} to {first:,}", *ends))
    rows.append(("largest to smallest", *(f"{number(spread[part])}×" for part in _PARTS)))
    table(f"µs per agent, {memories} memories each", ("agents", *_PARTS), rows)
    console.print("A commit has a fixed price, one fsync, which few agents share.")
    found = []
    for part in ("retrieval", "tick"):
        growth = results[last][part] / results[first][part]
        found.append(Goal(f"{part}, {last:,} agents to {first:,}", 1.3, growth))
        found.append(Goal(f"{part}, largest to smallest", 1.3, spread[part]))
    goals(found)
    console.print(machine())


if __name__ == "__main__":
    main()
