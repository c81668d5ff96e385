"""Fits settings to data: runs with settings drawn from ranges, and those that come nearest.

The runs are those of a sweep, made, kept and gone on with as any sweep's. They do not depend on the
data, so that other data, statistics or metrics need no run again.
"""

import csv
import io
import math
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...config.yaml_files import read_file
from ...errors import ConfigError, InvalidInput, RunError
from ...memory.words import counted
from ...storage.files import replace_file
from ..reports import plots
from ..reports.fit_report import FitResults, charts, render_fit
from ..runs import outputs
from .drawn import Drawn, Range, is_whole, read_ranges
from .posterior import (
    FEWEST_ACCEPTED,
    calibrate,
    distances,
    interval,
    nearest,
    scales,
)
from .run_sweep import engine_for, result_rows, run_all
from .sweep import COLUMNS, Sweep, SweepRun, world_metrics

RUNS = 500
ACCEPT = 0.05
_HELD_OUT = 0.2
_ENOUGH_TICKS = 5
_MOST_RUNS = 100_000
_MOST_BYTES = 1 << 24
_MOST_ROWS = 100_000
TICK = "tick"
_KEYS = (
    "scenario", "question", "set", "ranges", "runs", "metrics", "statistics", "accept", "held_out",
)  # fmt: skip
_VARIANT = "scenario"

Values = Sequence[float]


def _slope(ticks: Sequence[int], values: Values) -> float:
    """The rise per tick of the straight line that is nearest to all values."""
    middle, mean = math.fsum(ticks) / len(ticks), math.fsum(values) / len(values)
    spread = math.fsum((tick - middle) ** 2 for tick in ticks)
    both = zip(ticks, values, strict=True)
    rise = math.fsum((tick - middle) * (value - mean) for tick, value in both)
    return rise / spread if spread else 0.0


def _deviation(values: Values) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


STATISTICS: Mapping[str, Callable[[Sequence[int], Values], float]] = {
    "mean": lambda _, values: math.fsum(values) / len(values),
    "last": lambda _, values: values[-1],
    "slope": _slope,
    "deviation": lambda _, values: _deviation(values),
    "least": lambda _, values: min(values),
    "most": lambda _, values: max(values),
}
"""What is compared of a metric over the ticks of the data."""


@dataclass(frozen=True)
class Fit:
    """What is fitted, and how."""

    sweep: Sweep
    """Its runs: points of a Latin hypercube, each with a seed of its own."""
    statistics: Sequence[str] = ("mean", "slope")
    accept: float = ACCEPT
    """The share of the runs that is the posterior."""
    held_ticks: float | None = None
    """The share of the last ticks that are predicted and not fitted; a fifth, if there are many."""
    held_metrics: Sequence[str] = ()
    """The metrics that are predicted and not fitted."""

    @property
    def drawn(self) -> Drawn:
        """The points of its runs."""
        if self.sweep.drawn is None:
            raise ValueError("a fit has ranges")
        return self.sweep.drawn


class Data(NamedTuple):
    """What was seen: metrics over ticks, or once at the end of a run."""

    ticks: Sequence[int]
    values: Mapping[str, Values]
    """By metric, its values in these ticks."""
    at_end: bool
    """Whether the one row has no tick."""


