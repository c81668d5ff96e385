"""The vectors of single words, for embedders whose vector of a text is the sum of these."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from agents.errors import EmbedderError
from agents.storage.embedders import Embedder

__all__ = ["WordVectors"]

_MOST = 20_000
"""Words that are kept, a kilobyte each; beyond, all are forgotten and kept anew."""


class WordVectors:
    """Whole numbers; each word is embedded once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._places: dict[str, int] = {}
        self._vectors = np.empty((0, embedder.dims), np.int32)

    def of(self, texts: Sequence[Sequence[str]]) -> Iterator[NDArray[np.int32]]:
        """The vectors of the words of each text, a row each."""
        every = dict.fromkeys(word for words in texts for word in words)
        new = [word for word in every if word not in self._places]
        if new and len(self._places) + len(new) > _MOST:
            self._places.clear()
            self._vectors = self._vectors[:0]
            new = list(every)
        if new:
            self._learn(new)
        places, vectors = self._places, self._vectors
        for words in texts:
            yield vectors[[places[word] for word in words]]

    def _learn(self, words: Sequence[str]) -> None:
        start, stop = len(self._places), len(self._places) + len(words)
        try:
            vectors = np.asarray(self._embedder.embed(words))
        except EmbedderError:
            raise
        except Exception as error:  # a caller's own embedder may raise anything
            raise EmbedderError(f"the embedder {self._embedder.name} failed: {error}") from error
        if vectors.shape != (len(words), self._vectors.shape[1]):
            raise EmbedderError(
                f"the embedder {self._embedder.name} gave an array of shape {vectors.shape} for "
                f"{len(words)} words"
            )
        if not np.issubdtype(vectors.dtype, np.integer) or np.abs(vectors).max(initial=0) >= 2**31:
            raise EmbedderError(
                f"the embedder {self._embedder.name} says that it is additive, so its vectors have "
                "to be whole numbers below 2^31"
            )
        if stop > len(self._vectors):
            larger = np.empty((stop + stop // 2, vectors.shape[1]), np.int32)
            larger[:start] = self._vectors[:start]
            self._vectors = larger
        self._vectors[start:stop] = vectors
        self._places.update(zip(words, range(start, stop), strict=True))
