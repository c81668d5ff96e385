"""Under which keys the vectors of texts and of queries are kept."""

import hashlib

QUERY = "\0"
"""Stands before a query where its vector is another one than that of a text: no text has it."""


def key_of(text: str) -> bytes:
    """The key of the vector of a text, or of a query that begins with :data:`QUERY`."""
    return hashlib.sha256(text.encode()).digest()


def keys_of(text: str) -> tuple[bytes, bytes]:
    """The keys of a text's vector as a query, and as a text."""
    return key_of(QUERY + text), key_of(text)
