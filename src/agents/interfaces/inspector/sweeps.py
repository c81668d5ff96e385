"""A sweep as a grid of points, each with the runs of its seeds."""

from pathlib import Path
from shlex import quote
from statistics import fmean
from typing import Any

import yaml

from ...errors import RunError
from ...simulation.runs.outputs import rows_of
from .parameters import NotThere

__all__ = ["is_sweep", "run_of", "sweep"]

_NOT_METRICS = ("cell", "variant", "seed", "state_hash")


def is_sweep(folder: Path) -> bool:
    """Whether ``tiermem sweep`` made this folder."""
    return (folder / "plan.yaml").is_file() and (folder / "cells").is_dir()


def sweep(folder: Path) -> dict[str, Any]:
    """The points of a sweep: the mean of each metric over the seeds, and the runs."""
    rows = rows_of(folder / "results.parquet")
    try:
        plan = yaml.safe_load((folder / "plan.yaml").read_text())
        grid, variants = [*plan["grid"]], [*plan["variants"]]
    except (OSError, ValueError, LookupError, TypeError, yaml.YAMLError) as error:
        raise RunError(f"{folder / 'plan.yaml'} can't be read: {error!r:.200}") from None
    if rows is None:
        raise _unfinished(folder)
    parameters = [*(["variant"] if len(variants) > 1 else []), *grid]
    metrics = [name for name in rows[0] if name not in (*_NOT_METRICS, *grid)] if rows else []
    points: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        points.setdefault(tuple(str(row[name]) for name in parameters), []).append(row)
    return {
        "name": folder.resolve().name,
        "question": str(plan.get("question", "")),
        "parameters": parameters,
        "metrics": metrics,
        "points": [_point(folder, own, parameters, metrics) for own in points.values()],
    }


def _unfinished(folder: Path) -> RunError:
    """The error for a sweep without its table; it names a run to look at meanwhile."""
    done = sorted(each.parent.name for each in (folder / "cells").glob("*/summary.json"))
    hint = "let the sweep end; the same command continues it"
    if done:
        hint += f". Meanwhile: tiermem inspect {quote(str(folder / 'cells' / done[0]))}"
    said = f"{len(done)} of its runs {'is' if len(done) == 1 else 'are'} done"
    return RunError(f"{folder} has no results yet, which come at its end; {said}", hint=hint)


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
