"""The search in notes and memories, with citations."""

from typing import NamedTuple

from ..memory.filters import parse_filter
from ..memory.records import Memory
from ..memory.requests import check_query, check_whole
from ..search.request import SearchRequest
from ..storage.columns.words import stem_of
from .index import NoteIndex
from .snippets import snippet


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
    of the query's words. None if ``min_score`` is 0."""


class Findings(list[Finding]):
    """The result of a search. ``note`` tells what failed, such as the embedding of the query."""

    note: str = ""


def search_notes(
    notes: NoteIndex,
    query: str,
    max_results: int | None,
    min_score: float | None,
    group: bool,
) -> Findings:
    """:meth:`AgentMemory.memory_search`."""
    bank, agent_id = notes.bank, notes.agent_id
    settings = bank.settings.notes
    most = settings.max_results if max_results is None else check_whole("max_results", max_results)
    least = settings.min_score if min_score is None else min_score
    only = parse_filter(min_score=least)
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
            citation = notes.citation(hit.memory) if shown else None
            shown_part = snippet(hit.memory.content, query, stem)
            findings.append(Finding(shown_part, hit.score, citation, hit.memory, hit.match))
    return findings
