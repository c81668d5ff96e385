"""Do effects recover what is known? Coverage of 95 % intervals, and significance of nothing.

Walkers choose one of four wells in each tick, and one well has water. Whoever knows it goes there;
whoever does not, guesses. A walker that drinks lifts the next one half of the times (interference):
the effect of one forgotten memory on all is then known to the last digit, as a mean over chance. A
superstition changes which guesses are made, and nothing on average. Each experiment gives two rows:
the drinks alone, and the drinks with those of the walkers that were lifted.

    python benchmarks/effects.py                 # small: a minute
    python benchmarks/effects.py --trials 400    # whole
"""

import argparse
import itertools
import math
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from tiermem.config.load import load_settings
from tiermem.simulation import Run
from tiermem.simulation.effects import effect

WORLD = '''
from tiermem.simulation import Action, Observation, Remark

WELLS = ("north", "south", "east", "west")

class Wells:
    """One well has water; ``lift`` is the chance that a drink is one for the next walker, too."""
    def __init__(self, *, lift):
        self.lift = lift
    def setup(self, rng, agent_ids):
        self.rng, self.names, self.tick = rng, list(agent_ids), 1
        self.drinks, self.lifted, self.drank = 0, 0, []
        self.well = rng.choice(WELLS)
    def observe(self, agent_id):
        knows = Remark(f"The water is in the {self.well}", tier="pinned")
        heard = [knows, Remark("Bad luck walks left", tier="pinned")] if self.tick == 1 else []
        return Observation("Where do I go?",
                           heard=heard if agent_id != self.names[1] else heard[1:])
    def apply(self, agent_id, action):
        found = action.arguments["well"] == self.well
        self.drinks += found
        if found:
            self.drank.append(agent_id)
        return f"I went {action.arguments['well']}"
    def end_tick(self):
        for name in self.drank:  # the next walker is lucky by chance, whatever it does
            after = self.names[(self.names.index(name) + 1) % len(self.names)]
            self.lifted += self.rng.stream("luck", after).random() < self.lift
        self.drank, self.tick = [], self.tick + 1
    def metrics(self):
        return {"drinks": self.drinks, "with_lifted": self.drinks + self.lifted}
    def get_state(self):
        return {"tick": self.tick, "drinks": self.drinks, "lifted": self.lifted}
    def set_state(self, state):
        self.tick, self.drinks, self.lifted = state["tick"], state["drinks"], state["lifted"]

class Walks:
    def decide(self, observation, memories, rng):
        texts = [hit.memory.content for hit in memories]
        known = [text.split()[-1] for text in texts if text.startswith("The water")]
        guess = rng.randrange(4)
        if any(text.startswith("Bad luck") for text in texts):
            guess = rng.randrange(4)  # another guess, no better and no worse
        return [Action("go", {"well": known[0] if known else WELLS[guess]})]
'''
TICKS, AT, WALKERS, LIFT = 10, 2, 3, 0.5
CHANGES = {
    "one walker forgets where the water is": "w0:The water is in",
    "nothing: a superstition is forgotten": "w1:Bad luck",
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


def trial(place: str, change: str, over: str, pairs: int, seed: int) -> list[Row]:
    """A run and an experiment with it, as ``tiermem effect`` makes it."""
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        folder = Path(scratch)
        (folder / "wells.py").write_text(WORLD)
        simulation = {
            "world": "wells:Wells", "world_options": {"lift": LIFT}, "policy": "wells:Walks",
            "agents": [f"w{number}" for number in range(WALKERS)], "ticks": TICKS,
        }  # fmt: skip
        own = {"seed": seed, "storage": {"sync": "manual"}, "simulation": simulation}
        with Run.create(folder / "run", load_settings(own), scenario=folder) as run:
            for _ in run.advance(TICKS):
                pass
        many: Any = {over: pairs}
        found = effect(folder / "run", at=AT, forget=CHANGES[change], workers=1, **many)
    return [_row(found.difference(metric), change, metric, over) for metric in METRICS]


def _row(found: Mapping[str, Any], change: str, metric: str, over: str) -> Row:
    low = -math.inf if found["low"] is None else found["low"]
    high = math.inf if found["high"] is None else found["high"]
    covers = low <= truth(change, metric) <= high
    return Row(change, metric, over, covers, found["p"] <= 0.05)


def experiments(trials: int, pairs: int, workers: int) -> Iterator[Row]:
    """The rows of all experiments, as they end; each experiment has a seed of its own."""
    calls = [
        (change, over, pairs, 100_000 * kind + 100 * number)
        for number in range(1, trials + 1)
        for kind, (change, over) in enumerate(itertools.product(CHANGES, OVER))
    ]
    memory = Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as place,
        ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool,
    ):
        os.environ["TMPDIR"] = place  # the scratch folders of effects, too
        arguments = [(place, *call) for call in calls]
        done = pool.map(trial, *zip(*arguments, strict=True))
        for number, rows in enumerate(done, start=1):
            print(f"\r{number} of {len(calls)} experiments", end="", file=sys.stderr, flush=True)
            yield from rows


def main() -> None:
    """Print a table: how many of 100 intervals hold the truth, and how many call it an effect."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=20, help="experiments for each row")
    parser.add_argument("--pairs", type=int, default=6, help="seeds or futures of an experiment")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    given = parser.parse_args()
    began = time.monotonic()
    rows: dict[tuple[str, str, str], list[Row]] = {}
    for row in experiments(given.trials, given.pairs, given.workers):
        rows.setdefault(row[:3], []).append(row)
    print(f" in {time.monotonic() - began:.0f} s\n", file=sys.stderr)
    print("| change | interference | over | true effect | hold it | called an effect |")
    print("|---|---|---|--:|--:|--:|")
    for (change, metric, over), each in sorted(rows.items()):
        covers = sum(row.covers for row in each) / len(each)
        called = sum(row.called for row in each) / len(each)
        print(
            f"| {change} | {METRICS[metric]} | {given.pairs} {over} "
            f"| {truth(change, metric):+.1f} | {covers:.1%} | {called:.1%} |"
        )
    print(f"\n{given.trials} experiments a row; goals: 92 to 98 %, and at most 6 % for nothing.")


if __name__ == "__main__":
    main()
