"""How often a sweep takes noise for a difference.

Two variants get numbers from the same source, so that each difference found is a false one. The
statistics that a sweep uses judge each trial, and bootstraps judge some of the trials, too. The
intervals are Clopper and Pearson's, for the true rate. Then seeds are added until a difference
shows, or as many as ``seeds_needed`` says; and a constant is compared with skewed numbers of the
same mean.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from report import Goal, console, goals, machine, table
from scipy import stats

from tiermem.simulation.statistics import differences, holm, share_of_look, student_test

Draw = Callable[[np.random.Generator, tuple[int, int]], NDArray[np.float64]]

SEEDS = (3, 5, 10, 30)
GOAL = 6.0
COMPARISONS = 20
NOISE: dict[str, Draw] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "normal: uniform": lambda rng, size: rng.random(size),
    "skewed: exponential": lambda rng, size: rng.exponential(size=size),
    "skewed: lognormal": lambda rng, size: rng.lognormal(size=size),
    "skewed: one in ten is 100": lambda rng, size: (
        100.0 * rng.binomial(1, 0.1, size) + rng.normal(size=size)
    ),
    "discrete: Poisson 5": lambda rng, size: rng.poisson(5.0, size).astype(float),
    "discrete: Poisson 0.5": lambda rng, size: rng.poisson(0.5, size).astype(float),
    "discrete: a coin": lambda rng, size: rng.binomial(1, 0.5, size).astype(float),
    "discrete: one in ten": lambda rng, size: rng.binomial(1, 0.1, size).astype(float),
}


SHAPED_SEEDS = (5, 10, 30, 100)
SKEWED: dict[str, tuple[Draw, float]] = {
    "exponential": (NOISE["skewed: exponential"], 1.0),
    "lognormal": (NOISE["skewed: lognormal"], float(np.exp(0.5))),
    "lognormal, 1.5 wide": (
        lambda rng, size: rng.lognormal(0.0, 1.5, size),
        float(np.exp(1.125)),
    ),
}
"""Skewed numbers, and their mean."""
MOST_SEEDS = 100
MOST_LOOKS = 20


def false_rate(gaps: NDArray[np.float64]) -> float:
    """How many of 100 trials the sweep's statistics call different, by the interval."""
    found = [student_test(each) for each in gaps.tolist()]
    wrong = [each.low > 0 or each.high < 0 for each in found]
    assert wrong == [each.p < 0.05 for each in found], "the interval and p disagree"
    return 100 * sum(wrong) / len(wrong)


