"""The ids of memories."""

import hashlib
from collections.abc import Iterable

__all__ = ["digits", "digits_of_all", "id_prefix", "memory_id", "sequence_of"]


def id_prefix(seed: int, agent_id: str) -> str:
    """The first 24 characters of every memory id of this agent, in a bank with this seed.

    An id is a UUID of version 8 (RFC 9562, "custom"): 72 bits of a hash over seed and agent, then
    the sequence number in the last 48. So an id tells whose memory it is without a lookup, and an
    agent's ids do not depend on what other agents do.
    """
    digest = hashlib.sha256(f"tiermem\0{seed}\0{agent_id}".encode()).hexdigest()
    variant = "89ab"[int(digest[15], 16) & 3]
    return f"{digest[:8]}-{digest[8:12]}-8{digest[12:15]}-{variant}{digest[16:19]}-"


def memory_id(prefix: str, sequence: int) -> str:
    """The id of the agent's ``sequence``-th memory."""
    return prefix + digits(sequence)


_DIGITS = 12


_written: list[str] = []
"""The digits of the first numbers, which a tick asks for by the thousand."""
_MOST_WRITTEN = 65_536


def digits(sequence: int) -> str:
    """The last 12 characters of a memory's id."""
    written = _written
    return written[sequence] if 0 <= sequence < len(written) else f"{sequence:012x}"


def digits_of_all(sequences: Iterable[int], largest: int) -> Iterable[str]:
    """The same for many memories, none of which has a number above ``largest``."""
    global _written
    if largest >= _MOST_WRITTEN:
        return map(digits, sequences)
    written = _written
    if largest >= len(written):
        # A new list, instead of a longer one: another thread may be here too.
        _written = written = list(map(digits, range(min(2 * largest + 64, _MOST_WRITTEN))))
    return map(written.__getitem__, sequences)


def sequence_of(prefix: str, identifier: object) -> int | None:
    """The sequence number in an id with this prefix; None for any other value."""
    if not isinstance(identifier, str) or len(identifier) != len(prefix) + _DIGITS:
        return None
    if not identifier.startswith(prefix):
        return None
    try:
        sequence = int(identifier[len(prefix) :], 16)
    except ValueError:
        return None
    return sequence if sequence > 0 and memory_id(prefix, sequence) == identifier else None
