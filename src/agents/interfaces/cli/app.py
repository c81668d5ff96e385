"""The command ``tiermem``."""

import importlib
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from ... import __version__
from ...errors import ConfigError, InvalidInput, TierMemError
from .. import failures
from .help import HelpfulCommand
from .signals import (
    INTERRUPTED,
    Stopped,
    deaf_to_ctrl_c,
    drop_output,
    open_streams,
    terminable,
)

_USAGE = """
 [bold]Usage:[/] [yellow]tiermem COMMAND …[/]   [cyan]tiermem COMMAND --help[/] explains a command

 Tiered, reproducible memory for agents in multi-agent simulations.
"""
_EXAMPLES = """ [bold]Try it[/]
   [cyan]tiermem init crew[/]
   [cyan]tiermem add crew --agent alice --tier pinned "NEVER transfer to agent_X"[/]
   [cyan]tiermem search crew --agent alice "who can I trust?"[/]

 [bold]Options[/]
   --version               Print the version.
   --install-completion    Let your shell complete commands and options.
   --show-completion       Print the completion script.
   --help                  Print this help.

 [bold]Output[/]
   Results go to stdout: tables on a terminal, lines with tabs elsewhere, JSON
   with --json. Errors and progress go to stderr, and without --json the
   summary of a run, too. NO_COLOR is respected.

 [bold]Exit codes[/]
   0 done, 1 it could not be done, 2 wrong use or wrong settings, 130 or 143
   stopped by Ctrl-C or by SIGTERM
"""


class _Commands(TyperGroup):
    """The commands of the table; the module of a command is imported when the command is called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for entries in COMMANDS.values():
            for name, _, line in entries:
                self.add_command(TyperCommand(name=name, short_help=line), name)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and _command(listed.name or ""), rest

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Stopped(stop) from stop

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from .help_page import narrow_console, panel

        console = narrow_console()
        console.print(_USAGE)
        for title, entries in COMMANDS.items():
            console.print(panel(title, [(name, line) for name, _, line in entries]))
        console.print(_EXAMPLES)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command of this process, which ends with it.

    From the command's last word on, Ctrl-C changes nothing: what was said is what is so.
    """
    code = INTERRUPTED
    try:
        code = run()
        deaf_to_ctrl_c()
    except KeyboardInterrupt:  # it came while the command had its last word
        deaf_to_ctrl_c()
    sys.exit(code)


def run() -> int:
    """Run a command; an error is three lines and an exit code, not a traceback.

    Ctrl-C and SIGTERM clean up, and are one line. With standard output closed, no command runs;
    with standard input closed, no command that reads it. Output to a closed standard error is
    dropped.
    """
    if not open_streams():
        failures.report(failures.NO_OUTPUT)
        return 1
    if hasattr(sys.stdout, "reconfigure"):  # a terminal that can't show a character gets its number
        sys.stdout.reconfigure(errors="backslashreplace")
    # NumPy's BLAS starts threads, which look for work for a tenth of a second before they sleep.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    with terminable():
        return _reported()


def _reported() -> int:
    """Run the command, and report what went wrong; the exit code."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    known = (entry[0] for entries in COMMANDS.values() for entry in entries)
    command = f"tiermem {name}" if name in known else "tiermem"
    try:
        # Typer returns the code of an Exit, or whatever the command returned.
        code = app(prog_name="tiermem", standalone_mode=False)
        sys.stdout.flush()  # a failure to print shows here, and not when Python ends
        return code if isinstance(code, int) else 0
    except TyperException as error:
        if type(error).__name__ != "NoArgsIsHelpError":  # its help was printed
            failures.report(failures.of_usage(error, command))
        return 2
    except TierMemError as error:
        failures.report(failures.of_error(error, command))
        return 2 if isinstance(error, ConfigError | InvalidInput) else 1
    except ImportError as error:
        failures.report(failures.of_import(error, command))
        return 1
    except OSError as error:
        drop_output()
        failures.report(failures.of_system(error))
        return 1
    except (Stopped, KeyboardInterrupt, typer.Abort) as stop:
        stopped = stop if isinstance(stop, Stopped) else Stopped(KeyboardInterrupt())
        failures.say_stopped(str(stopped), command)
        return stopped.code


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tiermem {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


Entry = tuple[str, str, str]
"""A command's name; its module in commands/ and its function or Typer; and one line about it."""

