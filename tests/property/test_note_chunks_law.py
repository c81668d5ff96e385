"""Laws of cutting, for any text: nothing is lost, nothing is moved, everything fits."""

import re
import unicodedata
from itertools import pairwise
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from agents.memory.context import approximate_tokens
from agents.memory.tiers import TIER_NAMES
from agents.notes.markdown import Chunk, cut, split_lines

ENDS = ["\n", "\r\n", "\r"]

_characters = st.characters(exclude_categories=["Cs"])

_lines = st.one_of(
    st.sampled_from(
        [
            "", "", "", " ", "\t", "\u200b", "# A", "## B", "### C", "###### F", "#", "#no",
            "    # no",
            "# P <!-- tier: pinned -->", "## L <!-- tier: low -->", "```", "```", "~~~", "````",
            "``` python", "~~~ `x`", "``` `x`", "   ```", "    ```", "---", "a", "- item", "x" * 90,
            "words in a line " * 4, "e" + "\u0301" * 50, "\u2028", "a\u2028b\x0bc\x85d", "\ufeff",
            " " * 100, "🙂" * 40, " " * 60 + "x" + " " * 60,
        ]
    ),
    st.text(_characters, max_size=60).map(lambda text: re.sub("[\r\n]", "", text)),
)  # fmt: skip

# A tier that is said wrongly is refused; the laws are for the notes that are not.
_tops = st.one_of(
    st.just(""),
    st.just("\ufeff"),
    st.sampled_from(["---\ntier: low\n---\n", "\ufeff---\r\na: b\r\ntier: pinned\r\n---\r\n"]),
)


@st.composite
def notes(draw: st.DrawFn) -> str:
    """A note of lines that mean something in Markdown, and of others, with all kinds of ends."""
    lines = draw(st.lists(st.tuples(_lines, st.sampled_from(ENDS)), max_size=40))
    text = draw(_tops) + "".join(line + end for line, end in lines)
    return text + draw(_lines)


class Case(NamedTuple):
    text: str
    tokens: int
    overlap: int

    def cut(self) -> list[Chunk]:
        return cut(self.text, self.tokens, self.overlap)


def is_free_of_tiers(text: str) -> bool:
    """Whether no random line says a tier by accident."""
    names = "|".join(TIER_NAMES.values())
    return not re.search(rf"tier[ \t]*:(?! (?:{names})\b)", text)


cases = st.builds(
    Case,
    st.one_of(notes(), st.text(_characters, max_size=200)).filter(is_free_of_tiers),
    st.integers(1, 40),
    st.integers(0, 30),
)


def visible(text: str) -> bool:
    return any(unicodedata.category(c) not in ("Cc", "Cf", "Zs", "Zl", "Zp") for c in text)


def body(lines: list[str]) -> range:
    """The numbers of the lines after the front matter."""
    start = 1
    if re.match("\ufeff?---\r?\n(tier|a): ", "".join(lines[:2])):
        start = 2 + next(n for n in range(1, len(lines)) if lines[n].rstrip() == "---")
    return range(start, len(lines) + 1)


def cost(lines: list[str]) -> int:
    return sum(map(approximate_tokens, lines))


def is_part(chunk: Chunk, lines: list[str]) -> bool:
    return chunk.first == chunk.last and chunk.text != lines[chunk.first - 1]


def fences(lines: list[str]) -> list[tuple[int, int]]:
    """The first and the last line of each fence, found in a second way."""
    found, opened, mark = [], 0, ""
    for number in body(lines):
        line = lines[number - 1].rstrip("\r\n")
        if number == 1:
            line = line.removeprefix("\ufeff")
        if not opened:
            match = re.match(r" {0,3}(?:(`{3,})[^`]*|(~{3,}).*)\Z", line, re.DOTALL)
            if match:
                opened, mark = number, match[1] or match[2]
        else:
            match = re.match(rf" {{0,3}}({mark[0]}{{{len(mark)},}})\s*\Z", line)
            if match:
                found.append((opened, number))
                opened = 0
    if opened:
        found.append((opened, len(lines)))
    return found


def headings(lines: list[str]) -> set[int]:
    """The numbers of the lines that are headings, found in a second way."""
    fenced = {number for first, last in fences(lines) for number in range(first, last + 1)}
    return {
        number
        for number in body(lines)
        if number not in fenced
        and re.match(
            r" {0,3}#{1,6}([ \t\r\n]|\Z)", lines[number - 1].removeprefix("\ufeff" * (number == 1))
        )
    }


