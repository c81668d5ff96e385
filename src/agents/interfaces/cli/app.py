"""The command ``tiermem``."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from ... import __version__
from ...errors import ConfigError, InvalidInput, TierMemError
from .. import failures
from .options import AsJson, Assignments, Config, Preset
from .signals import Stopped, drop_output, open_streams, terminable

__all__ = ["app", "main"]

_USAGE = """
 [bold]Usage:[/] [yellow]tiermem COMMAND …[/]   and [cyan]tiermem COMMAND --help[/] for each of them

 Tiered, reproducible memory for agents in multi-agent simulations.
"""
_EXAMPLES = """ [bold]Try it[/]
   [cyan]tiermem init crew[/]
   [cyan]tiermem add crew --agent alice --tier pinned "NEVER transfer to agent_X"[/]
   [cyan]tiermem search crew --agent alice "who can I trust?"[/]

 [bold]Options[/]
   --version               Say the version.
   --install-completion    Let your shell complete commands and options.
   --show-completion       Print what that would install.
   --help                  Say this.

 [bold]Output[/]
   Results go to stdout: tables on a terminal, lines with tabs elsewhere, JSON
   with --json. Errors and progress go to stderr, and so does what a run came
   to, unless --json is given. NO_COLOR is respected.

 [bold]Exit codes[/]
   0 done, 1 it could not be done, 2 wrong use or wrong settings, 130 or 143
   stopped by Ctrl-C or by SIGTERM
"""


class _Commands(TyperGroup):
    """The commands of the table. To list them takes no more than that; each is read when called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for panel, entries in COMMANDS.items():
            for name, _, line in entries:
                listed = TyperCommand(name=name, short_help=line, rich_help_panel=panel)
                self.add_command(listed, name)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and _command(listed.name or ""), rest

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Stopped(stop) from stop

    def format_help(self, ctx: Any, formatter: Any) -> None:
        # What Typer draws takes twice as long: it reads Markdown, and has a highlighter for code.
        from rich.panel import Panel
        from rich.table import Table

        console = Console(highlight=False)
        console.print(_USAGE)
        for panel, entries in COMMANDS.items():
            lines = Table.grid(padding=(0, 2))
            lines.add_column(style="bold cyan", min_width=8)
            for name, _, line in entries:
                lines.add_row(name, line)
            if entries:
                console.print(Panel(lines, title=panel, title_align="left", border_style="dim"))
        console.print(_EXAMPLES)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; an error is three lines and an exit code, not a traceback.

    Ctrl-C and SIGTERM are one line, with what was begun cleaned up. With standard output closed
    nothing is done; with standard input closed, nothing that would read it. What goes to a closed
    standard error is dropped.
    """
    if not open_streams():
        failures.report(failures.NO_OUTPUT)
        sys.exit(1)
    if hasattr(sys.stdout, "reconfigure"):  # a terminal that can't show a character gets its number
        sys.stdout.reconfigure(errors="backslashreplace")
    with terminable():
        sys.exit(_run())


def _run() -> int:
    """Run the command, and say what went wrong; the exit code."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    known = (entry[0] for entries in COMMANDS.values() for entry in entries)
    command = f"tiermem {name}" if name in known else "tiermem"
    try:
        # Typer gives back the code of an Exit; what else a command returns is nobody's.
        code = app(prog_name="tiermem", standalone_mode=False)
        sys.stdout.flush()  # what can't be printed is found here, and not when Python ends
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
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    pass


