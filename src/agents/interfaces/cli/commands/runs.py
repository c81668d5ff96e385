"""Commands that make runs: run, resume, branch, replay; and world."""

import contextlib
import sys
from contextlib import redirect_stdout
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from ....errors import ConfigError, RunPaused
from ....memory.words import cut
from ....packages import need
from ..failures import INTERRUPTED
from ..options import (
    Address,
    AsJson,
    Assignments,
    Force,
    OutFolder,
    Preset,
    Quiet,
    RunFolder,
    flags,
    tell_idle,
)
from ..output import echo_json, say
from ..progress import Screen, stopping
from .effect import Block, Call, Forget, NeverHeard, Pin

if TYPE_CHECKING:
    from ....config.settings import Settings
    from ....simulation.runs.run import Run


_LARGEST_SEED = 2**63 - 1
_MOST_TICKS = 1_000_000_000
"""A larger number is a typing error."""
_MOST_REASONS = 5
_LONGEST = 120
"""Characters of a reason that a line shows."""

Ticks = Annotated[
    int | None,
    Option("--ticks", min=1, max=_MOST_TICKS, help="The length of the run, from its start."),
]
EngineName = Annotated[
    str | None,
    Option(
        "--engine",
        metavar="NAME",
        help="Where the agents live: local, processes or ray. Every engine gives the same run.",
    ),
]
Workers = Annotated[
    int | None,
    Option(
        "--workers",
        "-w",
        min=1,
        max=64,
        help="How many workers the engines processes and ray have.",
    ),
]


