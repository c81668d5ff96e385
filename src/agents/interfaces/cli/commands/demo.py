"""The command demo: what tiers change, measured on this machine."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated

from typer import Option

from ....packages import need
from ..options import AsJson, Quiet
from ..output import echo_json, say, table
from ..progress import Screen, interrupts


def demo(
    seeds: Annotated[
        int,
        Option("--seeds", min=3, max=1000, help="Runs of each row, with seeds 1 to this number."),
    ] = 10,
    out: Annotated[
        Path,
        Option("--out", "-o", metavar="FOLDER", help="The folder for the runs and the scenarios."),
    ] = Path("runs/demo"),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare flat memory with tiers, and with what else a user would do.

    Agents live in two worlds, a market and a household, each with several designs of memory and
    paired seeds. With 10 seeds these are 218 runs: up to two minutes on two cores. The same seeds
    give the same numbers on every machine.
    """
    need("scipy")
    from ....simulation import demo as runs

    runs.prepare(out)
    planned = runs.cells(seeds)
    done = {}
    with Screen(quiet=quiet or as_json) as screen, interrupts() as interrupted:
        meter = screen.meter("runs", "runs")
        meter(0, len(planned))
        for place, row in runs.run_all(planned):
            done[place] = row
            meter(len(done), len(planned))
            if interrupted():
                raise KeyboardInterrupt
    rows = [done[place] for place in sorted(done)]
    runs.write(out, rows)
    if as_json:
        echo_json({"demo": str(out), "runs": rows})
    elif not quiet:
        _tell(runs.table(rows), 2)
        noisy = min(seeds, runs.NOISY_SEEDS)
        say("")
        say(f"{seeds} seeds each, paired; less is better. And if agents pin wrongly")
        say(f"({noisy} seeds):")
        say("")
        _tell(runs.noise_table(rows), 1)
        say("")
        say(f"Every run is in {out / runs.FIGURES}.")
        scenario = quote(str(out / "household.yaml"))
        say(f"Look at one run:  tiermem run {scenario} --out runs/household")
        say("                  tiermem show runs/household --agent agent_00")


def _tell(rows: Sequence[Mapping[str, str]], left: int) -> None:
    """A table for the terminal; elsewhere Markdown, as documents have it."""
    from ....simulation.demo import markdown

    if sys.stdout.isatty():
        table("", [dict(row) for row in rows])
    else:
        for line in markdown(rows, left):
            say(line)
