"""What commands print: JSON in one way, and tables that show memories as they are."""

import codecs
import json
import sys
from collections.abc import Iterable
from typing import Any

import typer

from ...memory.context import one_line

"""Characters of a memory in a list."""


def say(text: str, *, err: bool = False) -> None:
    """Print one line; characters that could draw on a terminal are escaped."""
    typer.echo("\t".join(map(one_line, text.split("\t"))), err=err)


def echo_json(value: Any) -> None:
    """Print a value as JSON; characters that could draw on a terminal are escaped.

    Where standard output is not UTF-8, all characters beyond ASCII are escaped: the numbers that a
    terminal gets for characters it can't show would not be JSON.
    """
    text = json.dumps(value, indent=2, ensure_ascii=not _takes_all_characters())
    typer.echo("\n".join(map(one_line, text.split("\n"))))


def echo_exactly(parts: Iterable[bytes]) -> None:
    """Print UTF-8, whatever the encoding of the terminal."""
    sys.stdout.flush()
    binary = getattr(sys.stdout, "buffer", None)
    for part in parts:
        if binary is None:
            sys.stdout.write(part.decode())
        else:
            binary.write(part)
    sys.stdout.flush()


def table(title: str, rows: list[dict[str, Any]], as_json: bool = False) -> None:
    """A table on a terminal, lines with tabs elsewhere, JSON on request; a title may be empty."""
    if as_json:
        echo_json(rows)
        return
    title = one_line(title)
    if not rows:
        typer.echo(f"{title}: nothing")
        return
    heads = [one_line(str(key)) for key in rows[0]]
    texts = [[one_line(_text(value)) for value in row.values()] for row in rows]
    if not sys.stdout.isatty():
        for line in ([title] if title else [], heads, *texts):
            if line:
                typer.echo("\t".join(line))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Of Text, not of str: Rich would read emoji names and backslashes of a memory as its own.
    drawn = Table(title=Text(title) if title else None, title_justify="left", header_style="bold")
    console = Console()
    widths = [max(map(len, column)) for column in zip(heads, *texts, strict=True)]
    is_narrow = sum(widths) + 3 * len(widths) + 1 > console.width
    for at, (head, key) in enumerate(zip(heads, rows[0], strict=True)):
        values = [row[key] for row in rows if row.get(key) is not None]
        is_number = bool(values) and all(map(_is_number, values))
        # The words of a number's head stand below each other where memories need the place.
        parts = [*head.split(), *(line[at] for line in texts)]
        drawn.add_column(
            Text(head),
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=key in ("id", "move"),  # a user copies an id
            max_width=max(map(len, parts)) if is_number and is_narrow else None,
        )
    for line in texts:
        drawn.add_row(*map(Text, line))
    console.print(drawn)


def _takes_all_characters() -> bool:
    encoding = getattr(sys.stdout, "encoding", None)
    if encoding is None:  # a StringIO
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
