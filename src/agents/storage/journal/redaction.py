"""Taking the text and the vector of a memory out of a journal, where it is kept for good.

What is left of the commit that added it has a hash of its own, so damage still shows, and the
commit keeps its old hash, so the chain still holds.
"""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..resident.table import ResidentTable
from ..shelf.rows import ShelfTable
from ..state import snapshots
from .schema import Commit, Snapshot, SnapshotRow

__all__ = ["Purge", "redact", "redacted_digest"]


class Purge(NamedTuple):
    """A memory to be forgotten."""

    agent: str
    sequence: int
    created_tick: int
    content: str


def redacted_digest(commit: Commit) -> bytes:
    """The hash over what is left of a commit."""
    digest = hashlib.sha256(commit.hash)
    digest.update(commit.events.encode())
    digest.update(commit.vectors)
    return digest.digest()


def redact(
    database: sqlite3.Connection,
    shelf: ShelfTable,
    snapshot: Snapshot,
    read: Callable[[int], Commit],
    purges: Sequence[Purge],
) -> None:
    """Purge memories from the commits, the snapshots, the shelf and the kept embeddings.

    ``read`` gives a commit, checked. Transactions are the caller's.
    """
    by_commit: dict[int, set[tuple[str, int]]] = {}
    by_agent: dict[str, list[int]] = {}
    for agent, sequence, created, _ in purges:
        by_agent.setdefault(agent, []).append(sequence)
        # Inside a text, quotation marks are escaped: this can only be the event itself.
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
    for agent, sequences in by_agent.items():
        for raw in database.execute("SELECT * FROM snapshots WHERE agent = ?", (agent,)).fetchall():
            row = _forgetting(SnapshotRow(*raw), sequences, shelf, snapshot.commit)
            database.execute("REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        shelf.purge(agent, sequences)
    database.executemany(
        "DELETE FROM embeddings WHERE hash = ?",
        [(hashlib.sha256(purge.content.encode()).digest(),) for purge in purges],
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


def _forgetting(
    row: SnapshotRow, sequences: Sequence[int], shelf: ShelfTable, commit: int
) -> SnapshotRow:
    numbers = len(row.columns) // (8 * snapshots.NUMBERS)
    dims = len(row.vectors) // numbers if numbers else 1
    block = snapshots.unpack(row, 0, dims, ResidentTable(dims, {}))
    for sequence in sequences:
        place = block.row_of(sequence)
        if place is not None:
            block.take([place])
        elif stored := shelf.get((row.agent, sequence), commit + 1):
            block.shelf_sum -= int.from_bytes(stored.digest, "big")
    return snapshots.pack(block)
