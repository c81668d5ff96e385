"""What the lines of a note say (front matter, headings with tiers, fences), and its chunks."""

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import takewhile
from typing import NamedTuple
from unicodedata import category

from ..errors import InvalidInput, InvalidTier
from ..memory.context import TokenCounter, approximate_tokens
from ..memory.tiers import Tier, parse_tier

_LINE = re.compile(r"[^\r\n]*+(?:\r\n?|\n)|[^\r\n]++")
_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t\r\n]|\Z)")
"""The beginning of a heading."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CODE = re.compile(r"`[^`]*`")
_MARKER = re.compile(r"<!--[ \t]*tier[ \t]*:([^<>]*)-->")
_KEY = re.compile(r"tier[ \t]*:|[A-Za-z_][\w-]*[ \t]*:(?=[ \t\r\n]|\Z)")
"""The beginning of a line of front matter."""
_TIER_KEY = re.compile(r"tier[ \t]*:(.*)")
"""A line of front matter that names the tier."""
_COMMENT = re.compile(r"(?:\A|[ \t])#.*")

_BOM = "\ufeff"
"""May stand at the beginning of a file, and says nothing."""
_MARKS = " #`~"
"""The first characters of lines that may be a heading or the edge of a fence."""
_INVISIBLE = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})

_Sections = list[tuple[int, Tier | None]]
"""The level of each section that is open, and the tier of its lines."""
_LAST_WORD = re.compile(r".*\S\s+(?=\S)", re.DOTALL)
_MOST_MARKS = 32


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
    if not lines or lines[0].removeprefix(_BOM).rstrip() != "---":
        return 0, None
    keys = (line for line in lines[1:] if not line.startswith("#"))
    if not _KEY.match(next(keys, "")):
        return 0, None
    end = next((n for n in range(1, len(lines)) if lines[n].rstrip() == "---"), None)
    if end is None:
        head = takewhile(is_visible, lines[1:])
        if any(_TIER_KEY.match(line) for line in head):
            raise InvalidInput(
                "line 1: the front matter has no end", hint="close it with a line of ---"
            )
        return 0, None
    tier = None
    for number in range(1, end):
        said = _TIER_KEY.match(lines[number])
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


def _opens(line: str) -> str:
    """The marks of the fence that the line opens; empty if it opens none."""
    match = _FENCE.match(line)
    if not match or (match[1][0] == "`" and "`" in line[match.end() :]):
        return ""
    return match[1]


def _closes(line: str, fence: str) -> bool:
    """Whether the line closes the fence with these marks."""
    match = _FENCE.match(line)
    return bool(match and match[1].startswith(fence) and not line[match.end() :].strip())


def is_visible(text: str) -> bool:
    """Whether a text has a character that a reader sees."""
    if text[:1].isalnum():  # nearly all lines begin like this
        return True
    rest = text.lstrip()
    return bool(rest) and any(category(character) not in _INVISIBLE for character in rest)


def _enter(sections: _Sections, heading: re.Match[str], line: str, number: int) -> None:
    """Begin a section. Its tier is the tier that the heading names, or the outer section's."""
    level = len(heading[1])
    while sections[-1][0] >= level:
        sections.pop()
    marker = _MARKER.search(_CODE.sub("", line))
    said = _named(marker[1], number + 1) if marker else sections[-1][1]
    sections.append((level, said))


# Chunks


class Chunk(NamedTuple):
    """Consecutive lines of a note, or a part of one line that is too long for a chunk."""

    text: str
    first: int
    """The number of its first line, from 1."""
    last: int
    """The number of its last line."""
    tier: Tier | None
    """The tier that the note names for these lines; None if it names none."""


