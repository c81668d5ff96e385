"""Spread runs against the local engine: ticks, traffic, and a model of more workers.

    python benchmarks/shards.py [--small] [--part first|second|large]

Ratios are within one run of this program. What is not measured is called an estimate.
"""

import argparse
import os
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from tiermem.config.load import load_settings
from tiermem.simulation.runs.placement import LOCAL, Placement
from tiermem.simulation.runs.run import Run

WARM = 2


class Ticks(NamedTuple):
    """What a tick takes, after the first ones: medians."""

    seconds: float
    processor: float
    """Seconds of processor time, of the driver and its workers."""
    traffic: float
    """Bytes per agent."""


def ticks_of(
    agents: int, memories: int, ticks: int, engine: Placement, world: str = "market"
) -> Ticks:
    """Run a world; what its ticks take."""
    facts = [{"content": f"fact {number} about place {number % 17}"} for number in range(memories)]
    settings = load_settings(
        {
            "seed": 1,
            "simulation": {"world": world, "agents": agents, "ticks": ticks, "memories": facts},
            "storage": {"sync": "manual"},
            "checkpoint": {"every": 1_000_000, "keep": 1},
        }
    )
    with tempfile.TemporaryDirectory() as place:
        code = Path(__file__).parent if ":" in world else None
        run = Run.create(Path(place) / "run", settings, scenario=code, engine=engine)
        try:
            times, busy, carried = [], [], 0
            for number in range(1, ticks + 1):
                begin, worked = time.perf_counter(), processor_time(run)
                next(run.advance(number))
                times.append(time.perf_counter() - begin)
                busy.append(processor_time(run) - worked)
                if number == 1 and run.driver is not None:
                    carried = run.driver.bytes_carried  # without the opening of the cells
            traffic = 0.0
            if run.driver is not None:
                traffic = (run.driver.bytes_carried - carried) / agents / (ticks - 1)
        finally:
            run.close(sync=False)
    return Ticks(statistics.median(times[WARM:]), statistics.median(busy[WARM:]), traffic)


class MostMemory(threading.Thread):
    """Looks again and again how much memory this process and its children have together."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.gigabytes = 0.0
        self._is_over = threading.Event()

    def __enter__(self) -> "MostMemory":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self.join()

    def run(self) -> None:
        while not self._is_over.wait(0.2):
            self.gigabytes = max(self.gigabytes, sum(map(_resident, _processes())) / 1e9)


def _processes() -> list[str]:
    """The numbers of this process and of those that it started."""
    tasks = Path("/proc/self/task").iterdir()
    return [str(os.getpid()), *" ".join(_read(each / "children") for each in tasks).split()]


def _resident(process: str) -> int:
    pages = _read(Path(f"/proc/{process}/statm")).split()
    return int(pages[1]) * os.sysconf("SC_PAGE_SIZE") if pages else 0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has ended
        return ""


def processor_time(run: Run) -> float:
    """Seconds that this process and the run's workers have computed."""
    links: list[Any] = run.driver._links if run.driver is not None else []
    seconds = time.process_time()
    for link in links:
        fields = Path(f"/proc/{link.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        seconds += sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    return seconds


def measured(
    what: str, agents: int, memories: int, ticks: int, engine: Placement, world: str = "market"
) -> Ticks:
    """What a tick takes; a line says it."""
    found = ticks_of(agents, memories, ticks, engine, world)
    more = f", {found.traffic:,.0f} bytes per agent and tick" if found.traffic else ""
    print(f"  {what:<14} {found.seconds * 1000:9.1f} ms a tick, "
          f"{found.processor * 1000:.1f} ms of processor time{more}", flush=True)  # fmt: skip
    return found


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


def first(small: bool) -> None:
    """One worker against the local engine."""
    agents, memories, ticks = (100, 20, 6) if small else (1_000, 200, 15)
    print(f"{agents:,} agents, {memories} memories each")
    local = measured("local", agents, memories, ticks, LOCAL)
    one = measured("K=1", agents, memories, ticks, Placement("processes", 1))
    print(f"  K=1 / local: {one.seconds / local.seconds:.2f} (goal: at most 1.3), "
          f"processor time {one.processor / local.processor:.2f}")  # fmt: skip


def second(small: bool) -> None:
    """Two workers against one, and the model."""
    agents, memories, ticks = (300, 5, 6) if small else (10_000, 50, 10)
    print(f"\n{agents:,} agents, {memories} memories each")
    by = {
        workers: measured(f"K={workers}", agents, memories, ticks, Placement("processes", workers))
        for workers in (1, 2, 4)
    }
    print(f"  K=2 / K=1: {by[2].seconds / by[1].seconds:.2f} (goal: at most 0.65)")
    model({workers: each.seconds for workers, each in by.items()}, agents)


def large(small: bool) -> None:
    """As many agents as one machine should hold, in a world that leaves them their memories.

    Every agent searches in each tick, and one in twenty stores a memory. In the market each stores
    three memories a tick.
    """
    agents, memories, ticks = (500, 2, 4) if small else (200_000, 10, 20)
    print(f"\n{agents:,} agents, {memories} memories each, {ticks} ticks of a quiet town")
    quiet = "quiet_town:QuietTown"
    with MostMemory() as most:
        measured("K=2", agents, memories, ticks, Placement("processes", 2), quiet)
    print(f"  memory of driver and workers, at most at once: {most.gigabytes:.1f} GB (goal: 8)")


PARTS = {"first": first, "second": second, "large": large}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a minute, to try the program")
    parser.add_argument("--part", choices=PARTS, help="only this part")
    chosen = parser.parse_args()
    for name, part in PARTS.items():
        if chosen.part in (None, name):
            part(chosen.small)


if __name__ == "__main__":
    main()