@given(st.text(_characters))
def test_lines_put_together_are_the_text(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(re.fullmatch("[^\r\n]*(\r\n|\r|\n)?", line) and line for line in lines)


@given(cases)
def test_a_chunk_is_the_lines_that_it_names(case: Case) -> None:
    lines = split_lines(case.text)
    for chunk in case.cut():
        assert 1 <= chunk.first <= chunk.last <= len(lines)
        whole = "".join(lines[chunk.first - 1 : chunk.last])
        assert chunk.text == whole or (is_part(chunk, lines) and chunk.text in whole)


@given(cases)
def test_every_line_that_shows_something_is_in_a_chunk(case: Case) -> None:
    lines = split_lines(case.text)
    covered = {n for chunk in case.cut() for n in range(chunk.first, chunk.last + 1)}
    assert covered <= set(body(lines))
    assert all(n in covered for n in body(lines) if visible(lines[n - 1]))


@given(cases)
def test_every_chunk_shows_something(case: Case) -> None:
    assert all(visible(chunk.text) for chunk in case.cut())


@given(cases)
def test_the_parts_of_a_line_are_the_line(case: Case) -> None:
    lines = split_lines(case.text)
    rest: dict[int, str] = {}
    for chunk in case.cut():
        if is_part(chunk, lines):
            before, found, after = rest.get(chunk.first, lines[chunk.first - 1]).partition(
                chunk.text
            )
            assert found
            assert not visible(before)
            rest[chunk.first] = after
    assert not any(visible(after) for after in rest.values())


@given(cases)
def test_no_chunk_is_over_the_limit(case: Case) -> None:
    lines = split_lines(case.text)
    for chunk in case.cut():
        assert approximate_tokens(chunk.text) <= case.tokens
        if not is_part(chunk, lines):
            assert cost(split_lines(chunk.text)) <= case.tokens


@given(cases)
def test_chunks_come_in_order_and_each_brings_something_new(case: Case) -> None:
    lines = split_lines(case.text)
    chunks = case.cut()
    for before, after in pairwise(chunks):
        if is_part(before, lines) and is_part(after, lines) and before.first == after.first:
            continue
        assert before.first < after.first
        assert before.last < after.last


@given(cases)
def test_an_overlap_is_small_and_within_a_section(case: Case) -> None:
    lines = split_lines(case.text)
    starts = headings(lines)
    chunks = case.cut()
    for before, after in pairwise(chunks):
        if after.first > before.last or is_part(before, lines):
            continue
        assert cost(lines[after.first - 1 : before.last]) <= case.overlap
        assert not starts & set(range(after.first, before.last + 2))


@given(cases)
def test_a_fence_that_fits_is_in_a_chunk_whole_or_not_at_all(case: Case) -> None:
    lines = split_lines(case.text)
    chunks = case.cut()
    for first, end in fences(lines):
        if cost(lines[first - 1 : end]) > case.tokens:
            continue
        last = max(n for n in range(first, end + 1) if visible(lines[n - 1]))
        held = [chunk for chunk in chunks if chunk.first <= last and first <= chunk.last]
        assert held
        assert all(chunk.first <= first and last <= chunk.last for chunk in held)


@given(cases)
def test_a_heading_is_cut_from_its_text_only_where_they_do_not_fit(case: Case) -> None:
    lines = split_lines(case.text)
    starts = headings(lines)
    whole = dict(fences(lines))
    chunks = case.cut()
    for before, after in pairwise(chunks):
        if before.last not in starts or is_part(before, lines) or before.tier != after.tier:
            continue
        text = next(n for n in range(before.last + 1, len(lines) + 1) if visible(lines[n - 1]))
        if text in starts:
            continue
        end = text
        if cost(lines[text - 1 : whole.get(text, text)]) <= case.tokens:
            end = whole.get(text, text)
        assert cost(lines[before.last - 1 : end]) > case.tokens


@given(cases)
def test_what_fits_into_one_chunk_is_one_chunk_for_each_tier(case: Case) -> None:
    total = max(1, cost(split_lines(case.text)))
    chunks = cut(case.text, total, case.overlap)
    assert all(a.tier != b.tier for a, b in pairwise(chunks))


@given(cases)
def test_cutting_again_gives_the_same(case: Case) -> None:
    assert case.cut() == case.cut()