def cut(
    text: str, tokens: int = 400, overlap: int = 80, count: TokenCounter = approximate_tokens
) -> list[Chunk]:
    """The chunks of a note, in order, of at most ``tokens`` tokens each. No visible line is lost.

    A chunk ends before a heading if it can, else at a blank line or the edge of a fence, else
    inside a paragraph. It has one tier. A heading stays with its text, and a fence stays whole, if
    they fit. Within a section, a chunk repeats whole lines from the end of the chunk before: up to
    ``overlap`` tokens, and up to half a chunk. A line over ``tokens`` is cut into parts.

    A tier is named by ``tier: NAME`` in the front matter, or by ``<!-- tier: NAME -->`` in a
    heading for its section. A wrong name, and front matter without an end, raise an error with the
    number of the line. The tokens of a chunk are the sum of the tokens of its lines.
    """
    if tokens < 1 or overlap < 0:
        raise InvalidInput(
            f"a chunk has at least 1 token and an overlap at least 0; got {tokens} and {overlap}"
        )
    lines = split_lines(text)
    start, tier = front_matter(lines)
    blocks = _with_headings(_blocks(lines, start, tier, count, tokens), tokens)
    return [
        chunk
        for begin, end in _spans(blocks, tokens, min(overlap, tokens // 2))
        for chunk in _chunks(lines, blocks[begin:end], tokens, count)
    ]


# What stays together


_JOINED = 2
"""How many blocks are made of a row of headings and what follows it."""


class _Edge(IntEnum):
    """How good a cut before a block is."""

    INSIDE = 0
    SOFT = 1
    HEADING = 2


class _Block(NamedTuple):
    first: int
    end: int
    tokens: int
    tier: Tier | None
    edge: _Edge
    blank: bool


def _blocks(
    lines: Sequence[str], start: int, tier: Tier | None, count: TokenCounter, limit: int
) -> list[_Block]:
    """The lines from ``start`` on as blocks: each fence that fits, and each other line."""
    sections: _Sections = [(0, tier)]
    fence = ""
    blocks: list[_Block] = []
    make, edges = tuple.__new__, (_Edge.INSIDE, _Edge.SOFT)  # make: _Block(…) at half its cost
    fenced, soft = list[_Block](), True
    for number in range(start, len(lines)):
        text = lines[number]
        cost = count(text)
        if cost < 0:
            raise InvalidInput(f"the token counter gave {cost} for a line; it is 0 or more")
        if not fence and number and text[0] not in _MARKS:  # nearly all lines are like this
            blank = not (text[0].isalnum() or is_visible(text))
            edge = edges[soft or blank]
            blocks.append(make(_Block, (number, number + 1, cost, sections[-1][1], edge, blank)))
            soft = blank
            continue
        line = (text.removeprefix(_BOM) or text) if number == 0 else text
        was_inside, heading = bool(fence), None
        if was_inside:
            fence = "" if _closes(line, fence) else fence
        elif line[0] in _MARKS:
            heading, fence = _HEADING.match(line), _opens(line)
        if heading:
            _enter(sections, heading, line, number)
        blank = not is_visible(line)
        edge = _Edge.HEADING if heading else edges[soft or blank]
        block = _Block(number, number + 1, cost, sections[-1][1], edge, blank)
        if was_inside or fence:
            fenced.append(block)
            if not fence:
                blocks += _fence(fenced, limit)
                fenced, soft = [], True
        else:
            blocks.append(block)
            soft = blank
    return blocks + _fence(fenced, limit)


def _fence(lines: Sequence[_Block], limit: int) -> list[_Block]:
    """A fence as one block, or as a block for each line if it is too long."""
    total = sum(line.tokens for line in lines)
    if lines and total <= limit:
        first = lines[0]
        return [_Block(first.first, lines[-1].end, total, first.tier, _Edge.SOFT, False)]
    edges = [True, *(line.blank for line in lines)]
    return [
        line._replace(edge=_Edge.SOFT if edges[place] or line.blank else _Edge.INSIDE)
        for place, line in enumerate(lines)
    ]


def _with_headings(blocks: Sequence[_Block], limit: int) -> list[_Block]:
    """The blocks, with each heading joined to the block after it if both fit.

    After more blank lines than a chunk could hold, nothing stays with a heading any more.
    """
    joined: list[_Block] = []
    leads: list[_Block] = []
    heading, blank = _Edge.HEADING, 0
    for block in blocks:
        blank = blank + block.tokens if block.blank else 0
        if block.edge is heading or (leads and block.blank and blank <= limit):
            leads.append(block)
        elif leads and block.blank:
            joined += [*_joined(leads[:-1], leads[-1], limit), block]
            leads = []
        elif leads:
            joined += _joined(leads, block, limit)
            leads = []
        else:
            joined.append(block)
    if leads:
        joined += _joined(leads[:-1], leads[-1], limit)
    return joined


def _joined(leads: Sequence[_Block], last: _Block, limit: int) -> list[_Block]:
    """The block ``last``, joined with as many of the blocks before it as fit.

    Those before them are joined as well, as many as fit. Before these, each stays alone: so what
    follows a long row of headings matters only to its end.
    """
    result = [last]
    for block in reversed(leads):
        after = result[-1]
        fits = block.tier == after.tier and block.tokens + after.tokens <= limit
        if fits and len(result) <= _JOINED:
            result[-1] = block._replace(
                end=after.end,
                tokens=block.tokens + after.tokens,
                blank=block.blank and after.blank,
            )
        else:
            result.append(block)
    return result[::-1]


# Where the cuts are


def _spans(blocks: Sequence[_Block], limit: int, overlap: int) -> Iterator[tuple[int, int]]:
    """The range of blocks of each chunk."""
    begin = start = 0
    while (start := _past_blanks(blocks, start)) < len(blocks):
        begin = _repeat_from(blocks, begin, start, limit, overlap)
        end = _end(blocks, begin, start, limit)
        yield begin, end
        start = end


def _past_blanks(blocks: Sequence[_Block], start: int) -> int:
    while start < len(blocks) and blocks[start].blank:
        start += 1
    return start


def _repeat_from(
    blocks: Sequence[_Block], previous: int, start: int, limit: int, overlap: int
) -> int:
    """Where the chunk with the first new block ``start`` begins, if it repeats blocks."""
    if blocks[start].edge is _Edge.HEADING:
        return start
    # The way back meets no heading: the chunk before would have ended at it.
    room = min(overlap, limit - blocks[start].tokens)
    begin = start
    while begin - 1 > previous and blocks[begin - 1].tokens <= room:
        begin -= 1
        room -= blocks[begin].tokens
    return _past_blanks(blocks, begin)


def _end(blocks: Sequence[_Block], begin: int, start: int, limit: int) -> int:
    """The best end of a chunk: after all blocks that fit, or at the last good edge among them."""
    if blocks[start].tokens > limit:
        return start + 1
    room = limit - sum(block.tokens for block in blocks[begin:start])
    tier = blocks[start].tier
    best = dict.fromkeys(_Edge, 0)
    end = start
    while end < len(blocks):
        block = blocks[end]
        if end > start:
            best[block.edge] = end
        if block.tier != tier or block.tokens > limit:
            return end
        if block.tokens > room:
            return best[_Edge.HEADING] or best[_Edge.SOFT] or end
        room -= block.tokens
        end += 1
    return end


def _chunks(
    lines: Sequence[str], blocks: Sequence[_Block], limit: int, count: TokenCounter
) -> Iterator[Chunk]:
    first, end, tier = blocks[0].first, blocks[-1].end, blocks[0].tier
    if blocks[0].tokens > limit:
        for part in parts(lines[first], blocks[0].tokens, limit, count):
            if is_visible(part):
                yield Chunk(part, first + 1, end, tier)
        return
    while not is_visible(lines[first]):
        first += 1
    while not is_visible(lines[end - 1]):
        end -= 1
    yield Chunk("".join(lines[first:end]), first + 1, end, tier)


# A line that is too long for a chunk


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