COMMANDS: dict[str, tuple[Entry, ...]] = {
    "Memory": (
        ("init", "banks:init", "Make a bank, which holds the memories of agents."),
        ("add", "memories:add", "Store a memory of an agent."),
        ("update", "memories:update", "Give a memory a new text."),
        ("history", "memories:history", "Show all that was stored under a key."),
        ("search", "memories:search", "Find memories of an agent, best first."),
        ("tell", "telling:tell", "Let an agent tell others a memory, or take it back."),
        ("believe", "telling:believe", "Set how much an agent trusts what another tells."),
        ("group", "telling:group", "Make a group of agents with a board, or show it."),
        ("show", "inspect:show", "Show the memory of an agent after a tick."),
        ("pin", "memories:pin", "Pin a memory: every search finds it first."),
        ("unpin", "memories:unpin", "Move a pinned memory to another tier."),
        ("forget", "forgetting:forget", "Delete memories, or purge them for good."),
        ("restore", "forgetting:restore", "Make deleted or archived memories active again."),
        ("tiers", "banks:tiers", "Count the memories in each tier."),
        ("status", "care:status", "Show how full a bank is, and suggest what to do."),
        ("advance", "care:advance", "Move the clock of a bank: what is due expires or fades."),
        ("compact", "care:compact", "Move memories between hot, warm and cold."),
        ("prune", "care:prune", "Archive cold memories beyond the limit."),
        ("export", "exchange:export", "Write memories as JSON Lines or Parquet."),
        ("import", "exchange:import_", "Store the memories of a file, or of a mem0 store."),
    ),
    "Notes": (("notes", "notes:notes", "List, search, print, write or index notes of an agent."),),
    "Simulations": (
        ("run", "runs:run", "Run a simulation."),
        ("resume", "runs:resume", "Continue a run, or make it longer."),
        ("merge", "runs:merge", "Copy a run whose agents are spread over workers, as one bank."),
        ("replay", "runs:replay", "Repeat a run, and compare it tick by tick."),
        ("branch", "runs:branch", "Start a new run from a tick of another run."),
        ("effect", "effect:effect", "Tell what a memory did: the run with one thing changed."),
        ("why", "why:why", "Tell why an agent did what it did in a tick."),
        ("analyse", "analyse:analyse", "Tell what spread, who told whom, what was forgotten."),
        ("inspect", "look:inspect", "Look at a run in a browser, at any tick."),
        ("diff", "inspect:diff", "Compare two runs."),
        ("report", "inspect:report", "Write the report and tables of a run anew."),
        ("sweep", "sweep:sweep", "Run variants with many seeds, and compare them."),
        ("new-world", "worlds:new_world", "Write a world of your own to begin with."),
        ("check-world", "worlds:check_world", "Find out whether a world is reproducible."),
    ),
    "Serving": (
        ("serve", "serve:serve", "Serve a bank over HTTP."),
        ("mcp", "mcp:mcp", "Serve the memory of an agent to a model, over MCP."),
        ("token", "tokens:app", "Make, list and revoke tokens."),
    ),
    "Care": (
        ("bench", "bench:bench", "Measure a tick on this machine."),
        ("doctor", "doctor:doctor", "Find what is wrong, and what to do about it."),
        ("config", "care:config", "Check settings, and print all of them."),
        ("sync", "care:sync", "Write to mem0's store what it lacks."),
        ("repair", "care:repair", "Rebuild mem0's store from the bank's journal."),
        ("reembed", "reembed:reembed", "Give a bank another embedder."),
        ("vacuum", "care:vacuum", "Free the space of purged memories."),
        ("trust", "trust:trust", "Trust a bank or a run that somebody else made."),
    ),
}


def _command(name: str) -> Any:
    """A command of the table, ready to run."""
    places = {each: place for entries in COMMANDS.values() for each, place, _ in entries}
    module, _, function = places[name].partition(":")
    found = getattr(importlib.import_module(f".commands.{module}", __package__), function)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(name, cls=HelpfulCommand)(found)
        found = alone
    command = typer.main.get_command(found)
    command.name = name
    return command


if __name__ == "__main__":
    main()
