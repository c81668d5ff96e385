"""How alike a query and the best passage of a text are, however long the text is.

A passage is a run of the words of a text that say something, about as many as the query has. A text
of two hundred words that says in three what is asked for is then as near as the three words alone.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..rules.words import FUNCTION_WORDS, words_of
from ..storage.embedding import WordVectors

_DIGITS = 9
"""A root that was rounded must not keep a passage from being like itself."""
_MOST_WORDS = 4096
"""A passage may begin in the first words of a text, up to this many."""


def likeness_of_passages(words: WordVectors, query: str, texts: Sequence[str]) -> list[float]:
    """For each text the largest cosine of a passage and the query, from 0 to 1.

    The vectors are sums of words in whole numbers, so every machine gives the same bits. 0 for a
    query or a text without words that say something.
    """
    asked, *spoken = [_telling(text) for text in (query, *texts)]
    if not asked:
        return [0.0] * len(texts)
    vectors = words.of([asked, *spoken])
    wanted = next(vectors).sum(axis=0, dtype=np.int64)
    norm = float(np.sqrt(float(wanted @ wanted)))
    lengths = {len(asked) - 1, len(asked), len(asked) + 1, 2 * len(asked)} - {0}
    return [_best(wanted, norm, own.astype(np.int64), lengths) for own in vectors]


def _telling(text: str) -> list[str]:
    """The words of a text that say something, without capitals."""
    spoken = [word.casefold() for word, _ in words_of(text).spoken]
    return [word for word in spoken if word not in FUNCTION_WORDS][:_MOST_WORDS]


def _best(
    wanted: NDArray[np.int64], norm: float, words: NDArray[np.int64], lengths: set[int]
) -> float:
    if not len(words):
        return 0.0
    sums = np.concatenate([np.zeros((1, words.shape[1]), np.int64), words.cumsum(axis=0)])
    best = 0.0
    for length in {min(each, len(words)) for each in lengths}:
        passages = sums[length:] - sums[:-length]
        norms = np.sqrt(np.maximum((passages * passages).sum(axis=1), 1).astype(np.float64))
        best = max(best, float(((passages @ wanted) / (norms * max(norm, 1.0))).max()))
    return min(round(best, _DIGITS), 1.0)
