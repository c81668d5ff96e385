"""What a journal keeps of the decisions in each tick: one blob, written with the tick's commit.

The chain of hashes does not cover these blobs, so a run has the same hash with and without them.
Each blob has a digest of its own, over the hash of its commit and its bytes.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator

DECISIONS_SCHEMA = """
CREATE TABLE IF NOT EXISTS decisions (
    tick INTEGER PRIMARY KEY, commit_id INTEGER NOT NULL, data BLOB NOT NULL, digest BLOB NOT NULL
);
"""


class DecisionTable:
    """The table ``decisions`` of a journal. Journals of earlier versions get it when they need it.

    The caller opens and ends transactions.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._db = database

    def write(self, tick: int, commit: int, commit_hash: bytes, data: bytes) -> None:
        """Keep the blob of a tick."""
        self._db.execute(DECISIONS_SCHEMA)
        row = (tick, commit, data, _digest(commit_hash, data))
        self._db.execute("REPLACE INTO decisions VALUES (?, ?, ?, ?)", row)

    def read(
        self, after: int, hash_of: Callable[[int], bytes | None]
    ) -> Iterator[tuple[int, bytes]]:
        """The tick and the blob of each tick after this one; ValueError for a changed blob.

        ``hash_of`` gives the hash of a commit. A blob without its commit is left out.
        """
        if not self._exists():
            return
        rows = self._db.execute("SELECT * FROM decisions WHERE tick > ? ORDER BY tick", (after,))
        for tick, commit, data, digest in rows:
            commit_hash = hash_of(commit)
            if commit_hash is None:
                continue
            if digest != _digest(commit_hash, data):
                raise ValueError(f"the decisions of tick {tick} are not what was written")
            yield tick, data

    def rewind(self, commit: int) -> None:
        """Delete the blobs of later commits."""
        if self._exists():
            self._db.execute("DELETE FROM decisions WHERE commit_id > ?", (commit,))

    def _exists(self) -> bool:
        found = self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'decisions'")
        return found.fetchone() is not None


def _digest(commit_hash: bytes, data: bytes) -> bytes:
    digest = hashlib.sha256(commit_hash)
    digest.update(data)
    return digest.digest()
