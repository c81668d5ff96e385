"""Runs a sweep, in processes or as tasks of Ray, goes on where it stopped, writes the results."""

import itertools
import json
import math
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from ...config.load import load_settings
from ...config.plain import show_path
from ...config.settings import Settings
from ...config.yaml_files import read_yaml, to_yaml
from ...errors import ConfigError, RunError, RunPaused
from ...storage.files import lock_folder, make_folder, replace_file
from ...storage.whole_folder import strangers
from ..reports import plots
from ..reports.sweep_report import Look, SweepResults, arm_of, render_sweep
from ..runs import outputs
from ..runs.folder import read_folder
from ..runs.live import only_here
from ..runs.placement import LOCAL, Placement, check_engine, without_engine
from ..runs.run import Run
from ..runs.scenario import code_of
from ..statistics import ALPHA, Band, band, differences, interval_of, summarise
from ..workers.carriers import KILLED, in_processes
from ..workers.cells import CASSETTE
from ..workers.ray_carrier import Cluster
from . import registration
from .sweep import Sweep, SweepRun, lasting, shown_value


def engine_for(
    sweep: Sweep, kind: str | None = None, workers: int | None = None, address: str | None = None
) -> Placement:
    """What makes the runs: the engine that a caller names, or the one of the scenario.

    A run of a sweep is in one process on every engine; ``local`` stands for processes here.
    """
    simulation = sweep.settings().simulation
    kind = kind or simulation.engine
    check_engine(kind, address)
    return Placement(kind, workers or simulation.workers or os.cpu_count() or 1, address)


def run_all(
    sweep: Sweep, folder: Path, engine: Placement, *, force: bool, keep_runs: bool = False
) -> Iterator[tuple[SweepRun, dict[str, Any] | str]]:
    """Make the unfinished runs; give each run with its summary or its error message.

    Finished runs come first; :class:`RunError` if the sweep would make one otherwise now.
    An interrupted run starts again; one with answers of a language model goes on after its last
    whole tick. A run whose process is killed is made once more. A lock keeps other processes from
    running the same sweep. With ``keep_runs``, each run gets a report and the scenario's
    checkpoints; a run without a report is made again.
    """
    prepare(sweep, folder, force)
    lock = lock_folder(folder, LOCK)
    try:
        yield from _run_waiting(sweep, folder, engine, keep_runs)
    finally:
        lock.release()


def _run_waiting(
    sweep: Sweep, folder: Path, engine: Placement, keep_runs: bool
) -> Iterator[tuple[SweepRun, dict[str, Any] | str]]:
    runs = [
        (planned, place, finished(place, keep_runs))
        for planned in sweep.runs()
        for place in (folder / "cells" / planned.name,)
    ]
    check_unchanged(sweep, ((planned, place) for planned, place, done in runs if done is not None))
    yield from ((planned, done) for planned, _, done in runs if done is not None)
    waiting = [planned for planned, _, done in runs if done is None]
    if not waiting:
        return
    there = replace(sweep, scenario=sweep.scenario.absolute())  # for processes in other folders
    cells = folder.absolute() / "cells"
    calls = [(there, planned, cells / planned.name, keep_runs) for planned in waiting]
    with ExitStack() as ended:
        if engine.kind == "ray":
            cluster = Cluster(engine.address, engine.workers)
            ended.callback(cluster.close)
            results = cluster.results(_run_one, calls, engine.workers)
        else:
            of_variants = {planned.variant: planned for planned in waiting}.values()
            here = any(only_here(sweep.settings(planned)) for planned in of_variants)
            results = in_processes(_run_one, calls, engine.workers, here=here)
        for place, result in results:
            yield waiting[place], KILLED if result is None else result


class Paused(str):
    """Why a run of a sweep is paused: the same sweep goes on with it."""


def _run_one(
    sweep: Sweep, planned: SweepRun, folder: Path, keep_runs: bool
) -> dict[str, Any] | str:
    """Make one run in a process of its own."""
    try:
        with _opened(sweep, planned, folder, keep_runs) as run:
            for _ in run.advance(run.settings.simulation.ticks):
                pass
            return run.finish(report=keep_runs)
    except RunPaused as error:
        return Paused(error)
    except Exception as error:  # noqa: BLE001 - the other runs must go on
        return f"{type(error).__name__}: {error}"


def _opened(sweep: Sweep, planned: SweepRun, folder: Path, keep_runs: bool) -> Run:
    """A run anew; or after its last whole tick, if it has answers, which nobody pays for twice."""
    settings = sweep.settings(planned)
    if (folder / CASSETTE).exists():
        check_unchanged(sweep, [(planned, folder)])
        kept = read_folder(folder)[0].to_dict()["checkpoint"]
        settings = without_engine(load_settings(settings, overrides={"checkpoint": kept}))
        return Run.open(folder, settings=settings, engine=LOCAL)
    shutil.rmtree(folder, ignore_errors=True)
    if not keep_runs:  # one checkpoint, at the end
        last = {"checkpoint": {"every": settings.simulation.ticks, "keep": 1}}
        settings = load_settings(settings, overrides=last)
    return Run.create(folder, settings, scenario=sweep.scenario.parent, engine=LOCAL)


