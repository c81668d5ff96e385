"""Giving all memories in a journal other vectors, in one transaction."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ...memory.events import Added, decode
from ..head_record import records_of
from ..record import Record, digests_of
from ..shelf import seal_of, stored_in
from .file import chained
from .journal import Journal
from .schema import Commit, SnapshotRow

VectorsOf = Callable[[Sequence[str | None]], bytes]
"""The vectors of texts, one behind the other; zeros for None, a text that was purged."""
Repack = Callable[[SnapshotRow, int], SnapshotRow]
"""The snapshot with other vectors; the number is the sum of the hashes over what it left out."""


def added_texts(commit: Commit) -> list[str | None]:
    """The texts that a commit added, in the order of its vectors; None for one purged since."""
    return [event.content for event in decode(commit.events) if isinstance(event, Added)]


def shelved(journal: Journal) -> Iterator[Record]:
    """Every version of every memory that is not resident, checked."""
    with journal.reading():
        for row in journal.file.db.execute("SELECT * FROM shelf ORDER BY rowid"):
            yield stored_in(row).record


def revector(
    journal: Journal,
    path: Path,
    vectors_of: VectorsOf,
    repack: Repack,
    embeddings: Mapping[bytes, bytes],
    **values: object,
) -> None:
    """Give every memory another vector, and keep ``values`` as well; then close the journal.

    ``path`` is the journal's file. Commits that lead to the state of a checkpoint are deleted:
    nothing can go back to them.
    """
    database, snapshot = journal.file.db, journal.snapshot()
    start = snapshot.commit if journal.base else 0
    digest = before = bytes.fromhex(snapshot.hash) if journal.base else bytes(32)
    for record in reversed(records_of(path)):
        record.forget()
    with journal.file.writing():
        database.execute("DELETE FROM commits WHERE id <= ?", (start,))
        for number, digest in _rewritten(database, before, vectors_of):
            if number == snapshot.commit:
                snapshot = snapshot._replace(hash=digest.hex())
        database.execute("DELETE FROM redactions")
        _revector_shelf(database, vectors_of)
        then = _sums(database, snapshot.commit + 1)
        for row in list(journal.snapshots()):
            packed = repack(row, then[row.agent])
            database.execute("REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?)", packed)
        database.execute("DELETE FROM embeddings")
        database.executemany("INSERT INTO embeddings VALUES (?, ?)", embeddings.items())
        if journal.get("shelf_sum") is not None:
            total = sum(_sums(database, journal.head + 1).values())
            values["shelf_sum"] = f"{total % (1 << 256):064x}"
        if journal.base:
            values["base"] = (snapshot.commit, snapshot.tick)
        if snapshot.commit:
            values["snapshot"] = snapshot
        if journal.head:
            values["head"] = (journal.head, journal.tick, digest.hex())
        journal.file.put(values)
    journal.close()


def _rewritten(
    database: sqlite3.Connection, before: bytes, vectors_of: VectorsOf
) -> Iterator[tuple[int, bytes]]:
    """Write each commit with other vectors and its new hash; the number and the hash of each.

    A commit that lost purged texts gets a hash over what is left of it.
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


def _revector_shelf(database: sqlite3.Connection, vectors_of: VectorsOf) -> None:
    """Give every version of every memory that is not resident another vector."""
    numbers = [row[0] for row in database.execute("SELECT rowid FROM shelf ORDER BY rowid")]
    for number in numbers:
        row = database.execute("SELECT * FROM shelf WHERE rowid = ?", (number,)).fetchone()
        record = stored_in(row).record
        record = record._replace(vector=vectors_of([record.content]))
        digest = digests_of(row[0], [record])[0]
        database.execute(
            "UPDATE shelf SET vector = ?, digest = ?, seal = ? WHERE rowid = ?",
            (record.vector, digest, seal_of(row[2], row[3], digest), number),
        )


def _sums(database: sqlite3.Connection, commit: int) -> Counter[str]:
    """By agent, the sum of the hashes over what was not resident before a commit."""
    found: Counter[str] = Counter()
    for agent, digest in database.execute(
        "SELECT agent, digest FROM shelf WHERE since < ?1 AND (until IS NULL OR until >= ?1)",
        (commit,),
    ):
        found[agent] += int.from_bytes(digest, "big")
    return found
