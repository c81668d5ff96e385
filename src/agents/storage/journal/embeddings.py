"""The journal's table of embeddings, for an embedder that is not reproducible."""

import sqlite3
from collections.abc import Mapping, Sequence

__all__ = ["EmbeddingTable"]


class EmbeddingTable:
    """Vectors by the hash of their text; transactions are the journal's."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._db = database

    def save(self, vectors: Mapping[bytes, bytes]) -> None:
        """Keep vectors that are not kept yet."""
        self._db.executemany("INSERT OR IGNORE INTO embeddings VALUES (?, ?)", vectors.items())

    def all(self) -> dict[bytes, bytes]:
        """All that are kept."""
        return dict(self._db.execute("SELECT * FROM embeddings ORDER BY hash"))

    def some(self, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
        """Those of these that are kept."""
        found: dict[bytes, bytes] = {}
        for start in range(0, len(hashes), 500):
            part = hashes[start : start + 500]
            marks = ",".join("?" * len(part))
            found.update(
                self._db.execute(
                    f"SELECT hash, vector FROM embeddings WHERE hash IN ({marks})",  # noqa: S608
                    part,
                )
            )
        return found