# The folder of a sweep: its plan, and the runs that are finished


_HEAD = "# What `tiermem sweep` runs here. Finished runs are kept as long as this is the same.\n"
LOCK = "sweep.lock"
"""The file that a process locks while it runs the sweep."""
_OURS = {
    "cells", "plan.yaml", registration.FILE, "results.parquet", "statistics.parquet", "report.html",
    "posterior.parquet", "predictions.parquet", "indices.parquet", LOCK,
}  # fmt: skip


def prepare(sweep: Sweep, folder: Path, force: bool) -> None:
    """Make the sweep's folder, or check that the folder is of this sweep.

    With ``force``, a folder of another sweep is replaced; one of this sweep is made anew, and keeps
    its registration with the looks, because its runs will be the same.
    """
    text = plan = _HEAD + to_yaml(sweep.to_dict(), sort_keys=True)
    if sweep.question:  # for readers of the folder; it may change when the sweep goes on
        text += to_yaml({"question": sweep.question})
    made, registered = folder / "plan.yaml", None
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise RunError(f"{folder} exists and is not a folder", hint="choose another with --out")
    if folder.exists() and any(folder.iterdir()):
        _check_ours(folder, made)
        is_same = _without_question(made.read_text()) == plan
        if is_same and not force:
            if made.read_text() != text:
                _write(folder, text)
            registration.register(sweep, folder, after_runs=_finished_in(folder))
            return
        if not force:
            raise RunError(
                f"{folder} is of another sweep, or the settings or the code of this one have "
                "changed since",
                hint=ANEW,
            )
        lock_folder(folder, LOCK).release()  # raises if another process runs the sweep
        if is_same and (folder / registration.FILE).is_file():
            registered = (folder / registration.FILE).read_bytes()
        shutil.rmtree(folder)
    _write(folder, text)
    if registered is not None:
        replace_file(folder / registration.FILE, registered)
    registration.register(sweep, folder)


def _finished_in(folder: Path) -> int:
    return sum(1 for _ in (folder / "cells").glob("*/summary.json"))


def _write(folder: Path, plan: str) -> None:
    """Write the plan into the sweep's folder, which is made if there is none."""
    try:
        make_folder(folder)
        make_folder(folder / "cells")
        replace_file(folder / "plan.yaml", plan)
    except OSError as error:
        raise RunError(
            f"the sweep {str(folder)!r} can't be made: {error}",
            hint="make room and let your user write there, or choose another with --out",
        ) from error


def _without_question(plan: str) -> str:
    """The text of a plan without its question, which is the last of its keys."""
    return re.sub(r"^question: .*", "", plan, count=1, flags=re.MULTILINE | re.DOTALL)


def _check_ours(folder: Path, made: Path) -> None:
    """Refuse a folder that holds files of something other than a sweep."""
    strange = [path.name for path in strangers(folder, _OURS) if path.suffix != ".svg"]
    if strange or not made.is_file() or not made.read_text().startswith(_HEAD):
        holds = f": it holds {strange[0]}" if strange else ""
        raise RunError(
            f"{folder} exists and is not a sweep{holds}", hint="choose another with --out"
        )


def finished(folder: Path, keep_runs: bool) -> dict[str, Any] | None:
    """The summary of a finished run, or None. A run writes its summary after its tables."""
    try:
        summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    except (OSError, ValueError):
        return None
    is_whole = summary.get("finished") and (not keep_runs or (folder / "report.html").is_file())
    return summary if is_whole else None


# Whether the finished runs are those that the sweep would run now


ANEW = "choose another folder with --out, or start anew with --force"
"""The hint for a folder whose runs are not those of the sweep."""
_SEED = re.compile(r"^seed: (-?\d+)\n", re.MULTILINE)
_MOST_NAMED = 3
_MISSING = ...


def check_unchanged(sweep: Sweep, kept: Iterable[tuple[SweepRun, Path]]) -> None:
    """Refuse to go on with runs whose settings or code are not what the sweep has now.

    The plan has the scenario and its code as they were; a variant may have other code, and another
    version of TierMem may make other settings of the same plan.
    """
    codes: dict[tuple[str | None, ...], dict[str, bytes]] = {}
    for planned, folder in kept:
        settings = without_engine(sweep.settings(planned))
        own = settings.simulation
        table = (own.society or {}).get("file")
        files = own.policy_options.get("template"), own.personas, table
        made_of = own.world, own.policy, *[str(each) for each in files if isinstance(each, str)]
        if made_of not in codes:
            found = code_of(settings, sweep.scenario.parent)
            codes[made_of] = {name: file.read_bytes() for name, file in found.items()}
        for what, others in (
            ("settings", _other_settings(folder, settings)),
            ("code", _other_code(folder / "code", codes[made_of])),
        ):
            if named := list(islice(others, _MOST_NAMED)):
                raise RunError(
                    f"{folder} ran with other {what} than the sweep has now: {', '.join(named)}",
                    hint=ANEW,
                )


