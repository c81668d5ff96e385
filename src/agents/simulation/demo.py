"""Flat memory against tiers, and against what a competent user would do instead: `tiermem demo`.

In the first two regimes tiers pay, and the table names what does as well as they do. In the others
they pay less, not at all, or they harm. The last table is about agents that pin what does not
matter, and miss what does. By default 10 seeds each, in as many processes as there are cores.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from ..bank.memory_bank import MemoryBank
from ..config.load import load_settings
from ..config.settings import Settings
from ..errors import InvalidInput, RunError
from ..memory.context import approximate_tokens, render
from ..memory.records import Hits
from ..storage.files import FILE_MODE, make_folder, replace_file
from ..storage.whole_folder import strangers
from .policies.cassette import Cassette
from .protocols import Observation, Policy
from .runs.scenario import make_policy, make_world
from .statistics import differences, in_words, interval_of, summarise
from .tick.loop import Loop
from .workers.carriers import in_processes

FIGURES = "runs.json"
"""In the demo's folder, every run as it is given by :func:`run`."""
SEEDS = 10
NOISY_SEEDS = 6
"""Of the seeds, at most so many are for agents that pin wrongly."""
SHARES = (0.05, 0.1, 0.2, 0.5)
"""How much is wrong of what an agent pins, or does not pin."""

Rows = Sequence[Mapping[str, Any]]


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
        scenario = scenarios() / self.regime.scenario
        return load_settings(scenario, preset=design.preset, overrides=changes)


def scenarios() -> Path:
    """The folder of the scenarios; a wheel carries those of the demo, and a checkout has more."""
    here = Path(__file__).parents[1]
    carried = here / "defaults" / "scenarios"
    return carried if carried.exists() else here.parents[1] / "simulations"


def cells(number: int = SEEDS) -> list[Cell]:
    """All runs of the demo, with so many seeds."""
    seeds = range(1, number + 1)
    plain = [
        Cell(regime, memory, seed)
        for regime in REGIMES
        for memory in regime.memories
        for seed in seeds
    ]
    noisy = [
        Cell(REGIMES[0], "tiers", seed, noise, share)
        for noise in NOISE
        for share in SHARES
        for seed in seeds[:NOISY_SEEDS]
    ]
    return plain + noisy


class _Weighed:
    """A policy, and how many tokens the memories have with which it decides."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.tokens: list[int] = []

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> Any:
        """Decide, and count the tokens."""
        self.tokens.append(approximate_tokens(render(memories)) if memories else 0)
        return self._policy.decide(observation, memories, rng)


def run(cell: Cell) -> dict[str, Any]:
    """One run, in memory: its place in the table and what came of it."""
    settings = cell.settings()
    world = make_world(settings)
    with MemoryBank.ephemeral(settings) as bank:
        policy = _Weighed(make_policy(settings, world, Cassette(Path("none"), replay=True)))
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


def run_all(planned: Sequence[Cell]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Make the runs in processes; each comes when it is done, with its place."""
    for place, row in in_processes(run, [(cell,) for cell in planned]):
        if row is None:
            cell = planned[place]
            raise RunError(
                f"the process of a run was killed twice: {cell.regime.name}, {cell.memory}, "
                f"seed {cell.seed}",
                hint="is there memory left? The same command tries again",
            )
        yield place, row


def prepare(folder: Path) -> None:
    """Make the demo's folder, with the scenarios; :class:`InvalidInput` if it has other files."""
    names = sorted({regime.scenario for regime in REGIMES})
    try:
        make_folder(folder)
        if foreign := next(strangers(folder, [FIGURES, *names]), None):
            raise InvalidInput(
                f"{folder} is not the folder of a demo: {foreign.name} is in it",
                hint="name another with --out",
            )
        for name in names:
            content = (scenarios() / name).read_bytes()
            if not (folder / name).exists():
                replace_file(folder / name, content, FILE_MODE)
    except OSError as error:
        raise InvalidInput(
            f"{folder} can't be made or written: {error.strerror or error}",
            hint="name another with --out",
        ) from None


def write(folder: Path, rows: Rows) -> None:
    """Write every run to the demo's folder."""
    replace_file(folder / FIGURES, json.dumps(rows) + "\n", FILE_MODE)


def table(rows: Rows) -> list[dict[str, str]]:
    """A row for each memory in each regime: means, and the difference from tiers."""
    keys = ("regime", "memory")
    plain = [row for row in rows if not row["noise"]]
    metrics = ["result", "tokens"]
    means = {
        (row["regime"], row["memory"], row["metric"]): row["mean"]
        for row in summarise(plain, keys, metrics)
    }
    gaps = differences(plain, ["regime"], ["result"], baseline="tiers", variant="memory")
    apart = {(gap["regime"], gap["memory"]): gap for gap in gaps}
    made = []
    for regime, memory in dict.fromkeys((row["regime"], row["memory"]) for row in plain):
        mean, tokens = (means[regime, memory, metric] for metric in metrics)
        gap = apart.get((regime, memory))
        more = f"{_signed(gap['mean'])} ({in_words(interval_of(gap), _signed)})" if gap else ""
        made.append(
            {
                "what is measured": regime,
                "memory": memory,
                "mean": f"{mean:,.1f}",
                "tokens": f"{tokens:.0f}",
                "more than with tiers, 95 % interval": more,
            }
        )
    return made


def noise_table(rows: Rows) -> list[dict[str, str]]:
    """A row for each thing that agents do wrong: by its share, the mean with its interval."""
    found = {
        (row["noise"], row["share"]): row
        for row in summarise([row for row in rows if row["noise"]], ["noise", "share"], ["result"])
    }
    return [
        {
            f"{REGIMES[0].name}, tiers": noise,
            **{
                f"{share:.0%}": f"{row['mean']:,.0f} ({in_words(interval_of(row), _whole)})"
                for share in SHARES
                for row in (found[noise, share],)
            },
        }
        for noise in NOISE
    ]


def markdown(rows: Sequence[Mapping[str, str]], left: int) -> Iterator[str]:
    """The lines of a table in Markdown; so many columns are words, and the others numbers."""
    heads = list(rows[0])
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * left}{'--:|' * (len(heads) - left)}"
    for row in rows:
        yield f"| {' | '.join(row.values())} |"


def _signed(value: float) -> str:
    return f"{value:+,.1f}".replace("-", "−")


def _whole(value: float) -> str:
    return f"{value:,.0f}"
