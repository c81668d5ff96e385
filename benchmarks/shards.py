"""Spread runs against the local engine: ticks, traffic, and a model of more workers.

    python benchmarks/shards.py [--small]

Ratios are within one run of this program. What is not measured is called an estimate.
"""

import argparse
import os
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from tiermem.config.load import load_settings
from tiermem.simulation.runs.run import Run
from tiermem.simulation.runs.sharded import LOCAL, Engine

WARM = 2


def ticks_of(agents: int, memories: int, ticks: int, engine: Engine) -> tuple[list[float], float]:
    """Seconds of each tick after the first ones, and the bytes per agent and tick."""
    facts = [{"content": f"fact {number} about place {number % 17}"} for number in range(memories)]
    settings = load_settings(
        {
            "seed": 1,
            "simulation": {"world": "market", "agents": agents, "ticks": ticks, "memories": facts},
            "storage": {"sync": "manual"},
            "checkpoint": {"every": 1_000_000, "keep": 1},
        }
    )
    with tempfile.TemporaryDirectory() as place:
        run = Run.create(Path(place) / "run", settings, engine=engine)
        try:
            times, carried = [], 0
            for number in range(1, ticks + 1):
                begin = time.perf_counter()
                next(run.advance(number))
                times.append(time.perf_counter() - begin)
                if number == 1 and run.driver is not None:
                    carried = run.driver.bytes_carried  # without the opening of the cells
            traffic = 0.0
            if run.driver is not None:
                traffic = (run.driver.bytes_carried - carried) / agents / (ticks - 1)
        finally:
            run.close(sync=False)
    return times[WARM:], traffic


def measured(what: str, agents: int, memories: int, ticks: int, engine: Engine) -> float:
    """The median tick in seconds; a line says it."""
    times, traffic = ticks_of(agents, memories, ticks, engine)
    median = statistics.median(times)
    more = f", {traffic:,.0f} bytes per agent and tick" if traffic else ""
    print(f"  {what:<14} {median * 1000:9.1f} ms a tick{more}", flush=True)
    return median


def model(by_workers: dict[int, float], agents: int) -> None:
    """Fit tick = barrier + work / workers to the numbers of workers that have a core each."""
    cores = os.cpu_count() or 1
    (few, one), (many, other) = sorted(by_workers.items())[:2]
    work = max(0.0, (one - other) / (1 / few - 1 / many))
    barrier = max(0.0, one - work / few)
    print(f"\nmodel: tick = {barrier * 1000:.0f} ms (driver) + {work * 1000:.0f} ms / workers")
    for workers, seconds in sorted(by_workers.items()):
        fit = barrier + work / workers
        mark = " (oversubscribed)" if workers > cores else ""
        print(f"  K={workers}: measured {seconds * 1000:.0f} ms, model {fit * 1000:.0f} ms{mark}")
    if barrier:
        print(f"  estimate: the driver dominates from K = {work / barrier:.0f} on")
    far = barrier + work / 64
    print(f"  estimate: 64 workers (the most), on 16 machines of 64 cores: {far * 1000:.0f} ms")
    print(f"  (with {agents:,} agents; a network's delay is not in it)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a minute, to try the program")
    small = parser.parse_args().small
    sizes: dict[str, Any] = {
        "first": (100, 20, 6) if small else (1_000, 200, 15),
        "second": (300, 5, 6) if small else (10_000, 50, 10),
        "last": (500, 2, 4) if small else (200_000, 10, 20),
    }
    agents, memories, ticks = sizes["first"]
    print(f"{agents:,} agents, {memories} memories each")
    local = measured("local", agents, memories, ticks, LOCAL)
    one = measured("K=1", agents, memories, ticks, Engine("processes", 1))
    print(f"  K=1 / local: {one / local:.2f} (goal: at most 1.3)")
    agents, memories, ticks = sizes["second"]
    print(f"\n{agents:,} agents, {memories} memories each")
    by = {
        workers: measured(f"K={workers}", agents, memories, ticks, Engine("processes", workers))
        for workers in (1, 2, 4)
    }
    print(f"  K=2 / K=1: {by[2] / by[1]:.2f} (goal: at most 0.65)")
    model(by, agents)
    agents, memories, ticks = sizes["last"]
    print(f"\n{agents:,} agents, {memories} memories each, {ticks} ticks")
    measured("K=2", agents, memories, ticks, Engine("processes", 2))
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    print(f"  memory at most: driver {own:.1f} GB, a worker {worker:.1f} GB; in all up to "
          f"{own + 2 * worker:.1f} GB (goal: 8)")  # fmt: skip


if __name__ == "__main__":
    main()