def run(
    scenario: Annotated[Path, Argument(metavar="SCENARIO", help="The scenario's YAML file.")],
    ticks: Ticks = None,
    seed: Annotated[
        int | None,
        Option(min=0, max=_LARGEST_SEED, help="The number that all randomness derives from."),
    ] = None,
    preset: Preset = None,
    assignments: Assignments = None,
    out: Annotated[
        Path | None,
        Option(
            "--out", "-o", metavar="FOLDER", help="The run's folder; without it, runs/NAME-SEED."
        ),
    ] = None,
    force: Force = False,
    engine: EngineName = None,
    workers: Workers = None,
    address: Address = None,
    dry_run: Annotated[
        bool,
        Option(
            "--dry-run",
            help="Make no run: estimate how often it would ask its language model, and the tokens.",
        ),
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run a simulation.

    The run's folder gets the settings, the bank, checkpoints, metrics.parquet, ticks.parquet,
    decisions.parquet, summary.json and report.html. Ctrl-C finishes the tick and writes a
    checkpoint; `tiermem resume` continues the run.
    """
    need("pyarrow", "scipy")
    from ....config.load import load_settings
    from ....simulation.runs.placement import engine_of
    from ....simulation.runs.run import Run

    overrides: dict[str, Any] = {} if seed is None else {"seed": seed}
    if ticks is not None:
        overrides["simulation.ticks"] = ticks
    _check_no_sweep(scenario)

    def load(texts: list[str]) -> "Settings":
        return load_settings(scenario, assignments=texts, overrides=overrides)

    settings = load(flags(preset, assignments))
    chosen = engine_of(settings, engine, workers, address)
    if dry_run:
        _estimate(settings, scenario.parent, as_json)
        return
    folder = out or Path("runs") / f"{scenario.stem}-{settings.seed}"
    with (
        Screen(quiet=quiet or as_json) as screen,
        Run.create(
            folder, settings, scenario=scenario.parent, force=force, engine=chosen, say=screen.say
        ) as new,
    ):
        tell_idle(preset, assignments, load, screen.say)
        _go_on(new, screen, as_json)


def _estimate(settings: "Settings", place: Path, as_json: bool) -> None:
    """Say what a run would ask its language model."""
    from ....simulation.runs.estimate import WRITTEN, estimate

    with redirect_stdout(sys.stderr):  # what a world prints
        found = estimate(settings, [place])
    if as_json:
        echo_json(found)
        return
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in found["by_kind"].items())
    say(f"about {found['calls']:,} calls in {found['ticks']:,} ticks" + (kinds and f" ({kinds})"))
    say(f"about {found['read']:,} tokens read, {found['written']:,} written, {WRITTEN} each")
    if found["calls"]:
        cost = found["cost"]
        say("llm.prices has no price for it" if cost is None else f"cost about {cost:,.6g}")
        say(
            f"going by its first {found['tried']} ticks, in which agents did nothing: agents that "
            "act remember more, and read more"
        )


def _check_no_sweep(file: Path) -> None:
    from ....config.yaml_files import read_file

    value = read_file(file).value
    if isinstance(value, dict) and "scenario" in value and "simulation" not in value:
        raise ConfigError(
            f"{file}: this is a sweep, not a scenario",
            hint=f"run it with: tiermem sweep {quote(str(file))}",
        )


def resume(
    folder: RunFolder,
    from_tick: Annotated[
        int | None, Option(min=0, help="Go back to this tick first, and forget the ticks after it.")
    ] = None,
    retry_failed: Annotated[
        bool,
        Option(
            "--retry-failed",
            help="Go back before the first tick in which an agent did nothing because the language "
            "model was away (llm.on_failure: no_op), and ask again.",
        ),
    ] = False,
    ticks: Ticks = None,
    assignments: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="KEY=VALUE",
            help="A secret, which the run's folder does not keep; or another llm.budget, "
            "llm.prices, llm.patience or llm.on_failure.",
        ),
    ] = None,
    engine: EngineName = None,
    workers: Workers = None,
    address: Address = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Continue a run that was stopped or killed, or make a finished run longer.

    The run continues after its last committed tick, with the same result as without the stop. If
    its journal is lost or damaged, the run continues from the newest checkpoint that is whole.
    """
    need("pyarrow", "scipy")
    from ....simulation.runs.folder import read_folder
    from ....simulation.runs.placement import engine_of
    from ....simulation.runs.run import Run, first_passed_over, go_back
    from ....simulation.worlds.outside import check_inside

    settings, about = read_folder(folder)
    check_inside(settings)
    if retry_failed and from_tick is not None:
        raise ConfigError(
            "--retry-failed and --from-tick both name a tick to go back to", hint="use one of them"
        )
    chosen = engine_of(settings, engine, workers, address, about)
    with Screen(quiet=quiet or as_json) as screen:
        if retry_failed:
            failed = first_passed_over(folder)
            if failed is None:
                screen.say("no question to the language model was passed over")
            else:
                screen.say(f"a question of tick {failed} was passed over; asking again from there")
                from_tick = failed - 1
        if from_tick is not None:
            go_back(folder, from_tick, say=screen.say)
        with Run.open(folder, assignments or (), say=screen.say, engine=chosen) as opened:
            if ticks is not None:
                opened.extend(ticks)
            if opened.tick >= opened.settings.simulation.ticks:
                screen.say(f"it has all its {opened.tick} ticks; --ticks makes it longer")
            _go_on(opened, screen, as_json)


def branch(
    folder: RunFolder,
    at: Annotated[
        int, Option(min=0, metavar="TICK", help="The last tick that the two runs share.")
    ],
    out: OutFolder,
    assignments: Assignments = None,
    edit: Annotated[
        Path | None, Option(metavar="FILE", help="A YAML file with changes to memories.")
    ] = None,
    forget: Forget = None,
    never_heard: NeverHeard = None,
    block: Block = None,
    pin: Pin = None,
    call: Call = None,
    ticks: Ticks = None,
    make_only: Annotated[
        bool, Option("--make-only", help="Make the new run; `tiermem resume` can run it later.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Start a new run from a tick of another run: what if?

    --set changes settings from this tick on. --edit changes memories; its file is a list of edits
    such as `{agent: agent_03, do: add, content: "NEVER trade with agent_07", tier: pinned}`.
    --forget, --never-heard, --block, --pin and --call are those of `tiermem effect`. The other run
    stays as it is.
    """
    need("pyarrow", "scipy")
    from ....config.load import load_settings
    from ....simulation.effects.interventions import branch_with
    from ....simulation.runs.edits import read_edits
    from ....simulation.runs.folder import read_folder
    from ....simulation.runs.run import Run

    edits = read_edits(edit) if edit else []
    changes = list(assignments or ())
    if ticks is not None:
        changes.append(f"simulation.ticks={ticks}")
    if not quiet:
        kept, _ = read_folder(folder)
        tell_idle(None, assignments, lambda texts: load_settings(kept, assignments=texts))
    branch_with(
        folder, at, out, assignments=changes, edits=edits, forget=forget or (),
        never_heard=never_heard or (), block=block or (), pin=pin or (), call=call or (),
        force=force,
    )  # fmt: skip
    if make_only:
        if as_json:
            echo_json({"run": str(out), "branch_of": str(folder), "at": at})
        elif not quiet:
            say(f"made {out}; run it with: tiermem resume {quote(str(out))}")
        return
    with Screen(quiet=quiet or as_json) as screen, Run.open(out, say=screen.say) as opened:
        _go_on(opened, screen, as_json)


def replay(
    folder: RunFolder,
    from_tick: Annotated[int | None, Option(min=0, help="Start after this tick.")] = None,
    verify: Annotated[
        bool, Option("--verify", help="Check the checkpoints and tables of the run, too.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Repeat a run in memory, and compare it tick by tick with the recorded run.

    At the first difference the command names tick, agent, memory and field, and exits with 1. The
    replies of an LLM come from the run's cassette.
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
            say(problem)
    elif not quiet:
        say(f"equal: ticks {again.first} to {again.last}, bit for bit")
    if problems:
        raise Exit(1)


def _go_on(run: "Run", screen: Screen, as_json: bool) -> None:
    """Run to the end, or until Ctrl-C; then write the results."""
    until = run.settings.simulation.ticks
    show = screen.meter("tick", "ticks", run.tick)
    run.progress = screen.meter("commits in mem0's store", "commits")
    paused: RunPaused | None = None
    # Standard output holds the result alone: what a world prints goes to standard error.
    told = "" if screen.quiet else "stopping after this tick; Ctrl-C again stops at once"
    with stopping(told) as asked_to_stop, contextlib.redirect_stdout(sys.stderr):
        try:
            for _ in run.advance(until):
                show(run.tick, until)
                if asked_to_stop():
                    screen.say(f"stopping after tick {run.tick}")
                    break
        except RunPaused as pause:
            paused = pause
        summary = run.finish()
        run.sync()
        run.progress = None
        interrupted = asked_to_stop() and run.tick < until
    if as_json:
        echo_json({"run": str(run.folder), **summary})
    elif paused:
        screen.say(f"paused after tick {run.tick} of {until}")
    elif interrupted:
        screen.say(f"stopped after tick {run.tick} of {until}; go on with:")
        screen.say(f"  tiermem resume {quote(str(run.folder))}")
    else:
        _tell(run, summary, screen)
    if paused:
        raise paused
    if interrupted:
        raise Exit(INTERRUPTED)


def _tell_reasons(counts: dict[str, int], screen: Screen) -> None:
    for reason, count in list(counts.items())[:_MOST_REASONS]:
        screen.say(f"  {count:>6,} × {cut(reason, _LONGEST)}")
    if len(counts) > _MOST_REASONS:
        screen.say("         … and other reasons: see summary.json and decisions.parquet")


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
        _tell_reasons(summary["no_answers"], screen)
    if summary["errors"]:
        screen.say(f"  {summary['errors']:,} actions were refused; agents were told why:")
        _tell_reasons(summary["refusals"], screen)
    if calls := summary.get("calls"):
        _tell_calls(calls, screen)
    screen.say(f"  state {summary['state_hash'][:16]}, report in {run.folder / 'report.html'}")


def _tell_calls(calls: dict[str, Any], screen: Screen) -> None:
    """What the language model cost, and why its replies were not usable."""
    from ....simulation.policies.costs import in_words

    screen.say(f"  {in_words(calls)}")
    if calls["unusable"]:
        screen.say(f"  {calls['unusable']:,} replies were not usable:")
        _tell_reasons(calls["problems"], screen)
        if example := calls["example"]:
            where = f"{example['agent']}, tick {example['tick']}"
            screen.say(f"  for example ({where}): {cut(example['reply'], _LONGEST)}")


# Worlds


def new_world(
    name: Annotated[str, Argument(metavar="NAME", help="The module's name, such as night_market.")],
    out: Annotated[
        Path, Option("--out", "-o", metavar="FOLDER", help="Where the files go; without it, here.")
    ] = Path(),
    as_json: AsJson = False,
) -> None:
    """Write a small world, a policy, a scenario and a test that run as they are.

    The files are NAME.py, NAME.yaml and test_NAME.py. Existing files are never replaced.
    """
    from ....simulation import world_template

    files = world_template.new_world(name, out)
    if as_json:
        echo_json({"files": [str(path) for path in files]})
        return
    for path in files:
        say(f"wrote {path}")
    folder = "" if out == Path() else f"cd {quote(str(out))} && "
    made = world_template.class_name(name)
    say(f"run it:    {folder}tiermem run {name}.yaml")
    say(f"test it:   {folder}pytest test_{name}.py")
    say(f"check it:  {folder}tiermem world check {name}:{made} --policy {name}:{made}Policy")


def check_world(
    world: Annotated[
        str,
        Argument(
            metavar="MODULE:NAME", help="A world or program of your own, or a built-in world."
        ),
    ],
    policy: Annotated[
        str | None,
        Option(metavar="MODULE:CLASS", help="The policy; without it, the world's own rules."),
    ] = None,
    scenario: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Take agents, options and settings from this scenario; modules are beside it.",
        ),
    ] = None,
    ticks: Annotated[int, Option(min=2, max=100_000, help="The length of each trial.")] = 30,
    assignments: Assignments = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Try a world for real: does the same seed give the same run, whatever happens?

    The world runs twice with one seed, with other hash seeds, made anew from its own state at
    random ticks, and killed with SIGKILL and resumed. Lines of its code that read a clock or an
    environment variable, or draw unseeded random numbers, are named. It warns of a world that draws
    for several agents from one stream. A program, such as a Mesa model, is made anew and stepped
    instead. Modules are looked for in this folder, or beside --scenario. The command exits with 1
    if anything differs.
    """
    from ....config.load import load_settings
    from ....simulation.runs.scenario import kind_of
    from ....testing import scenario_laws

    place = scenario.parent if scenario else Path()
    changes: dict[str, Any] = {kind_of(world, place.absolute()): world, "simulation.ticks": ticks}
    if policy is not None:
        changes["simulation.policy"] = policy

    def load(texts: list[str]) -> "Settings":
        return load_settings(scenario, assignments=texts, overrides=changes)

    settings = load(list(assignments or ()))
    if not quiet:
        tell_idle(None, assignments, load)
    trial = scenario_laws.check_world(settings, place)
    if as_json:
        echo_json({"ok": not trial.problems, **trial._asdict()})
    else:
        for line in () if quiet else trial.tried:
            say(f"held: {line}")
        for line in trial.problems:
            say(f"wrong: {line}")
        for line in () if quiet else trial.warnings:
            say(f"warning: {line}")
        if not trial.problems and not quiet:
            say(f"{world} is sound: the same seed gives the same run")
    if trial.problems:
        raise Exit(1)
