"""How long a study of a large run takes, and how long the town takes to make one.

A run of the town with 1,000 agents and 2,000 ticks is made first, which takes some minutes; its
first 500 ticks are timed. ``--small`` makes 100 agents and 100 ticks; ``--run`` studies a run that
exists.
"""

import argparse
import json
import resource
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from report import Goal, console, goals, machine, number, table

from tiermem import analysis
from tiermem.config.load import load_settings
from tiermem.simulation import Run

_TIMED = 500
"""Ticks of the town that are timed."""
_TABLES = (
    "spreads", "tells", "overlap", "survival", "needed", "truth", "overtaking", "centrality",
    "memories",
)  # fmt: skip


def make(folder: Path, agents: int, ticks: int) -> tuple[float, float]:
    """A run of the town; the seconds of its first ticks by the clock, and of the processor."""
    settings = load_settings(
        overrides={
            "seed": 7,
            "clock": {"ticks_per_day": 24},
            "storage": {"sync": "manual"},
            "checkpoint": {"every": 1_000_000, "keep": 1},
            # What nobody uses for two days becomes cold, and of that the oldest is archived.
            "decay": {"enabled": True, "half_life": {"normal": "1d"}},
            "temperature": {"max_cold_items": 20, "auto_prune": True, "compact_every": "1d"},
            "simulation": {
                "world": "town",
                "world_options": {"events": 12, "rumours": 6},
                "agents": agents,
                "ticks": ticks,
            },
        }
    )
    start, used, timed = perf_counter(), process_time(), (0.0, 0.0)
    with Run.create(folder, settings) as run:
        for record in run.advance(ticks):
            if record["tick"] <= _TIMED:
                timed = perf_counter() - start, process_time() - used
    return timed


def measure(folder: Path) -> dict[str, Any]:
    """Read the run, and make each table."""
    steps: dict[str, dict[str, float]] = {}
    start, wall = process_time(), perf_counter()
    study = analysis.study(folder)
    steps["read"] = {
        "seconds": process_time() - start,
        "wall": perf_counter() - wall,
        "rows": len(study.columns),
    }
    for name in _TABLES:
        start, wall = process_time(), perf_counter()
        rows = getattr(study, name)().num_rows
        steps[name] = {
            "seconds": process_time() - start,
            "wall": perf_counter() - wall,
            "rows": rows,
        }
    megabytes = (folder / "bank" / "journal.db").stat().st_size / 1e6
    return {
        "steps": steps,
        "seconds": sum(step["seconds"] for step in steps.values()),
        "wall": sum(step["wall"] for step in steps.values()),
        "journal_megabytes": megabytes,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--ticks", type=int, default=2000)
    parser.add_argument("--small", action="store_true", help="100 agents and 100 ticks")
    parser.add_argument("--run", type=Path, help="a run that exists")
    parser.add_argument("--folder", type=Path, help="where to write; a disk, not a tmpfs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    console.quiet = options.json
    console.print(machine())
    agents, ticks = (100, 100) if options.small else (options.agents, options.ticks)
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="tiermem-bench-") as scratch:
        folder = options.run or Path(scratch) / "run"
        made = None if options.run else make(folder, agents, ticks)
        found = {"made": made, **measure(folder)}
    if options.json:
        print(json.dumps(found, indent=2))
        return
    rows = [
        (name, f"{step['rows']:,}", number(step["seconds"]), number(step["wall"]))
        for name, step in found["steps"].items()
    ]
    table("A study", ("", "rows", "processor, s", "clock, s"), rows)
    console.print(
        f"a journal of {found['journal_megabytes']:.0f} MB, {found['peak_megabytes']:.0f} MB of "
        "memory at most, the making of the run included"
    )
    reached = [Goal("seconds for all tables", 10.0, found["wall"], "s")]
    if made is not None:
        name = f"seconds for {min(ticks, _TIMED)} ticks of the town"
        reached.append(Goal(name, 120.0, made[0], "s"))
        console.print(f"{name}: {made[1]:.1f} of the processor")
    goals(reached)


if __name__ == "__main__":
    main()
