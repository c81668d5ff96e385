"""One tick loop on TierMem, mem0, Chroma and LangGraph: a retrieval and two stores per agent.

Every contestant starts with the same memories, gets the same vectors from a table (the cost of
embedding is left out) and runs in a process of its own; the ticks take turns. A contestant
that would take longer than --seconds is asked by fewer agents of the same population, and the
result is scaled up and marked with an asterisk.
"""

import argparse
import json
import os
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from children import Child
from contestants import Contestant, MachineLimit, Split, TierMem
from peers import LangGraph, LangGraphArrays, PlainChroma, PlainMem0
from report import Goal, console, goals, machine, number, table
from workload import STORES_PER_TICK, TableEmbedder, Workload

CONTESTANTS: dict[str, type[Contestant]] = {
    "tiermem": TierMem,
    "limit": MachineLimit,
    "langgraph": LangGraph,
    "langgraph-arrays": LangGraphArrays,
    "chroma": PlainChroma,
    "mem0": PlainMem0,
}

_WARM_UP = 3
_TURNS = 3
_PROBED_AGENTS = 3


def serve(
    folder: Path, name: str, workload: Workload, ticks: int, seconds: float
) -> Generator[Any, Any, None]:
    """Seed a contestant; answer the first question with how many agents will ask it in a tick.

    Every other question runs a tick, and the answer is where its time went.
    """
    kind = CONTESTANTS[name]
    contestant = kind(folder, TableEmbedder())
    everyone = range(workload.agents)
    for start in range(0, workload.agents, 1000):
        contestant.seed(workload.seed(everyone[start : start + 1000]))
    yield None

    few = everyone[:_PROBED_AGENTS]
    for tick in range(1, _WARM_UP + 1):
        probe = contestant.tick(tick, workload.requests(tick, few), workload.items(tick, few))
    per_agent = (probe.search + (0 if kind.stores_in_batches else probe.store)) / len(few)
    asking = min(workload.agents, max(_PROBED_AGENTS, int(seconds / ticks / per_agent)))
    scale = workload.agents / asking
    sample = [int(n * scale) for n in range(asking)]
    yield asking

    storing = everyone if kind.stores_in_batches else sample
    while True:
        tick += 1
        requests, items = workload.requests(tick, sample), workload.items(tick, storing)
        split = contestant.tick(tick, requests, items)
        scale_of_stores = workload.agents / len(storing)
        yield Split(split.search * scale, split.store * scale_of_stores, split.commit)


def measure(
    names: list[str], workload: Workload, ticks: int, seconds: float, folder: Path | None
) -> tuple[dict[str, int], dict[str, list[Split]]]:
    """How many agents asked each contestant in a tick, and where the time of each tick went."""
    with ExitStack() as stack:
        children = {
            name: stack.enter_context(Child(serve, name, workload, ticks, seconds, folder=folder))
            for name in names
        }
        for name, child in children.items():
            child.wait()
            console.log(f"{name}: has {workload.agents:,} agents × {workload.memories:,} memories")
        asking = {name: child.ask(None) for name, child in children.items()}
        taken: dict[str, list[Split]] = {name: [] for name in names}
        for turn in range(_TURNS):
            for name, child in children.items():
                os.sync()  # so that nobody waits for what another left to write
                for _ in range(_WARM_UP):  # nor reads what another left of the caches
                    child.ask(None)
                for _ in range(turn * ticks // _TURNS, (turn + 1) * ticks // _TURNS):
                    taken[name].append(child.ask(None))
        return asking, taken


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument(
        "--memories", type=int, default=100, help="per agent, before the first tick"
    )
    parser.add_argument("--ticks", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=30, help="most time for one contestant")
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS))
    parser.add_argument("--folder", type=Path, help="where to write; a disk, not a tmpfs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    console.quiet = options.json
    workload = Workload(options.agents, options.memories)
    asked, taken = measure(options.only, workload, options.ticks, options.seconds, options.folder)
    results = {name: summary(splits, workload) for name, splits in taken.items()}
    for name, result in results.items():
        result["extrapolated"] = asked[name] < workload.agents
        result["asked_by"] = asked[name]
        result["durable"] = CONTESTANTS[name].durable
        if "tiermem" in results:
            result["times_tiermem"] = result["tick_ms"] / results["tiermem"]["tick_ms"]
    if options.json:
        print(json.dumps({"machine": machine(), **vars(options), "results": results}, default=str))
    else:
        show(results, workload)


def summary(splits: list[Split], workload: Workload) -> dict[str, Any]:
    """Medians over ticks."""
    totals = [sum(split) for split in splits]
    return {
        "tick_ms": median(totals) * 1e3,
        "p95_ms": float(np.percentile(totals, 95)) * 1e3,
        "agent_us": median(totals) / workload.agents * 1e6,
        "search_us": median(split.search for split in splits) / workload.agents * 1e6,
        "store_us": median(split.store for split in splits)
        / workload.agents / STORES_PER_TICK * 1e6,
        "commit_ms": median(split.commit for split in splits) * 1e3,
    }  # fmt: skip


def show(results: dict[str, dict[str, Any]], workload: Workload) -> None:
    """Print the tables."""
    rows = []
    for name, result in sorted(results.items(), key=lambda entry: entry[1]["tick_ms"]):
        star = "*" if result["extrapolated"] else ""
        rows.append(
            (
                CONTESTANTS[name].title + star,
                number(result["tick_ms"]),
                number(result["p95_ms"]),
                number(result["agent_us"]),
                number(result["search_us"]),
                number(result["store_us"]),
                number(result["commit_ms"]),
                f"{number(result['times_tiermem'])}×" if "times_tiermem" in result else "",
                "yes" if result["durable"] else "no",
            )
        )
    columns = (
        "", "tick ms", "p95 ms", "µs/agent", "search µs/agent", "store µs/memory", "commit ms",
        "ratio", "durable",
    )  # fmt: skip
    heading = f"A tick of {workload.agents:,} agents × {workload.memories:,} memories"
    table(heading, columns, rows)
    for name, result in results.items():
        if result["extrapolated"]:
            kind = CONTESTANTS[name]
            what = "searches" if kind.stores_in_batches else "searches and stores"
            console.print(
                f"* {kind.title}: {what} of {result['asked_by']} of {workload.agents:,} agents "
                "measured over the full population, and scaled up."
            )
    goals(reached(results, workload))
    console.print(machine())


def reached(results: dict[str, dict[str, Any]], workload: Workload) -> list[Goal]:
    """What this run says about the goals."""
    found = []
    times = {name: result.get("times_tiermem", 0.0) for name, result in results.items()}
    if "tiermem" not in results:
        return []
    least = {(100, 100): 1000, (1000, 200): 4000}.get((workload.agents, workload.memories))
    if "mem0" in times and least:
        found.append(Goal("as fast as mem0 + Chroma", least, times["mem0"], at_least=True))
    if "langgraph" in times and least:
        found.append(Goal("as fast as LangGraph", 40, times["langgraph"], at_least=True))
    own = results["tiermem"]
    if workload.memories == 200:
        found.append(Goal("batched retrieval per agent", 30, own["search_us"], "µs"))
    if "limit" in results:
        console.print(
            f"TierMem takes {number(1 / times['limit'])} times the machine's limit: retrieval "
            f"{number(own['search_us'] / results['limit']['search_us'])} times that of reading and "
            f"multiplying, commit {number(own['commit_ms'] / results['limit']['commit_ms'])} times "
            "that of one fsynced write."
        )
    return found


if __name__ == "__main__":
    main()
