"""Commands that make runs: run, resume, branch, replay."""

import contextlib
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..options import AsJson, Assignments, Force, Preset, Quiet, RunFolder
from ..output import echo_json
from ..progress import Screen, stopping

if TYPE_CHECKING:
    from ....simulation.runs.run import Run

__all__ = ["branch", "replay", "resume", "run"]

INTERRUPTED = 130
_LARGEST_SEED = 2**63 - 1
_MOST_TICKS = 1_000_000_000
"""More than anybody waits for, and less than a number that was typed by mistake."""

Ticks = Annotated[
    int | None,
    typer.Option(
        "--ticks", min=1, max=_MOST_TICKS, help="How long the run is to be, from its start."
    ),
]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="The run's folder.")]


def run(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario's YAML file.")],
    ticks: Ticks = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=_LARGEST_SEED, help="Everything random derives from it."),
    ] = None,
    preset: Preset = None,
    assignments: Assignments = None,
    out: Out = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run a simulation.

    The run's folder (runs/NAME-SEED, unless told otherwise) gets the settings as used, the bank,
    checkpoints, metrics.parquet, ticks.parquet, summary.json and report.html. Ctrl-C finishes the
    tick and writes a checkpoint; `tiermem resume` goes on.
    """
    from ....config.load import load_settings
    from ....simulation.runs.run import Run

    overrides: dict[str, Any] = {} if seed is None else {"seed": seed}
    if ticks is not None:
        overrides["simulation.ticks"] = ticks
    settings = load_settings(
        scenario, preset=preset, assignments=assignments or (), overrides=overrides
    )
    folder = out or Path("runs") / f"{scenario.stem}-{settings.seed}"
    with (
        Screen(quiet=quiet or as_json) as screen,
        Run.create(folder, settings, scenario=scenario.parent, force=force) as new,
    ):
        _go_on(new, screen, as_json)


def resume(
    folder: RunFolder,
    from_tick: Annotated[
        int | None,
        typer.Option(
            "--from-tick",
            min=0,
            metavar="T",
            help="Go back to this tick first; later ones are forgotten.",
        ),
    ] = None,
    ticks: Ticks = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A secret, which the run did not keep."),
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Go on with a run that was stopped, killed, or is to be longer.

    It continues after the last tick that was committed, and becomes the run it would have been. If
    its journal is lost or damaged, it continues from the newest whole checkpoint.
    """
    from ....simulation.runs.run import Run, go_back

    with Screen(quiet=quiet or as_json) as screen:
        if from_tick is not None:
            go_back(folder, from_tick, say=screen.say)
        with Run.open(folder, assignments or (), say=screen.say) as opened:
            if ticks is not None:
                opened.extend(ticks)
            if opened.tick >= opened.settings.simulation.ticks:
                screen.say(f"it has all its {opened.tick} ticks; --ticks makes it longer")
            _go_on(opened, screen, as_json)


def branch(
    folder: RunFolder,
    at: Annotated[int, typer.Option("--at", min=0, metavar="T", help="The tick to start from.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The new run's folder.")],
    assignments: Assignments = None,
    edit: Annotated[
        Path | None, typer.Option("--edit", help="A YAML file with changes to memories.")
    ] = None,
    ticks: Ticks = None,
    make_only: Annotated[
        bool, typer.Option("--make-only", help="Make the run, and leave it to `tiermem resume`.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Start a new run from a tick of another: what if?

    With --set the settings change from there on; with --edit memories do: a list of edits such as
    `{agent: agent_03, do: add, content: "NEVER trade with agent_07", tier: pinned}`. The other
    run is not changed.
    """
    from ....simulation.runs import branch as branching
    from ....simulation.runs.run import Run

    edits = branching.read_edits(edit) if edit else []
    changes = list(assignments or ())
    if ticks is not None:
        changes.append(f"simulation.ticks={ticks}")
    branching.branch(folder, at, out, assignments=changes, edits=edits, force=force)
    if make_only:
        if as_json:
            echo_json({"run": str(out), "branch_of": str(folder), "at": at})
        elif not quiet:
            typer.echo(f"made {out}; run it with: tiermem resume {quote(str(out))}")
        return
    with Screen(quiet=quiet or as_json) as screen, Run.open(out, say=screen.say) as opened:
        _go_on(opened, screen, as_json)


def replay(
    folder: RunFolder,
    from_tick: Annotated[
        int | None, typer.Option("--from-tick", min=0, metavar="T", help="Start after this tick.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check the run's checkpoints and tables as well.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run a run again, in memory, and compare it tick by tick with what was recorded.

    At the first difference it names tick, agent, memory and field, and exits with 1. LLM replies
    come from the run's cassette.
    """
    from ....simulation.runs.replay import Replay, verify_files

    problems: list[str] = []
    with Screen(quiet=quiet or as_json) as screen:
        again = Replay(folder, from_tick)
        try:
            meter = screen.meter("replaying", "ticks", again.first)
            for tick, divergence in enumerate(again.ticks(), start=again.first):
                if divergence:
                    problems.append(str(divergence))
                else:
                    meter(tick, again.last)
        finally:
            again.close()
        if verify:
            problems += verify_files(folder)
    if as_json:
        result = {"equal": not problems, "ticks": again.last - again.first, "problems": problems}
        echo_json(result)
    elif problems:
        for problem in problems:
            typer.echo(problem)
    elif not quiet:
        typer.echo(f"equal: ticks {again.first} to {again.last}, bit for bit")
    if problems:
        sys.exit(1)


def _go_on(run: "Run", screen: Screen, as_json: bool) -> None:
    """Run to the end, or until told to stop; then write what came out."""
    until = run.settings.simulation.ticks
    show = screen.meter("tick", "ticks", run.tick)
    run.progress = screen.meter("mem0's store", "commits")
    # Standard output is for the result; what a world prints must not get into it.
    with stopping() as asked_to_stop, contextlib.redirect_stdout(sys.stderr):
        for _ in run.advance(until):
            show(run.tick, until)
            if asked_to_stop():
                screen.say(f"stopping after tick {run.tick}")
                break
        summary = run.finish()
        run.sync()
        run.progress = None
        interrupted = asked_to_stop() and run.tick < until
    if as_json:
        echo_json({"run": str(run.folder), **summary})
    elif interrupted:
        screen.say(f"stopped after tick {run.tick} of {until}; go on with:")
        screen.say(f"  tiermem resume {quote(str(run.folder))}")
    else:
        _tell(run, summary, screen)
    if interrupted:
        sys.exit(INTERRUPTED)


def _tell(run: "Run", summary: dict[str, Any], screen: Screen) -> None:
    screen.say(
        f"{run.folder}: {summary['world']}, {summary['agents']} agents, {summary['ticks']} ticks, "
        f"{summary['memories']:,} memories"
    )
    for name, value in summary["metrics"].items():
        screen.say(f"  {name:<24} {value:,.4g}" if value is not None else f"  {name:<24} –")
    if summary["no_ops"]:
        decisions = summary["ticks"] * summary["agents"]
        screen.say(f"  {summary['no_ops']:,} of {decisions:,} decisions had no answer: did nothing")
    if summary["errors"]:
        screen.say(f"  {summary['errors']:,} actions were refused; agents were told why")
    screen.say(f"  state {summary['state_hash'][:16]}, report in {run.folder / 'report.html'}")
