"""Do effects recover what is known? Coverage of 95 % intervals, and significance of nothing.

Walkers choose one of four wells in each tick, and one well has water. Whoever knows it goes there;
whoever does not, guesses. A walker that drinks lifts the next one by ``LIFT`` (interference): the
effect of one forgotten memory on all is then known to the last digit, as a mean over chance. A
superstition changes which guesses are made, and nothing on average.

    python benchmarks/effects.py            # small: some minutes
    python benchmarks/effects.py --trials 400
"""

import argparse
import math
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tiermem.config.load import load_settings
from tiermem.simulation import Run
from tiermem.simulation.effects import effect

WORLD = '''
from tiermem.simulation import Action, Observation, Remark

WELLS = ("north", "south", "east", "west")

class Wells:
    """One well has water; LIFT is what a drink adds to the next walker's luck."""
    def __init__(self, *, lift=0.0):
        self.lift = lift
    def setup(self, rng, agent_ids):
        self.rng, self.names, self.tick, self.drinks, self.drank = rng, list(agent_ids), 1, 0.0, []
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
            self.drinks += self.rng.stream("luck", after).random() < self.lift
        self.drank, self.tick = [], self.tick + 1
    def metrics(self):
        return {"drinks": self.drinks}
    def get_state(self):
        return {"tick": self.tick, "drinks": self.drinks}
    def set_state(self, state):
        self.tick, self.drinks = state["tick"], state["drinks"]

class Walks:
    def decide(self, observation, memories, rng):
        texts = [hit.memory.content for hit in memories]
        known = [text.split()[-1] for text in texts if text.startswith("The water")]
        guess = rng.randrange(4)
        if any(text.startswith("Bad luck") for text in texts):
            guess = rng.randrange(4)  # another guess, no better and no worse
        return [Action("go", {"well": known[0] if known else WELLS[guess]})]
'''
TICKS, AT, WALKERS, LIFT = 24, 4, 4, 0.5
KNOWN, SUPERSTITION = "w0:The water is in", "w1:Bad luck"
CASES = {
    "one walker forgets, no interference": (0.0, KNOWN),
    "one walker forgets, with interference": (LIFT, KNOWN),
    "nothing: a superstition, no interference": (0.0, SUPERSTITION),
    "nothing: a superstition, with interference": (LIFT, SUPERSTITION),
}


def truth(lift: float, forgotten: str) -> float:
    """The mean effect on the drinks: a guess is right one time in four."""
    return -(TICKS - AT) * (1 - 1 / 4) * (1 + lift) if forgotten == KNOWN else 0.0


def trial(place: str, case: str, over: str, pairs: int, seed: int) -> tuple[str, str, bool, bool]:
    """Whether the interval holds the true effect, and whether it is called significant."""
    lift, forgotten = CASES[case]
    folder = Path(place, f"{seed}-{os.getpid()}")
    folder.mkdir(parents=True)
    try:
        (folder / "wells.py").write_text(WORLD)
        simulation = {
            "world": "wells:Wells", "world_options": {"lift": lift}, "policy": "wells:Walks",
            "agents": [f"w{number}" for number in range(WALKERS)], "ticks": TICKS,
        }  # fmt: skip
        own = {"seed": seed, "storage": {"sync": "manual"}, "simulation": simulation}
        settings = load_settings(own)
        with Run.create(folder / "run", settings, scenario=folder) as run:
            for _ in run.advance(TICKS):
                pass
        many: Any = {over: pairs}
        found = effect(folder / "run", at=AT, forget=forgotten, workers=1, **many)
        row = found.difference("drinks")
        low = -math.inf if row["low"] is None else row["low"]
        high = math.inf if row["high"] is None else row["high"]
        return case, over, low <= truth(lift, forgotten) <= high, row["p"] <= 0.05
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Print a table: how many of 100 intervals hold the truth, and how many call it an effect."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=20, help="experiments for each row")
    parser.add_argument("--pairs", type=int, default=8, help="seeds or futures of an experiment")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    given = parser.parse_args()
    began = time.monotonic()
    calls = [
        (case, over, given.pairs, 1000 * number + place)
        for place, (case, over) in enumerate(
            (case, over) for over in ("futures", "seeds") for case in CASES
        )
        for number in range(1, given.trials + 1)
    ]
    rows: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="tiermem-effects-") as place,
        ProcessPoolExecutor(given.workers, multiprocessing.get_context("spawn")) as pool,
    ):
        arguments = [(place, *call) for call in calls]
        for done, (case, over, covers, called) in enumerate(
            pool.map(trial, *zip(*arguments, strict=True)), start=1
        ):
            rows.setdefault((case, over), []).append((covers, called))
            print(f"\r{done} of {len(calls)} experiments", end="", file=sys.stderr, flush=True)
    print(f" in {time.monotonic() - began:.0f} s\n", file=sys.stderr)
    print("| case | over | true effect | intervals that hold it | called an effect |")
    print("|---|---|--:|--:|--:|")
    for (case, over), each in rows.items():
        covers, called = (sum(column) / len(each) for column in zip(*each, strict=True))
        print(
            f"| {case} | {given.pairs} {over} | {truth(*CASES[case]):+.1f} "
            f"| {covers:.1%} | {called:.1%} |"
        )
    print(f"\n{given.trials} experiments a row; goals: 92 to 98 %, and at most 6 % for nothing.")


if __name__ == "__main__":
    main()
