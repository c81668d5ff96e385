"""Giving the memories in a journal's commits other vectors."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence

from ...memory.events import Added, decode
from .schema import Commit, chained

__all__ = ["VectorsOf", "added_texts", "rewritten_commits"]

VectorsOf = Callable[[Sequence[str | None]], bytes]
"""The vectors of texts, one behind the other; zeros for None, a text that was purged."""


def added_texts(commit: Commit) -> list[str | None]:
    """The texts that a commit added, in the order of its vectors; None for one purged since."""
    return [event.content for event in decode(commit.events) if isinstance(event, Added)]


def rewritten_commits(
    database: sqlite3.Connection, before: bytes, vectors_of: VectorsOf
) -> Iterator[tuple[int, bytes]]:
    """Write each commit with other vectors, and its new hash; the number and the hash of each.

    ``before`` is the hash before the first. A commit that lost purged texts gets a hash over what
    is left of it.
    """
    numbers = [row[0] for row in database.execute("SELECT id FROM commits ORDER BY id")]
    for number in numbers:
        row = database.execute("SELECT * FROM commits WHERE id = ?", (number,)).fetchone()
        commit = Commit(*row)
        vectors = vectors_of(added_texts(commit))
        before = chained(before, commit.tick, commit.events, vectors, commit.note)
        database.execute(
            "UPDATE commits SET hash = ?, vectors = ? WHERE id = ?", (before, vectors, number)
        )
        yield number, before
