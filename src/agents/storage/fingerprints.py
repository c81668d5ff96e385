"""Hashes over one memory. An agent's state has the sum of them, so a change costs what it changed.

What a search changes has a hash of its own: it changes with every tick, and texts are long.
"""

import struct
from hashlib import sha256

from agents.memory.metadata import KeptMetadata
from agents.memory.traits import Traits
from agents.storage.shelved import Shelved

__all__ = ["of_activity", "of_memory", "of_shelved"]

_NUMBERS = struct.Struct("<qqqd")
_SHELVED = struct.Struct("<10qdq")


def of_memory(
    sequence: int,
    tier: int,
    temperature: int,
    created: int,
    entered: int,
    expires: int,
    content: str,
    vector: bytes,
    metadata: KeptMetadata | None,
    traits: Traits | None,
) -> int:
    """Over what a memory is."""
    text = content.encode()
    head = f"{sequence} {tier} {temperature} {created} {entered} {expires} {len(text)} ".encode()
    extra = metadata.json.encode() if metadata else b""
    if traits is not None:
        extra += traits.json.encode()
    return int.from_bytes(sha256(head + text + vector + extra).digest(), "big")


def of_activity(sequence: int, count: int, last: int, relevance: float) -> int:
    """Over how a memory was used; 0 for one that never was."""
    if not count:
        return 0
    data = _NUMBERS.pack(sequence, count, last, relevance)
    return int.from_bytes(sha256(data).digest(), "big")


def of_shelved(agent_id: str, record: Shelved) -> bytes:
    """Over all there is of a memory that is not resident."""
    recalls, traits, metadata, content, vector = record[11:]
    text = content.encode()
    parts = [_SHELVED.pack(*record[:11], len(text)), agent_id.encode(), text, vector]
    if metadata is not None:
        parts.append(metadata.json.encode())
    if traits is not None:
        parts.append(traits.json.encode())
    if recalls:
        parts.append(repr(recalls).encode())
    return sha256(b"".join(parts)).digest()