def read_fit(
    path: Path, *, ranges: Mapping[str, Range] | None = None, runs: int | None = None
) -> Fit:
    """Read and check a fit's file, or a scenario with its ``ranges``; ``runs`` beat the file's."""
    document = read_file(path)
    if not isinstance(document.value, dict):
        raise ConfigError(
            f"{document.source}: this is neither a fit nor a scenario",
            hint="a fit is a mapping with scenario and ranges",
        )
    value: dict[str, Any] = document.value
    if "scenario" not in value:
        value = {"scenario": path.name}
    for key in value:
        if key not in _KEYS:
            raise ConfigError(
                f"{document.place((key,))}: unknown key {key!r:.40}",
                hint=f"known: {', '.join(_KEYS)}",
            )
    limits = value.get("ranges")
    if ranges:
        limits = {**(limits or {}), **{name: list(each) for name, each in ranges.items()}}
    if limits is None:
        raise ConfigError(
            f"{document.source}: nothing is to be fitted",
            hint="give a fit's file with ranges, or --range simulation.world_options.NAME=1:9",
        )
    number = value.get("runs", RUNS) if runs is None else runs
    common = value.get("set") or {}
    metrics, statistics = value.get("metrics", []), value.get("statistics", list(Fit.statistics))
    accept, held_out = value.get("accept", ACCEPT), value.get("held_out")
    checks: tuple[tuple[str, bool, str], ...] = (
        ("scenario", isinstance(value["scenario"], str), "the path of a scenario"),
        ("set", isinstance(common, dict) and "seed" not in common, "settings, without seed"),
        ("runs", _is_whole(number, 2 * FEWEST_ACCEPTED), f"a number of runs, 40 to {_MOST_RUNS:,}"),
        ("metrics", metrics == [] or _are_names(metrics), "a list of metrics"),
        (
            "statistics",
            _are_names(statistics) and set(statistics) <= STATISTICS.keys(),
            f"a list of {', '.join(STATISTICS)}",
        ),
        ("accept", _is_share(accept), "the share of the runs that is accepted, such as 0.05"),
        (
            "held_out",
            held_out is None or held_out == 0 or _is_share(held_out) or _are_names(held_out),
            "the share of the last ticks, such as 0.2, or a list of metrics",
        ),
    )
    for key, fine, wanted in checks:
        if not fine:
            raise ConfigError(f"{document.place((key,))}: {key} must be {wanted}")
    if accept * number < FEWEST_ACCEPTED:
        raise ConfigError(
            f"{document.source}: {accept:g} of {number} runs are {accept * number:.0f}, and an "
            f"interval needs {FEWEST_ACCEPTED}",
            hint=f"accept more, or give {math.ceil(FEWEST_ACCEPTED / accept):,} runs",
        )
    drawn = Drawn(read_ranges(document, limits, ("seed", *COLUMNS)), number)
    sweep = Sweep(
        scenario=path.parent / value["scenario"],
        question=str(value.get("question", "")),
        common=common,
        variants={_VARIANT: {}},
        grid={},
        seeds=range(1, number + 1),
        metrics=metrics,
        baseline={"variant": _VARIANT},
        drawn=drawn,
    )
    if isinstance(held_out, list):
        return Fit(sweep, statistics, accept, held_metrics=held_out)
    return Fit(sweep, statistics, accept, held_ticks=held_out)


def _is_whole(value: object, least: int) -> bool:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return is_number and least <= value <= _MOST_RUNS  # type: ignore[operator]


def _is_share(value: object) -> bool:
    return isinstance(value, float) and 0 < value < 1


def _are_names(value: object) -> bool:
    if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
        return False
    return len(set(value)) == len(value)


# The data


def read_data(path: Path, fit: Fit) -> Data:
    """What was seen, checked against the world that is to give it.

    A row for each tick, with a column ``tick``; or one row, of the end of a run.
    """
    names, rows = _table(path)
    known = world_metrics(fit.sweep, str(fit.sweep.scenario))
    columns_of_metrics = [name for name in names if name != TICK]
    wanted = list(dict.fromkeys([*(fit.sweep.metrics or columns_of_metrics), *fit.held_metrics]))
    for name in wanted:
        if name not in names:
            raise InvalidInput(
                f"{path}: there is no column {name!r:.60}", hint=f"it has {', '.join(names):.200}"
            )
        if name not in known:
            raise InvalidInput(
                f"{path}: the world has no metric {name!r:.60}",
                hint=f"it has {', '.join(known)}; metrics in the fit's file names the columns "
                "to take",
            )
    if not wanted:
        raise InvalidInput(f"{path}: it has no metric", hint=f"the world has {', '.join(known)}")
    if set(wanted) <= set(fit.held_metrics):
        raise InvalidInput(
            f"{path}: all metrics are held out, so nothing is left to fit",
            hint="leave one out of held_out",
        )
    columns = {name: _numbers(path, names, rows, name) for name in wanted}
    last = fit.sweep.settings().simulation.ticks
    if TICK not in names:
        if len(rows) > 1:
            raise InvalidInput(
                f"{path}: it has {len(rows):,} rows and no column tick",
                hint="give each row its tick; or one row, of the end of a run",
            )
        return Data([last], columns, at_end=True)
    ticks = _numbers(path, names, rows, TICK)
    for line, (before, tick) in enumerate(zip([-math.inf, *ticks], ticks, strict=False), start=2):
        if tick != math.floor(tick) or not 0 <= tick <= last:
            raise InvalidInput(
                f"{path}:{line}: tick {tick:g} is none of a run of {last} ticks",
                hint="simulation.ticks of the scenario is the length of a run",
            )
        if tick <= before:
            raise InvalidInput(
                f"{path}:{line}: tick {tick:g} does not come after {before:g}",
                hint="one row for each tick, in order; of several courses, fit each or their mean",
            )
    return Data(list(map(int, ticks)), columns, at_end=False)


