"""Flat memory against tiers, in three regimes, with default and with vector search: `make demo`.

Flat and tiers differ in one word: the tier in which an agent keeps what matters. Search, limit and
budget are the same. 20 seeds each, in as many processes as there are cores. The last row of the
table is a regime in which tiers do not pay.
"""

import json
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from tiermem import MemoryBank
from tiermem.config.load import load_settings
from tiermem.config.settings import Settings
from tiermem.simulation import Loop
from tiermem.simulation.policies.cassette import Cassette
from tiermem.simulation.runs.scenario import make_policy, make_world
from tiermem.simulation.statistics import differences, in_words, interval_of, summarise

HERE = Path(__file__).parent
FIGURES = Path("runs/demo.json")
SEEDS = range(1, 21)
SEARCHES = {"default": None, "vector": "vector"}
"""The preset of each search."""


class Regime(NamedTuple):
    """A scenario, what it changes of its world, and the metric that shows whether tiers pay."""

    name: str
    scenario: str
    metric: str
    options: Sequence[tuple[str, Any]] = ()


REGIMES = (
    Regime("market: coins lost", "market.yaml", "loss"),
    Regime("household: orders broken", "household.yaml", "mistakes"),
    Regime(
        "market, asking about the seller: coins lost", "market.yaml", "loss", (("asks", "seller"),)
    ),
)


def settings_of(regime: Regime, search: str, tiers: bool, seed: int) -> Settings:
    """The settings of one run: those of the scenario, and what the table's row changes."""
    changes = {
        "seed": seed,
        "simulation.policy_options": {"tiers": tiers},
        "simulation.world_options": dict(regime.options),
    }
    return load_settings(HERE / regime.scenario, preset=SEARCHES[search], overrides=changes)


def run(regime: Regime, search: str, tiers: bool, seed: int) -> dict[str, Any]:
    """One run, in memory: its place in the table and what came of it."""
    settings = settings_of(regime, search, tiers, seed)
    world = make_world(settings)
    with MemoryBank.ephemeral(settings) as bank:
        policy = make_policy(settings, world, Cassette(Path("none"), replay=True))
        loop = Loop(bank, world, policy, settings.simulation.agent_ids())
        loop.begin()
        records = [loop.tick() for _ in range(settings.simulation.ticks)]
    by_tick = [record["metrics"][regime.metric] for record in records]
    memory = "tiers" if tiers else "flat"
    place = {"regime": regime.name, "search": search, "memory": memory, "seed": seed}
    return {**place, "result": by_tick[-1], "by_tick": by_tick}


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The lines of the table, in Markdown: means, and the difference with its interval."""
    keys = ("regime", "search")
    means = {
        (row["regime"], row["search"], row["memory"]): row["mean"]
        for row in summarise(rows, (*keys, "memory"), ["result"])
    }
    yield "| what is measured | search | flat | tiers | difference, 95 % interval |"
    yield "|---|---|--:|--:|--:|"
    for gap in differences(rows, keys, ["result"], baseline="flat", variant="memory"):
        place = (gap["regime"], gap["search"])
        flat, tiers = means[*place, "flat"], means[*place, "tiers"]
        difference = in_words(interval_of(gap), _signed)
        yield (
            f"| {place[0]} | {place[1]} | {flat:,.1f} | {tiers:,.1f} "
            f"| {_signed(gap['mean'])} ({difference}) |"
        )


def _signed(value: float) -> str:
    return f"{value:+,.1f}".replace("-", "−")


def main() -> None:
    """Run all and print the table; the figures go to a file, from which the picture is drawn."""
    began = time.monotonic()
    cells = [
        (regime, search, tiers, seed)
        for regime in REGIMES
        for search in SEARCHES
        for seed in SEEDS
        for tiers in (False, True)
    ]
    rows = []
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        for row in pool.map(run, *zip(*cells, strict=True), chunksize=2):
            rows.append(row)
            if len(rows) % 20 == 0:
                print(f"\r{len(rows)} of {len(cells)} runs", end="", file=sys.stderr, flush=True)
    print(f" in {time.monotonic() - began:.0f} s\n", file=sys.stderr)
    FIGURES.parent.mkdir(exist_ok=True)
    FIGURES.write_text(json.dumps(rows) + "\n")
    print("\n".join(table(rows)))
    print(f"\n{len(SEEDS)} seeds each, paired; less is better. Every run is in {FIGURES}.")
    print("Look at one run:  tiermem run simulations/household.yaml --out runs/household")
    print("                  tiermem show runs/household --agent agent_00")


if __name__ == "__main__":
    main()
