"""What the lines of a note say: front matter, headings with tiers, fences."""

import re
from collections.abc import Sequence
from itertools import takewhile
from unicodedata import category

from ..errors import InvalidInput, InvalidTier
from ..memory.tiers import Tier, parse_tier

_LINE = re.compile(r"[^\r\n]*+(?:\r\n?|\n)|[^\r\n]++")
HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t\r\n]|\Z)")
"""The beginning of a heading."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CODE = re.compile(r"`[^`]*`")
_MARKER = re.compile(r"<!--[ \t]*tier[ \t]*:([^<>]*)-->")
KEY = re.compile(r"tier[ \t]*:|[A-Za-z_][\w-]*[ \t]*:(?=[ \t\r\n]|\Z)")
"""The beginning of a line of front matter."""
TIER_KEY = re.compile(r"tier[ \t]*:(.*)")
"""A line of front matter that names the tier."""
_COMMENT = re.compile(r"(?:\A|[ \t])#.*")

BOM = "\ufeff"
"""May stand at the beginning of a file, and says nothing."""
MARKS = " #`~"
"""The first characters of lines that may be a heading or the edge of a fence."""
_INVISIBLE = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})

Sections = list[tuple[int, Tier | None]]
"""The level of each section that is open, and the tier of its lines."""


def split_lines(text: str) -> list[str]:
    r"""The lines with their ends, as an editor counts them: at \n, \r\n or \r and nowhere else.

    >>> split_lines("a\r\nb\u2028c\n")
    ['a\r\n', 'b\u2028c\n']
    """
    return _LINE.findall(text)


def front_matter(lines: Sequence[str]) -> tuple[int, Tier | None]:
    """The number of lines of the front matter, and its tier.

    A first line of dashes opens front matter only if a key follows. Else it is a ruler.
    """
    if not lines or lines[0].removeprefix(BOM).rstrip() != "---":
        return 0, None
    keys = (line for line in lines[1:] if not line.startswith("#"))
    if not KEY.match(next(keys, "")):
        return 0, None
    end = next((n for n in range(1, len(lines)) if lines[n].rstrip() == "---"), None)
    if end is None:
        head = takewhile(is_visible, lines[1:])
        if any(TIER_KEY.match(line) for line in head):
            raise InvalidInput(
                "line 1: the front matter has no end", hint="close it with a line of ---"
            )
        return 0, None
    tier = None
    for number in range(1, end):
        said = TIER_KEY.match(lines[number])
        if said and tier is not None:
            raise InvalidTier(
                f"line {number + 1}: the front matter names a second tier", hint="keep one"
            )
        if said:
            tier = _named(_COMMENT.sub("", said[1]), number + 1)
    return end + 1, tier


def _named(name: str, number: int) -> Tier:
    name = name.strip().strip("\"'")
    try:
        return parse_tier(int(name) if name in ("0", "1", "2", "3", "4") else name)
    except InvalidTier as error:
        raise InvalidTier(f"line {number}: {name!r:.80} is not a tier", hint=error.hint) from None


def opens(line: str) -> str:
    """The marks of the fence that the line opens; empty if it opens none."""
    match = _FENCE.match(line)
    if not match or (match[1][0] == "`" and "`" in line[match.end() :]):
        return ""
    return match[1]


def closes(line: str, fence: str) -> bool:
    """Whether the line closes the fence with these marks."""
    match = _FENCE.match(line)
    return bool(match and match[1].startswith(fence) and not line[match.end() :].strip())


def is_visible(text: str) -> bool:
    """Whether a text has a character that a reader sees."""
    if text[:1].isalnum():  # nearly all lines begin like this
        return True
    rest = text.lstrip()
    return bool(rest) and any(category(character) not in _INVISIBLE for character in rest)


def enter(sections: Sections, heading: re.Match[str], line: str, number: int) -> None:
    """Begin a section. Its tier is the tier that the heading names, or the outer section's."""
    level = len(heading[1])
    while sections[-1][0] >= level:
        sections.pop()
    marker = _MARKER.search(_CODE.sub("", line))
    said = _named(marker[1], number + 1) if marker else sections[-1][1]
    sections.append((level, said))
