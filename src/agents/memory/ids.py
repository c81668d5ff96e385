"""The ids of memories."""

import hashlib
from collections.abc import Iterable, Sequence

__all__ = ["digits", "digits_of_all", "id_prefix", "memory_id", "sequence_of"]

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


def digits(sequence: int) -> str:
    """The last 12 characters of a memory's id."""
    return f"{sequence:012x}"


def digits_of_all(sequences: Sequence[int], largest: int) -> Iterable[str]:
    """The same for many memories, none of which has a number above ``largest``."""
    if largest >= len(sequences):
        return map(digits, sequences)
    # Agents have the same numbers: to write each number once takes a fraction.
    return map(list(map(digits, range(largest + 1))).__getitem__, sequences)


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
