"""What lies around a run: the grid of its sweep, also while it goes on, and its experiments."""

import itertools
import json
import re
from math import prod
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

from ...errors import RunError
from ...memory.words import signed
from ...simulation.runs.found_effects import effects_of, placebos_in_words
from ...simulation.runs.outputs import rows_of
from ...simulation.statistics import in_words, interval_of
from ...simulation.sweeps.drawn import Drawn
from ...simulation.sweeps.sweep import COLUMNS, run_name, shown_value
from .inspected import Inspected
from .parameters import CantTell, NotThere, Parameters

_MOST_POINTS = 100_000
"""Points of a plan that are looked for among the cells: a plan may be a stranger's."""
_MOST_EXPERIMENTS = 100
_MOST_NUMBERS = 60
"""Rows of an experiment's tables."""


def is_sweep(folder: Path) -> bool:
    """Whether ``tiermem sweep`` made this folder."""
    return (folder / "plan.yaml").is_file() and (folder / "cells").is_dir()


def sweep(folder: Path) -> dict[str, Any]:
    """The points of a sweep: the mean of each metric over the seeds, and the runs."""
    table = rows_of(folder / "results.parquet")
    if table is None and (folder / "results.parquet").exists():
        raise RunError(
            f"{folder / 'results.parquet'} can't be read",
            hint="the same tiermem sweep writes it anew; what has run is kept",
        )
    try:
        plan = yaml.safe_load((folder / "plan.yaml").read_text())
        variants = [*plan["variants"]]
        grid = [*Drawn.from_dict(plan["drawn"]).ranges] if "drawn" in plan else [*plan["grid"]]
        rows = _rows_so_far(folder, plan) if table is None else table
    except (OSError, ValueError, LookupError, TypeError, yaml.YAMLError) as error:
        raise RunError(f"{folder / 'plan.yaml'} can't be read: {error!r:.200}") from None
    if not rows:
        raise RunError(f"{folder} has no run yet", hint="the same tiermem sweep goes on with it")
    parameters = [*(["variant"] if len(variants) > 1 else []), *grid]
    metrics = [name for name in rows[0] if name not in (*COLUMNS, *grid)]
    points: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        points.setdefault(tuple(str(row[name]) for name in parameters), []).append(row)
    return {
        "name": folder.resolve().name,
        "question": str(plan.get("question", "")),
        "is_finished": table is not None,
        "parameters": parameters,
        "metrics": metrics,
        "points": [_point(folder, own, parameters, metrics) for own in points.values()],
    }


def _rows_so_far(folder: Path, plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a sweep without its table: a run that is not done has no metrics."""
    seeds: dict[str, list[int]] = {}
    for cell in (folder / "cells").iterdir():
        if found := re.fullmatch(r"(.*_)seed=(-?\d+)", cell.name):  # others are branches
            seeds.setdefault(found[1], []).append(int(found[2]))
    places = _places(plan, set(seeds))
    rows = [
        {"cell": f"{prefix}seed={seed}", **place, "seed": seed}
        for prefix, place in places.items()
        for seed in sorted(seeds.get(prefix, ()))
    ]
    metrics = [_metrics(folder / "cells" / row["cell"]) for row in rows]
    names = list(dict.fromkeys(itertools.chain.from_iterable(metrics)))
    return [
        {**row, **{name: own.get(name) for name in names}}
        for row, own in zip(rows, metrics, strict=True)
    ]


def _places(plan: dict[str, Any], prefixes: set[str]) -> dict[str, dict[str, Any]]:
    """By the name of a cell without its seed, its variant and its place in the grid.

    The names have the settings in the order of the sweep's file, which the plan does not keep.
    """
    if "drawn" in plan:
        return _drawn_places(plan)
    grid, variants = plan["grid"], plan["variants"]
    if prod(map(len, (variants, *grid.values()))) > _MOST_POINTS:
        raise ValueError(f"it has more than {_MOST_POINTS} points")
    named = [part.partition("=")[0] for part in min(prefixes, default="").split("_")[1:]]
    spots = {name: run_name("", {name: ""}, 0).split("_")[1].removesuffix("=") for name in grid}
    order = sorted(grid, key=lambda name: named.index(spots[name]) if spots[name] in named else 0)
    found = {}
    for variant, point in itertools.product(variants, itertools.product(*grid.values())):
        at = dict(zip(grid, point, strict=True))
        name = run_name(variant, {each: at[each] for each in order}, 0)
        shown = {each: shown_value(value, grid[each]) for each, value in at.items()}
        found[name.removesuffix("seed=0")] = {"variant": variant, **shown}
    return found


def _drawn_places(plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The same of a sweep over ranges, or of a fit: its runs are named by the number of a point."""
    drawn = Drawn.from_dict(plan["drawn"])
    return {
        run_name(variant, {"point": number}, 0).removesuffix("seed=0"): {
            "variant": variant,
            **dict(zip(drawn.ranges, point, strict=True)),
        }
        for variant in plan["variants"]
        for number, point in enumerate(drawn.values)
    }


def _metrics(cell: Path) -> dict[str, Any]:
    """The metrics of a cell's run; none while it goes on."""
    try:
        summary = json.loads((cell / "summary.json").read_text())
        return dict(summary["metrics"]) if summary["finished"] else {}
    except (OSError, ValueError, LookupError, TypeError):
        return {}


def _point(
    folder: Path, rows: list[dict[str, Any]], parameters: list[str], metrics: list[str]
) -> dict[str, Any]:
    return {
        "values": {name: rows[0][name] for name in parameters},
        "seeds": [row["seed"] for row in rows],
        "metrics": {name: _mean([row[name] for row in rows]) for name in metrics},
        "runs": [
            {
                "seed": row["seed"],
                "name": row["cell"],
                "metrics": {name: row[name] for name in metrics},
                "has_run": (folder / "cells" / row["cell"] / "run.json").is_file(),
            }
            for row in rows
        ],
    }


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def run_of(folder: Path, name: str) -> Path:
    """The folder of a sweep's run, by its name."""
    if name not in {each.name for each in (folder / "cells").iterdir()}:
        raise NotThere(
            f"the sweep has no run {name!r:.80}", hint="its grid lists the runs (api/sweep)"
        )
    return folder / "cells" / name


# Experiments


def effects(run: Inspected, given: Parameters) -> dict[str, Any]:
    """What was changed in copies of a run, at which tick, and what it did."""
    found = effects_of(run.folder) if run.is_run else []
    return {
        "total": len(found),
        "effects": [
            {
                "name": each.name,
                "at": each.at,
                "until": each.until,
                "changed": each.changed,
                "statistics": [
                    {
                        **row,
                        "interval": in_words(interval_of(row), signed) or "–",
                        **({"placebo": placebos_in_words(row)} if "verdict" in row else {}),
                    }
                    for row in each.statistics[:_MOST_NUMBERS]
                ],
                "reached": each.reached[:_MOST_NUMBERS],
                "has_runs": each.arms is not None,
            }
            for each in found[:_MOST_EXPERIMENTS]
        ],
    }


def arms_of(run: Inspected, name: str) -> tuple[Path, Path]:
    """The runs without and with the change of an experiment."""
    found = next((each for each in effects_of(run.folder) if each.name == name), None)
    if found is None:
        raise NotThere(
            f"{run.name} has no experiment {name!r:.80}",
            hint="the view Compare lists them (api/effects)",
        )
    if found.arms is None:
        raise CantTell(f"{name} kept no runs", hint="a ranking compares memories, not two runs")
    return found.arms