def bootstrap_rate(gaps: NDArray[np.float64], method: str) -> float:
    """The same, by a bootstrap with 1,000 resamples; trials without spread are left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # BCa warns of intervals that it can't give
        found = stats.bootstrap(
            (gaps[gaps.std(axis=1) > 0],),
            np.mean,
            axis=1,
            n_resamples=1_000,
            batch=100,
            method=method,
            rng=np.random.default_rng(0),
        ).confidence_interval
    return 100 * float(np.mean((found.low > 0) | (found.high < 0)))


def among_many(rng: np.random.Generator, seeds: int, sweeps: int) -> dict[str, float]:
    """In how many of 100 sweeps with 20 comparisons one is false, corrected and not."""
    wrong = {"not corrected": 0, "Holm": 0}
    for _ in range(sweeps):
        base = rng.normal(size=seeds)  # all are compared with the same runs
        others = rng.normal(size=(COMPARISONS, seeds))
        ps = [student_test(gaps).p for gaps in (others - base).tolist()]
        wrong["not corrected"] += min(ps) <= 0.05
        wrong["Holm"] += min(holm(ps)) <= 0.05
    return {name: 100 * number / sweeps for name, number in wrong.items()}


def compare(
    one: NDArray[np.float64], other: NDArray[np.float64], look: int | None, looks: int | None
) -> dict[str, Any]:
    """The difference of two variants in a sweep; without a look, as if each were the only one."""
    spent = {}
    if look is not None:
        spent = {"alpha": share_of_look(look, looks), "alpha_next": share_of_look(look + 1, looks)}
    rows = [
        {"variant": name, "seed": seed, "loss": value}
        for name, values in (("one", one), ("other", other))
        for seed, value in enumerate(values.tolist())
    ]
    return differences(rows, [], ["loss"], baseline="one", shapes=True, **spent)[0]


def until_found(
    draw: Draw,
    rng: np.random.Generator,
    trials: int,
    *,
    by_five: bool,
    looks: int | None,
    shared: bool,
) -> float:
    """In how many of 100 sweeps of noise a difference is found, if seeds are added until it is.

    Five at a time from five on, or from ten on as many as ``seeds_needed`` says.
    """
    found = 0
    for _ in range(trials):
        one, other = draw(rng, (2, MOST_SEEDS))
        seeds = 5 if by_five else 10
        for look in range(1, MOST_LOOKS + 1):
            row = compare(one[:seeds], other[:seeds], look if shared else None, looks)
            if row["p_holm"] is not None and row["p_holm"] <= 0.05:
                found += 1
                break
            needed = seeds + 5 if by_five else max(row["seeds_needed"] or MOST_SEEDS, seeds + 1)
            if seeds == MOST_SEEDS or (looks is not None and look == looks):
                break
            seeds = min(needed, MOST_SEEDS)
    return 100 * found / trials


def against_constant(
    name: str, rng: np.random.Generator, trials: int
) -> dict[str, dict[int, float]]:
    """How often of 100 times skewed numbers are called different from their own mean."""
    draw, mean = SKEWED[name]
    rates: dict[str, dict[int, float]] = {"t test alone": {}, "mean": {}, "median": {}}
    for seeds in SHAPED_SEEDS:
        found = [
            compare(np.full(seeds, mean), values, None, None)
            for values in draw(rng, (trials, seeds))
        ]
        clear = [row for row in found if row["p_holm"] is not None and row["p_holm"] <= 0.05]
        rates["t test alone"][seeds] = 100 * sum((row["p"] or 1) <= 0.05 for row in found) / trials
        for which in ("mean", "median"):
            rates[which][seeds] = 100 * sum(row["judged"] == which for row in clear) / trials
    return rates


def between(rate: float, trials: int) -> str:
    """A rate with its interval."""
    found = stats.binomtest(round(rate / 100 * trials), trials).proportion_ci(0.95)
    return f"{rate:.1f} [{100 * found.low:.1f}, {100 * found.high:.1f}]"


def tell(line: str) -> None:
    """Say how far it is."""
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=10_000, help="of each noise and size")
    parser.add_argument(
        "--bootstraps", type=int, default=1_000, help="trials judged by bootstraps; 0: none"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    asked = parser.parse_args()
    rng = np.random.default_rng(1)
    rates: dict[str, dict[int, float]] = {}
    others: dict[str, dict[str, dict[int, float]]] = {"percentile": {}, "BCa": {}}
    for name, draw in NOISE.items():
        for seeds in SEEDS:
            gaps = draw(rng, (asked.trials, seeds)) - draw(rng, (asked.trials, seeds))
            rates.setdefault(name, {})[seeds] = false_rate(gaps)
            for method, found in others.items() if asked.bootstraps else ():
                rate = bootstrap_rate(gaps[: asked.bootstraps], method)
                found.setdefault(name, {})[seeds] = rate
        tell(f"{name}: done")
    many = {seeds: among_many(rng, seeds, asked.trials // 2) for seeds in SEEDS}
    tell("many comparisons: done")
    fewer = max(asked.trials // 5, 1)
    ways = {
        "follow seeds_needed": {"by_five": False, "looks": None},
        "add five until it shows": {"by_five": True, "looks": None},
        "add five, 5 looks registered": {"by_five": True, "looks": 5},
    }
    until = {
        f"{way}, {noise}": {
            name: until_found(NOISE[noise], rng, fewer, shared=shared, **how)  # type: ignore[arg-type]
            for name, shared in (("5 % each time", False), ("shared", True))
        }
        for way, how in ways.items()
        for noise in ("normal", "skewed: lognormal")
    }
    tell("seeds that are added: done")
    shaped = {name: against_constant(name, rng, fewer) for name in SKEWED}
    if asked.json:
        made = {"rates": rates, "many": many, "until": until, "shaped": shaped, **others}
        print(json.dumps({"machine": machine(), **made}))
        return
    console.print(machine())
    heads = ["noise", *(f"{seeds} seeds" for seeds in SEEDS)]
    shown = [[name, *(between(own[n], asked.trials) for n in SEEDS)] for name, own in rates.items()]
    table(f"False differences in 100 comparisons, {asked.trials:,} trials", heads, shown)
    for method, found in others.items():
        shown = [[name, *(f"{own[n]:.1f}" for n in SEEDS)] for name, own in found.items()]
        if shown:
            table(f"The same by a bootstrap, {method}, {asked.bootstraps:,} trials", heads, shown)
    shown = [[name, *(f"{many[n][name]:.1f}" for n in SEEDS)] for name in many[SEEDS[0]]]
    table(f"Of 100 sweeps with {COMPARISONS} comparisons, those with a false one", heads, shown)
    heads = ["looks", "5 % each time", "shared"]
    shown = [
        [name, *(between(each, fewer) for each in own.values())] for name, own in until.items()
    ]
    table(f"Of 100 sweeps of noise, those with a false difference, {fewer:,} trials", heads, shown)
    heads = ["constant against", "called different", *(f"{n} seeds" for n in SHAPED_SEEDS)]
    shown = [
        [name, which, *(f"{rate:.1f}" for rate in own.values())]
        for name, kinds in shaped.items()
        for which, own in kinds.items()
    ]
    table(f"Of 100 comparisons with equal means, {fewer:,} trials", heads, shown)
    goals(
        [
            *(Goal(name, 5.0, own["shared"], "%") for name, own in until.items()),
            *(
                Goal(f"{name}, mean", GOAL, max(own["mean"].values()), "%")
                for name, own in shaped.items()
            ),
            *(
                Goal(f"{kind}, {seeds} seeds, the worst", GOAL, _worst(rates, kind, seeds), "%")
                for kind in ("normal", "skewed", "discrete")
                for seeds in SEEDS
            ),
        ]
    )


def _worst(rates: dict[str, dict[int, float]], kind: str, seeds: int) -> float:
    return max(own[seeds] for name, own in rates.items() if name.startswith(kind))


if __name__ == "__main__":
    main()
