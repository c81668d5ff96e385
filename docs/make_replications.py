"""Writes docs/replications.md, published results beside ours: ``make replications``.

It runs four sweeps of ``simulations/``, and beside them the papers' models without any memory, in
plain arrays: if these agree with the sweeps, what differs from a paper is not our memory's doing.
"""

import math
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from make_results import SIMULATIONS, interval, number, run

from tiermem.simulation.reports import plots
from tiermem.simulation.reports.sweep_report import SweepResults
from tiermem.simulation.statistics import Interval, interval_of, mean_interval
from tiermem.simulation.sweeps.run_sweep import prepare, write_results
from tiermem.simulation.sweeps.sweep import read_sweep

PAGE = Path(__file__).with_name("replications.md")
IMAGES = PAGE.with_name("images")
SWEEPS = ("minority", "minority_tiers", "helping", "helping_tiers")
LIMIT, AGENTS = "memory.default_limit", "simulation.agents"
COINS, CRITICAL = 0.25, 0.3374
"""The paper's coin tosses; the minimum of infinitely many agents with two tables."""


class Found(NamedTuple):
    """All that the page tells."""

    sweeps: Mapping[str, SweepResults]
    """By name, those of :data:`SWEEPS`."""
    games: Mapping[tuple[int, int, int], Interval]
    """σ²/N of plain games, by agents, outcomes and ticks."""
    villages: Mapping[int, Interval]
    """Cooperation in plain villages, by the number of memories."""


class Scale(NamedTuple):
    """How much is run."""

    seeds: Sequence[int] | None = None
    """Those of the sweeps' files, if there are none."""
    changes: Mapping[str, Any] = {}
    """What is changed of all scenarios."""
    plain_seeds: int = 100
    games: int = 5
    ticks: int = 10_000
    """Of plain games, which are run as long as the sweep's, too."""


def sweep(name: str, folder: Path, scale: Scale) -> SweepResults:
    """The results of this sweep; the runs of a seed are deleted before those of the next."""
    plan = read_sweep(SIMULATIONS / f"{name}_sweep.yaml")
    seeds, common = scale.seeds or plan.seeds, {**plan.common, **scale.changes}
    plan = replace(plan, seeds=seeds, common=common)
    prepare(plan, folder, force=False)  # which registers it
    done: dict[str, Any] = {}
    for seed in seeds:
        done |= run(replace(plan, seeds=[seed]), folder / str(seed))
        shutil.rmtree(folder / str(seed))
        print(f"{name}: seed {seed} is done", flush=True)  # noqa: T201 - a command
    return write_results(plan, folder, done)


# The papers' models, without memories


def game(agents: int, outcomes: int, ticks: int, warm_up: int, seed: int) -> float:
    """σ²/N of a minority game of two tables, in arrays."""
    rng, rows = np.random.default_rng(seed), 2**outcomes
    tables = rng.integers(0, 2, (agents, 2, rows))
    points, each, row = np.zeros((agents, 2), int), np.arange(agents), int(rng.integers(rows))
    sizes = []
    for _ in range(ticks):
        says, ahead = tables[:, :, row], points[:, 0] - points[:, 1]
        best = np.where(ahead == 0, rng.integers(0, 2, agents), ahead < 0)
        size = int(says[each, best].sum())
        smaller = int(2 * size < agents)
        points += says == smaller
        row = (2 * row + smaller) % rows
        sizes.append(size)
    return float(np.var(sizes[warm_up:])) / agents


def village(memories: int, seed: int, options: Mapping[str, Any], agents: int, ticks: int) -> float:
    """The share of help in a village of image scoring, with lists in the place of memories."""
    rng, everybody = Random(seed), range(agents)  # noqa: S311 - no secret
    length, pairs = options["generation"], agents // options["share"]
    thresholds = [rng.randint(-5, 6) for _ in everybody]
    help_given: list[bool] = []
    seen: list[list[tuple[int, int]]] = []
    for tick in range(ticks):
        if tick % length == 0:
            seen, told, fared = [[] for _ in everybody], [[] for _ in everybody], [0] * agents
        drawn, acts = rng.sample(everybody, 2 * pairs), []
        for donor, other in zip(drawn[:pairs], drawn[pairs:], strict=True):
            known = seen[donor][-memories:] if memories else []
            image = sum(act for who, act in known if who == other)
            helps = min(max(image, -5), 5) >= thresholds[donor]
            fared[donor] += 0 if helps else options["cost"]
            fared[other] += options["cost"] + options["benefit"] * helps
            acts.append((donor, 1 if helps else -1))
            if tick >= options["warm_up"] * length:
                help_given.append(helps)
        for own, news in zip(seen, told, strict=True):
            own += news
        for donor, _ in acts:
            seen[donor].append((-1, 0))  # that it was asked is a memory, too
        told = [[] for _ in everybody]
        for donor, act in acts:
            others = [one for one in everybody if one != donor]
            for one in rng.sample(others, min(options["onlookers"], len(others))):
                told[one].append((donor, act))
        if tick % length == length - 1:
            thresholds = rng.choices(thresholds, fared if any(fared) else None, k=agents)
    return sum(help_given) / max(1, len(help_given))


