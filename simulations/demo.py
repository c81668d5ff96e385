"""Flat memory against tiers, and against what a competent user would do instead: `make demo`.

In the first two regimes tiers pay, and the table names what does as well as they do. In the others
they pay less, not at all, or they harm. The last table is about agents that pin what does not
matter, and miss what does. 10 seeds each, in as many processes as there are cores.
"""

import json
import multiprocessing
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tiermem import MemoryBank
from tiermem.config.load import load_settings
from tiermem.config.settings import Settings
from tiermem.memory.context import approximate_tokens, render
from tiermem.memory.records import Hits
from tiermem.simulation import Loop
from tiermem.simulation.policies.cassette import Cassette
from tiermem.simulation.protocols import Observation, Policy
from tiermem.simulation.runs.scenario import make_policy, make_world
from tiermem.simulation.statistics import differences, in_words, interval_of, summarise

HERE = Path(__file__).parent
FIGURES = Path("runs/demo.json")
SEEDS = range(1, 11)
NOISY_SEEDS = SEEDS[:6]
SHARES = (0.05, 0.1, 0.2, 0.5)
"""How much is wrong of what an agent pins, or does not pin."""


class Design(NamedTuple):
    """A memory: what it changes of the defaults, and of the agents' rules."""

    rules: Mapping[str, Any] = {}
    settings: Mapping[str, Any] = {}
    preset: str | None = None
    """The others are the defaults: one search, five memories, no budget of tokens."""


FLAT = {"tiers": False}
DESIGNS = {
    "no memory": Design(FLAT, {"memory.default_limit": 0}),
    "flat": Design(FLAT),
    "flat, as many tokens": Design(
        FLAT, {"memory.default_limit": 100, "memory.context_tokens": 80}
    ),
    "the last five": Design(FLAT, preset="recency"),
    "flat, well worded": Design({**FLAT, "worded": True}),
    "importance": Design(
        {}, {"reflection.enabled": False, "memory.default_limit": 5}, "generative-agents"
    ),
    "tiers": Design(),
}


class Regime(NamedTuple):
    """A scenario, what it changes of its world, the metric, and the memories that are compared."""

    name: str
    scenario: str
    metric: str
    memories: Sequence[str] = ("flat", "tiers")
    options: Mapping[str, Any] = {}
    agents: int = 10


REGIMES = (
    Regime("market: coins lost", "market.yaml", "loss", tuple(DESIGNS)),
    Regime(
        "household: orders broken",
        "household.yaml",
        "mistakes",
        ("flat", "flat, well worded", "importance", "tiers"),
    ),
    Regime(
        "household, six orders for five pins: orders broken",
        "household.yaml",
        "mistakes",
        ("flat", "tiers"),
        {"orders": 6},
    ),
    Regime(
        "market, asking about the seller: coins lost",
        "market.yaml",
        "loss",
        options={"asks": "seller"},
    ),
    Regime(
        "market, asking, 7 scammers of 14: coins lost",
        "market.yaml",
        "loss",
        options={"asks": "seller", "scammers": 7},
        agents=14,
    ),
)
NOISE = {"pinned wrongly": "false_pins", "not pinned": "missed"}
"""What agents with tiers do wrong: of the days without bad news, a share brings a pin of the day's
offer; of the warnings, a share is kept as a normal memory."""


class Cell(NamedTuple):
    """One run of the demo."""

    regime: Regime
    memory: str
    seed: int
    noise: str = ""
    share: float = 0.0

    def settings(self) -> Settings:
        """Those of the scenario, and what this row of the table changes."""
        design = DESIGNS[self.memory]
        noise = {NOISE[self.noise]: self.share} if self.noise else {}
        changes = {
            "seed": self.seed,
            "simulation.agents": self.regime.agents,
            "simulation.policy_options": {**design.rules, **noise},
            "simulation.world_options": self.regime.options,
            **design.settings,
        }
        return load_settings(HERE / self.regime.scenario, preset=design.preset, overrides=changes)


def cells() -> list[Cell]:
    """All runs of the demo."""
    plain = [
        Cell(regime, memory, seed)
        for regime in REGIMES
        for memory in regime.memories
        for seed in SEEDS
    ]
    noisy = [
        Cell(REGIMES[0], "tiers", seed, noise, share)
        for noise in NOISE
        for share in SHARES
        for seed in NOISY_SEEDS
    ]
    return plain + noisy


