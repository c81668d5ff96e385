"""What a person sees of a result, in a notebook and elsewhere: a heading, lines and tables.

All text is data: characters that could draw or mark up are escaped. Long texts are cut, and so are
tables of many rows. The page around says what is light and what is dark: no colour is set.
"""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from .context import one_line
from .tiers import RETENTION_NAMES, TEMPERATURE_NAMES, TIER_NAMES, Retention
from .words import counted, cut, number

if TYPE_CHECKING:
    from .records import Hit, Memory

_MOST_ROWS = 20
_MOST_CHARACTERS = 200
"""Of a text in a table on a page."""
_MOST_COLUMNS = 64
"""Of the same on a terminal."""
_LEFT, _RIGHT = ' style="text-align: left"', ' style="text-align: right"'
_SOFT = ' style="opacity: 0.7"'


class Table(NamedTuple):
    """Rows of texts and numbers below their heads, if they have some."""

    heads: Sequence[str]
    rows: Sequence[Sequence[object]]

    def html(self) -> str:
        """The table as HTML."""
        sides = [_RIGHT if each else _LEFT for each in self._numeric()]
        lines = [
            "".join(
                f"<td{side}>{_html(value)}</td>" for side, value in zip(sides, row, strict=True)
            )
            for row in self.rows[:_MOST_ROWS]
        ]
        if any(self.heads):
            heads = zip(sides, self.heads, strict=True)
            lines.insert(0, "".join(f"<th{side}>{_html(head)}</th>" for side, head in heads))
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<table>{body}</table>" + "".join(
            f"<div{_SOFT}>{escape(line)}</div>" for line in self._more()
        )

    def text(self) -> str:
        """The table as lines."""
        numeric = self._numeric()
        rows = [[cut(_text(each), _MOST_COLUMNS) for each in row] for row in self.rows[:_MOST_ROWS]]
        every = [[*map(_text, self.heads)], *rows] if any(self.heads) else rows
        widths = [max(map(len, column)) for column in zip(*every, strict=True)]
        lines = [
            "  ".join(
                text.rjust(width) if right else text.ljust(width)
                for text, width, right in zip(row, widths, numeric, strict=True)
            ).rstrip()
            for row in every
        ]
        return "\n".join([*lines, *self._more()])

    def _more(self) -> list[str]:
        more = len(self.rows) - _MOST_ROWS
        return [f"… and {counted(more, 'more row')}"] if more > 0 else []

    def _numeric(self) -> list[bool]:
        """For each column, whether there are numbers in it and no texts."""
        columns = [[row[place] for row in self.rows] for place in range(len(self.heads))]
        return [
            any(map(_is_number, column))
            and all(_is_number(value) or value is None for value in column)
            for column in columns
        ]


class View(NamedTuple):
    """What a person sees of a result."""

    title: str
    """Empty for none."""
    parts: Sequence[Table | str] = ()
    """Tables, and lines of text between them."""

    def html(self) -> str:
        """The view as HTML for a notebook."""
        head = [f"<b>{_html(self.title)}</b>"] if self.title else []
        parts = (
            part.html() if isinstance(part, Table) else f"<div>{_html(part)}</div>"
            for part in self.parts
        )
        return f'<div class="mathjax_ignore tex2jax_ignore">{"".join([*head, *parts])}</div>'

    def text(self) -> str:
        """The view as lines."""
        parts = (part.text() if isinstance(part, Table) else one_line(part) for part in self.parts)
        return "\n".join([*([one_line(self.title)] if self.title else []), *parts])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: object) -> str:
    return one_line(value) if isinstance(value, str) else number(value)


def _html(value: object) -> str:
    text = _text(value)
    more = len(text) - _MOST_CHARACTERS
    if more <= 0:
        return escape(text)
    left = counted(more, "more character")
    return f"{escape(text[:_MOST_CHARACTERS])}… <span{_SOFT}>({left})</span>"


# Memories


def memory_line(memory: "Memory") -> str:
    """A memory in a line: its tier, its text, whose it is and since when."""
    state = "" if memory.retention is Retention.ACTIVE else f", {RETENTION_NAMES[memory.retention]}"
    text = cut(one_line(memory.content), _MOST_CHARACTERS)
    return (
        f"[{TIER_NAMES[memory.tier]}] {text} ({memory.agent_id}, tick {memory.created_tick}{state})"
    )


def memory_view(memory: "Memory") -> View:
    """A memory, with what a person asks about it."""
    rows = [
        ("agent", memory.agent_id),
        ("tier", TIER_NAMES[memory.tier]),
        ("temperature", TEMPERATURE_NAMES[memory.temperature]),
        ("kind", memory.kind),
        ("born", f"tick {memory.created_tick}"),
    ]
    if memory.retention is not Retention.ACTIVE:
        rows.append(("retention", RETENTION_NAMES[memory.retention]))
    if memory.expires_tick is not None:
        rows.append(("expires", f"tick {memory.expires_tick}"))
    if memory.tags:
        rows.append(("tags", ", ".join(memory.tags)))
    rows += [(f"metadata: {name}", str(value)) for name, value in memory.metadata.items()]
    return View("", [memory.content, Table(["", ""], [*rows, ("id", memory.id)])])


def hits_view(hits: "Sequence[Hit]", pinned_left_out: int = 0, note: str = "") -> View:
    """What a search gave."""
    rows = [
        (
            TIER_NAMES[hit.memory.tier],
            round(hit.score, 4),
            round(hit.boosted_score, 4),
            hit.memory.created_tick,
            hit.memory.content,
        )
        for hit in hits
    ]
    parts: list[Table | str] = []
    if rows:
        parts.append(Table(["tier", "score", "with boost", "tick", "memory"], rows))
    if pinned_left_out:
        parts.append(f"{counted(pinned_left_out, 'pinned memory', 'pinned memories')} had no room")
    if note:
        parts.append(note)
    return View(counted(len(rows), "hit"), parts)
