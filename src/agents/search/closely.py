"""The best memories of a search are read again, word by word, and what reads better moves up.

The vector of a text is a mean: a word of a long text hardly moves it. And a kind (“which sport”) is
near what is of this kind (“taekwondo”) from word to word, not from text to text. So for each token
of the query the nearest token of a memory counts, weighed by how rare the query's word is among the
agent's memories (late interaction, as in ColBERT).
"""

import hashlib
import json
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..rules.ranking import Floats, Rows
from ..storage.embedding import Quantised, TokenVectors, norms

Pieces: TypeAlias = Sequence[tuple[str, int]]
"""The pieces of a query, each with its weight, which is a whole number."""

_MILLIONTHS = 1_000_000
_SHARE = 4
"""A memory gains a fourth of what it reads better than the mean; a fifth to a half do as well."""


def closest(scores: Floats, many: int, seen: NDArray[np.bool_] | None) -> Rows:
    """The rows of the best memories with a score, best first, the newer first among equals."""
    order: Rows = len(scores) - 1 - np.argsort(-scores[::-1], kind="stable")
    is_read = scores > 0.0
    if seen is not None:
        is_read &= seen
    return order[is_read[order]][:many]


def gains(closeness: NDArray[np.int64]) -> Floats:
    """What each memory gains or loses: all gain as much as all lose, so scores mean what they
    meant."""
    count = len(closeness)
    above = closeness * count - closeness.sum()
    found: Floats = np.rint(above / (count * _SHARE)) / _MILLIONTHS
    return found


def key_of_reading(pieces: Pieces, texts: Sequence[str]) -> bytes:
    """The key under which it is kept how near these texts are to a query."""
    return hashlib.sha256(b"\0\0read" + json.dumps([pieces, texts]).encode()).digest()


def read_closely(tokens: TokenVectors, pieces: Pieces, texts: Sequence[str]) -> NDArray[np.int64]:
    """How near each text is to a query, in millionths, from 0.

    Products and sums are of whole numbers, so their order does not matter.
    """
    parts = tokens.of(*[piece for piece, _ in pieces])
    query = np.concatenate(parts)
    weights = np.repeat([weight for _, weight in pieces], [len(part) for part in parts])
    total = max(int(weights.sum()), 1)
    return np.array(
        [int(_nearest(query, tokens.of(text)[0]) @ weights) // total for text in texts], np.int64
    )


def _nearest(query: Quantised, text: Quantised) -> NDArray[np.int64]:
    """The similarity of each token of a query to the nearest token of a text, in millionths."""
    if not len(text):
        return np.zeros(len(query), np.int64)
    # Products of 384 bytes are below 2^24: exact in a float32, in any order.
    products = query.astype(np.float32) @ text.T.astype(np.float32)
    cosines = products / norms(query)[:, None] / norms(text)
    nearest: NDArray[np.int64] = np.rint(cosines.max(axis=1).clip(0.0) * _MILLIONTHS).astype(
        np.int64
    )
    return nearest
