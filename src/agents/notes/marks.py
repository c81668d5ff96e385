"""What the lines before a place in a note say about the lines after it.

Whoever knows this for a line near the end of a note need not read the note to cut its last lines.
"""

from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from ..memory.context import TokenCounter
from ..memory.tiers import Tier
from .markdown import (
    BOM,
    HEADING,
    KEY,
    MARKS,
    TIER_KEY,
    closes,
    enter,
    front_matter,
    is_visible,
    opens,
    split_lines,
)


class Front(Enum):
    """Whether lines that follow may still make front matter of a note's first lines."""

    SETTLED = "settled"
    """They can't: there is none, or it has ended."""
    FIRST = "first"
    """The first line is still to come."""
    KEYS = "keys"
    """A line of dashes came, and a key may follow."""
    HEAD = "head"
    """A key came. A line of dashes would end the front matter; a tier would lack this end."""
    OPEN = "open"
    """A blank line came after the keys. A line of dashes would still end the front matter."""
    WHOLE = "whole"
    """The lines changed what the first lines are: the note must be read from its beginning."""


class Mark(NamedTuple):
    """A line of a note, and what the lines before it say about it."""

    line: int = 0
    """How many lines are before it."""
    start: int = 0
    """How many characters are before it."""
    sections: tuple[tuple[int, Tier | None], ...] = ((0, None),)
    """The level of each section that is open, and the tier of its lines."""
    fence: str = ""
    """The marks of the fence that is open; empty if none is."""
    front: Front = Front.SETTLED
    is_edge: bool = False
    """No chunk before it depends on the lines after it, and no chunk has lines of both."""


def beginning(text: str) -> Mark:
    """The mark of the first line after a note's front matter."""
    if not text.removeprefix(BOM).startswith("---"):
        return Mark()
    lines = split_lines(text)
    count, tier = front_matter(lines)
    if count:
        return Mark(count, sum(map(len, lines[:count])), ((0, tier),))
    return Mark(front=Front.FIRST)


def moved(mark: Mark, lines: Sequence[str]) -> Mark:
    """The mark after these lines, which begin at ``mark``."""
    sections, fence = list(mark.sections), mark.fence
    for number, text in enumerate(lines, mark.line):
        if not fence and number and text[0] not in MARKS:  # nearly all lines are like this
            continue
        line = (text.removeprefix(BOM) or text) if number == 0 else text
        if fence:
            fence = "" if closes(line, fence) else fence
        elif line[0] in MARKS:
            if heading := HEADING.match(line):
                enter(sections, heading, line, number)
            fence = opens(line)
    start = mark.start + sum(map(len, lines))
    front = front_after(mark.front, lines)
    return Mark(mark.line + len(lines), start, tuple(sections), fence, front)


class Ends(NamedTuple):
    """What of the last lines of a note stays as it is when the note grows, as numbers of lines."""

    edge: int = 0
    """After how many lines what follows changes no chunk before; 0 if after none."""
    firm: int = 0
    """After how many lines what follows changes nothing that stays together before; 0 likewise."""


def ends(mark: Mark, lines: Sequence[str], tokens: int, count: TokenCounter) -> Ends:
    """Where, in the lines that begin at a mark, what follows no longer matters to what is before.

    An edge is after a line that is too long for a chunk, and after more blank lines than a chunk
    could hold; but not after a heading, or a heading with fewer blank lines. A heading stays with
    what follows, and so does a fence that fits a chunk: neither is firm while nothing follows it.
    Of a row of headings, what is more than two chunks before the end is firm.
    """
    fence, edge, firm, blank, is_led = mark.fence, 0, 0, 0, False
    row = deque[tuple[int, int]]()  # lines that stay with what follows, and their tokens
    length = 0
    fenced = tokens + 1 if fence else 0
    for number, line in enumerate(lines, 1):
        if number == len(lines) and not line.endswith("\n"):  # the line may still grow
            break
        cost, is_code = count(line), bool(fence)
        line = line if number + mark.line > 1 else line.removeprefix(BOM) or line
        fence = _fence_after(line, fence)
        fenced = (fenced if is_code else 0) + cost
        if is_code or fence or is_visible(line):
            blank = 0
            is_led = not is_code and not fence and bool(HEADING.match(line))
            firm = firm if is_led or (fence and fenced <= tokens) else number
        else:
            blank += cost
            if is_led and blank > tokens:
                is_led, firm = False, number
        if is_led:
            row.append((number, cost))
            length += cost
            while length > 2 * tokens:
                firm, gone = row.popleft()
                length -= gone
        else:
            row.clear()
            length = 0
        if not is_led and max(cost, blank) > tokens:
            edge = number
    return Ends(edge, firm)


def _fence_after(line: str, fence: str) -> str:
    if fence:
        return "" if closes(line, fence) else fence
    return opens(line) if line[0] in MARKS else ""


def front_after(front: Front, lines: Sequence[str]) -> Front:
    """What is known about a note's front matter after these lines."""
    for line in lines:
        if front in (Front.SETTLED, Front.WHOLE):
            break
        if front is Front.FIRST:
            is_dashes = line.removeprefix(BOM).rstrip() == "---"
            front = Front.KEYS if is_dashes else Front.SETTLED
        elif front is Front.KEYS and not line.startswith("#"):
            front = Front.HEAD if KEY.match(line) else Front.SETTLED
            front = Front.WHOLE if front is Front.HEAD and TIER_KEY.match(line) else front
        elif front is not Front.KEYS:
            changes = line.rstrip() == "---" or (front is Front.HEAD and TIER_KEY.match(line))
            is_end = front is Front.HEAD and not is_visible(line)
            front = Front.WHOLE if changes else Front.OPEN if is_end else front
    return front
