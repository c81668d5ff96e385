"""Commands that make many runs: sweep, fit."""

import contextlib
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Exit, Option

from ....errors import ConfigError
from ....memory.words import counted, number
from ....packages import need
from ..failures import PAUSED, telling
from ..options import Address, AsJson, Force, Preset, Quiet, no_nan
from ..output import echo_json, say, table

if TYPE_CHECKING:
    from ....simulation.reports.sensitivity_report import Sensitivity
    from ....simulation.reports.sweep_report import Look, SweepResults
    from ....simulation.runs.placement import Placement
    from ....simulation.sweeps.sweep import Sweep


def sweep(
    file: Annotated[Path, Argument(metavar="SWEEP", help="The sweep's YAML file.")],
    out: Annotated[
        Path | None,
        Option("--out", "-o", metavar="FOLDER", help="The sweep's folder; without it, runs/NAME."),
    ] = None,
    preset: Preset = None,
    engine: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="What runs the runs: processes of this machine, or tasks of ray. Every engine "
            "gives the same results.",
        ),
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
    address: Address = None,
    keep_runs: Annotated[
        bool,
        Option(
            "--keep-runs",
            help="Keep each run whole, with a report of its own and the scenario's checkpoints.",
        ),
    ] = False,
    plan_only: Annotated[
        bool,
        Option(
            "--plan",
            help="Make no run: say how many seeds would show the differences, four times of five.",
        ),
    ] = False,
    like: Annotated[
        Path | None,
        Option(
            "--like",
            metavar="FOLDER",
            help="For --plan: an earlier sweep, whose differences, spread and speed are expected.",
        ),
    ] = None,
    difference: Annotated[
        float | None,
        Option(callback=no_nan, help="For --plan: the smallest difference that matters."),
    ] = None,
    spread: Annotated[
        float | None,
        Option(
            callback=no_nan,
            help="For --plan: the standard deviation of differences between runs of a seed.",
        ),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run variants of a scenario with many settings and seeds, and compare them.

    Finished runs are kept: the same command continues a sweep that was stopped. The sweep's folder
    gets results.parquet, statistics.parquet, plots and report.html. With --plan nothing is run, and
    nothing is written.
    """
    about_plan = {"--like": like, "--difference": difference, "--spread": spread}
    given = [name for name, value in about_plan.items() if value is not None]
    if given and not plan_only:
        raise ConfigError(f"{given[0]} says something of --plan, which is not given")
    need("pyarrow", "scipy")
    from ....simulation.sweeps.run_sweep import engine_for, statistics_rows, write_results
    from ....simulation.sweeps.sensitivity import write_sensitivity
    from ....simulation.sweeps.sweep import read_sweep

    plan = read_sweep(file, preset)
    chosen = engine_for(plan, engine, workers, address)
    if plan_only:
        _tell_plan(plan, chosen.workers, as_json, like, difference, spread)
        return
    folder = out or Path("runs") / file.stem
    if plan.preset_changes_nothing and not (quiet or as_json):
        say(f"--preset {preset} changes nothing here: no run is another with it", err=True)
    with making(plan, folder, chosen, force=force, keep_runs=keep_runs, quiet=quiet or as_json) as (
        done,
        failed,
    ):
        found = write_sensitivity(plan, folder, done) if done and plan.drawn else None
        results = write_results(plan, folder, done) if done and not plan.drawn else None
    if plan.drawn:
        if as_json:
            echo_json(
                {"sweep": str(folder), "indices": found.rows if found else [], "failed": failed}
            )
        elif not quiet and found:
            _tell_sensitivity(found)
            say(f"report: {folder / 'report.html'}")
    elif as_json:
        statistics = statistics_rows(results) if results else []
        echo_json({"sweep": str(folder), "statistics": statistics, "failed": failed})
    elif not quiet and results:
        _tell_sweep(results)
        say(f"report: {folder / 'report.html'}")
    tell_failed(failed, len(plan.runs()))


@contextlib.contextmanager
def making(
    plan: "Sweep", folder: Path, engine: "Placement", *, force: bool, keep_runs: bool, quiet: bool
) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """Make the runs of a sweep or a fit, and show how far it is; then what is made of them.

    It gives the summaries of the finished runs, and why the others failed.
    """
    from ....simulation.sweeps.run_sweep import finished, run_all
    from ..progress import Screen, interrupts

    total = len(plan.runs())
    done: dict[str, Any] = {}
    failed: dict[str, str] = {}
    with (
        telling(lambda: f"{len(done)} of {total} runs are done; the same command goes on"),
        Screen(quiet=quiet) as screen,
        interrupts() as interrupted,
        redirect_stdout(sys.stderr),  # Ray tells of workers that were lost
    ):
        kept = (
            0
            if force
            else sum(
                finished(folder / "cells" / planned.name, keep_runs) is not None
                for planned in plan.runs()
            )
        )
        meter = screen.meter("runs", "runs", kept)  # kept runs come at once, and tell no pace
        if not kept:
            meter(0, total)
        for planned, result in run_all(plan, folder, engine, force=force, keep_runs=keep_runs):
            if isinstance(result, str):
                failed[planned.name] = result
                screen.say(f"{planned.name}: {result}", is_error=True)
            else:
                done[planned.name] = result
            if len(done) + len(failed) >= kept:
                meter(len(done) + len(failed), total)
            if interrupted():
                raise KeyboardInterrupt
        yield done, failed


def tell_failed(failed: Mapping[str, str], total: int) -> None:
    """Say how many runs failed or are paused, and end with the exit code for that."""
    from ....simulation.sweeps.run_sweep import Paused

    if not failed:
        return
    paused = sum(isinstance(why, Paused) for why in failed.values())
    if paused:
        say(f"{paused} of {total} runs are paused; the same command goes on", err=True)
    if paused == len(failed):
        raise Exit(PAUSED)
    broken = len(failed) - paused
    say(f"{broken} of {total} runs failed; the same command tries them again", err=True)
    raise Exit(1)


def _tell_sensitivity(found: "Sensitivity") -> None:
    """Print which settings the metrics of a sweep over ranges depend on."""
    from ....simulation.reports.sensitivity_report import lines

    if found.question:
        say(found.question)
    variant = ["variant"] if len(found.variants) > 1 else []
    rows = [
        {
            **{key: row[key] for key in ("metric", *variant, "setting")},
            "alone": f"{row['first']:.2f}",
            "95 %": f"{row['first_low']:.2f} to {row['first_high']:.2f}",
            "with interactions": f"{row['total']:.2f}",
            "its 95 %": f"{row['total_low']:.2f} to {row['total_high']:.2f}",
        }
        for row in found.rows
        if row["why"] is None
    ]
    if rows:
        table("shares of the variance (Sobol's indices)", rows)
    for line in lines(found):
        say(line)


def _tell_plan(
    sweep: "Sweep",
    workers: int,
    as_json: bool,
    like: Path | None,
    difference: float | None,
    spread: float | None,
) -> None:
    """Say how many seeds a sweep needs, and what they cost."""
    from ....simulation.reports.sweep_report import Look
    from ....simulation.sweeps.planning import plan_sweep

    plan = plan_sweep(sweep, like=like, difference=difference, spread=spread)
    runs = plan.places * (plan.seeds_needed or plan.seeds)
    seconds = None if plan.seconds is None else plan.seconds * runs / workers
    if as_json:
        echo_json(
            {
                "comparisons": plan.rows,
                "share": plan.share,
                "looks": plan.looks,
                "seeds": plan.seeds,
                "seeds_needed": plan.seeds_needed,
                "runs": runs,
                "seconds": seconds,
            }
        )
        return
    say(Look(1, plan.looks, plan.share).spent)
    levels = dict.fromkeys(f"{100 * row['level']:.3g} %" for row in plan.rows)
    say(
        f"{counted(len(plan.rows), 'comparison')}, each tested at {', '.join(levels)} (Holm, worst)"
    )
    rows = [
        {
            **{key: value for key, value in row.items() if key not in ("level", "by", "power")},
            f"power with {plan.seeds}": "–"
            if row["power"] is None
            else f"{100 * row['power']:.0f} %",
            "by": row["by"],
        }
        for row in plan.rows
    ]
    table("what four sweeps of five would show", rows)
    if plan.seeds_needed is None:
        say("a difference of none, or one that is equal in all seeds, has no number of seeds")
    made = f"{counted(plan.places, 'run')} a seed"
    least = plan.seeds_needed
    say(
        f"{counted(least or plan.seeds, 'seed')}: {counted(runs, 'run')} ({made})"
        + ("" if least is None or least <= plan.seeds else f"; the sweep has {plan.seeds}")
    )
    if seconds is not None:
        say(f"about {_long(seconds)}, {counted(workers, 'run')} at once, as fast as in {like}")
    if like is not None and difference is None:
        say("a difference that was seen is likely to be smaller: --difference names one to rely on")


def _long(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 2:
        return counted(max(1, round(seconds)), "second")
    return counted(minutes, "minute") if minutes < 120 else counted(round(minutes / 60), "hour")


def _verdict(row: Mapping[str, Any], look: "Look") -> str:
    from ....simulation.reports.sweep_report import is_clear, judges_median, missing

    if not is_clear(row):
        return missing(row, look)
    return f"the median differs, by {number(row['median'])}" if judges_median(row) else "differs"


def _tell_sweep(results: "SweepResults") -> None:
    """Print a sweep's question, its means, and what differs from the baseline."""
    from ....simulation.reports.sweep_report import arm_of
    from ....simulation.statistics import in_words, interval_of

    if results.question:
        say(results.question)
    look = results.look
    say(f"{look.verdict}; {look.spent}")
    for each in look.deviations:
        say(f"  {each}")
    variant = ["variant"] if len(results.variants) > 1 else []
    where = [*variant, *results.grid, "metric"]
    means = [
        {
            **{key: row[key] for key in where},
            "n": row["n"],
            "mean": row["mean"],
            "95 %": in_words(interval_of(row)) or "–",
        }
        for row in results.statistics
    ]
    table("means, with 95 % intervals", means)
    apart = [
        {
            **{key: row[key] for key in where},
            "difference": row["mean"],
            "95 %": "–" if row["low"] is None else in_words(interval_of(row)),
            "p (Holm)": row["p_holm"],
            "so": _verdict(row, look),
        }
        for row in results.compared
    ]
    if apart:
        base = arm_of(results.baseline, results.baseline)
        table(f"against {base}, paired by seed", apart)


# Fits


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
