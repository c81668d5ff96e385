"""Cuts a line that is too long for a chunk."""

import re
from collections.abc import Iterator
from unicodedata import category

from ..memory.context import TokenCounter

_LAST_WORD = re.compile(r".*\S\s+(?=\S)", re.DOTALL)
_MOST_MARKS = 32


def parts(line: str, tokens: int, limit: int, count: TokenCounter) -> Iterator[str]:
    """The line in parts of at most ``limit`` tokens. One character may have more."""
    usual = max(1, len(line) * limit // tokens)
    body = len(line.rstrip())
    position = 0
    while position < len(line):
        size = usual
        while True:
            end = _part_end(line, position, position + size, body)
            if end - position == 1 or count(line[position:end]) <= limit:
                break
            size = (end - position) // 2
        yield line[position:end]
        position = end


def _part_end(line: str, position: int, end: int, body: int) -> int:
    """The last good place for a cut up to ``end``: after a blank, or between characters."""
    if end >= len(line):
        return len(line)
    if position < body <= end:  # blanks at the end of a line make no part alone
        end = max(position + 1, body - 1)
    word = _LAST_WORD.match(line, position, end + 1)
    if word:
        return word.end()
    for place in range(end, max(position, end - _MOST_MARKS), -1):
        if not _is_joined(line[place - 1], line[place]):
            return place
    return end


def _is_joined(before: str, after: str) -> bool:
    """Whether two code points form one visible character, as accents and joined emoji do."""
    return (
        category(after).startswith("M")
        or "\u200d" in (before, after)
        or "\U0001f3fb" <= after <= "\U0001f3ff"
    )
