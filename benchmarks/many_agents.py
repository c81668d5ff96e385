"""Many agents with few memories each, beside few agents with as many memories in all.

A population of 100,000 agents × 5 memories and one of 1,000 agents × 500 do the same in the same
run: their ticks take turns. A tick is a search and a new memory of each agent, in one transaction;
what it costs an agent is processor time. After the ticks, the few agents get the memories that they
have less than the many, so both banks are closed and opened with as many memories. Each step is a
process of its own.
"""

import argparse
import gc
import json
import os
import resource
import tempfile
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from children import Child
from report import Goal, console, goals, machine, number, table
from workload import LIMIT, TableEmbedder, Workload

_SETTINGS = {"storage": {"sync": "manual"}}
_TABLE_ROWS = 4096
_BATCH = 50_000
_WARM_UP = 2
_KILO = 1024


def _open(folder: Path) -> Any:
    from tiermem import MemoryBank

    embedder = TableEmbedder(_TABLE_ROWS)
    return MemoryBank.open(folder, _SETTINGS, preset="vector", embedder=embedder)


def fill(
    folder: Path, bank_folder: Path, workload: Workload, memories: int
) -> Generator[Any, Any, None]:
    """Write the memories of all agents, then a tick for each question.

    Before the last question closes the bank, each agent gets so many memories that it has
    ``memories`` of them.
    """
    bank = _open(bank_folder)
    at_once = max(1, _BATCH // workload.memories)
    for first in range(0, workload.agents, at_once):
        bank.add_many(workload.seed(range(first, min(first + at_once, workload.agents))))
    yield None
    tick, everyone, result = 0, range(workload.agents), None
    while (yield result) != "close":
        tick += 1
        requests = workload.requests(tick, everyone)
        items = workload.items(tick, everyone)[::2]
        gc.collect()
        start, began = process_time(), perf_counter()
        with bank.transaction():
            bank.advance(tick)
            bank.search_many(requests, LIMIT)
            bank.add_many(items)
        ticked, waited = process_time() - start, perf_counter() - began
        start = process_time()
        digest = bank.state_hash()
        result = {
            "tick": ticked / workload.agents,
            "wall": waited,
            "hash": process_time() - start,
            "digest": digest,
        }
    for later in range(tick + 1, tick + 1 + memories - workload.memories - tick):
        bank.add_many(workload.items(later, everyone)[::2])
    digest = bank.state_hash()
    start = process_time()
    bank.close()
    yield {"close": process_time() - start, "digest": digest}


def reopen(folder: Path, bank_folder: Path) -> Generator[Any, Any, None]:
    """Open a bank that was closed: how long it takes, and what it takes of memory."""
    import tiermem.bank  # noqa: F401  # imported before the clock runs

    embedder = _open(folder / "other")  # a bank of its own, so that what is made once is made
    embedder.close()
    gc.collect()
    before, objects = _resident(), len(gc.get_objects())
    start, began = process_time(), perf_counter()
    bank = _open(bank_folder)
    opened, waited = process_time() - start, perf_counter() - began
    gc.collect()
    resident, made = _resident() - before, len(gc.get_objects()) - objects
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KILO - before
    start = process_time()
    digest = bank.state_hash()
    yield {
        "open": opened,
        "open_wall": waited,
        "resident": resident,
        "peak": peak,
        "objects": made,
        "first_hash": process_time() - start,
        "digest": digest,
    }


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure(workloads: dict[str, Workload], ticks: int, folder: Path) -> dict[str, Any]:
    """What each population took."""
    taken: dict[str, list[dict[str, Any]]] = {name: [] for name in workloads}
    results: dict[str, dict[str, Any]] = {}
    memories = max(own.agents * (own.memories + _WARM_UP + ticks) for own in workloads.values())
    with ExitStack() as stack:
        children = {}
        for name, workload in workloads.items():
            each = memories // workload.agents
            child = Child(fill, folder / name, workload, each, folder=folder)
            children[name] = stack.enter_context(child)
            child.wait()
            console.log(f"{name}: {workload.agents:,} agents × {workload.memories} memories")
        for _ in range(_WARM_UP + ticks):
            for name, child in children.items():
                taken[name].append(child.ask("tick"))
        closed = {name: child.ask("close") for name, child in children.items()}
    for name, workload in workloads.items():
        with Child(reopen, folder / name, folder=folder) as child:
            opened = child.wait()
        if opened["digest"] != closed[name]["digest"]:
            raise SystemExit("the bank was opened to another state")
        steady = taken[name][_WARM_UP:]
        results[name] = {
            "agents": workload.agents,
            "memories": memories,
            **{key: median(each[key] for each in steady) for key in ("tick", "wall", "hash")},
            "close": closed[name]["close"],
            **opened,
        }
    return results


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, default=100_000, help="with few memories each")
    parser.add_argument("--few", type=int, default=1000, help="agents with many memories each")
    parser.add_argument("--memories", type=int, default=500_000, help="in all")
    parser.add_argument("--ticks", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="a tenth of all of it")
    parser.add_argument("--folder", type=Path, help="where to write; a disk, not a tmpfs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    console.quiet = options.json
    share = 10 if options.small else 1
    workloads = {
        name: Workload(agents // share, options.memories // agents)
        for name, agents in (("many", options.agents), ("few", options.few))
    }
    with tempfile.TemporaryDirectory(prefix="tiermem-bench-", dir=options.folder) as folder:
        results = measure(workloads, options.ticks, Path(folder))
    if options.json:
        print(json.dumps({"machine": machine(), **vars(options), "results": results}, default=str))
    else:
        show(results)


def show(results: dict[str, Any]) -> None:
    """Print the tables."""
    columns = {
        "tick": ("tick µs/agent", 1e6), "wall": ("tick s", 1), "hash": ("hash s", 1),
        "close": ("close s", 1), "open": ("open s", 1), "first_hash": ("first hash s", 1),
        "resident": ("resident MB", 1e-6), "peak": ("peak MB", 1e-6),
        "objects": ("objects", 1),
    }  # fmt: skip
    rows = [
        (f"{own['agents']:,}", *(number(own[key] * scale) for key, (_, scale) in columns.items()))
        for own in results.values()
    ]
    named = [title for title, _ in columns.values()]
    table("The same number of memories", ("agents", *named), rows)
    many, few = results["many"], results["few"]
    more = many["agents"] - few["agents"]
    per_agent = (many["resident"] - few["resident"]) / more
    objects = max(0, many["objects"] - few["objects"]) / more
    console.print(
        "Processor time, but for the tick in seconds. The hash is that after a tick; the first one "
        "after opening hashes all memories. Objects are what Python's garbage collector tracks."
    )
    goals(
        [
            Goal("tick of an agent, many to few", 1.5, many["tick"] / few["tick"]),
            Goal("state_hash() after a tick", 0.3, many["hash"], "s"),
            Goal("open", 5, many["open"], "s"),
            Goal("an agent beside its memories", 2, per_agent / _KILO, "kB"),
            Goal("objects for an agent that nobody looks at", 0, round(objects, 2), "objects"),
        ]
    )
    console.print(machine())


if __name__ == "__main__":
    main()