def find(scale: Scale, folder: Path) -> Found:
    """Run everything."""
    sweeps = {name: sweep(name, folder / name, scale) for name in SWEEPS}
    return Found(sweeps, games(scale), villages(scale))


def games(scale: Scale) -> dict[tuple[int, int, int], Interval]:
    """Plain games of the sizes of the sweep, as long as its own, and long ones."""
    plan = read_sweep(SIMULATIONS / "minority_sweep.yaml")
    own = plan.settings().simulation
    warm_up = own.world_options["warm_up"]
    told = {}
    for agents in plan.grid[AGENTS]:
        for limit in plan.grid[LIMIT]:
            for ticks, seeds in ((own.ticks, scale.plain_seeds), (scale.ticks, scale.games)):
                values = [game(agents, limit + 1, ticks, warm_up, seed) for seed in range(seeds)]
                told[agents, limit + 1, ticks] = mean_interval(values)
    return told


def villages(scale: Scale) -> dict[int, Interval]:
    """Plain villages with each number of memories of the sweep."""
    plan = read_sweep(SIMULATIONS / "helping_sweep.yaml")
    own = plan.settings().simulation
    size = len(own.agent_ids()), own.ticks
    return {
        limit: mean_interval(
            [village(limit, seed, own.world_options, *size) for seed in range(scale.plain_seeds)]
        )
        for limit in plan.grid[LIMIT]
    }


# The page


def page(found: Found) -> str:
    """The page for what was found."""
    sweeps = found.sweeps
    own = read_sweep(SIMULATIONS / "minority_sweep.yaml").settings().simulation
    ticks = sorted({ticks for _, _, ticks in found.games})
    plain, long = (
        next(each for (_, _, last), each in found.games.items() if last == own) for own in ticks
    )
    cost, benefit = _cost_and_benefit()
    people = read_sweep(SIMULATIONS / "helping_sweep.yaml").settings().simulation
    generations = people.ticks // people.world_options["generation"]
    tiers = sweeps["minority_tiers"]
    players = len(
        read_sweep(SIMULATIONS / "minority_tiers_sweep.yaml").settings().simulation.agent_ids()
    )
    return TEXT.format(
        coins=COINS,
        critical=CRITICAL,
        minority_seeds=len(sweeps["minority"].seeds),
        ticks=ticks[0],
        warm_up=own.world_options["warm_up"],
        long=f"{ticks[-1]:,}",
        plain_seeds=plain.n,
        games=long.n,
        crowded=_at(sweeps["minority"], 0),
        lowest=_lowest(sweeps["minority"]),
        wide=_at(sweeps["minority"], -1),
        curve=_curve(found),
        alike=_alike(found),
        minority_tiers_seeds=len(tiers.seeds),
        coin_wins=number(_wins_of_coins(players)),
        minority_tiers=_tiers(tiers, ("sigma2", "wins")),
        threshold=number(cost / benefit),
        generations=generations,
        last=generations - people.world_options["warm_up"],
        helped=_helped(sweeps["helping"]),
        helping_seeds=len(sweeps["helping"].seeds),
        cooperation=_cooperation(found),
        helping_tiers_seeds=len(sweeps["helping_tiers"].seeds),
        helping_tiers=_tiers(sweeps["helping_tiers"], ("cooperation", "known")),
    )


def _wins_of_coins(agents: int) -> float:
    """The share of agents in the smaller group, on average, if all toss coins."""
    sizes = range(agents + 1)
    wins = sum(math.comb(agents, size) * min(size, agents - size) for size in sizes)
    return wins / 2**agents / agents


def _told(results: SweepResults, metric: str, **where: Any) -> Mapping[str, Any]:
    """The mean of a metric at a point of the grid."""
    (row,) = [
        row
        for row in results.statistics
        if row["metric"] == metric and all(row[key] == value for key, value in where.items())
    ]
    return row


