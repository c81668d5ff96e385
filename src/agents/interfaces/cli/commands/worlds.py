"""Commands for whoever writes a world: new-world and check-world."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from ..options import AsJson, Assignments, Quiet, tell_idle
from ..output import echo_json, say

if TYPE_CHECKING:
    from ....config.settings import Settings


def new(
    name: Annotated[str, Argument(metavar="NAME", help="The module's name, such as night_market.")],
    out: Annotated[
        Path, Option("--out", "-o", metavar="FOLDER", help="Where the files go; without it, here.")
    ] = Path(),
    as_json: AsJson = False,
) -> None:
    """Write a small world, a policy, a scenario and a test that run as they are.

    The files are NAME.py, NAME.yaml and test_NAME.py. Existing files are never replaced.
    """
    from ....simulation.world_template import class_name
    from ....simulation.world_template import new_world as write

    files = write(name, out)
    if as_json:
        echo_json({"files": [str(path) for path in files]})
        return
    for path in files:
        say(f"wrote {path}")
    folder = "" if out == Path() else f"cd {quote(str(out))} && "
    made = class_name(name)
    say(f"run it:    {folder}tiermem run {name}.yaml")
    say(f"test it:   {folder}pytest test_{name}.py")
    say(f"check it:  {folder}tiermem world check {name}:{made} --policy {name}:{made}Policy")


def check(
    world: Annotated[
        str,
        Argument(metavar="MODULE:CLASS", help="The world: a class of your own, or a built-in one."),
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
    for several agents from one stream. Modules are looked for in this folder, or beside --scenario.
    The command exits with 1 if anything differs.
    """
    from ....config.load import load_settings
    from ....testing.scenario_laws import check_world

    changes: dict[str, Any] = {"simulation.world": world, "simulation.ticks": ticks}
    if policy is not None:
        changes["simulation.policy"] = policy

    def load(texts: list[str]) -> "Settings":
        return load_settings(scenario, assignments=texts, overrides=changes)

    settings = load(list(assignments or ()))
    if not quiet:
        tell_idle(None, assignments, load)
    found = check_world(settings, scenario.parent if scenario else Path())
    if as_json:
        echo_json({"ok": not found.problems, **found._asdict()})
    else:
        for line in () if quiet else found.tried:
            say(f"held: {line}")
        for line in found.problems:
            say(f"wrong: {line}")
        for line in () if quiet else found.warnings:
            say(f"warning: {line}")
        if not found.problems and not quiet:
            say(f"{world} is sound: the same seed gives the same run")
    if found.problems:
        raise Exit(1)
