"""Which texts of memories a journal keeps anyway, because they are the text of a note."""

import json
from collections.abc import Sequence
from typing import Any

from ..interrupts import first
from ..note import is_transcript
from .journal import Journal

__all__ = ["has_note_of", "is_note_with"]


def is_note_with(event: Sequence[Any], agent: str, sequence: int) -> bool:
    """Whether an event has the text of a note with this memory as a chunk.

    The event of a transcript has a bookmark and no text.
    """
    if event[0] != "note" or event[1] != agent:
        return False
    _, _, path, _, text, chunks = event
    return text is not None and _is_among(path, chunks, sequence)


def has_note_of(journal: Journal, agent: str, sequence: int, created_tick: int) -> bool:
    """Whether a journal has the text of a note that had this memory as a chunk.

    A chunk is added in the commit that has its note. What the journal has of the time before its
    first commit is a snapshot.
    """
    with journal.reading():
        found = journal.file.db.execute(
            "SELECT id FROM commits WHERE tick >= ? AND instr(events, ?) ORDER BY id LIMIT 1",
            (created_tick, f'["add","{agent}",{sequence},'),
        ).fetchone()
        if found is None:
            rows = journal.snapshots([agent]) if journal.base else ()
            notes = [note for row in rows for note in json.loads(row.extras).get("notes", ())]
            return any(_is_among(path, chunks, sequence) for path, _, chunks in notes)
        commit = first(journal.commits(after=found[0] - 1))
        events = () if commit is None else json.loads(commit.events)
        return any(is_note_with(event, agent, sequence) for event in events)


def _is_among(path: str, chunks: Sequence[Sequence[int]], sequence: int) -> bool:
    return not is_transcript(path) and any(number == sequence for number, _, _ in chunks)
