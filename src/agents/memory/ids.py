"""The ids of memories."""

import hashlib

__all__ = ["digits", "id_prefix", "memory_id", "sequence_of"]

_DIGITS = 12


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


digits = "%012x".__mod__
"""The last 12 characters of a memory's id, from its sequence number."""


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
