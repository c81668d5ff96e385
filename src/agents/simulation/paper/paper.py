"""Writes the folder of a paper from what a run or a sweep has recorded.

===============  ==============================================================================
methods.md       the methods paragraph, and the settings that differ from the defaults
odd.md           the model by the ODD protocol (Grimm et al. 2020), with gaps for the author
tables/          all numbers as CSV, the main ones as LaTeX
figures/         a figure for each metric, as SVG and as PDF
===============  ==============================================================================

Nothing of the run's own code is run. The same run gives the same folder.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...config.load import load_settings
from ...config.settings import Settings
from ...errors import RunError
from ...memory.words import number
from ...storage.files import replace_file
from ...storage.whole_folder import clear_up, strangers, whole_folder
from ..reports import plots
from ..reports.pdf import pdf
from ..reports.sweep_report import Look
from ..runs.compare import flat
from ..runs.folder import read_folder
from ..runs.outputs import metric_rows, tick_rows
from ..runs.record import RunRecord
from ..statistics import interval_of
from ..sweeps.record import PLAN, SweepRecord
from ..sweeps.run_sweep import plot_names, plot_of
from .source import WorldSource, source_of

_NO_MATTER = (
    "checkpoint.", "seed", "simulation.engine", "simulation.workers", "storage.", "store.",
    "telemetry.",
)  # fmt: skip
"""Settings on which no result depends, and the seed, which is told apart."""
MADE = ("methods.md", "odd.md", "tables", "figures")


@dataclass(frozen=True)
class Study:
    """What a run or a sweep has recorded, as a paper tells it."""

    name: str
    settings: Settings
    source: WorldSource
    version: str
    """The version of TierMem that made the run, or the first run of the sweep."""
    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    """The rows of each table, by the name of its file."""
    figures: Mapping[str, str]
    """Charts as files, by name."""
    metrics: Sequence[str]
    run: Mapping[str, Any] | None = None
    """Of a run: its last record."""
    sweep: SweepRecord | None = None

    @property
    def changed(self) -> dict[str, tuple[object, object]]:
        """The settings that differ from the defaults: the default and the value, by key."""
        ours, theirs = (
            flat(each.to_dict(redact=True)) for each in (load_settings(), self.settings)
        )
        return {
            key: (ours.get(key), value)
            for key, value in theirs.items()
            if ours.get(key) != value and not key.startswith(_NO_MATTER)
        }

    @property
    def look(self) -> Look | None:
        """The last look at a sweep."""
        return None if self.sweep is None else self.sweep.look


def study_of(folder: Path) -> Study:
    """What the folder of a run or of a sweep has recorded."""
    return _of_sweep(folder) if (folder / PLAN).is_file() else _of_run(folder)


def _of_run(folder: Path) -> Study:
    settings, about = read_folder(folder)
    with RunRecord.read(folder) as run:
        records = [record for record, _ in run.records()]
    if not records:
        raise RunError(f"{folder} has no tick yet", hint="tiermem resume goes on with it")
    metrics, ticks = metric_rows(records), tick_rows(records)
    names = [name for name in metrics[-1] if name != "tick"]
    at = [row["tick"] for row in metrics]
    series = {name: [row.get(name) for row in metrics] for name in names}
    charts = {name: plots.alone(plots.curves({name: series[name]}, at)) for name in names}
    return Study(
        name=folder.absolute().name,
        settings=settings,
        source=source_of(settings.simulation.model or settings.simulation.world, folder / "code"),
        version=str(about.get("tiermem", "")),
        tables={"metrics": metrics, "ticks": ticks},
        figures=charts,
        metrics=names,
        run=records[-1],
    )


def _of_sweep(folder: Path) -> Study:
    sweep = SweepRecord.read(folder)
    first = folder / "cells" / str(sweep.rows[0]["cell"])
    try:
        version = str(read_folder(first)[1].get("tiermem", ""))
    except RunError:  # the runs were deleted, the results are there
        version = ""
    charts = {
        metric: plots.alone(
            plot_of([*sweep.variants], [*sweep.grid], sweep.rows, sweep.statistics, metric)
        )
        for metric in (sweep.metrics if sweep.statistics else ())
    }
    if not charts:  # of ranges, the folder has the pictures
        charts = {
            file.stem: file.read_text("utf-8", "replace")
            for file in sorted(folder.glob("*-?*.svg"))
        }
    return Study(
        name=sweep.name,
        settings=sweep.settings,
        source=source_of(
            sweep.settings.simulation.model or sweep.settings.simulation.world, first / "code"
        ),
        version=version,
        tables=sweep.tables,
        figures=charts,
        metrics=sweep.metrics,
        sweep=sweep,
    )


def write_paper(folder: Path, out: Path, *, force: bool = False) -> list[Path]:
    """Write the paper of a run or a sweep into a new folder, and name the files."""
    study = study_of(folder)
    _check_free(out, force)
    try:
        clear_up(out)
        with whole_folder(out) as new:
            _fill(study, new)
    except OSError as error:
        raise RunError(
            f"the paper {out} can't be written: {error}",
            hint="make room and let your user write there, or name another with --out",
        ) from error
    return sorted(path for path in out.rglob("*") if path.is_file())


def _fill(study: Study, folder: Path) -> None:
    from .methods import methods
    from .odd import odd

    for name in ("tables", "figures"):
        (folder / name).mkdir()
    settings = [
        {"setting": key, "default": was, "here": here} for key, (was, here) in study.changed.items()
    ]
    files = {
        "methods.md": methods(study),
        "odd.md": odd(study),
        **{f"tables/{name}.csv": as_csv(rows) for name, rows in study.tables.items()},
        "tables/settings.csv": as_csv(settings),
        "tables/settings.tex": as_latex(settings, "Settings"),
        "tables/main.tex": as_latex(main_table(study), "Results"),
    }
    for name, text in files.items():
        replace_file(folder / name, text)
    for metric, name in plot_names(list(study.figures)).items():
        chart = study.figures[metric]
        replace_file(folder / "figures" / f"{name}.svg", chart)
        replace_file(folder / "figures" / f"{name}.pdf", pdf(chart))


def _check_free(out: Path, force: bool) -> None:
    """Refuse a folder that exists, unless it is a paper and ``force`` allows replacing it."""
    if not out.exists() and not out.is_symlink():
        return
    if out.is_symlink() or not out.is_dir() or next(strangers(out, MADE), None) is not None:
        raise RunError(f"{out} exists and is not a paper", hint="name another with --out")
    if not force:
        raise RunError(
            f"{out} exists already", hint="replace it with --force, or name another with --out"
        )


def main_table(study: Study) -> list[dict[str, Any]]:
    """The main table: of a sweep, the means with their intervals and differences."""
    if study.sweep is None:
        last = study.tables["metrics"][-1]
        return [{"metric": name, "at the end": last[name]} for name in study.metrics]
    for table, wanted in _OF_RANGES.items():
        if table in study.sweep.tables:
            return [_with_ranges(row, wanted) for row in study.sweep.tables[table]]
    rows = []
    for row in study.sweep.statistics:
        against = [key for key in row if key.startswith("against_") and key.endswith("_p_holm")]
        base = against[0].removesuffix("_p_holm") if against else ""
        rows.append(
            {
                "metric": row["metric"],
                "variant": row["variant"],
                **{key.split(".")[-1]: row[key] for key in study.sweep.grid},
                "n": row["n"],
                "mean": _between(interval_of(row)),
                "difference": _difference(row, base),
                "p (Holm)": _p(row.get(f"{base}_p_holm")),
            }
        )
    return rows


_OF_RANGES = {
    "indices": ("metric", "variant", "setting", "first", "total"),
    "posterior": ("setting", "from", "to", "n", "median"),
}
"""The columns of the main table of a sweep over ranges, and of a fit."""


def _with_ranges(row: Mapping[str, Any], wanted: Sequence[str]) -> dict[str, Any]:
    """These columns of a row; a number that has an interval with it."""
    ends = {"median": ("low", "high")}
    found = {}
    for name in wanted:
        low, high = (row.get(end) for end in ends.get(name, (f"{name}_low", f"{name}_high")))
        known = low is not None and high is not None
        found[name] = f"{number(row[name])} [{number(low)}, {number(high)}]" if known else row[name]
    return found


def _difference(row: Mapping[str, Any], base: str) -> str:
    """What the p value is about: the mean difference, or the median where that was judged."""
    if row.get(base) is None:
        return ""
    is_median = row.get(f"{base}_judged") == "median"
    what, words = (f"{base}_median", "median ") if is_median else (base, "")
    ends = (row[what], row[f"{what}_low"], row[f"{what}_high"])
    known = [each for each in ends[1:] if each is not None]
    return words + number(ends[0]) + (f" [{number(known[0])}, {number(known[1])}]" if known else "")


def _between(interval: Any) -> str:
    _, mean, low, high = interval
    ends = f" [{number(low)}, {number(high)}]" if abs(low) != float("inf") else ""
    return number(mean) + ends


def _p(value: float | None) -> str:
    return "" if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV; numbers with all their digits, so that they read back as they are."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow("" if (value := row.get(name)) is None else value for name in names)
    return file.getvalue()


_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "−": "$-$", "<": "$<$", ">": "$>$", "∞": r"$\infty$", "–": "--", "\n": " ",
}  # fmt: skip


def as_latex(rows: Sequence[Mapping[str, Any]], caption: str) -> str:
    """Rows as a LaTeX table, for the package booktabs."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    numeric = {
        name for name in names if all(isinstance(row.get(name), int | float) for row in rows)
    }
    columns = "".join("r" if name in numeric else "l" for name in names) or "l"

    def line(values: Iterator[object]) -> str:
        return " & ".join(map(_latex, values)) + r" \\"

    lines = [
        "% \\usepackage{booktabs}",
        r"\begin{table}",
        rf"\caption{{{_latex(caption)}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        line(iter(names)),
        r"\midrule",
        *(line(row.get(name) for name in names) for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex(value: object) -> str:
    text = number(value) if isinstance(value, float) else "" if value is None else str(value)
    return "".join(_SPECIAL.get(each, each) for each in text)
