"""The search in notes and memories, with citations."""

import re
from collections import Counter
from typing import NamedTuple

from ..memory.filters import parse_filter
from ..memory.records import Memory
from ..memory.requests import check_query, check_whole
from ..rules.words import FUNCTION_WORDS, Stem, words_of
from ..search.request import SearchRequest
from ..storage.columns.agent_columns import stem_of
from .index import NoteIndex

_LONGEST = 700
"""The most characters of a snippet."""
_ROOM = _LONGEST - 2
"""The characters of a snippet without the marks of what is left out."""
_PIECE = re.compile(r"\S{1,60}")
"""A word, or a part of a text without blanks."""


class Finding(NamedTuple):
    """A memory, or a chunk of a note, that matches a query."""

    snippet: str
    """The text, or the part of it that has most of the query's words."""
    score: float
    """How well the memory matches the query, from 0 to 1."""
    citation: str | None
    """The place in a note, such as ``memory/2026-01-20.md#L50-L55``; None for a memory that is no
    chunk of a note, and if citations are off.
    """
    memory: Memory
    match: float | None = None
    """What ``min_score`` was compared with: the largest of the score, the similarity and the share
    of the query's words, or with ``retrieval.match: score`` the score. None if ``min_score`` is
    0."""


class Findings(list[Finding]):
    """The result of a search. ``note`` tells what failed, such as the embedding of the query."""

    note: str = ""


def search_notes(
    notes: NoteIndex,
    query: str,
    max_results: int | None,
    min_score: float | None,
    group: bool,
    kind: object = None,
) -> Findings:
    """:meth:`AgentMemory.memory_search`."""
    bank, agent_id = notes.bank, notes.agent_id
    settings = bank.settings.notes
    most = settings.max_results if max_results is None else check_whole("max_results", max_results)
    least = settings.min_score if min_score is None else min_score
    only = parse_filter(min_score=least, kind=kind)
    findings = Findings()
    if not check_query(query).strip() or not most:
        return findings
    with bank.using():
        if settings.sync_on_search:
            notes.sync()
        # A note is on disk whatever the temperature of its memories.
        shelved = notes.shelved()
        request = SearchRequest(
            [agent_id],
            [query],
            most,
            None,
            only,
            with_cold=bool(shelved),
            shelved=shelved,
            pinned_first=False,
        )
        (found,) = bank.find(request)
        stem = stem_of(bank.settings.retrieval.stemmer)
        findings.note = found.note
        shown = settings.citations == "on" or (settings.citations == "auto" and not group)
        for hit in found:
            place = notes.place(hit.memory) if shown else None
            citation = None if place is None else str(place)
            part = _snippet(hit.memory.content, query, stem)
            findings.append(Finding(part, hit.score, citation, hit.memory, hit.match))
    return findings


# The part of a text that matches a query


class _Match(NamedTuple):
    start: int
    end: int
    terms: frozenset[str]


def _snippet(text: str, query: str, stem: Stem | None = None) -> str:
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
