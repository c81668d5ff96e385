"""Taking the text and the vector of a memory out of a journal.

The commit that added the memory keeps its hash, so the chain still holds. A second hash covers
what is left of the commit, so damage still shows.
"""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..embedding import keys_of
from ..shelf import ShelfTable
from .tables import Commit, SnapshotRow


class Purge(NamedTuple):
    """A memory to be forgotten."""

    agent: str
    sequence: int
    created_tick: int
    content: str


class Redaction(NamedTuple):
    """Memories to be forgotten, and the snapshots of their agents without them."""

    purges: Sequence[Purge]
    snapshots: Sequence[SnapshotRow]


def redacted_digest(commit: Commit) -> bytes:
    """The hash over what is left of a commit."""
    digest = hashlib.sha256(commit.hash)
    digest.update(commit.events.encode())
    digest.update(commit.vectors)
    return digest.digest()


def redact(
    database: sqlite3.Connection,
    shelf: ShelfTable,
    read: Callable[[int], Commit],
    redaction: Redaction,
) -> None:
    """Purge memories from the commits, the snapshots, the shelf and the kept embeddings.

    ``read`` gives a commit, checked. The caller opens and ends the transaction.
    """
    by_commit: dict[int, set[tuple[str, int]]] = {}
    by_agent: dict[str, list[int]] = {}
    for agent, sequence, created, _ in redaction.purges:
        by_agent.setdefault(agent, []).append(sequence)
        # Inside a text, quotation marks are escaped: only the event itself can match.
        with shelf.reading():
            found = database.execute(
                "SELECT id FROM commits WHERE tick >= ? AND instr(events, ?) ORDER BY id LIMIT 1",
                (created, f'["add","{agent}",{sequence},'),
            ).fetchone()
        if found:
            by_commit.setdefault(found[0], set()).add((agent, sequence))
    for number, keys in by_commit.items():
        commit = _without(read(number), keys)
        database.execute(
            "UPDATE commits SET events = ?, vectors = ? WHERE id = ?",
            (commit.events, commit.vectors, number),
        )
        database.execute("REPLACE INTO redactions VALUES (?, ?)", (number, redacted_digest(commit)))
    database.executemany("REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?)", redaction.snapshots)
    for agent, sequences in by_agent.items():
        shelf.purge(agent, sequences)
    database.executemany(
        "DELETE FROM embeddings WHERE hash = ?",
        [(key,) for purge in redaction.purges for key in keys_of(purge.content)],
    )


def _without(commit: Commit, keys: set[tuple[str, int]]) -> Commit:
    events = json.loads(commit.events)
    adds = [event for event in events if event[0] == "add"]
    vectors = bytearray(commit.vectors)
    size = len(vectors) // len(adds)
    for place, event in enumerate(adds):
        if (event[1], event[2]) in keys:
            event[4:] = [None, None, None]
            vectors[place * size : (place + 1) * size] = bytes(size)
    text = json.dumps(events, ensure_ascii=False, separators=(",", ":"))
    return commit._replace(events=text, vectors=bytes(vectors))
