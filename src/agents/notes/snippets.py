"""The part of a text that matches a query."""

import re
from collections import Counter
from typing import NamedTuple

from ..rules.words import FUNCTION_WORDS, Stem, words_of

_LONGEST = 700
"""The most characters of a snippet."""
_ROOM = _LONGEST - 2
"""The characters of a snippet without the marks of what is left out."""
_PIECE = re.compile(r"\S{1,60}")
"""A word, or a part of a text without blanks."""


class _Match(NamedTuple):
    start: int
    end: int
    terms: frozenset[str]


def snippet(text: str, query: str, stem: Stem | None = None) -> str:
    """The text, or the part of it that has most of the query's words.

    The part with the most different words is shown, then the one with the most words, then the
    first. A text without a word of the query is shown by its beginning.
    """
    if len(text) <= _LONGEST:
        return text
    begin, end = _around(text, *_best(_matches(text, _wanted(query, stem), stem)))
    before, after = "…" if begin else "", "…" if end < len(text) else ""
    return before + text[begin:end].strip() + after


def _wanted(query: str, stem: Stem | None) -> frozenset[str]:
    """The terms of a query; words that say little are left out, unless there is no other word."""
    terms, spoken = words_of(query, stem)
    common = {term for word, term in spoken if word.casefold() in FUNCTION_WORDS}
    return frozenset(terms) - common or frozenset(terms)


def _matches(text: str, wanted: frozenset[str], stem: Stem | None) -> list[_Match]:
    found = []
    for piece in _PIECE.finditer(text):
        terms = wanted.intersection(words_of(piece[0], stem).terms)
        if terms:
            found.append(_Match(piece.start(), piece.end(), terms))
    return found


def _best(matches: list[_Match]) -> tuple[int, int]:
    """Where the best run of matches that fits begins and ends."""
    best, place = (0, 0), (0, 0)
    seen, first = Counter[str](), 0
    for last, match in enumerate(matches):
        seen.update(match.terms)
        while match.end - matches[first].start > _ROOM:
            seen.subtract(matches[first].terms)
            first += 1
        worth = sum(count > 0 for count in seen.values()), last - first
        if worth > best:
            best, place = worth, (matches[first].start, match.end)
    return place


def _around(text: str, first: int, last: int) -> tuple[int, int]:
    """Where the text around a match begins and ends: at a line or at a blank, if there is one."""
    begin = max(0, min(first - (_ROOM - (last - first)) // 2, len(text) - _ROOM))
    if begin:
        line = text.find("\n", begin, first)
        blank = re.compile(r"\s").search(text, begin, first)
        begin = line + 1 if line >= 0 else blank.end() if blank else begin
    end = min(len(text), begin + _ROOM)
    if end < len(text):
        blanks = [text.rfind(mark, last, end) for mark in (" ", "\n")]
        end = max(blanks) if max(blanks) > last else end
    return begin, end
