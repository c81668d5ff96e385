"""What commands print: JSON in one way, and tables that show memories as they are."""

import codecs
import json
import sys
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["echo_json", "table"]


def echo_json(value: Any) -> None:
    """Print a value as JSON; what could draw on a terminal is escaped, as JSON can.

    Where standard output is not UTF-8, all that is not ASCII is escaped: the numbers that a
    terminal gets for characters it can't show would not be JSON.
    """
    from ...memory.context import one_line

    text = json.dumps(value, indent=2, ensure_ascii=not _takes_all_characters())
    typer.echo("\n".join(map(one_line, text.split("\n"))))


def table(title: str, rows: list[dict[str, Any]], as_json: bool) -> None:
    """A table on a terminal, lines with tabs elsewhere, JSON if wanted."""
    from ...memory.context import one_line

    if as_json:
        echo_json(rows)
        return
    title = one_line(title)
    if not rows:
        typer.echo(f"{title}: nothing")
        return
    texts = [[one_line(_text(value)) for value in row.values()] for row in rows]
    if not sys.stdout.isatty():
        typer.echo(title)
        for line in ([str(key) for key in rows[0]], *texts):
            typer.echo("\t".join(line))
        return
    # Of Text, not of str: Rich would read emoji names and backslashes of a memory as its own.
    drawn = Table(title=Text(title), title_justify="left", header_style="bold")
    for key, value in rows[0].items():
        drawn.add_column(
            Text(str(key)),
            justify="right" if _is_number(value) else "left",
            overflow="fold",
            no_wrap=key == "id",  # it is there to be copied
        )
    for line in texts:
        drawn.add_row(*map(Text, line))
    Console().print(drawn)


def _takes_all_characters() -> bool:
    encoding = getattr(sys.stdout, "encoding", None)
    if encoding is None:  # text goes to text
        return True
    try:
        return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")
    except LookupError:
        return False


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