def _points(results: SweepResults, key: str) -> list[Any]:
    return list(dict.fromkeys(row[key] for row in results.statistics))


def _curve(found: Found) -> str:
    results = found.sweeps["minority"]
    ticks = sorted({ticks for _, _, ticks in found.games})
    lines = [
        "| N | m | 2^m/N | σ²/N | 95 % | plain, as long | 95 % | plain, long | 95 % |",
        "|--:|--:|--:|--:|---|--:|---|--:|---|",
    ]
    for agents in _points(results, AGENTS):
        for limit in _points(results, LIMIT):
            row = _told(results, "sigma2", **{AGENTS: agents, LIMIT: limit})
            plain = [found.games[agents, limit + 1, each] for each in ticks]
            cells = [agents, limit + 1, number(2 ** (limit + 1) / agents), number(row["mean"])]
            cells.append(interval(row))
            for own in plain:
                cells += [number(own.mean), f"{number(own.low)} to {number(own.high)}"]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _alike(found: Found) -> str:
    """How many of our intervals have the plain mean, in words."""
    results, ticks = found.sweeps["minority"], min(ticks for _, _, ticks in found.games)
    inside = [
        own.low <= found.games[agents, limit + 1, ticks].mean <= own.high
        for agents in _points(results, AGENTS)
        for limit in _points(results, LIMIT)
        for own in [interval_of(_told(results, "sigma2", **{AGENTS: agents, LIMIT: limit}))]
    ]
    return f"{sum(inside)} of {len(inside)}"


def _at(results: SweepResults, place: int) -> str:
    """The first or the last point of each curve, in words."""
    limit, told = _points(results, LIMIT)[place], []
    for agents in _points(results, AGENTS):
        mean = _told(results, "sigma2", **{AGENTS: agents, LIMIT: limit})["mean"]
        told.append(f"{number(mean)} at {number(2 ** (limit + 1) / agents)}")
    return " and ".join(told)


def _lowest(results: SweepResults) -> str:
    """Where the curves are lowest, in words."""
    told = []
    for agents in _points(results, AGENTS):
        means = {
            limit: _told(results, "sigma2", **{AGENTS: agents, LIMIT: limit})["mean"]
            for limit in _points(results, LIMIT)
        }
        best = min(means, key=lambda limit: means[limit])
        near = number(2 ** (best + 1) / agents)
        told.append(f"{near} for {agents} agents (m = {best + 1}, σ²/N {number(means[best])})")
    return " and ".join(told)


def _helped(results: SweepResults) -> str:
    """Cooperation without memory and with the most, in words."""
    told = []
    for limit in (_points(results, LIMIT)[0], _points(results, LIMIT)[-1]):
        mean, known = (
            number(_told(results, name, **{LIMIT: limit})["mean"])
            for name in ("cooperation", "known")
        )
        told.append(f"cooperation {mean} where {known} of the recipients are known")
    return "; ".join(told)


