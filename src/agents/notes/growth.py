"""Which chunks of a note change when text is appended: those at its end.

A note may have a mebibyte, and an agent may append a line in every tick. To cut the whole note each
time would cost a thousand times what the line costs.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..errors import TierMemError
from ..memory.context import TokenCounter
from .chunks import Chunk, cut_on, sections_before, split_lines

__all__ = ["Growth", "growth"]

Place = tuple[int, int, int]
"""A chunk's memory, first line and last line."""

_BACK = 8
"""Chunks that are cut anew: where a chunk ends depends on at most a few chunks after it."""
_MOST_LINES = 8000
# Front matter, a fence or another kind of line end: what is appended may change what is before it.
_CUT_WHOLE = re.compile(r"\A---|\ufeff|\r|^ {0,3}(?:```|~~~)", re.MULTILINE)


class Growth(NamedTuple):
    """How the chunks of a note change when it grows."""

    kept: int
    """How many chunks stay as they are, from the beginning on."""
    old: list[Chunk]
    """The other chunks of the text before."""
    new: list[Chunk]
    """The chunks that take their place."""


def growth(
    before: str,
    places: Sequence[Place],
    text: str,
    tokens: int,
    overlap: int,
    count: TokenCounter,
) -> Growth | None:
    """How a note's chunks change from one text to a longer one; None if all must be cut anew."""
    kept = len(places) - _BACK
    while kept > 0 and places[kept][1] == places[kept - 1][1]:  # parts of one long line
        kept -= 1
    if kept < 1 or not before.endswith("\n") or not text.startswith(before):
        return None
    first, new = places[kept][1] - 1, places[kept - 1][2] - places[kept][1] + 1
    start = _start_of_last(before, before.count("\n") - first)
    if start is None or _CUT_WHOLE.search(text):
        return None
    try:
        sections = sections_before(text, start)
        old, now = (
            _numbered(
                cut_on(split_lines(each[start:]), new, sections, tokens, overlap, count), first
            )
            for each in (before, text)
        )
    except TierMemError:  # to cut all says in which line it is
        return None
    if [each[1:3] for each in old] != [each[1:] for each in places[kept:]] or old[0] != now[0]:
        return None  # other settings cut the note then
    return Growth(kept, old, now)


def _start_of_last(text: str, lines: int) -> int | None:
    """Where the last lines of a text begin; None if they are very many."""
    if lines > _MOST_LINES:
        return None
    start = len(text)
    for _ in range(lines):
        start = text.rfind("\n", 0, start - 1) + 1
    return start


def _numbered(chunks: list[Chunk], lines: int) -> list[Chunk]:
    """The chunks of a text that has so many lines before it."""
    return [each._replace(first=each.first + lines, last=each.last + lines) for each in chunks]
