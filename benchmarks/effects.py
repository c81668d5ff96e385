"""Do effects recover what is known? Coverage of 95 % intervals, and significance of nothing.

The walkers of ``wells.py`` choose one of four wells in each tick, and one well has water. Whoever
knows it goes there; whoever does not, guesses. A drink lifts the next walker half of the times
(interference): the effect of one forgotten memory on all is then known to the last digit, as a mean
over chance. A superstition changes which guesses are made, and nothing on average. Each experiment
gives two rows: the drinks alone, and the drinks with those of the walkers that were lifted.

An experiment of ``tiermem effect`` branches folders, which takes most of its time. So the
experiments here run the same loop, rules, edit and statistics on banks in memory; the first
``--check`` of them are made by ``effect()`` as well, and every pair must be the same.

    python benchmarks/effects.py                 # small: a minute
    python benchmarks/effects.py --trials 400    # whole
"""

import argparse
import math
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from wells import Walks, Wells

from tiermem import MemoryBank
from tiermem.config.load import load_settings
from tiermem.config.settings import Settings
from tiermem.simulation import Run
from tiermem.simulation.effects import effect
from tiermem.simulation.effects.experiment import Arm, Pair, figures
from tiermem.simulation.runs.edits import apply_edits
from tiermem.simulation.tick.branch_rules import BranchRules
from tiermem.simulation.tick.loop import Loop

TICKS, AT, LIFT = 8, 2, 0.5
WALKERS = ["w0", "w1", "w2"]
CHANGES = {
    "one walker forgets where the water is": ("w0", "The water is in"),
    "nothing: a superstition is forgotten": ("w1", "Bad luck"),
}
METRICS = {"drinks": "none", "with_lifted": "each drink lifts the next walker"}
"""What is counted, and the interference in it."""
OVER = ("futures", "seeds")


class Row(NamedTuple):
    """One figure of one experiment."""

    change: str
    metric: str
    over: str
    covers: bool
    """Whether the interval holds the true effect."""
    called: bool
    """Whether it is called significant."""


def truth(change: str, metric: str) -> float:
    """The mean effect: a guess is right one time in four."""
    if change.startswith("nothing"):
        return 0.0
    return -(TICKS - AT) * (1 - 1 / 4) * (1 + LIFT * (metric == "with_lifted"))


@cache
def scenario() -> Settings:
    """The settings of all runs but for their seed."""
    simulation = {
        "world": "wells:Wells", "world_options": {"lift": LIFT}, "policy": "wells:Walks",
        "agents": WALKERS, "ticks": TICKS,
    }  # fmt: skip
    return load_settings({"storage": {"sync": "manual"}, "simulation": simulation})


def arm(seed: int, future: int, change: str | None) -> Arm:
    """A branch after tick ``AT``: the run up to there, then the edit, then another future."""
    rules = [{"do": "future", "number": future, "after": AT}] if future else []
    with MemoryBank.ephemeral(replace(scenario(), seed=seed)) as bank:
        loop = Loop(bank, Wells(lift=LIFT), Walks(), WALKERS, BranchRules(rules))
        loop.begin()
        record: dict[str, Any] = {}
        for tick in range(TICKS):
            if tick == AT and change is not None:
                agent, text = CHANGES[change]
                apply_edits(bank, [{"agent": agent, "do": "forget", "matching": text}])
            record = loop.tick()
    return Arm(record["metrics"], {}, TICKS)


def in_memory(over: str, pairs: int, seed: int) -> Iterator[tuple[str, list[Pair]]]:
    """The pairs of one experiment for each change; both have the same arms without a change."""
    places = [
        (seed, number) if over == "futures" else (seed + number, 0) for number in range(pairs)
    ]
    was = [arm(*place, None) for place in places]
    for change in CHANGES:
        changed = [arm(*place, change) for place in places]
        yield (
            change,
            [Pair(str(number), number, *both)
             for number, both in enumerate(zip(was, changed, strict=True))],
        )  # fmt: skip


def in_folders(change: str, over: str, pairs: int, seed: int) -> list[tuple[float, float]]:
    """The same experiment by ``effect()``: each pair's figures, as it was and changed."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        settings = replace(scenario(), seed=seed)
        with Run.create(folder, settings, scenario=Path(__file__).parent) as run:
            list(run.advance(TICKS))
        many: Any = {over: pairs}
        forget = ":".join(CHANGES[change])
        found = effect(folder, at=AT, forget=forget, workers=1, metrics=[*METRICS], **many)
    return [(row["as-it-was"], row["changed"]) for row in found.pairs]


def trial(over: str, pairs: int, seed: int, is_checked: bool) -> list[Row]:
    """One experiment for each change."""
    rows = []
    for change, found in in_memory(over, pairs, seed):
        if is_checked:
            own = [(p.was.metrics[m], p.changed.metrics[m]) for p in found for m in METRICS]
            told = in_folders(change, over, pairs, seed)
            if own != told:
                raise RuntimeError(f"seed {seed}, {change}, {over}: {own} in memory, {told} else")
        for figure in figures(found, [*METRICS]):
            rows.append(_row(figure, change, over))
    return rows


def _row(found: Mapping[str, Any], change: str, over: str) -> Row:
    low = -math.inf if found["low"] is None else found["low"]
    high = math.inf if found["high"] is None else found["high"]
    covers = low <= truth(change, found["metric"]) <= high
    is_called = found["p"] is not None and found["p"] <= 0.05
    return Row(change, found["metric"], over, covers, is_called)


def experiments(trials: int, pairs: int, workers: int, checks: int) -> Iterator[Row]:
    """The rows of all experiments, as they end; each experiment has seeds of its own."""
    calls = [
        (over, pairs, 10_000_000 * kind + 1000 * number, number <= checks)
        for number in range(1, trials + 1)
        for kind, over in enumerate(OVER)
    ]
    if Path("/dev/shm").is_dir():
        os.environ["TMPDIR"] = "/dev/shm"
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
    try:
        for number, rows in enumerate(pool.map(trial, *zip(*calls, strict=True)), start=1):
            told = f"\r{number * len(CHANGES)} of {len(calls) * len(CHANGES)} experiments"
            print(told, end="", file=sys.stderr, flush=True)
            yield from rows
    except KeyboardInterrupt:
        print(" before it was interrupted", end="", file=sys.stderr)
    finally:
        pool.shutdown(cancel_futures=True)


def main() -> None:
    """Print a table: how many of 100 intervals hold the truth, and how many call it an effect."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=20, help="experiments for each row")
    parser.add_argument("--pairs", type=int, default=6, help="seeds or futures of an experiment")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--check", type=int, default=2, help="experiments made by effect(), too")
    given = parser.parse_args()
    began = time.monotonic()
    rows: dict[tuple[str, str, str], list[Row]] = {}
    for row in experiments(given.trials, given.pairs, given.workers, given.check):
        rows.setdefault(row[:3], []).append(row)
    print(f" in {time.monotonic() - began:.0f} s\n", file=sys.stderr)
    print("| change | interference | over | experiments | true effect | hold it | called one |")
    print("|---|---|---|--:|--:|--:|--:|")
    for (change, metric, over), each in sorted(rows.items()):
        covers = sum(row.covers for row in each) / len(each)
        called = sum(row.called for row in each) / len(each)
        print(
            f"| {change} | {METRICS[metric]} | {given.pairs} {over} | {len(each)} "
            f"| {truth(change, metric):+.2f} | {covers:.1%} | {called:.1%} |"
        )
    print("\nGoals: 92 to 98 % hold it, and at most 6 % call nothing an effect.")


if __name__ == "__main__":
    main()
