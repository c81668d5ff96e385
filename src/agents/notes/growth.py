"""Which chunks of a note change when text is appended: those at its end.

A note may have a mebibyte, and an agent may append a line in every tick. To cut the whole note each
time, or only to look through it, would cost a thousand times what the line costs.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ..errors import TierMemError
from ..memory.context import TokenCounter
from .chunks import Chunk, cut_on
from .markdown import split_lines
from .marks import Front, Mark, beginning, ends, front_after, moved

Place = tuple[int, int, int]
"""A chunk's memory, first line and last line."""

_BACK = 8
"""Chunks that are cut anew."""
_AHEAD = 2
"""Where a chunk ends depends on at most as many of the chunks after the next one."""


class Growth(NamedTuple):
    """How the chunks of a note change when it grows."""

    kept: int
    """How many chunks stay as they are, from the beginning on."""
    old: list[Chunk]
    """The other chunks of the text before."""
    new: list[Chunk]
    """The chunks that take their place."""
    mark: Mark | None = None
    """Where the cut began. It is as good for the text before as for the new text."""


def growth(
    before: str,
    places: Sequence[Place],
    mark: Mark | None,
    text: str,
    tokens: int,
    overlap: int,
    count: TokenCounter,
) -> Growth | None:
    """How a note's chunks change from one text to a longer one; None if all must be cut anew.

    ``mark`` is that of the growth that made the text before, or the beginning if it was cut as a
    whole, with the same settings. Without it, the text before is looked through once. Lines that no
    note may have raise an error with their number.
    """
    if not text.startswith(before):
        return None
    try:
        mark = _next(mark, before, places, tokens, count)
        kept = 0 if mark is None else _kept(mark, places)
        if mark is None:
            return None
        new = 0 if mark.is_edge else places[kept - 1][2] - mark.line
        old = cut_on(split_lines(before[mark.start :]), new, mark, tokens, overlap, count)
    except TierMemError:  # an earlier version took the text before
        return None
    lines = split_lines(text[mark.start :])
    if front_after(mark.front, lines) is Front.WHOLE:
        return None
    now = cut_on(lines, new, mark, tokens, overlap, count)
    if [each[1:3] for each in old] != [each[1:] for each in places[kept:]]:
        return None  # other settings cut the note then
    if not mark.is_edge and old[0] != now[0]:
        return None
    return Growth(kept, old, now, mark)


def _next(
    known: Mark | None, text: str, places: Sequence[Place], tokens: int, count: TokenCounter
) -> Mark | None:
    """The last mark of a text at which its end can be cut; None if there is none."""
    mark = beginning(text) if known is None else known
    first = max(0, len(places) - _BACK)
    while first and places[first][1] == places[first - 1][1]:  # parts of one long line
        first -= 1
    ahead = places[first][1] - 1 - mark.line if first else 0
    if ahead < 0 and not mark.is_edge:
        return None
    lines = split_lines(text[mark.start :])
    if ahead > 0:
        mark, lines = moved(mark, lines[:ahead]), lines[ahead:]
    edge, firm = ends(mark, lines, tokens, count)
    if edge and known is not None:  # else nothing shows that the same settings cut the note
        return moved(mark, lines[:edge])._replace(is_edge=True)
    is_firm = first and mark.line + firm > places[first + _AHEAD][2]
    return mark if mark.is_edge or is_firm else None


def _kept(mark: Mark, places: Sequence[Place]) -> int:
    """How many chunks begin before a mark."""
    kept = len(places)
    while kept and places[kept - 1][1] > mark.line:
        kept -= 1
    return kept
