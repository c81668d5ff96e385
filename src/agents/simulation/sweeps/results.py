"""The results of a sweep: one table, statistics, plots and a report."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import RunError
from ...storage.private_files import replace_file
from ..reports import plots
from ..reports.report import SweepResults, render_sweep
from ..runs import outputs
from ..statistics import differences, interval_of, summarise
from .sweep import Sweep

__all__ = ["write_results"]


def write_results(
    sweep: Sweep, folder: Path, done: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Write a sweep's results, and give its statistics: a row per variant, point and metric."""
    rows = _rows(sweep, done)
    known = list(next(iter(done.values()))["metrics"])
    metrics = list(sweep.metrics or known)
    statistics = summarise(rows, ["variant", *sweep.grid], metrics)
    baseline = next(iter(sweep.variants))
    apart = {
        _place(row, sweep): row
        for row in differences(rows, list(sweep.grid), metrics, baseline=baseline)
    }
    column = "against_" + re.sub(r"[^A-Za-z0-9]+", "_", baseline)
    for row in statistics:
        other = apart.get(_place(row, sweep), {})
        for name, key in (("", "mean"), ("_low", "low"), ("_high", "high")):
            row[f"{column}{name}"] = other.get(key)
    results = SweepResults(
        name=folder.name,
        question=sweep.question,
        variants=list(sweep.variants),
        grid=list(sweep.grid),
        seeds=list(sweep.seeds),
        rows=rows,
        statistics=statistics,
        metrics=metrics,
    )
    try:
        replace_file(folder / "results.parquet", outputs.table(rows))
        replace_file(folder / "statistics.parquet", outputs.table(statistics))
        for metric in metrics:
            replace_file(folder / f"{metric}.png", _plot(sweep, statistics, metric))
        replace_file(folder / "report.html", render_sweep(results))
    except OSError as error:
        raise RunError(
            f"what came out of {folder} can't be written: {error}",
            hint="make room and let your user write there; what has run is kept",
        ) from error
    return statistics


def _place(row: Mapping[str, Any], sweep: Sweep) -> tuple[object, ...]:
    return (row["variant"], row["metric"], *(row[key] for key in sweep.grid))


def _rows(sweep: Sweep, done: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row per cell: its variant, its place in the grid, its seed and its metrics."""
    return [
        {
            "cell": cell.name,
            "variant": cell.variant,
            **dict(zip(sweep.grid, map(_shown, cell.point, sweep.grid.values()), strict=True)),
            "seed": cell.seed,
            "state_hash": done[cell.name]["state_hash"],
            **done[cell.name]["metrics"],
        }
        for cell in sweep.cells()
        if cell.name in done
    ]


def _shown(value: object, values: Sequence[object]) -> object:
    """A grid's value for a table. All values of a column have one type."""
    types = {type(each) for each in values}
    plain = types <= {int, float} or types in ({str}, {bool})
    return value if plain else json.dumps(value)


def _plot(sweep: Sweep, statistics: Sequence[Mapping[str, Any]], metric: str) -> bytes:
    found = {
        (row["variant"], tuple(str(row[key]) for key in sweep.grid)): interval_of(row)
        for row in statistics
        if row["metric"] == metric
    }
    points = list(dict.fromkeys(point for _, point in found))
    lines = {name: [found.get((name, point)) for point in points] for name in sweep.variants}
    return plots.intervals(
        lines,
        [", ".join(point) for point in points],
        metric,
        x_label=", ".join(sweep.grid),
        y_label=metric,
        connected=len(sweep.grid) == 1,
    )