def _other_settings(folder: Path, settings: Settings) -> Iterator[str]:
    """The names of the settings that a run does not share with ``settings``, and their values.

    Checkpoints change no result: a sweep with ``--keep-runs`` has others than one without.
    """
    try:
        text = (folder / "config.yaml").read_text()
        seed = _SEED.search(text)
        was = {**_lasting_in(_SEED.sub("", text, count=1)), "seed": seed and int(seed[1])}
    except (OSError, UnicodeDecodeError, ConfigError) as error:
        raise RunError(
            f"{folder} is finished, and its config.yaml can't be read, so nobody knows what it "
            f"ran: {error}",
            hint=f"delete {folder} to run it again, {ANEW}",
        ) from error
    now = lasting(settings)
    yield from _differing({**was, "checkpoint": None}, {**now, "checkpoint": None})


@lru_cache(maxsize=64)
def _lasting_in(config: str) -> dict[str, object]:
    """The settings in the text of a run's file: runs of many seeds have the same but for these."""
    given: Any = read_yaml(config, "config.yaml").value
    return lasting(load_settings(given))


def _differing(was: object, now: object, *path: str) -> Iterator[str]:
    if isinstance(was, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*was, *now]):
            yield from _differing(was.get(key, _MISSING), now.get(key, _MISSING), *path, key)
    elif _as_text(was) != _as_text(now):
        yield f"{show_path(path)} was {_as_text(was):.60} and is {_as_text(now):.60}"


def _as_text(value: object) -> str:
    return "not set" if value is _MISSING else json.dumps(value, sort_keys=True)


def _other_code(copies: Path, code: Mapping[str, bytes]) -> Iterator[str]:
    """The names of the user's own modules of which a run has another copy, or none."""
    kept = {str(path.relative_to(copies)) for path in copies.rglob("*.py")}
    for name in sorted({*code, *kept}):
        copy = copies / name
        if not copy.is_file() or copy.read_bytes() != code.get(name):
            yield name


# The results of a sweep: one table, statistics, plots and a report

_MOST_CURVES = 12
_MOST_BYTES = 200
"""Of the name of a plot's file; a disk takes 255, with what is added while the file is written."""


def write_results(
    sweep: Sweep, folder: Path, done: Mapping[str, Mapping[str, Any]]
) -> SweepResults:
    """Write a sweep's results, and give them."""
    rows = result_rows(sweep, done)
    look = registration.look_at(sweep, folder, rows)
    metrics = list(sweep.metrics or metrics_in(sweep, done))
    if look.primary is not None:  # the question comes first
        metrics = list(dict.fromkeys([look.primary, *metrics]))
    baseline, same = compared_with(sweep)
    where = ["variant", *sweep.grid]
    results = SweepResults(
        name=folder.absolute().name,
        question=sweep.question,
        variants=list(sweep.variants),
        grid=list(sweep.grid),
        seeds=list(sweep.seeds),
        rows=rows,
        statistics=summarise(rows, where, metrics, level=1 - (look.alpha or ALPHA), shapes=True),
        metrics=metrics,
        baseline=baseline,
        compared=_compared(rows, same, metrics, baseline, look),
        curves=_curves(sweep, folder, rows, metrics, 1 - (look.alpha or ALPHA)),
        look=look,
        reports=_beside(folder, rows, "report.html"),
        inspectors=_beside(folder, rows, "inspector.html"),
        has_runs=bool(_beside(folder, rows, "run.json")),
    )
    try:
        replace_file(folder / "results.parquet", outputs.table(rows))
        replace_file(folder / "statistics.parquet", outputs.table(statistics_rows(results)))
        for metric, name in plot_names(metrics).items():
            plot = plot_of(results.variants, results.grid, rows, results.statistics, metric)
            replace_file(folder / f"{name}.svg", plots.alone(plot))
        replace_file(folder / "report.html", render_sweep(results))
    except OSError as error:
        raise RunError(
            f"what came out of {folder} can't be written: {error}",
            hint="make room and let your user write there; what has run is kept",
        ) from error
    return results


def compared_with(sweep: Sweep) -> tuple[dict[str, Any], list[str]]:
    """The baseline's columns in the table of a sweep, and the columns that two sides share."""
    baseline = {
        key: shown_value(value, sweep.grid[key]) if key in sweep.grid else value
        for key, value in sweep.baseline.items()
    }
    return baseline, [key for key in ("variant", *sweep.grid) if key not in baseline]


