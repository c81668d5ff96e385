"""The results of a sweep: one table, statistics, plots and a report."""

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import RunError
from ...storage.files import replace_file
from ..reports import plots
from ..reports.sweep_report import SweepResults, arm_of, render_sweep
from ..runs import outputs
from ..statistics import differences, interval_of, summarise
from .sweep import Sweep, shown_value

_MOST_BYTES = 200
"""Of the name of a plot's file; a disk takes 255, with what is added while the file is written."""


def write_results(
    sweep: Sweep, folder: Path, done: Mapping[str, Mapping[str, Any]]
) -> SweepResults:
    """Write a sweep's results, and give them."""
    rows = _rows(sweep, done)
    metrics = list(sweep.metrics or _metrics_in(sweep, done))
    baseline = {
        key: shown_value(value, sweep.grid[key]) if key in sweep.grid else value
        for key, value in sweep.baseline.items()
    }
    where = ["variant", *sweep.grid]
    same = [key for key in where if key not in baseline]
    results = SweepResults(
        name=folder.absolute().name,
        question=sweep.question,
        variants=list(sweep.variants),
        grid=list(sweep.grid),
        seeds=list(sweep.seeds),
        rows=rows,
        statistics=summarise(rows, where, metrics),
        metrics=metrics,
        baseline=baseline,
        compared=differences(rows, same, metrics, baseline=baseline),
        reports=_beside(folder, rows, "report.html"),
        inspectors=_beside(folder, rows, "inspector.html"),
        has_runs=bool(_beside(folder, rows, "run.json")),
    )
    try:
        replace_file(folder / "results.parquet", outputs.table(rows))
        replace_file(folder / "statistics.parquet", outputs.table(statistics_rows(results)))
        for metric, name in _plot_names(metrics).items():
            plot = _plot(sweep, results.statistics, metric)
            replace_file(folder / f"{name}.svg", plots.alone(plot))
        replace_file(folder / "report.html", render_sweep(results))
    except OSError as error:
        raise RunError(
            f"what came out of {folder} can't be written: {error}",
            hint="make room and let your user write there; what has run is kept",
        ) from error
    return results


def _beside(folder: Path, rows: Sequence[Mapping[str, Any]], name: str) -> dict[str, str]:
    """By the name of a run, where a file of it is; without the runs that have no such file."""
    paths = {row["cell"]: f"cells/{row['cell']}/{name}" for row in rows}
    return {run: path for run, path in paths.items() if (folder / path).is_file()}


def statistics_rows(results: SweepResults) -> list[dict[str, Any]]:
    """A row per variant, point and metric: the mean, and the difference from the baseline."""
    where = ["variant", *results.grid, "metric"]
    apart = {_place(row, where): row for row in results.compared}
    base = arm_of(results.baseline, results.baseline)
    column = "against_" + re.sub(r"[^A-Za-z0-9]+", "_", base)
    found = []
    for row in results.statistics:
        other = apart.get(_place(row, where), {})
        evidence = {f"{column}{end}": other.get(key) for end, key in _EVIDENCE.items()}
        found.append({**row, **evidence})
    return found


_EVIDENCE = {
    "": "mean",
    "_low": "low",
    "_high": "high",
    "_p": "p",
    "_p_holm": "p_holm",
    "_seeds_needed": "seeds_needed",
}
"""The ends of the columns of a difference, and where their values are."""


def _place(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[object, ...]:
    return tuple(row[key] for key in keys)


def _rows(sweep: Sweep, done: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row per run: its variant, its place in the grid, its seed and its metrics."""
    return [
        {
            "cell": planned.name,
            "variant": planned.variant,
            **dict(
                zip(sweep.grid, map(shown_value, planned.point, sweep.grid.values()), strict=True)
            ),
            "seed": planned.seed,
            "state_hash": done[planned.name]["state_hash"],
            **done[planned.name]["metrics"],
        }
        for planned in sweep.runs()
        if planned.name in done
    ]


def _metrics_in(sweep: Sweep, done: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The metrics of all runs, in the order of the plan, whichever ended first."""
    found = (done[planned.name]["metrics"] for planned in sweep.runs() if planned.name in done)
    return list(dict.fromkeys(itertools.chain.from_iterable(found)))


def _plot_names(metrics: Sequence[str]) -> dict[str, str]:
    """By metric, the name of its plot's file: the metric's own, if that leads to no other folder.

    No two metrics have the same file, even on a disk that takes ``Loss`` and ``loss`` for one name.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for metric in sorted(metrics, key=lambda each: each != _safe(each)):  # own names first
        tries = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
        names[metric] = next(
            name for end in tries if (name := _safe(metric) + end).casefold() not in taken
        )
        taken.add(names[metric].casefold())
    return names


def _safe(metric: str) -> str:
    """A metric's name as the name of a file, which is not too long for any disk."""
    plain = re.sub(r"[^\w .,%()+=-]+", "-", metric)
    return plain.encode()[:_MOST_BYTES].decode(errors="ignore") or "metric"


def _plot(sweep: Sweep, statistics: Sequence[Mapping[str, Any]], metric: str) -> str:
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
