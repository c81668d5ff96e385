"""What the log of decisions adds to a tick of the market, and to the journal.

Two markets with the same seed run in one process, tick by tick in turns: one keeps the log, one
does not. The log includes which memories each agent got. Processor time, which neighbours change
least.
"""

import argparse
import json
import tempfile
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from report import Goal, console, goals, machine, number, table
from simulation import _market, _memories


def _bytes(bank: Any) -> int:
    """The bytes in the pages of the journal."""
    (pages,) = bank.engine.journal.file.db.execute("PRAGMA page_count").fetchone()
    return int(pages) * 4096


def measure(folder: Path, agents: int, memories: int, ticks: int) -> dict[str, float]:
    """Ticks of both markets in turns."""
    from tiermem.simulation.tick import minds as module

    # A tick without a log is known: the tick before the first one has none.
    kinds: dict[str, Any] = {"log": module.DecisionLog, "none": lambda *_: None}
    markets = {name: _market(folder / name, agents) for name in kinds}

    def tick(name: str) -> float:
        module.DecisionLog = kinds[name]
        start = process_time()
        markets[name][1].tick()
        return process_time() - start

    while _memories(markets["log"][0]) < agents * memories:
        for name in kinds:
            tick(name)
    before = {name: _bytes(bank) for name, (bank, _) in markets.items()}
    times: dict[str, list[float]] = {name: [] for name in kinds}
    for turn in range(ticks):
        for name in sorted(kinds, reverse=turn % 2 == 1):
            times[name].append(tick(name))
    grown = {name: (_bytes(bank) - before[name]) / ticks for name, (bank, _) in markets.items()}
    same = len({bank.state_hash() for bank, _ in markets.values()}) == 1
    for bank, _ in markets.values():
        bank.close(sync=False)
    if not same:
        raise SystemExit("the log changed what happened")
    ratios = [one / other for one, other in zip(times["log"], times["none"], strict=True)]
    return {
        "with": median(times["log"]),
        "without": median(times["none"]),
        "ratio": median(ratios),
        "journal_with": grown["log"],
        "journal_without": grown["none"],
        "journal_ratio": grown["log"] / grown["none"],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--memories", type=int, default=200)
    parser.add_argument("--ticks", type=int, default=30)
    parser.add_argument("--folder", type=Path, help="where to write; a disk, not a tmpfs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    console.quiet = options.json
    console.print(machine())
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="tiermem-bench-") as scratch:
        found = measure(Path(scratch), options.agents, options.memories, options.ticks)
    if options.json:
        print(json.dumps(found, indent=2))
        return
    rows = [
        ("ms of a tick", found["with"] * 1e3, found["without"] * 1e3),
        ("kB of journal for a tick", found["journal_with"] / 1e3, found["journal_without"] / 1e3),
    ]
    shown = [(name, number(one), number(other)) for name, one, other in rows]
    table("The log of decisions", ("", "with", "without"), shown)
    goals(
        [
            Goal("a tick with the log, of a tick without", 1.03, found["ratio"]),
            Goal("its journal, of the journal without", 1.10, found["journal_ratio"]),
        ]
    )


if __name__ == "__main__":
    main()
