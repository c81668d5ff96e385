"""Which texts of memories a journal keeps anyway, because they are the text of a note."""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...memory.records import Memory
from ..interrupts import first
from ..note import is_transcript
from .journal import Journal

Key = tuple[str, int]
"""An agent, and the sequence number of its memory."""


def chunks_in(events: Iterable[Sequence[Any]]) -> Iterator[Key]:
    """The memories that are chunks of the notes whose texts these events have.

    The event of a transcript has a bookmark and no text.
    """
    for event in events:
        if event[0] == "note":
            _, agent, path, _, text, chunks = event
            if text is not None:
                yield from _chunks_of(agent, path, chunks)


def kept_chunks(journal: Journal, memories: Sequence[Memory]) -> set[Key]:
    """Of these memories, those that were chunks of a note whose text a journal has.

    A chunk is added in the commit that has its note. What the journal has of the time before its
    first commit is a snapshot.
    """
    found: set[Key] = set()
    with journal.reading():
        for number in _commits_of(journal, {memory.created_tick for memory in memories}):
            commit = first(journal.commits(after=number - 1))
            found.update(() if commit is None else chunks_in(json.loads(commit.events)))
        agents = sorted({memory.agent_id for memory in memories}) if journal.base else ()
        for agent in agents:
            for row in journal.snapshots([agent]):
                for path, _, chunks in json.loads(row.extras).get("notes", ()):
                    found.update(_chunks_of(agent, path, chunks))
    return found


def _commits_of(journal: Journal, ticks: Iterable[int]) -> list[int]:
    """The commits in which memories of these ticks came; one may have ended in a later tick."""
    rows = journal.file.db.execute("SELECT id, tick FROM commits ORDER BY id").fetchall()
    ended = [tick for _, tick in rows]
    places = {
        place
        for tick in ticks
        for place in range(bisect_left(ended, tick), bisect_right(ended, tick) + 1)
    }
    return [rows[place][0] for place in sorted(places) if place < len(rows)]


def _chunks_of(agent: str, path: str, chunks: Iterable[Sequence[int]]) -> Iterator[Key]:
    if not is_transcript(path):
        yield from ((agent, number) for number, _, _ in chunks)
