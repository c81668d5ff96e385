"""What a simulation keeps of each tick, beside the memories.

A row has the record of a tick and the state after it; the chain of the commits' hashes covers it.
The decisions in a tick are one blob, written with the tick's commit. The chain does not cover these
blobs, so a run has the same hash with and without them. Each blob has a digest of its own, over the
hash of its commit and its bytes.
"""

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_SMALL = 16 << 20
_MOST_TIMES = 32
"""A deflated state inflates to at most this many times its size, or to ``_SMALL`` bytes."""


class TickNote(NamedTuple):
    """What the next commit keeps of a tick."""

    record: str
    """JSON: counts, metrics, state hash."""
    retrieved: bytes
    """The memories that the agents got, in the caller's own form."""
    state: str
    """JSON: what a simulation needs to go on from here."""
    decisions: bytes = b""
    """What decided the tick, in the caller's own form; no hash of the journal covers it."""

    def row(self, tick: int, commit: int) -> "TickRow":
        """The row for the journal."""
        state = self.state.encode()
        # The hash covers the text: another version of zlib may deflate the text to other bytes.
        digest = hashlib.sha256(state).digest()
        return TickRow(tick, commit, self.record, self.retrieved, digest, deflated(state))


class TickRow(NamedTuple):
    """What the journal has of a tick."""

    tick: int
    commit: int
    record: str
    retrieved: bytes
    state_hash: bytes
    packed_state: bytes | None
    """Deflated; None for the older ticks of a journal that was made from a checkpoint."""

    @property
    def digest(self) -> bytes:
        """A hash over the row; the commit's hash covers it."""
        digest = hashlib.sha256(f"{self.tick} {len(self.retrieved)} ".encode())
        digest.update(self.retrieved)
        digest.update(self.state_hash)
        digest.update(self.record.encode())
        return digest.digest()

    def state(self) -> Any:
        """The simulation's state after the tick; ValueError if it is not what was written."""
        if self.packed_state is None:
            raise ValueError(f"the state after tick {self.tick} is not kept")
        text = inflated(self.packed_state, f"the state after tick {self.tick}")
        if hashlib.sha256(text).digest() != self.state_hash:
            raise ValueError(f"the state after tick {self.tick} is not what was written")
        return json.loads(text)


def deflated(data: bytes) -> bytes:
    """The data in fewer bytes; :func:`inflated` gives it back."""
    packed = zlib.compress(data, 1)
    return packed if len(data) <= _most_inflated(packed) else zlib.compress(data, 0)


def inflated(packed: bytes, what: str) -> bytes:
    """The data of :func:`deflated`; ValueError, about ``what``, if it is far too large."""
    inflating = zlib.decompressobj()
    try:
        data = inflating.decompress(packed, _most_inflated(packed))
    except zlib.error as error:
        raise ValueError(f"{what} can't be inflated: {error}") from None
    if inflating.unconsumed_tail:
        raise ValueError(f"{what} inflates to over {len(data)} bytes")
    return data


def _most_inflated(packed: bytes) -> int:
    return max(_SMALL, _MOST_TIMES * len(packed))


# The decisions in each tick


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
