"""The command fit: settings that give what was seen."""

import math
from pathlib import Path
from typing import Annotated

from typer import Argument, BadParameter, Option

from ....packages import need
from ..options import AsJson, Force, Quiet
from ..output import echo_json, say, table
from .runs import making, tell_failed


def fit(
    file: Annotated[
        Path, Argument(metavar="FILE", help="A fit's YAML file; or a scenario, with --range.")
    ],
    data: Annotated[
        Path,
        Option("--to", metavar="CSV", help="What was seen: metrics, in a row for each tick."),
    ],
    out: Annotated[
        Path | None,
        Option(
            "--out", "-o", metavar="FOLDER", help="The fit's folder; without it, runs/NAME-fit."
        ),
    ] = None,
    ranges: Annotated[
        list[str] | None,
        Option(
            "--range",
            metavar="KEY=LOW:HIGH",
            help="A setting to fit, such as memory.max_pinned=1:9; can be repeated.",
        ),
    ] = None,
    runs: Annotated[
        int | None, Option("--runs", min=1, help="How many runs; without it, those of the file.")
    ] = None,
    workers: Annotated[
        int | None,
        Option(
            "--workers",
            "-w",
            min=1,
            help="How many runs go on at once; without it, one for each core.",
        ),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fit settings to data: which of many runs, with settings drawn from ranges, come nearest?

    Finished runs are kept: the same command continues a fit that was stopped, and fits other data
    without a run. The folder gets posterior.parquet, predictions.parquet, results.parquet, plots
    and report.html.
    """
    need("pyarrow", "scipy")
    from ....simulation.reports.fit_report import lines
    from ....simulation.sweeps.fit import read_data, read_fit, write_fit
    from ....simulation.sweeps.run_sweep import engine_for

    plan = read_fit(file, ranges=dict(map(_range, ranges or ())), runs=runs)
    seen = read_data(data, plan)
    folder = out or Path("runs") / f"{file.stem}-fit"
    chosen = engine_for(plan.sweep, workers=workers)
    with making(
        plan.sweep, folder, chosen, force=force, keep_runs=False, quiet=quiet or as_json
    ) as (done, failed):
        results = write_fit(plan, seen, folder, done) if done else None
    if as_json:
        names = ("runs", "posterior", "compared", "held_out", "warnings") if results else ()
        found = {name: getattr(results, name) for name in names}
        echo_json({"fit": str(folder), **found, "failed": failed})
    elif not quiet and results:
        rows = [
            {
                "setting": row["setting"],
                "median": row["median"],
                "90 %": f"{row['low']:.4g} to {row['high']:.4g}",
                "range": f"{row['from']:g} to {row['to']:g}",
                "check": f"{row['check']} ({row['check_inside']} of {row['check_tried']})",
            }
            for row in results.posterior
        ]
        table(f"{results.posterior[0]['n']} of {results.runs} runs are accepted", rows)
        for line in lines(results):
            say(line)
        say(f"report: {folder / 'report.html'}")
    tell_failed(failed, len(plan.sweep.runs()))


def _range(text: str) -> tuple[str, tuple[float, float]]:
    name, _, ends = text.partition("=")
    try:
        low, high = map(_number, ends.split(":"))
    except ValueError:
        raise BadParameter(f"{text!r:.80} is not KEY=LOW:HIGH.", param_hint="--range") from None
    return name, (low, high)


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not math.isfinite(number):
            raise
        return number
