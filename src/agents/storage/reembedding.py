"""Another embedder for a bank: all texts are embedded anew, and the journal changes at once.

New vectors are first kept in a file of their own beside the journal, so that a process that was
killed goes on where it was. Then one transaction gives all memories their new vectors. Until then,
the bank is as it was.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ..errors import CommitFailed
from ..memory.events import Added
from .beside_journal import records_of
from .embedding import CachedEmbedder, Embedder, Quantised, key_of, unit
from .journal.journal import Journal, chained, decode
from .journal.tables import Commit, SnapshotRow
from .record import Record, digests_of
from .shelf import seal_of, stored_in
from .sqlite import discard, make_private
from .state import snapshots

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


# The other embedder


FILE = "reembed.db"
NEAREST = 10
"""How many nearest texts are compared, before and after; fewer if there are few texts."""
_SAMPLE = 500
"""How many texts the comparison takes, the newest."""
_BATCH = 256


class Survey(NamedTuple):
    """The texts of a bank, and the vectors that the newest of them have now."""

    texts: list[str]
    sample: dict[str, bytes]


def survey(journal: Journal) -> Survey:
    """All texts in a journal, each once, oldest first. All of the journal is checked."""
    found: dict[str, bytes] = {}
    for text, vector in _all(journal):
        found.setdefault(text, vector)
    newest = list(found)[-_SAMPLE:]
    return Survey(list(found), {text: found[text] for text in newest})


def _all(journal: Journal) -> Iterator[tuple[str, bytes]]:
    for record in shelved(journal):
        yield record.content, record.vector
    for row in journal.snapshots():
        yield from _pairs(snapshots.texts_of(row), row.vectors)
    for commit in journal.commits(after=journal.snapshot().commit if journal.base else 0):
        yield from _pairs(added_texts(commit), commit.vectors)


def _pairs(texts: Sequence[str | None], vectors: bytes) -> Iterator[tuple[str, bytes]]:
    size = len(vectors) // max(1, len(texts))
    for place, text in enumerate(texts):
        if text is not None:
            yield text, vectors[place * size : (place + 1) * size]


def agreement(before: Quantised, after: Quantised) -> float | None:
    """The share of each text's nearest texts that stay its nearest; None for too few texts."""
    most = min(NEAREST, (len(before) - 1) // 3)  # of few texts, all would be near
    if most < 1:
        return None
    old, new = _nearest(before, most), _nearest(after, most)
    same = [len(set(one) & set(other)) for one, other in zip(old, new, strict=True)]
    return float(np.mean(same)) / most


def _nearest(vectors: Quantised, most: int) -> list[list[int]]:
    own: NDArray[np.float64] = unit(vectors).astype(np.float64)
    scores = own @ own.T
    np.fill_diagonal(scores, -2.0)
    # Rounded, so that the order does not depend on how the machine sums.
    order = np.argsort(-np.round(scores, 6), axis=1, kind="stable")[:, :most]
    found: list[list[int]] = order.tolist()
    return found


@final
class NewVectors:
    """The new vectors of texts, in a file that outlives the process."""

    def __init__(self, database: sqlite3.Connection, embedder: Embedder) -> None:
        self._db = database
        self._embedder = CachedEmbedder(embedder, 0, self._saved)
        self.dims = embedder.dims
        mark = f"{embedder.name} {embedder.dims}"
        with self._db:
            self._db.execute("CREATE TABLE IF NOT EXISTS of (name TEXT)")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS vectors (hash BLOB PRIMARY KEY, vector BLOB) "
                "WITHOUT ROWID"
            )
            if self._db.execute("SELECT name FROM of").fetchall() != [(mark,)]:
                self._db.execute("DELETE FROM vectors")  # they are another embedder's
                self._db.execute("DELETE FROM of")
                self._db.execute("INSERT INTO of VALUES (?)", (mark,))

    def embed(self, texts: Iterable[str]) -> Iterator[int]:
        """Embed the texts that have no new vector yet, and say after each batch how many have."""
        waiting, done = iter(texts), 0
        while batch := list(islice(waiting, _BATCH)):
            known = self._saved([key_of(text) for text in batch])
            missing = [text for text in batch if key_of(text) not in known]
            vectors = self._embedder.encode(missing)
            rows = [
                (key_of(text), own.tobytes()) for text, own in zip(missing, vectors, strict=True)
            ]
            with self._db:
                self._db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
            done += len(batch)
            yield done

    def of(self, texts: Sequence[str | None]) -> bytes:
        """The vectors of texts, one behind the other; zeros for a text that was purged."""
        keys = [None if text is None else key_of(text) for text in texts]
        known = self._saved([key for key in keys if key is not None])
        nothing = bytes(self.dims)
        return b"".join([nothing if key is None else known[key] for key in keys])

    def by_hash(self, texts: Iterable[str]) -> Mapping[bytes, bytes]:
        """The new vectors of texts, by the hash of the text."""
        return self._saved([key_of(text) for text in texts])

    def _saved(self, keys: Sequence[bytes]) -> Mapping[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for key in keys:
            row = self._db.execute("SELECT vector FROM vectors WHERE hash = ?", (key,)).fetchone()
            if row is not None:
                found[key] = row[0]
        return found


@contextmanager
def new_vectors(folder: Path | None, embedder: Embedder) -> Iterator[NewVectors]:
    """The new vectors in a bank's folder; for None, in memory. An error leaves the file there."""
    path = None if folder is None else folder / FILE
    if path is not None:
        make_private(path)
    try:
        with closing(sqlite3.connect(path or ":memory:")) as database:
            yield NewVectors(database, embedder)
    except sqlite3.Error as error:
        raise CommitFailed(f"the new vectors in {path} can't be kept ({error})") from error


def discard_new_vectors(folder: Path) -> list[Path]:
    """Delete the new vectors that an interrupted change left; the files that can't be deleted.

    The same change can be begun anew.
    """
    paths = [folder / FILE, folder / f"{FILE}-journal"]
    discard(*paths)
    return [path for path in paths if path.exists()]


def switch(
    journal: Journal,
    path: Path,
    new: NewVectors,
    kept: Mapping[bytes, bytes],
    **values: Any,
) -> None:
    """Give every memory in the journal's file its new vector, in one transaction.

    ``kept`` are vectors that the journal keeps by the hashes of their texts, as it does for an
    embedder that is not reproducible.
    """

    def repack(row: SnapshotRow, shelf_sum: int) -> SnapshotRow:
        vectors = new.of(snapshots.texts_of(row))
        return snapshots.with_vectors(row, vectors, new.dims, shelf_sum)

    revector(journal, path, new.of, repack, kept, **values)