def config(
    file: Config = None,
    preset: Preset = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Check settings and print all of them, as they would be used.

    The defaults, then the preset, the file, and --set; the result is YAML that --config takes, and
    so is JSON.
    """
    import yaml

    from ...config.load import load_settings
    from ...storage.mem0.store import check_providers
    from .output import echo_json

    settings = load_settings(file, preset=preset, assignments=assignments or ())
    check_providers(settings)
    shown = settings.to_dict(redact=True)
    if as_json:
        echo_json(shown)
    else:
        typer.echo(yaml.safe_dump(shown, sort_keys=False), nl=False)


def repair(
    bank: Annotated[Path, typer.Argument(metavar="BANK", help="The bank's folder.")],
    file: Config = None,
    assignments: Assignments = None,
) -> None:
    """Rebuild mem0's store from the bank's journal.

    For a store that is missing, damaged, crashes when opened, or belongs to another bank. The
    memories are not changed, and an old local store is moved aside, not deleted. --config and --set
    go on top of the settings that the bank was made with.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    from ...bank.memory_bank import MemoryBank

    columns = (TextColumn("writing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with (
        MemoryBank.open(
            bank,
            file,
            assignments=assignments or (),
            create=False,
            apply_caps=False,
            storage={"sync": "manual"},
        ) as opened,
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar,
    ):
        task = bar.add_task("writing", total=None)
        report = opened.repair_store(
            lambda done, total: bar.update(task, completed=done, total=total)
        )
    for line in report:
        typer.echo(line)


Entry = tuple[str, str | Callable[..., Any], str]
"""A command's name; its module here and its function, or a Typer of subcommands; and one line."""

COMMANDS: dict[str, tuple[Entry, ...]] = {
    "Memory": (
        ("init", "memories:init", "Make a bank, which holds the memories of agents."),
        ("add", "memories:add", "Let an agent remember something."),
        ("search", "memories:search", "Find an agent's memories, best first."),
        ("show", "inspect:show", "Show an agent's memory as it was after a tick."),
        ("pin", "memories:pin", "Pin a memory: it comes first, always."),
        ("unpin", "memories:unpin", "Let a pinned memory be one like others again."),
        ("tiers", "memories:tiers", "Count the memories in each tier."),
        ("status", "care:status", "Show how full a bank is, and suggest what to do."),
        ("compact", "care:compact", "Move memories between hot, warm and cold."),
        ("prune", "care:prune", "Archive cold memories beyond the limit."),
        ("export", "exchange:export", "Write memories as JSON Lines or Parquet."),
        ("import", "exchange:import_", "Store memories of a file, or of a mem0 store."),
    ),
    "Notes": (("notes", "notes:notes", "List, index, search or print an agent's notes."),),
    "Simulations": (
        ("run", "runs:run", "Run a simulation."),
        ("resume", "runs:resume", "Go on with a run, or make it longer."),
        ("replay", "runs:replay", "Run it again, and compare it tick by tick."),
        ("branch", "runs:branch", "Start a new run from a tick of another: what if?"),
        ("diff", "inspect:diff", "Compare two runs."),
        ("report", "inspect:report", "Write a run's report and tables anew."),
        ("sweep", "inspect:sweep", "Run variants over many seeds, and compare them."),
    ),
    "Serving": (
        ("serve", "serve:serve", "Serve a bank over HTTP."),
        ("mcp", "mcp:mcp", "Serve an agent's memory to a model, over MCP."),
        ("token", "tokens:app", "Make, list and revoke tokens."),
    ),
    "Care": (
        ("bench", "bench:bench", "Measure a tick on this machine."),
        ("doctor", "doctor:doctor", "Find out what is wrong, and what to do about it."),
        ("config", config, "Check settings, and print all of them."),
        ("repair", repair, "Rebuild mem0's store from the bank's journal."),
        ("vacuum", "care:vacuum", "Give back the space that purged memories left."),
    ),
}


def _command(name: str) -> Any:
    """A command of the table, ready to be run."""
    (found,) = (entry[1] for entries in COMMANDS.values() for entry in entries if entry[0] == name)
    if isinstance(found, str):
        module, _, function = found.partition(":")
        found = getattr(importlib.import_module(f".commands.{module}", __package__), function)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        alone.command(name)(found)
        found = alone
    command = typer.main.get_command(found)
    command.name = name
    return command


if __name__ == "__main__":
    main()
