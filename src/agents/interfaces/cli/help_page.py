"""The page that the help of a command draws."""

import inspect
from collections.abc import Iterable
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ..failures import usage

_WIDEST = 100
"""Columns of the widest help."""


def narrow_console() -> Console:
    """Standard output, with lines that are easy to read."""
    console = Console(highlight=False)
    console.width = min(console.width, _WIDEST)
    return console


def panel(title: str, rows: Iterable[tuple[RenderableType, ...]]) -> Panel:
    """Rows in a frame: names in the first column, and what they mean in the last."""
    lines = Table.grid(padding=(0, 2))
    lines.add_column(style="bold cyan", min_width=8, no_wrap=True)
    for row in rows:
        lines.add_row(*row)
    return Panel(lines, title=title, title_align="left", border_style="dim")


def draw(command: Any, ctx: Any) -> None:
    """Print the help of a command."""
    console = narrow_console()
    form = (f"{ctx.command_path} {usage(ctx)}", "yellow")
    console.print(Padding(Text.assemble(("Usage:", "bold"), " ", form), 1))
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        console.print(Padding(_text(paragraph), (0, 1, 1, 1)))
    shown = [each for each in command.get_params(ctx) if not getattr(each, "hidden", False)]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    options = [each for each in shown if each.param_type_name == "option"]
    below = [command.get_command(ctx, name) for name in getattr(command, "commands", ())]
    if arguments:
        rows = [(each.metavar, _meaning(each, "")) for each in arguments]
        console.print(panel("Arguments", rows))
    named = [
        (", ".join(each.opts), Text(_value(each), "yellow"), _meaning(each, " (required)"))
        for each in options
    ]
    console.print(panel("Options", named))
    if below:
        first = [(each.name, _text(each.help.split("\n\n")[0])) for each in below]
        console.print(panel("Commands", first))


def _value(option: Any) -> str:
    """The name of an option's value: the last word of the option, unless it has a name."""
    return "" if option.is_flag else option.metavar or option.opts[0].split("-")[-1].upper()


def _meaning(parameter: Any, required: str) -> Text:
    """What a parameter is for, and what it is if it is left out."""
    text = _text(parameter.help)
    if parameter.required:
        text.append(required, "red")
    elif parameter.default is not None and not isinstance(parameter.default, bool):
        text.append(f" (default: {parameter.default})", "dim")
    return text


def _text(markdown: str) -> Text:
    """A paragraph in one line; what stands between backticks is code."""
    parts = " ".join(markdown.split()).split("`")
    return Text.assemble(*((part, "cyan" if n % 2 else "") for n, part in enumerate(parts)))
