"""What a caller attaches to a commit, in a form of its own: storage keeps it, and tells damage.

A simulation attaches what it keeps of each tick, so the tables are named for that. The hash of the
commit covers a row of ``ticks``, whose digest is in the commit. It does not cover the log in
``decisions``: a journal has the same hash with and without logs. A log has a digest of its own,
over the hash of its commit and its bytes.
"""

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..interrupts import first
from .file import JournalFile

_SMALL = 16 << 20
_MOST_TIMES = 32
"""A deflated state inflates to at most this many times its size, or to ``_SMALL`` bytes."""


class Attachment(NamedTuple):
    """What the next commit keeps for its caller, by the tick at which it leaves the bank."""

    record: str
    data: bytes
    state: str
    """What the caller needs of its last attachment alone: a checkpoint has no other state."""
    log: bytes
    """No hash of the journal covers it, and no checkpoint has it."""

    def row(self, tick: int, commit: int) -> "AttachmentRow":
        """The row for the journal."""
        state = self.state.encode()
        # The hash covers the text: another version of zlib may deflate the text to other bytes.
        digest = hashlib.sha256(state).digest()
        return AttachmentRow(tick, commit, self.record, self.data, digest, deflated(state))


class AttachmentRow(NamedTuple):
    """What a journal or a checkpoint has of an attachment, without its log."""

    tick: int
    commit: int
    record: str
    data: bytes
    state_hash: bytes
    packed_state: bytes | None
    """Deflated; None for the older rows of a journal that was made from a checkpoint."""

    @property
    def digest(self) -> bytes:
        """A hash over the row; the commit's hash covers it."""
        digest = hashlib.sha256(f"{self.tick} {len(self.data)} ".encode())
        digest.update(self.data)
        digest.update(self.state_hash)
        digest.update(self.record.encode())
        return digest.digest()

    def state(self) -> bytes:
        """The state; ValueError if it is not what was written."""
        if self.packed_state is None:
            raise ValueError(f"the state after tick {self.tick} is not kept")
        state = inflated(self.packed_state, f"the state after tick {self.tick}")
        if hashlib.sha256(state).digest() != self.state_hash:
            raise ValueError(f"the state after tick {self.tick} is not what was written")
        return state


class Attachments:
    """The attachments of a journal's commits. The caller opens and ends transactions."""

    def __init__(self, file: JournalFile) -> None:
        self._file = file
        self._db = file.db

    def exist(self) -> bool:
        """Whether there are any: who attaches to commits moves the ticks of the bank."""
        with self._file.reading():
            return self._db.execute("SELECT 1 FROM ticks LIMIT 1").fetchone() is not None

    def write(self, row: AttachmentRow, log: bytes, commit_hash: bytes) -> None:
        """Keep the attachment of a commit."""
        self.adopt([row])
        if log:
            kept = (row.tick, row.commit, log, _log_digest(commit_hash, log))
            self._db.execute("INSERT INTO decisions VALUES (?, ?, ?, ?)", kept)

    def adopt(self, rows: Iterable[AttachmentRow]) -> None:
        """Keep rows of another journal or a checkpoint."""
        self._db.executemany("INSERT INTO ticks VALUES (?, ?, ?, ?, ?, ?)", rows)

    def rewind(self, commit: int) -> None:
        """Delete the attachments of later commits."""
        self._db.execute("DELETE FROM ticks WHERE commit_id > ?", (commit,))
        self._db.execute("DELETE FROM decisions WHERE commit_id > ?", (commit,))

    def rows(self, after: int = -1) -> Iterator[AttachmentRow]:
        """The rows of the ticks after this one, in order, each checked."""
        with self._file.reading():
            base, _ = self._file.get("base") or (0, 0)
            for *raw, mark in self._db.execute(
                "SELECT ticks.*, note FROM ticks LEFT JOIN commits ON commits.id = commit_id "
                "WHERE ticks.tick > ? ORDER BY ticks.tick",
                (after,),
            ):
                row = AttachmentRow(*raw)
                # The older rows of a journal that was made from a checkpoint have no commits.
                if mark != row.digest and (mark is not None or row.commit > base):
                    raise self._file.damaged(
                        f"what it keeps of tick {row.tick} is not what was written"
                    )
                yield row
            (without,) = self._db.execute(
                "SELECT count(*) FROM commits LEFT JOIN ticks ON commits.id = commit_id "
                "WHERE note != x'' AND record IS NULL"
            ).fetchone()
            if without:
                raise self._file.damaged(f"it has lost what it kept of {without} ticks")

    def last(self) -> AttachmentRow | None:
        """The row of the last tick that has one."""
        with self._file.reading():
            last = self._db.execute("SELECT max(tick) FROM ticks").fetchone()[0]
            return None if last is None else first(self.rows(last - 1))

    def logs(self, after: int = -1) -> Iterator[tuple[int, bytes]]:
        """The log of each tick after this one that has one: tick and bytes, in order."""
        with self._file.reading():
            for tick, log, digest, commit_hash in self._db.execute(
                "SELECT decisions.tick, data, digest, hash FROM decisions "
                "JOIN commits ON commits.id = commit_id "
                "WHERE decisions.tick > ? ORDER BY decisions.tick",
                (after,),
            ):
                if digest != _log_digest(commit_hash, log):
                    raise ValueError(f"the decisions of tick {tick} are not what was written")
                yield tick, log


def _log_digest(commit_hash: bytes, log: bytes) -> bytes:
    digest = hashlib.sha256(commit_hash)
    digest.update(log)
    return digest.digest()


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
