"""The help of a command, drawn in one way for all of them, whatever the version of Typer.

What draws it is imported when help is wanted: most commands print plain lines.
"""

from typing import Any

from typer.core import TyperCommand, TyperGroup


class HelpfulCommand(TyperCommand):
    """A command whose help names the values that options take, not the types of Python."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from .help_page import draw

        draw(self, ctx)


class HelpfulGroup(TyperGroup):
    """Commands below a command."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from .help_page import draw

        draw(self, ctx)