class Weighed:
    """A policy, and how many tokens the memories have with which it decides."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.tokens: list[int] = []

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> Any:
        self.tokens.append(approximate_tokens(render(memories)) if memories else 0)
        return self._policy.decide(observation, memories, rng)


def run(cell: Cell) -> dict[str, Any]:
    """One run, in memory: its place in the table and what came of it."""
    settings = cell.settings()
    world = make_world(settings)
    with MemoryBank.ephemeral(settings) as bank:
        policy = Weighed(make_policy(settings, world, Cassette(Path("none"), replay=True)))
        loop = Loop(bank, world, policy, settings.simulation.agent_ids())
        loop.begin()
        for _ in range(settings.simulation.ticks):
            record = loop.tick()
    return {
        "regime": cell.regime.name,
        "memory": cell.memory,
        "noise": cell.noise,
        "share": cell.share,
        "seed": cell.seed,
        "result": record["metrics"][cell.regime.metric],
        "tokens": sum(policy.tokens) / len(policy.tokens),
    }


def table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The lines of the table, in Markdown: means, and the differences from tiers."""
    keys = ("regime", "memory")
    plain = [row for row in rows if not row["noise"]]
    metrics = ["result", "tokens"]
    means = {
        (row["regime"], row["memory"], row["metric"]): row["mean"]
        for row in summarise(plain, keys, metrics)
    }
    gaps = differences(plain, ["regime"], ["result"], baseline="tiers", variant="memory")
    apart = {(gap["regime"], gap["memory"]): gap for gap in gaps}
    yield "| what is measured | memory | mean | tokens | more than with tiers, 95 % interval |"
    yield "|---|---|--:|--:|--:|"
    for regime, memory in dict.fromkeys((row["regime"], row["memory"]) for row in plain):
        mean, tokens = (means[regime, memory, metric] for metric in metrics)
        gap = apart.get((regime, memory))
        more = f"{_signed(gap['mean'])} ({in_words(interval_of(gap), _signed)})" if gap else ""
        yield f"| {regime} | {memory} | {mean:,.1f} | {tokens:.0f} | {more} |"


def noise_table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The lines of the table of what agents do wrong: means with their intervals."""
    yield f"| {REGIMES[0].name}, tiers | {' | '.join(f'{share:.0%}' for share in SHARES)} |"
    yield f"|---|{'--:|' * len(SHARES)}"
    noisy = [row for row in rows if row["noise"]]
    found = {
        (row["noise"], row["share"]): row
        for row in summarise(noisy, ["noise", "share"], ["result"])
    }
    for noise in NOISE:
        shown = [
            f"{row['mean']:,.0f} ({in_words(interval_of(row), _whole)})"
            for row in (found[noise, share] for share in SHARES)
        ]
        yield f"| {noise} | {' | '.join(shown)} |"


def _signed(value: float) -> str:
    return f"{value:+,.1f}".replace("-", "−")


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def main() -> None:
    """Run all and print the tables; the figures go to a file, from which the picture is drawn."""
    began = time.monotonic()
    planned = cells()
    rows = []
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        for row in pool.map(run, planned, chunksize=2):
            rows.append(row)
            if len(rows) % 20 == 0:
                print(f"\r{len(rows)} of {len(planned)} runs", end="", file=sys.stderr, flush=True)
    print(f" in {time.monotonic() - began:.0f} s\n", file=sys.stderr)
    FIGURES.parent.mkdir(exist_ok=True)
    FIGURES.write_text(json.dumps(rows) + "\n")
    print("\n".join(table(rows)))
    print(f"\n{len(SEEDS)} seeds each, paired; less is better. And if agents pin wrongly")
    print(f"({len(NOISY_SEEDS)} seeds):\n")
    print("\n".join(noise_table(rows)))
    print(f"\nEvery run is in {FIGURES}.")
    print("Look at one run:  tiermem run simulations/household.yaml --out runs/household")
    print("                  tiermem show runs/household --agent agent_00")


if __name__ == "__main__":
    main()