def _compared(
    rows: Sequence[Mapping[str, Any]],
    keys: Sequence[str],
    metrics: Sequence[str],
    baseline: Mapping[str, Any],
    look: Look,
) -> list[dict[str, Any]]:
    """The differences: those of the primary metric are corrected among themselves alone."""
    families = [
        [name for name in metrics if (name == look.primary) is first] for first in (True, False)
    ]
    return [
        row
        for family in families
        for row in differences(
            rows,
            keys,
            family,
            baseline=baseline,
            shapes=True,
            alpha=look.alpha,
            alpha_next=look.alpha_next,
        )
    ]


def _curves(
    sweep: Sweep,
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    metrics: Sequence[str],
    level: float,
) -> list[tuple[str, str, dict[str, Band]]]:
    """Each metric over ticks, by variant, at the first points of the grid.

    Runs whose tables are gone are left out, and so are ticks in which a run has no value.
    """
    points: dict[str, dict[str, list[list[dict[str, Any]]]]] = {}
    for row in rows:
        table = outputs.rows_of(folder / "cells" / row["cell"] / "metrics.parquet")
        if table:
            at = ", ".join(f"{key.split('.')[-1]} {row[key]}" for key in sweep.grid)
            points.setdefault(at, {}).setdefault(row["variant"], []).append(table)
    found = []
    for metric, (at, tables) in itertools.product(metrics, points.items()):
        series = {}
        for variant, own in tables.items():
            runs = [{row["tick"]: row.get(metric) for row in table} for table in own]
            ticks = [tick for tick in runs[0] if all(_is_number(run.get(tick)) for run in runs)]
            if len(ticks) > 1:
                values = [[float(run[tick]) for tick in ticks] for run in runs]
                series[variant] = band(ticks, values, level)
        if series:
            found.append((metric, at, series))
    return found[:_MOST_CURVES]


def _is_number(value: object) -> bool:
    """Whether a value of a table is a finite number."""
    return isinstance(value, int | float) and math.isfinite(value)


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
    rows = []
    for row in results.statistics:
        other = apart.get(_place(row, where), {})
        evidence = {f"{column}{end}": other.get(key) for end, key in _EVIDENCE.items()}
        rows.append({**row, **evidence})
    return rows


_EVIDENCE = {
    "": "mean",
    "_low": "low",
    "_high": "high",
    "_p": "p",
    "_p_holm": "p_holm",
    "_seeds_needed": "seeds_needed",
    "_skewed": "skewed",
    "_judged": "judged",
    "_median": "median",
    "_median_low": "median_low",
    "_median_high": "median_high",
    "_p_median": "p_median",
    "_p_permutation": "p_permutation",
}
"""The ends of the columns of a difference, and where their values are."""


def _place(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[object, ...]:
    return tuple(row[key] for key in keys)


def result_rows(sweep: Sweep, done: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row per run: its variant, its place in the grid, its seed and its metrics."""
    varied = sweep.varied
    return [
        {
            "cell": planned.name,
            "variant": planned.variant,
            **dict(zip(varied, map(shown_value, planned.point, varied.values()), strict=True)),
            "seed": planned.seed,
            "state_hash": done[planned.name]["state_hash"],
            **done[planned.name]["metrics"],
        }
        for planned in sweep.runs()
        if planned.name in done
    ]


def metrics_in(sweep: Sweep, done: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The metrics of all runs, in the order of the plan, whichever ended first."""
    found = (done[planned.name]["metrics"] for planned in sweep.runs() if planned.name in done)
    return list(dict.fromkeys(itertools.chain.from_iterable(found)))


def plot_names(metrics: Sequence[str]) -> dict[str, str]:
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


def plot_of(
    variants: Sequence[str],
    grid: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    statistics: Sequence[Mapping[str, Any]],
    metric: str,
) -> str:
    """The chart of a metric: a dot for each run, the means with their intervals."""
    intervals = {
        (row["variant"], tuple(str(row[key]) for key in grid)): interval_of(row)
        for row in statistics
        if row["metric"] == metric
    }
    seeds: dict[tuple[str, tuple[str, ...]], list[float]] = {}
    for row in rows:
        if _is_number(row.get(metric)):
            place = row["variant"], tuple(str(row[key]) for key in grid)
            seeds.setdefault(place, []).append(row[metric])
    points = list(dict.fromkeys(point for _, point in intervals))
    return plots.intervals(
        {name: [intervals.get((name, point)) for point in points] for name in variants},
        [", ".join(point) for point in points],
        metric,
        x_label=", ".join(grid),
        y_label=metric,
        connected=len(grid) == 1,
        dots={name: [seeds.get((name, at), []) for at in points] for name in variants},
    )
