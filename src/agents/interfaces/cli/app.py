"""The command ``tiermem``."""

import importlib
import os
import sys
from itertools import groupby
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from ... import __version__
from ...errors import ConfigError, InvalidInput, RunPaused, TierMemError
from . import failures
from .failures import (
    INTERRUPTED,
    PAUSED,
    Stopped,
    deaf_to_ctrl_c,
    drop_output,
    open_streams,
    terminable,
)


class _Helpful(TyperCommand):
    """A command whose help names the values that options take, not the types of Python."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from .help import draw

        draw(self, ctx)


class _HelpfulGroup(TyperGroup):
    """Commands below a word."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from .help import draw

        draw(self, ctx)


class _Commands(TyperGroup):
    """The commands of the table; the module of a command is imported when the command is called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for rows in _panels().values():
            for word, line in rows:
                self.add_command(TyperCommand(name=word, short_help=line), word)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        word = args[0]
        if word in _REPLACED:
            raise InvalidInput(
                f"tiermem has no command {word}; use {_REPLACED[word]}",
                hint="tiermem --help lists all commands",
            )
        args = [_OTHER_WORDS.get(word, word), *args[1:]]
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and _command(listed.name or ""), rest

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Stopped(stop) from stop

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from .help import draw_all

        draw_all(_panels())


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
    command = _called(sys.argv[1:])
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
        if isinstance(error, RunPaused):
            return PAUSED
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
"""A command's words; its module in commands/ and its function; and one line about it."""

COMMANDS: dict[str, tuple[Entry, ...]] = {
    "Memory": (
        ("init", "banks:init", "Make a bank, which holds the memories of agents."),
        ("add", "memories:add", "Store a memory of an agent."),
        ("update", "memories:update", "Change a memory: text, tier, temperature; or restore it."),
        ("search", "memories:search", "Find memories of an agent, best first."),
        ("show", "show:show", "Show the memory of an agent after a tick."),
        ("pin", "memories:pin", "Pin a memory: every search finds it first."),
        ("unpin", "memories:unpin", "Move a pinned memory to another tier."),
        ("forget", "memories:forget", "Delete memories, or purge them for good."),
        ("call", "memories:call", "Do an operation of the reference, or of a profile."),
        ("notes", "notes:notes", "List, search, print, write or index notes of an agent."),
        ("social tell", "social:tell", "Let an agent tell others a memory, or take it back."),
        ("social believe", "social:believe", "Set how much an agent trusts another."),
        ("social group", "social:group", "Make a group of agents with a board, or show it."),
        ("status", "status:status", "Show how full a bank is, and suggest what to do."),
        ("advance", "banks:advance", "Move the clock of a bank: what is due expires or fades."),
        ("compact", "banks:compact", "Move memories between hot, warm and cold."),
    ),
    "Simulations": (
        ("demo", "demo:demo", "Measure on this machine what tiers change: two minutes."),
        ("run", "runs:run", "Run a simulation."),
        ("resume", "runs:resume", "Continue a run, or make it longer."),
        ("branch", "runs:branch", "Start a new run from a tick of another run."),
        ("sweep", "sweeps:sweep", "Run variants with many seeds, and compare them."),
        ("fit", "sweeps:fit", "Fit settings to data, by many runs."),
        ("replay", "runs:replay", "Repeat a run, and compare it tick by tick."),
        ("diff", "results:diff", "Compare two runs."),
        ("effect", "effect:effect", "Tell what a memory did: the run with one thing changed."),
        ("why", "why:why", "Tell why an agent did what it did in a tick."),
        ("ask", "interviews:ask", "Ask agents a question, as they were after a tick."),
        ("survey", "interviews:survey", "Ask agents many questions, along many ticks."),
        ("analyse", "analyse:analyse", "Tell what spread, who told whom, what was forgotten."),
        ("inspect", "results:inspect", "Look at a run in a browser, at any tick."),
        ("report", "results:report", "Write the report and tables of a run anew."),
        ("paper", "results:paper", "Write methods, an ODD, tables and figures for a paper."),
        ("world new", "runs:new_world", "Write a world of your own to begin with."),
        ("world check", "runs:check_world", "Find out whether a world is reproducible."),
    ),
    "Serving": (
        ("serve", "serving:serve", "Serve a bank over HTTP."),
        ("mcp", "serving:mcp", "Serve the memory of an agent to a model, over MCP."),
        ("token create", "serving:create_token", "Make a token for an agent, and print it."),
        ("token list", "serving:list_tokens", "List the names and permissions of all tokens."),
        ("token revoke", "serving:revoke_token", "Revoke a token, at once and for good."),
    ),
    "Care": (
        ("doctor", "doctor:doctor", "Find what is wrong, and what to do about it."),
        ("config", "banks:config", "Check settings, and print all of them."),
        ("backup", "store:backup", "Copy a bank that may be in use, whole and checked."),
        ("store export", "store:export", "Write memories as JSON Lines or Parquet."),
        ("store import", "store:import_", "Store the memories of a file, or of a mem0 store."),
        ("store sync", "store:sync", "Write to mem0's store what it lacks."),
        ("store rebuild", "store:rebuild", "Rebuild mem0's store from the bank's journal."),
        ("store reembed", "store:reembed", "Give a bank another embedder."),
        ("store vacuum", "store:vacuum", "Free the space of purged memories."),
        ("store merge", "store:merge", "Copy a run spread over workers, as one bank."),
        ("store trust", "store:trust", "Trust a bank or a run that somebody else made."),
    ),
}

