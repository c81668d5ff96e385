"""A million resident memories: how much memory they take, and how long a bank takes to open.

Each step is a process of its own: one writes a bank and closes it, a fresh one opens it. A second
writer is killed before it could save a snapshot, so that opening replays the whole journal.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from report import Goal, console, goals, machine, number, table
from workload import LIMIT, TableEmbedder, Workload

_SETTINGS = {"storage": {"sync": "manual"}}
_TABLE_ROWS = 4096
"""A small table: it counts as resident too."""
_AGENTS_PER_COMMIT = 10


def write(folder: Path, workload: Workload, *, killed: bool) -> dict[str, float]:
    """Fill a bank; close it, or die with every commit made and no snapshot."""
    from tiermem import MemoryBank

    bank = MemoryBank.open(folder, _SETTINGS, preset="vector", embedder=TableEmbedder(_TABLE_ROWS))
    start = perf_counter()
    for first in range(0, workload.agents, _AGENTS_PER_COMMIT):
        bank.advance(first)
        last = min(first + _AGENTS_PER_COMMIT, workload.agents)
        bank.add_many(workload.seed(range(first, last)))
    seconds = perf_counter() - start
    if killed:
        os.kill(os.getpid(), signal.SIGKILL)
    start = perf_counter()
    bank.close()
    return {"write": seconds, "close": perf_counter() - start}


def read(folder: Path, workload: Workload) -> dict[str, float]:
    """Open a bank and search it once for all agents."""
    from tiermem import MemoryBank

    embedder = TableEmbedder(_TABLE_ROWS)
    before = _gibibytes("VmRSS")
    start = perf_counter()
    bank = MemoryBank.open(folder, _SETTINGS, preset="vector", embedder=embedder)
    opened = perf_counter() - start
    resident = _gibibytes("VmRSS")
    seconds = []
    for tick in (1, 2):  # the first pays for what is done once
        requests = workload.requests(tick, range(workload.agents))
        start = perf_counter()
        found = bank.search_many(requests, LIMIT)
        seconds.append(perf_counter() - start)
    if min(map(len, found)) < min(LIMIT, workload.memories):
        raise SystemExit("an agent found too little")
    return {
        "open": opened,
        "before": before,
        "resident": resident,
        "searched": _gibibytes("VmRSS"),
        "peak": _gibibytes("VmHWM"),
        "first_search_us": seconds[0] / workload.agents * 1e6,
        "search_us": seconds[1] / workload.agents * 1e6,
    }


def _gibibytes(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) / 2**20
    raise SystemExit(f"this system doesn't tell {field}")


def in_child(step: str, folder: Path, workload: Workload) -> dict[str, float]:
    """Run a step in a fresh process."""
    command = [sys.executable, __file__, "--step", step, "--folder", str(folder)]
    command += ["--agents", str(workload.agents), "--memories", str(workload.memories)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if step == "write-killed":
        if done.returncode != -signal.SIGKILL:
            raise SystemExit("the writer was not killed")
        return {}
    if done.returncode:
        raise SystemExit(done.returncode)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--memories", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="where to write; a disk, not a tmpfs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--step", choices=("write", "write-killed", "read"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    workload = Workload(options.agents, options.memories)
    if options.step == "read":
        print(json.dumps(read(options.folder, workload)))
        return
    if options.step:
        print(json.dumps(write(options.folder, workload, killed=options.step == "write-killed")))
        return
    console.quiet = options.json
    tenth = Workload(max(1, options.agents // 10), options.memories)
    results: dict[str, dict[str, Any]] = {}
    for name, step, load in (
        ("all", "write", workload),
        ("a tenth", "write", tenth),
        ("a tenth, writer killed", "write-killed", tenth),
    ):
        with tempfile.TemporaryDirectory(prefix="tiermem-bench-", dir=options.folder) as folder:
            written = in_child(step, Path(folder), load)
            size = sum(file.stat().st_size for file in Path(folder).rglob("*")) / 2**30
            os.sync()
            count = load.agents * load.memories
            results[name] = {"memories": count, "disk": size, **written}
            results[name] |= in_child("read", Path(folder), load)
        console.log(f"{name}: {count:,} memories")
    if options.json:
        print(json.dumps({"machine": machine(), "results": results}))
    else:
        show(results)


def show(results: dict[str, dict[str, Any]]) -> None:
    """Print the tables."""
    columns = {
        "write": "write s", "close": "close s", "disk": "disk GiB", "open": "open s",
        "resident": "resident GiB", "peak": "peak GiB", "search_us": "search µs/agent",
    }  # fmt: skip
    rows = [
        (f"{result['memories']:,} ({name})", *(number(result.get(key, 0)) for key in columns))
        for name, result in results.items()
    ]
    table("A bank that is closed and opened again", ("memories", *columns.values()), rows)
    whole, tenth, killed = results.values()
    if whole["memories"] == 1_000_000:
        goals(
            [
                Goal("1,000,000 memories, resident", 1.6, whole["resident"], "GiB"),
                Goal("1,000,000 memories, peak", 1.6, whole["peak"], "GiB"),
                Goal("1,000,000 memories, open", 15, whole["open"], "s"),
                Goal("100,000 memories, open", 3, tenth["open"], "s"),
                Goal("100,000 memories, open after a kill", 3, killed["open"], "s"),
            ]
        )
    console.print(machine())


if __name__ == "__main__":
    main()