def _table(path: Path) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of a CSV file that is whole."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInput(f"{path} is not a file", hint="name a CSV file")
        if status.st_size > _MOST_BYTES:
            raise InvalidInput(
                f"{path} is larger than {_MOST_BYTES >> 20} MiB", hint="give fewer ticks"
            )
        text = path.read_bytes().decode("utf-8-sig")
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except OSError as error:
        raise InvalidInput(
            f"{str(path)!r:.200} can't be read: {error.strerror}", hint="check the path"
        ) from None
    except ValueError as error:  # not UTF-8, or a NUL inside the path
        raise InvalidInput(f"{str(path)!r:.200} can't be read: {error}") from None
    except csv.Error as error:
        raise InvalidInput(f"{path} is no CSV: {error}") from None
    if len(rows) < 2:
        raise InvalidInput(
            f"{path} has no {'row' if rows else 'line'}",
            hint="the first line names the columns, the others have numbers",
        )
    if len(rows) > _MOST_ROWS:
        raise InvalidInput(f"{path} has more than {_MOST_ROWS:,} rows", hint="give fewer ticks")
    names = [name.strip() for name in rows[0]]
    if len(set(names)) < len(names):
        raise InvalidInput(f"{path}:1: two columns have the same name")
    for line, row in enumerate(rows[1:], start=2):
        if len(row) != len(names):
            raise InvalidInput(
                f"{path}:{line}: {counted(len(row), 'cell')}, and there are "
                f"{counted(len(names), 'column')}"
            )
    return names, rows[1:]


def _numbers(path: Path, names: list[str], rows: list[list[str]], name: str) -> list[float]:
    place, found = names.index(name), []
    for line, row in enumerate(rows, start=2):
        try:
            number = float(row[place])
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise InvalidInput(
                f"{path}:{line}: {name} is {row[place]!r:.40}, which is no number",
                hint="leave rows without a value out",
            )
        found.append(number)
    return found


# What the runs say of the data


def fit(
    path: Path,
    data: Path,
    folder: Path,
    *,
    ranges: Mapping[str, Range] | None = None,
    runs: int | None = None,
    workers: int | None = None,
    force: bool = False,
) -> FitResults:
    """Fit what the file at ``path`` names to ``data``, in ``folder``; what has run is kept.

    It runs processes: call it below ``if __name__ == "__main__":``.
    """
    plan = read_fit(path, ranges=ranges, runs=runs)
    seen = read_data(data, plan)
    engine = engine_for(plan.sweep, workers=workers)
    made = run_all(plan.sweep, folder, engine, force=force)
    done = {planned.name: own for planned, own in made if not isinstance(own, str)}
    return write_fit(plan, seen, folder, done)


def write_fit(
    fit: Fit, data: Data, folder: Path, done: Mapping[str, Mapping[str, Any]]
) -> FitResults:
    """Write what the finished runs say of the data, and give it."""
    results, rows = _fitted(fit, data, folder, done)
    try:
        replace_file(folder / "results.parquet", outputs.table(rows))
        replace_file(folder / "posterior.parquet", outputs.table(results.posterior))
        replace_file(folder / "predictions.parquet", outputs.table(results.predictions))
        for name, chart in charts(results).items():
            replace_file(folder / f"{name}.svg", plots.alone(chart))
        replace_file(folder / "report.html", render_fit(results))
    except OSError as error:
        raise RunError(
            f"what came out of {folder} can't be written: {error}",
            hint="make room and let your user write there; what has run is kept",
        ) from error
    return results


