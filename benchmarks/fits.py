"""Whether the intervals of a fit have the settings that made the data: are they calibrated?

A fit of `rumor` is run as `tiermem fit` runs it. Then each of its runs takes the place of the data,
and the others give the interval of 90 % of each setting. With a posterior that is right, 90 of 100
intervals have the setting, and its ranks are even. Posteriors that are wrong on purpose must fail.
"""

import argparse
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from report import Goal, console, goals, machine, table
from scipy.stats import binomtest

from tiermem.simulation.sweeps.fit import ACCEPT, fit
from tiermem.simulation.sweeps.posterior import Calibration, Posterior, as_accepted, calibrate

SETTINGS = {
    "simulation.world_options.liars": (0, 6),
    "simulation.world_options.corrections": (0, 8),
}
METRICS = ("accuracy_mean", "false_answers")
SHARES = (ACCEPT, 2 * ACCEPT, 4 * ACCEPT)


def shifted(settings: Any, near: Any) -> Any:
    return settings[near] + 0.15 * np.ptp(settings, axis=0)


def squeezed(settings: Any, near: Any) -> Any:
    middle = settings[near].mean(axis=0)
    return middle + (settings[near] - middle) / 2


WRONG: Mapping[str, Posterior] = {"15 % too high": shifted, "half as wide": squeezed}


def runs(folder: Path, asked: argparse.Namespace) -> tuple[Any, Any]:
    """The settings of a fit's runs, and what they came to."""
    scenario = folder / "rumor.yaml"
    simulation = {"world": "rumor", "agents": asked.agents, "ticks": asked.ticks}
    scenario.write_text(json.dumps({"simulation": simulation}))
    (folder / "data.csv").write_text("accuracy_mean,false_answers\n0.4,5\n")
    made = folder / "fit.yaml"
    made.write_text(json.dumps({"scenario": scenario.name, "runs": asked.runs, "accept": 0.5}))
    fit(made, folder / "data.csv", folder / "fit", ranges=SETTINGS, workers=asked.workers)
    columns = pq.read_table(folder / "fit" / "results.parquet").to_pydict()
    settings, statistics = (
        np.column_stack([np.array(columns[name], float) for name in names])
        for names in (SETTINGS, METRICS)
    )
    return settings, statistics


def row(name: str, setting: str, found: Calibration) -> list[str]:
    between = binomtest(found.inside, found.tried).proportion_ci()
    bins = np.histogram(found.ranks, bins=10, range=(0, 1))[0]
    return [
        name,
        setting.rpartition(".")[2],
        f"{100 * found.inside / found.tried:.1f}",
        f"{100 * between.low:.0f} to {100 * between.high:.0f}",
        f"{found.p_uniform:.3f}",
        f"{100 * found.width:.0f} %",
        " ".join(map(str, bins)),
        found.verdict,
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--agents", type=int, default=12)
    parser.add_argument("--ticks", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="keep the runs here, and go on with them")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = asked.folder or Path(place)
        folder.mkdir(parents=True, exist_ok=True)
        settings, statistics = runs(folder, asked)
    ways: dict[str, tuple[int, Posterior]] = {
        f"{share:.0%} accepted": (round(share * len(settings)), as_accepted) for share in SHARES
    }
    some = round(SHARES[1] * len(settings))
    ways |= {name: (some, posterior) for name, posterior in WRONG.items()}
    found = {
        name: calibrate(settings, statistics, count, posterior)
        for name, (count, posterior) in ways.items()
    }
    console.print(machine())
    table(
        f"Each of {len(settings)} runs of rumor as the data",
        ["posterior", "setting", "in 90 %", "95 %", "even: p", "width", "ranks", ""],
        [
            row(name, setting, own)
            for name, both in found.items()
            for setting, own in zip(SETTINGS, both, strict=True)
        ],
    )
    right = next(iter(found.values()))  # the share that a fit accepts by default
    wrong = [own for name in WRONG for own in found[name]]
    goals(
        [
            Goal("fewest in an interval of 90 %", 86.0, _share(min, right), "%", at_least=True),
            Goal("most in an interval of 90 %", 94.0, _share(max, right), "%"),
            Goal("wrong posteriors that pass", 0.0, sum(own.holds for own in wrong), ""),
        ]
    )


def _share(which: Any, found: list[Calibration]) -> float:
    return float(which(100 * own.inside / own.tried for own in found))


if __name__ == "__main__":
    main()
