"""What a caller attaches to a commit, in a form of its own: storage keeps it, and tells damage.

A simulation attaches what it keeps of each tick, so the tables are named for that. The hash of the
commit covers a row of ``ticks``, whose digest is in the commit. It does not cover the log in
``decisions``: a journal has the same hash with and without logs. A log has a digest of its own,
over the hash of its commit and its bytes.
"""

import hashlib
import zlib
from typing import NamedTuple

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
