"""Cuts a note's Markdown into the chunks that a search finds."""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from ..errors import InvalidInput
from ..memory.context import TokenCounter, approximate_tokens
from ..memory.tiers import Tier
from .long_lines import parts
from .markdown import (
    BOM,
    HEADING,
    MARKS,
    closes,
    enter,
    front_matter,
    is_visible,
    opens,
    split_lines,
)
from .marks import Mark


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
    blocks = _with_headings(
        _blocks(lines, start, Mark(sections=((0, tier),)), count, tokens), tokens
    )
    return [
        chunk
        for begin, end in _spans(blocks, tokens, min(overlap, tokens // 2))
        for chunk in _chunks(lines, blocks[begin:end], tokens, count)
    ]


def cut_on(
    lines: Sequence[str], new: int, mark: Mark, tokens: int, overlap: int, count: TokenCounter
) -> list[Chunk]:
    """The chunks of the last lines of a note, which begin at a mark; their lines are the note's.

    If no chunk reaches over the mark, all chunks from there on are new. Else the mark is the first
    line of a chunk, and the line ``new`` is the first that the chunk before does not have.
    """
    blocks = _with_headings(_blocks(lines, 0, mark, count, tokens), tokens)
    start = next((at for at, block in enumerate(blocks) if block.first >= new), len(blocks))
    start = _past_blanks(blocks, start)
    if start == len(blocks):
        return []
    begin = start if mark.is_edge else 0
    end = _end(blocks, begin, start, tokens)
    spans = _spans(blocks, tokens, min(overlap, tokens // 2), begin, end)
    return [
        chunk._replace(first=chunk.first + mark.line, last=chunk.last + mark.line)
        for begin, end in ((begin, end), *spans)
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
    lines: Sequence[str], start: int, mark: Mark, count: TokenCounter, limit: int
) -> list[_Block]:
    """The lines from ``start`` on as blocks: each fence that fits, and each other line.

    ``lines`` begin at the mark. A fence that is open there does not fit: a chunk begins inside it.
    """
    sections, fence, room = list(mark.sections), mark.fence, -1 if mark.fence else limit
    top = -mark.line  # where the first line of the note would be
    blocks: list[_Block] = []
    make, edges = tuple.__new__, (_Edge.INSIDE, _Edge.SOFT)  # make: _Block(…) at half its cost
    fenced, soft = list[_Block](), True
    for number in range(start, len(lines)):
        text = lines[number]
        cost = count(text)
        if cost < 0:
            raise InvalidInput(f"the token counter gave {cost} for a line; it is 0 or more")
        if not fence and number != top and text[0] not in MARKS:  # nearly all lines are like this
            blank = not (text[0].isalnum() or is_visible(text))
            edge = edges[soft or blank]
            blocks.append(make(_Block, (number, number + 1, cost, sections[-1][1], edge, blank)))
            soft = blank
            continue
        line = (text.removeprefix(BOM) or text) if number == top else text
        was_inside, heading = bool(fence), None
        if was_inside:
            fence = "" if closes(line, fence) else fence
        elif line[0] in MARKS:
            heading, fence = HEADING.match(line), opens(line)
        if heading:
            enter(sections, heading, line, number - top)
        blank = not is_visible(line)
        edge = _Edge.HEADING if heading else edges[soft or blank]
        block = _Block(number, number + 1, cost, sections[-1][1], edge, blank)
        if was_inside or fence:
            fenced.append(block)
            if not fence:
                blocks += _fence(fenced, room)
                fenced, soft, room = [], True, limit
        else:
            blocks.append(block)
            soft = blank
    return blocks + _fence(fenced, room)


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


def _spans(
    blocks: Sequence[_Block], limit: int, overlap: int, begin: int = 0, start: int = 0
) -> Iterator[tuple[int, int]]:
    """The range of blocks of each chunk after a chunk from ``begin`` to ``start``."""
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