def _fitted(
    fit: Fit, data: Data, folder: Path, done: Mapping[str, Mapping[str, Any]]
) -> tuple[FitResults, list[dict[str, Any]]]:
    sweep = fit.sweep
    used: list[tuple[SweepRun, dict[str, list[float]]]] = []
    for planned in sweep.runs():
        if planned.name in done:
            series = _series(folder / "cells" / planned.name / "metrics.parquet", data)
            if series is not None:
                used.append((planned, series))
    if len(used) < 2 * FEWEST_ACCEPTED:
        raise RunError(
            f"only {counted(len(used), 'run')} of {folder} can be compared with the data",
            hint="mend what made the others fail, or give more runs",
        )
    fitted = [name for name in data.values if name not in fit.held_metrics]
    until = len(data.ticks) - _held_ticks(fit, data)
    kinds = ("last",) if data.at_end else fit.statistics
    named = [(metric, kind) for metric in fitted for kind in kinds]

    def summarised(values: Mapping[str, Values]) -> list[float]:
        return [STATISTICS[kind](data.ticks[:until], values[each][:until]) for each, kind in named]

    settings = np.array([planned.point for planned, _ in used], np.float64)
    statistics = np.array([summarised(series) for _, series in used], np.float64)
    seen = np.array(summarised(data.values), np.float64)
    scale = scales(statistics)
    if not scale.any():
        raise RunError(
            f"nothing varies: the runs of {folder} are equal in all that is compared",
            hint="fit other metrics or statistics, or other settings",
        )
    accepted = max(FEWEST_ACCEPTED, round(fit.accept * len(used)))
    far = distances(statistics, seen, scale)
    near = nearest(far, accepted)
    checked = calibrate(settings, statistics, accepted)
    posterior = [
        {
            "setting": name,
            "from": float(limits[0]),
            "to": float(limits[1]),
            "whole": is_whole(limits),
            "n": accepted,
            "median": float(np.median(own)),
            "low": ends[0],
            "high": ends[1],
            "check_tried": check.tried,
            "check_inside": check.inside,
            "check_p_inside": check.p_inside,
            "check_p_uniform": check.p_uniform,
            "check_width": check.width,
            "check": check.verdict,
        }
        for (name, limits), own, check in zip(
            fit.drawn.ranges.items(), settings[near].T, checked, strict=True
        )
        for ends in (interval(own),)
    ]
    compared = [
        {
            "statistic": f"{kind} of {metric}",
            "seen": float(seen[place]),
            "least": float(column.min()),
            "most": float(column.max()),
            "low": ends[0],
            "high": ends[1],
            "counts": bool(scale[place]),
        }
        for place, ((metric, kind), column) in enumerate(zip(named, statistics.T, strict=True))
        for ends in (interval(column[near]),)
    ]
    chosen = [used[place][1] for place in near.tolist()]
    is_near = set(near.tolist())
    places = {planned.name: place for place, (planned, _) in enumerate(used)}
    rows = []
    for row in result_rows(sweep, done):
        place = places.get(row["cell"])
        own = None if place is None else float(f"{far[place]:.9g}")
        rows.append({**row, "distance": own, "accepted": place in is_near})
    results = FitResults(
        name=folder.absolute().name,
        question=sweep.question,
        runs=len(used),
        lost=len(sweep.seeds) - len(used),
        posterior=posterior,
        compared=compared,
        predictions=_predictions(fit, data, chosen, [series for _, series in used], until),
        samples={
            name: own.tolist() for name, own in zip(fit.drawn.ranges, settings[near].T, strict=True)
        },
        at_end=data.at_end,
    )
    return results, rows


def _series(table: Path, data: Data) -> dict[str, list[float]] | None:
    """The metrics of a run in the data's ticks; None if it lacks a number there."""
    rows = outputs.rows_of(table)
    by_tick = {row[TICK]: row for row in rows or ()}
    if not by_tick.keys() >= set(data.ticks):
        return None
    series = {name: [by_tick[tick].get(name) for tick in data.ticks] for name in data.values}
    known = {
        name: [float(each) for each in own if each is not None] for name, own in series.items()
    }
    if any(
        len(own) < len(data.ticks) or not all(map(math.isfinite, own)) for own in known.values()
    ):
        return None
    return known


def _held_ticks(fit: Fit, data: Data) -> int:
    """How many of the last ticks are not fitted."""
    count, share = len(data.ticks), fit.held_ticks
    if share is None:
        share = 0.0 if fit.held_metrics or count < _ENOUGH_TICKS else _HELD_OUT
    return min(count - 1, max(1, round(share * count))) if share else 0


def _predictions(
    fit: Fit,
    data: Data,
    chosen: Sequence[Mapping[str, Values]],
    everybody: Sequence[Mapping[str, Values]],
    until: int,
) -> list[dict[str, Any]]:
    """For each metric and tick, what was seen, and what accepted runs and all runs have there."""
    rows = []
    for metric, values in data.values.items():
        for place, (tick, seen) in enumerate(zip(data.ticks, values, strict=True)):
            own, before = (
                np.array([series[metric][place] for series in runs]) for runs in (chosen, everybody)
            )
            low, high = interval(own)
            before_low, before_high = interval(before)
            rows.append(
                {
                    "metric": metric,
                    "tick": tick,
                    "seen": seen,
                    "median": float(np.median(own)),
                    "low": low,
                    "high": high,
                    "before_low": before_low,
                    "before_high": before_high,
                    "held_out": metric in fit.held_metrics or place >= until,
                    "inside": low <= seen <= high,
                }
            )
    return rows
