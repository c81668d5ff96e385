"""Which settings a metric depends on, over ranges of them: Sobol's indices of a sweep's runs.

The first-order index of a setting is the share of the metric's variance that goes when this setting
alone is known; the total index is what stays if all the others are known. What the total has above
the first comes by interactions.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import RunError
from ...storage.files import replace_file
from ..reports import plots
from ..reports.sensitivity_report import Sensitivity, charts, render_sensitivity
from ..runs import outputs
from ..statistics import LEVEL
from .drawn import Drawn
from .run_sweep import metrics_in, result_rows
from .sweep import Sweep

_RESAMPLES = 1_000
_SEED = 0
_ROUNDING = 1e-9

Values = NDArray[np.float64]


def write_sensitivity(
    sweep: Sweep, folder: Path, done: Mapping[str, Mapping[str, Any]]
) -> Sensitivity:
    """Write what the metrics of a sweep over ranges depend on, and give it."""
    rows = result_rows(sweep, done)
    metrics = sweep.metrics or metrics_in(sweep, done)
    found = Sensitivity(
        name=folder.absolute().name,
        question=sweep.question,
        variants=list(sweep.variants),
        ranges=dict(sweep.drawn.ranges) if sweep.drawn else {},
        runs=len(rows),
        missing=len(sweep.runs()) - len(rows),
        seeds=len(sweep.seeds),
        rows=[
            row
            for metric in metrics
            for variant in sweep.variants
            for row in _rows(sweep, variant, metric, rows)
        ],
    )
    try:
        replace_file(folder / "results.parquet", outputs.table(rows))
        replace_file(folder / "indices.parquet", outputs.table(found.rows))
        for name, chart in charts(found).items():
            replace_file(folder / f"{name}.svg", plots.alone(chart))
        replace_file(folder / "report.html", render_sensitivity(found))
    except OSError as error:
        raise RunError(
            f"what came out of {folder} can't be written: {error}",
            hint="make room and let your user write there; what has run is kept",
        ) from error
    return found


def _rows(
    sweep: Sweep, variant: str, metric: str, rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """A row for each setting: its indices for a metric, or why there are none."""
    drawn = sweep.drawn
    if drawn is None:
        return []
    by_run = {row["cell"]: row.get(metric) for row in rows}
    planned = [each for each in sweep.runs() if each.variant == variant]
    known = [by_run.get(each.name) for each in planned]
    numbers = [float(value) for value in known if value is not None and math.isfinite(value)]
    empty = dict.fromkeys(("first", "first_low", "first_high", "total", "total_low", "total_high"))
    about: dict[str, Any] = {"metric": metric, "variant": variant, "chance": None, "why": None}
    if len(numbers) < len(known):
        about["why"] = f"{len(known) - len(numbers)} of {len(known)} runs have no number"
    elif max(numbers) - min(numbers) <= _ROUNDING * max(map(abs, numbers)):
        about["why"] = "nothing varies"
    if about["why"] is not None:
        return [{**about, "setting": name, **empty} for name in drawn.ranges]
    table = np.array(numbers).reshape(len(drawn.values), len(sweep.seeds))
    about["chance"] = _chance(table, drawn)
    return [
        {**about, "setting": name, **own}
        for name, own in zip(drawn.ranges, sobol(table.mean(axis=1), drawn), strict=True)
    ]


def _chance(table: Values, drawn: Drawn) -> float | None:
    """The share of the variance between points that seeds alone make; None with one seed."""
    seeds = table.shape[1]
    between = float(table.mean(axis=1)[: 2 * drawn.points].var())
    if seeds == 1 or not between:
        return None
    within = float(table.var(axis=1, ddof=1).mean()) / seeds
    return min(1.0, float(within / between))


def sobol(values: Values, drawn: Drawn) -> list[dict[str, float]]:
    """For each setting both indices with intervals, from the values at the points drawn.

    The intervals are of a percentile bootstrap over the rows of the hypercubes.
    """
    count, settings = drawn.points, len(drawn.ranges)
    centred = values - values[: 2 * count].mean()
    a, b = centred[:count], centred[count : 2 * count]
    mixed = centred[2 * count :].reshape(settings, count)
    first, total = _indices(a, b, mixed)
    rng = np.random.default_rng(_SEED)
    drawn_again = []
    for _ in range(_RESAMPLES):
        chosen = rng.integers(0, count, count)
        own = a[chosen], b[chosen], mixed[:, chosen]
        if np.ptp(np.concatenate(own[:2])) > 0:
            drawn_again.append(_indices(*own))
    ends = (1 - LEVEL) / 2, (1 + LEVEL) / 2
    firsts, totals = (np.quantile(each, ends, axis=0) for each in zip(*drawn_again, strict=True))
    names = ("first", "first_low", "first_high", "total", "total_low", "total_high")
    columns = (first, *firsts, total, *totals)
    return [
        {name: float(f"{column[at]:.9g}") for name, column in zip(names, columns, strict=True)}
        for at in range(settings)
    ]


def _indices(a: Values, b: Values, mixed: Values) -> tuple[Values, Values]:
    from scipy.stats import sobol_indices

    pages = mixed if len(mixed) > 1 else np.repeat(mixed, 2, axis=0)  # SciPy fails with one
    found = sobol_indices(func={"f_A": a[None], "f_B": b[None], "f_AB": pages[:, None]}, n=len(a))
    first, total = np.ravel(found.first_order), np.ravel(found.total_order)
    return first[: len(mixed)], total[: len(mixed)]