def _cooperation(found: Found) -> str:
    results = found.sweeps["helping"]
    lines = [
        "| acts in mind | knows the recipient | cooperation | 95 % | plain | 95 % |",
        "|--:|--:|--:|---|--:|---|",
    ]
    for limit in _points(results, LIMIT):
        known, helped = (
            _told(results, name, **{LIMIT: limit}) for name in ("known", "cooperation")
        )
        plain = found.villages[limit]
        cells = [str(limit), number(known["mean"]), number(helped["mean"]), interval(helped)]
        cells += [number(plain.mean), f"{number(plain.low)} to {number(plain.high)}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _tiers(results: SweepResults, metrics: Sequence[str]) -> str:
    """The variants of a sweep at each point of its grid, and how they differ from the baseline."""
    (base,) = results.baseline.values()
    first, second = metrics
    head = [f"{first}, mean", "95 %", f"more than where {base}", "p (Holm)", f"{second}, mean"]
    rows = [f"| {'m | ' if results.grid else ''}memory | {' | '.join(head)} |"]
    rows.append(f"|{'--:|' if results.grid else ''}---|--:|---|---|---|--:|")
    for point in _points(results, LIMIT) if results.grid else [None]:
        where = {} if point is None else {LIMIT: point}
        apart = {
            row["variant"]: row
            for row in results.compared
            if row["metric"] == first and all(row[key] == each for key, each in where.items())
        }
        for variant in results.variants:
            own, other = (_told(results, name, variant=variant, **where) for name in metrics)
            cells = [] if point is None else [str(point + 1)]
            cells += [variant, number(own["mean"]), interval(own), *_difference(apart.get(variant))]
            rows.append(f"| {' | '.join([*cells, number(other['mean'])])} |")
    return "\n".join(rows)


def _difference(row: Mapping[str, Any] | None) -> list[str]:
    if row is None:
        return ["", ""]
    found = interval_of(row)
    ends = f" ({number(found.low)} to {number(found.high)})" if math.isfinite(found.low) else ""
    p = "–" if row["p_holm"] is None else f"{row['p_holm']:.2g}"
    return [f"{number(row['mean'])}{ends}", p]


# The figures


def figures(found: Found) -> dict[str, str]:
    """The figures, by the names of their files."""
    return {
        "minority.svg": plots.alone(_figure_of_games(found)),
        "helping.svg": plots.alone(_figure_of_villages(found)),
    }


def _figure_of_games(found: Found) -> str:
    """Games of all sizes in columns of 2^m/N, which is about the same where N is about double."""
    results = found.sweeps["minority"]
    sizes, limits = _points(results, AGENTS), _points(results, LIMIT)
    ticks = min(ticks for _, _, ticks in found.games)
    ours: dict[int, dict[int, Interval]] = {agents: {} for agents in sizes}
    plain: dict[int, dict[int, Interval]] = {agents: {} for agents in sizes}
    labels = {}
    for agents in sizes:
        for limit in limits:
            near = 2 ** (limit + 1) / agents
            place = round(math.log2(near))
            row = _told(results, "sigma2", **{AGENTS: agents, LIMIT: limit})
            ours[agents][place] = interval_of(row)
            plain[agents][place] = found.games[agents, limit + 1, ticks]
            labels[place] = number(near)
    places = sorted(labels)
    points: dict[str, Sequence[Interval | None]] = {
        f"{agents} agents": [ours[agents].get(place) for place in places] for agents in sizes
    }
    points[f"{sizes[-1]}, plain"] = [plain[sizes[-1]].get(place) for place in places]
    points["coins"] = [Interval(1, COINS, COINS, COINS)] * len(places)
    names = [labels[place] for place in places]
    return plots.intervals(points, names, x_label="2^m/N", y_label="σ²/N")


def _figure_of_villages(found: Found) -> str:
    results = found.sweeps["helping"]
    limits = _points(results, LIMIT)
    (cost, benefit) = _cost_and_benefit()
    line = Interval(1, cost / benefit, cost / benefit, cost / benefit)
    points: dict[str, Sequence[Interval | None]] = {
        "cooperation": [
            interval_of(_told(results, "cooperation", **{LIMIT: limit})) for limit in limits
        ],
        "cooperation, plain": [found.villages[limit] for limit in limits],
        "knows the recipient": [
            interval_of(_told(results, "known", **{LIMIT: limit})) for limit in limits
        ],
        "cost/benefit": [line] * len(limits),
    }
    return plots.intervals(points, [str(limit) for limit in limits], x_label="acts in mind")


def _cost_and_benefit() -> tuple[int, int]:
    options = read_sweep(SIMULATIONS / "helping_sweep.yaml").settings().simulation.world_options
    return options["cost"], options["benefit"]


TEXT = """\
# Papers, replicated

`make replications` made this page: four sweeps of `simulations/`, and beside them the papers' models
in plain arrays and lists, without a memory (*plain*). Two published results in which memory decides
are shipped as worlds, each shorter than 200 lines: [minority](architecture/worlds.md#minority) and
[helping](architecture/worlds.md#helping). Means have 95 % intervals of Student over seeds. The
papers were not at hand when this was written: what is said of them is what is commonly quoted.

## The minority game

R. Savit, R. Manuca, R. Riolo, *Adaptive competition, market efficiency, and phase transitions*,
Physical Review Letters 82, 2203 (1999). N agents join one of two groups, and those in the smaller
one win. σ² is the variance of the number of agents in one group; by N, agents that toss coins have
{coins} (of the difference of the two groups it is four times as much, so other papers have 1).

| | the paper | here |
|---|---|---|
| what decides | 2^m/N, where m is how many outcomes agents remember | the same; m is `memory.default_limit` + 1 |
| small 2^m/N | crowds: σ²/N far above {coins} | {crowded} |
| lowest | about {critical}, for infinitely many agents; 2^m is a power of two, so with 101 agents at m = 6, where 2^m/N is 0.63 | at {lowest} |
| large 2^m/N | towards {coins}, from below | {wide} |

![σ²/N over 2^m/N: with memories, plain, and coins](images/minority.svg)

{minority_seeds} seeds, {ticks} ticks, of which the first {warm_up} are left out. The plain games have {plain_seeds}
seeds and as many ticks, or {games} seeds and {long} ticks.

{curve}

The plain mean, of games as long, lies in our interval in {alike} rows.

What differs from the paper:

- The paper has 101 agents in its figures of one size, and thousands of ticks. Here there are fewer of
  both. Near the minimum, tables need more ticks than these to settle: the last columns say how much
  that makes. The paper also tries other sizes, and finds one curve over 2^m/N.
- The minimum is at the first m above {critical}, and the plain games have it there as well, also the
  long ones: with so few agents it lies above that of infinitely many.
- Where an agent remembers fewer than m outcomes, in the first m ticks, it looks up the shorter row.
  The paper draws the outcomes before the first tick.
- A table is a hash of its number and the row, in place of 2^m drawn letters.

### What tiers change in it

In the game above all agents remember the same outcomes. An agent that keeps its wins, or its losses,
as important memories has a past of its own: these come to mind before newer outcomes, and only the
last outcome, which is told, is the same for all. {minority_tiers_seeds} seeds; `wins` is the share of
agents that win, and coins would give {coin_wins} with so few agents.

{minority_tiers}

σ²/N is 0 where the sizes of the groups never change, which may be good or bad: `wins` tells which.
So few seeds tell few differences apart: where p is above 0.05, the means are a hint, and no more.
They hint that with two outcomes a past of one's own breaks up the crowds, and more agents win. With
more outcomes, agents that keep their losses are nearer to coins. Those that keep their wins come to a
halt, mostly with fewer wins, or at last all change sides together.

## Image scoring

M. A. Nowak, K. Sigmund, *Evolution of indirect reciprocity by image scoring*, Nature 393, 573
(1998). An agent that is asked for help gives it if the other's image is not below the agent's
threshold: an image goes up with help and down with refusals, from −5 to 5. Children have the
thresholds of those who fared well.

| | the paper | here |
|---|---|---|
| who | 100 agents, 125 encounters a generation | 20 agents, 100 encounters a generation |
| benefit and cost | 1 and 0.1 | 10 and 1 |
| thresholds | −5 to 6, inherited; then also mutants, over many thousands of generations | the same, {generations} generations without mutants |
| who knows | everybody; then only onlookers, ten of those who are there | ten onlookers, and of what they saw only what comes to mind |
| result | help takes over if images are known, and can only last if they are known with a probability above cost/benefit, {threshold} here | {helped} |

![Cooperation, and how often the recipient is known, over the number of acts in mind](images/helping.svg)

Cooperation is the share of help in the last {last} of {generations} generations; {helping_seeds} seeds, and {plain_seeds} of the
plain model. An agent knows the recipient if at least one of its acts comes to mind.

{cooperation}

What differs from the paper:

- In so few generations a run is on its way to help by nearly all, or by nearly nobody, and so
  intervals are wide. The paper's long runs with mutants go back and forth between the two.
- Encounters of a tick are at once, and an act that was seen in one tick comes to mind in the next but
  one.
- Only without memory is the recipient known more rarely than cost/benefit: there help dies out, and
  what is left after so few generations is chance. Above it, cooperation rises with what is known.
  That nothing helps below cost/benefit and something does above it can't be read from these points:
  in so small a population chance counts for much, and an image made of one act says little.

### What tiers change in it

With ten acts in mind, agents keep refusals, or help, as important memories, which come to mind before
newer ones; or they ask their memory about the one who asks them. {helping_tiers_seeds} seeds.

{helping_tiers}

So few seeds tell none of these apart in cooperation. How often the recipient is known varies little
from seed to seed: important memories take the places of newer ones, and make that no more frequent.
A memory that is asked about the recipient, and gives ten memories, knows as much as one that has
forty acts in mind.
"""  # noqa: E501 - rows of tables


def write(found: Found) -> None:
    """Write the page and its figures."""
    PAGE.write_text(page(found))
    for name, figure in figures(found).items():
        (IMAGES / name).write_text(figure)
    print(f"wrote {PAGE}")  # noqa: T201 - a command


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as below:
        write(find(Scale(), Path(below)))
