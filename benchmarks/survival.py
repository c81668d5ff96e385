"""How often the interval of a survival curve has the true share, if agents differ.

Each agent loses its memories at a rate of its own: they are not independent. The interval of
`analyse` knows that; Greenwood's takes every memory for an observation of its own.
"""

import argparse

import numpy as np
from report import Goal, console, goals, machine, table

from tiermem.simulation.analysis.forgetting import kaplan_meier

AGES = (5, 10, 20)
SIZES = ((5, 20), (10, 20), (30, 20), (100, 10))
SPREADS = (0.0, 0.5, 1.0)
RATE = 0.05


def covered(
    agents: int, memories: int, spread: float, trials: int, rng: np.random.Generator
) -> tuple[list[float], list[float]]:
    """Of 100 intervals at each age those that have the truth: the robust one's, Greenwood's."""
    many = RATE * np.exp(spread * rng.normal(size=400_000))
    truth = [float(np.exp(-many * age).mean()) for age in AGES]
    whose = np.repeat(np.arange(agents), memories)
    inside = np.zeros((2, len(AGES)))
    for _ in range(trials):
        rates = RATE * np.exp(spread * rng.normal(size=agents))
        lived = np.ceil(rng.exponential(1 / rates[whose])).astype(int)
        watched = rng.integers(20, 60, len(whose))  # a run ends while memories are there
        ages, is_gone = np.minimum(lived, watched), lived <= watched
        for row, own in enumerate((whose, None)):
            at, _, _, _, low, high = kaplan_meier(ages, is_gone, own)
            for column, (age, share) in enumerate(zip(AGES, truth, strict=True)):
                place = int(np.searchsorted(at, age, side="right")) - 1
                inside[row, column] += place >= 0 and low[place] <= share <= high[place]
    robust, naive = (100 * inside / trials).tolist()
    return robust, naive


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=1_000, help="of each size and spread")
    asked = parser.parse_args()
    rng = np.random.default_rng(1)
    rows, reached = [], []
    for spread in SPREADS:
        for agents, memories in SIZES:
            robust, naive = covered(agents, memories, spread, asked.trials, rng)
            reached += robust
            rows.append(
                [
                    f"agents differ by {spread:g}, {agents} agents × {memories}",
                    " ".join(f"{share:.1f}" for share in robust),
                    " ".join(f"{share:.1f}" for share in naive),
                ]
            )
    console.print(machine())
    heads = ["", "by agent", "Greenwood"]
    table(f"Of 100 intervals of 95 % at ages {AGES}, {asked.trials:,} trials", heads, rows)
    goals(
        [
            Goal("fewest by agent", 92.0, min(reached), "%", at_least=True),
            Goal("most by agent", 98.0, max(reached), "%"),
        ]
    )


if __name__ == "__main__":
    main()
