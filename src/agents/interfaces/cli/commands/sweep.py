"""The command ``sweep``."""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from ....packages import need
from ..options import Address, AsJson, Force, Preset, Quiet
from ..output import echo_json, say, table
from ..signals import telling

if TYPE_CHECKING:
    from ....simulation.reports.sweep_report import SweepResults


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
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run variants of a scenario with many settings and seeds, and compare them.

    Finished runs are kept: the same command continues a sweep that was stopped. The sweep's folder
    gets results.parquet, statistics.parquet, plots and report.html.
    """
    need("pyarrow", "scipy")
    from ....simulation.sweeps.run_sweep import (
        engine_for,
        finished,
        run_all,
        statistics_rows,
        write_results,
    )
    from ....simulation.sweeps.sweep import read_sweep
    from ..progress import Screen, interrupts

    plan = read_sweep(file, preset)
    chosen = engine_for(plan, engine, workers, address)
    folder = out or Path("runs") / file.stem
    total = len(plan.runs())
    done: dict[str, Any] = {}
    failed: dict[str, str] = {}
    with (
        telling(lambda: f"{len(done)} of {total} runs are done; the same command goes on"),
        Screen(quiet=quiet or as_json) as screen,
        interrupts() as interrupted,
        redirect_stdout(sys.stderr),  # Ray tells of workers that were lost
    ):
        if plan.preset_changes_nothing:
            screen.say(f"--preset {preset} changes nothing here: no run is another with it")
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
        for planned, result in run_all(plan, folder, chosen, force=force, keep_runs=keep_runs):
            if isinstance(result, str):
                failed[planned.name] = result
                screen.say(f"{planned.name}: {result}", is_error=True)
            else:
                done[planned.name] = result
            if len(done) + len(failed) >= kept:
                meter(len(done) + len(failed), total)
            if interrupted():
                raise KeyboardInterrupt
        results = write_results(plan, folder, done) if done else None
    if as_json:
        statistics = statistics_rows(results) if results else []
        echo_json({"sweep": str(folder), "statistics": statistics, "failed": failed})
    elif not quiet and results:
        _tell_sweep(results)
        say(f"report: {folder / 'report.html'}")
    if failed:
        say(f"{len(failed)} of {total} runs failed; run the sweep again to retry", err=True)
        raise Exit(1)


def _tell_sweep(results: "SweepResults") -> None:
    """Print a sweep's question, its means, and what differs from the baseline."""
    from ....simulation.reports.sweep_report import arm_of, is_clear, missing
    from ....simulation.statistics import in_words, interval_of

    if results.question:
        say(results.question)
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
            "so": "differs" if is_clear(row) else missing(row),
        }
        for row in results.compared
    ]
    if apart:
        base = arm_of(results.baseline, results.baseline)
        table(f"against {base}, paired by seed", apart)
