"""The vectors of single words, for embedders whose vector of a text is the sum of these."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ...errors import EmbedderError
from .embedders import Embedder

__all__ = ["WordVectors"]

_MOST = 20_000
"""Words that are kept, a kilobyte each; beyond, all are forgotten and kept anew."""
_LETTERS = 20 * _MOST
"""The letters of all these words."""
_LONGEST = 40
"""Letters of a word that is waited for; a longer one hardly comes again."""
_AT_ONCE = 1 << 10
"""Words whose vectors are summed together: they stay in the processor's cache."""


class WordVectors:
    """Whole numbers; each word is embedded once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._places: dict[str, int] = {}
        self._vectors = np.empty((0, embedder.dims), np.int32)
        self._used = 0
        """Rows of the vectors; those of forgotten words are zeros."""
        self._letters = 0
        self._met: set[str] = set()
        """Words that came once, and are learned when they come again."""

    def of(self, texts: Sequence[Sequence[str]]) -> Iterator[NDArray[np.int32]]:
        """The vectors of the words of each text, a row each."""
        every = dict.fromkeys(word for words in texts for word in words)
        self._learn([word for word in every if word not in self._places], every)
        places, vectors = self._places, self._vectors
        for words in texts:
            yield vectors[[places[word] for word in words]]

    def sums(self, words: Sequence[str], counts: Sequence[int]) -> NDArray[np.int32] | None:
        """The sum of the first so many words, of the next so many, and so on: a row each.

        None if that is not worth it: so many words never came before that to learn them takes
        longer than to embed the texts.
        """
        places = list(map(self._places.get, words))
        if None in places:
            new = dict.fromkeys(w for w, place in zip(words, places, strict=True) if place is None)
            if not self._are_worth_it(new, len(counts)):
                return None
            self._learn(new, words)
            places = list(map(self._places.get, words))
        rows, lengths = np.array(places, np.intp), np.array(counts, np.intp)
        starts = np.cumsum(lengths) - lengths
        sums = np.empty((len(counts), self._vectors.shape[1]), np.int32)
        for length in np.unique(lengths).tolist():
            alike = np.flatnonzero(lengths == length)
            step = max(1, _AT_ONCE // length)
            for first in range(0, len(alike), step):
                some = alike[first : first + step]
                own = rows[starts[some, None] + np.arange(length)]
                sums[some] = self._vectors[own].sum(axis=1, dtype=np.int32)
        return sums

    def _are_worth_it(self, new: Collection[str], texts: int) -> bool:
        letters = sum(map(len, new))
        if len(new) > _MOST // 2 or letters > _LETTERS // 2:
            return False
        strange = [word for word in new if word not in self._met]
        if len(strange) <= 2 * texts:
            return True
        if len(self._met) + len(strange) > _MOST:
            self._met.clear()
        self._met.update(word for word in strange if len(word) <= _LONGEST)
        return False

    def forget(self, words: Iterable[str]) -> None:
        """Don't keep these, nor their vectors."""
        for word in words:
            self._met.discard(word)
            place = self._places.pop(word, None)
            if place is not None:
                self._vectors[place] = 0

    def _learn(self, new: Collection[str], every: Iterable[str]) -> None:
        """Embed the new ones; if there is no room for them, forget all but ``every`` one."""
        if not new:
            return
        letters = sum(map(len, new))
        if self._used + len(new) > _MOST or self._letters + letters > _LETTERS:
            self._places.clear()
            self._vectors = self._vectors[:0]
            self._used = self._letters = 0
            new = dict.fromkeys(every)
            letters = sum(map(len, new))
        words = list(new)
        start, stop = self._used, self._used + len(words)
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
        self._used = stop
        self._letters += letters
        self._met.difference_update(words)
        self._places.update(zip(words, range(start, stop), strict=True))