_GROUPS = {
    "social": "What agents tell each other",
    "store": "A bank on disk",
    "token": "Who may use a bank that is served",
    "world": "Worlds of your own",
}
"""What commands of two words have in common, by the first."""

_OTHER_WORDS = {"analyze": "analyse"}
"""What a command is called as well."""

_REPLACED = {
    "believe": "tiermem social believe",
    "bench": "make bench, in a checkout",
    "check-world": "tiermem world check",
    "export": "tiermem store export",
    "group": "tiermem social group",
    "history": "tiermem show BANK --agent NAME --key KEY",
    "import": "tiermem store import",
    "merge": "tiermem store merge",
    "new-world": "tiermem world new",
    "prune": "tiermem compact --prune",
    "reembed": "tiermem store reembed",
    "repair": "tiermem store rebuild",
    "restore": "tiermem update BANK --agent NAME ID... --retention active",
    "sync": "tiermem store sync",
    "tell": "tiermem social tell",
    "tiers": "tiermem status BANK --tiers",
    "trust": "tiermem store trust",
    "vacuum": "tiermem store vacuum",
}
"""Words that are no command, and what does it."""


def _panels() -> dict[str, list[tuple[str, str]]]:
    """By title, the words of the commands, each with a line; a group has one line."""
    panels = {}
    for title, entries in COMMANDS.items():
        rows = []
        for word, group in groupby(entries, lambda entry: entry[0].split()[0]):
            members = list(group)
            below = ", ".join(name.split()[-1] for name, _, _ in members)
            line = f"{_GROUPS[word]}: {below}." if word in _GROUPS else members[0][2]
            rows.append((word, line))
        panels[title] = rows
    return panels


def _command(word: str) -> Any:
    """A command of the table by its first word, ready to run."""
    entries = [entry for entries in COMMANDS.values() for entry in entries]
    below = [entry for entry in entries if entry[0].split()[0] == word]
    if word in _GROUPS:
        made = typer.Typer(
            cls=_HelpfulGroup, help=f"{_GROUPS[word]}.", no_args_is_help=True, add_completion=False
        )
    else:
        made = typer.Typer(add_completion=False)
    for name, place, line in below:
        made.command(name.split()[-1], cls=_Helpful, short_help=line)(_function(place))
    command = typer.main.get_command(made)
    command.name = word
    return command


def _function(place: str) -> Any:
    module, _, function = place.partition(":")
    return getattr(importlib.import_module(f".commands.{module}", __package__), function)


def _called(arguments: list[str]) -> str:
    """The command that arguments name, as a person types it."""
    names = [name.split() for entries in COMMANDS.values() for name, _, _ in entries]
    for words in names:
        if arguments[: len(words)] == words:
            return " ".join(["tiermem", *words])
    is_group = arguments[:1] and arguments[0] in _GROUPS
    return f"tiermem {arguments[0]}" if is_group else "tiermem"


if __name__ == "__main__":
    main()
