"""The help of commands, drawn in one way for all of them, whatever the version of Typer.

It is imported when help is wanted: most commands print plain lines.
"""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from .failures import usage

_WIDEST = 100
"""Columns of the widest help."""

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
   0 done, 1 it could not be done, 2 wrong use or wrong settings, 3 a run is
   paused and can go on later, 130 or 143 stopped by Ctrl-C or by SIGTERM
"""


def draw_all(panels: Mapping[str, Iterable[tuple[str, str]]]) -> None:
    """Print all commands, each with a line about it, in panels with titles."""
    console = _narrow_console()
    console.print(_USAGE)
    for title, rows in panels.items():
        console.print(_panel(title, rows))
    console.print(_EXAMPLES)


def _narrow_console() -> Console:
    """Standard output, with lines that are easy to read."""
    console = Console(highlight=False)
    console.width = min(console.width, _WIDEST)
    return console


def _panel(title: str, rows: Iterable[tuple[RenderableType, ...]]) -> Panel:
    """Rows in a frame: names in the first column, and what they mean in the last."""
    lines = Table.grid(padding=(0, 2))
    lines.add_column(style="bold cyan", min_width=8, no_wrap=True)
    for row in rows:
        lines.add_row(*row)
    return Panel(lines, title=title, title_align="left", border_style="dim")


def draw(command: Any, ctx: Any) -> None:
    """Print the help of a command."""
    console = _narrow_console()
    below = [command.get_command(ctx, name) for name in getattr(command, "commands", ())]
    form = (f"{ctx.command_path} {'COMMAND …' if below else usage(ctx)}", "yellow")
    console.print(Padding(Text.assemble(("Usage:", "bold"), " ", form), 1))
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        console.print(Padding(_text(paragraph), (0, 1, 1, 1)))
    shown = [each for each in command.get_params(ctx) if not getattr(each, "hidden", False)]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    options = [each for each in shown if each.param_type_name == "option"]
    if below:
        lines = [(each.name, _text(each.short_help)) for each in below]
        console.print(_panel("Commands", lines))
    if arguments:
        rows = [(each.metavar, meaning(each, "")) for each in arguments]
        console.print(_panel("Arguments", rows))
    named = [
        (", ".join(each.opts), Text(value(each), "yellow"), meaning(each, " (required)"))
        for each in options
    ]
    console.print(_panel("Options", named))


def value(option: Any) -> str:
    """The name of an option's value: the last word of the option, unless it has a name."""
    return "" if option.is_flag else option.metavar or option.opts[0].split("-")[-1].upper()


def meaning(parameter: Any, required: str) -> Text:
    """What a parameter is for, and what it is if it is left out."""
    text = _text("Print this help." if parameter.name == "help" else parameter.help)
    if parameter.required:
        text.append(required, "red")
    elif parameter.default is not None and not isinstance(parameter.default, bool):
        text.append(f" (default: {parameter.default})", "dim")
    return text


def _text(markdown: str) -> Text:
    """A paragraph in one line; what stands between backticks is code."""
    parts = " ".join(markdown.split()).split("`")
    return Text.assemble(*((part, "cyan" if n % 2 else "") for n, part in enumerate(parts)))
