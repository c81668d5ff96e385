"""What safety costs a tick: the record of the last commit, and signals that wait.

One bank runs ticks in turns, with both, without the record and without the waiting. The CPU time
of the ticks is compared, not the time on the clock, which is mostly the disk's.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

from contestants import TierMem
from report import Goal, console, goals, machine, number, table
from workload import TableEmbedder, Workload


def _nothing(*_: object) -> None: ...


def measure(folder: Path, agents: int, memories: int, ticks: int) -> dict[str, float]:
    """The median CPU seconds of a tick, by what is left out."""
    import tiermem.engine.engine as changing
    import tiermem.storage.state.ledger as ledger
    from tiermem.storage.beside_journal import HeadRecord

    workload = Workload(agents, memories)
    contestant = TierMem(folder, TableEmbedder())
    everyone = range(agents)
    for start in range(0, agents, 1000):
        contestant.seed(workload.seed(everyone[start : start + 1000]))
    write, held = HeadRecord.write, (changing.hold_signals, changing.let_signals_come)

    def record(is_on: bool) -> None:
        HeadRecord.write = write if is_on else _nothing  # type: ignore[method-assign,assignment]

    def waiting(is_on: bool) -> None:
        for module in (changing, ledger):
            own = held if is_on else (_nothing, _nothing)
            module.hold_signals, module.let_signals_come = own  # type: ignore[assignment]

    switches: dict[str, Callable[[bool], None]] = {
        "whole": _nothing,
        "without the record": record,
        "without waiting signals": waiting,
    }
    seconds: dict[str, list[float]] = {name: [] for name in switches}
    tick = 0
    for turn in range(ticks + 1):
        names = list(switches)[:: 1 if turn % 2 else -1]
        for name in names:
            tick += 1
            requests, items = workload.requests(tick, everyone), workload.items(tick, everyone)
            switches[name](False)
            begun = process_time()
            contestant.tick(tick, requests, items)
            seconds[name].append(process_time() - begun)
            switches[name](True)
    contestant.bank.close(sync=False)
    return {name: median(own[1:]) for name, own in seconds.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument(
        "--memories", type=int, default=100, help="per agent, before the first tick"
    )
    parser.add_argument("--ticks", type=int, default=60, help="of each kind")
    parser.add_argument("--folder", help="where to write; a disk, not a tmpfs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        found = measure(Path(folder), asked.agents, asked.memories, asked.ticks)
    if asked.json:
        print(json.dumps({"machine": machine(), "seconds": found}))
        return
    console.print(machine())
    table(
        f"A tick of {asked.agents} agents with {asked.memories} memories",
        ["", "CPU ms"],
        [[name, number(own * 1e3)] for name, own in found.items()],
    )
    whole = found["whole"]
    goals(
        [
            Goal("the record, of a tick", 1.03, whole / found["without the record"], "×"),
            Goal("signals, of a tick", 1.03, whole / found["without waiting signals"], "×"),
        ]
    )


if __name__ == "__main__":
    main()
