"""Vectors of texts that were met before."""

import hashlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ...errors import EmbedderError, Untrusted
from ..vectors import Quantised, quantise, unit
from .embedders import Embedder, OfflineEmbedder, WordVectors

QUERY = "\0"
"""Stands before a query where its vector is another one than that of a text: no text has it."""


def key_of(text: str) -> bytes:
    """The key of the vector of a text, or of a query that begins with :data:`QUERY`."""
    return hashlib.sha256(text.encode()).digest()


def keys_of(text: str) -> tuple[bytes, bytes]:
    """The keys of a text's vector as a query, and as a text."""
    return key_of(QUERY + text), key_of(text)


_LETTERS = 256
"""Letters that a kept text may have on average; when there are more, all texts are forgotten."""


class CachedEmbedder:
    """An embedder whose vectors come out quantised, each text embedded once.

    The newest ``size`` texts, or fewer if they are long, are kept in memory, and so are the words
    of the offline embedder, whose vectors sum to a text's. The vectors of an embedder that is not
    reproducible are also kept in the bank's journal; new ones wait in ``unsaved`` for the next
    commit.
    """

    def __init__(
        self,
        embedder: Embedder,
        size: int,
        stored: Callable[[Sequence[bytes]], Mapping[bytes, bytes]],
    ) -> None:
        self.embedder = embedder
        self.dims = embedder.dims
        self.unsaved: dict[bytes, bytes] = {}
        self._stored = stored
        self._persistent = not getattr(embedder, "reproducible", False)
        self._embed_queries = getattr(embedder, "embed_queries", None)
        is_additive = getattr(embedder, "additive", False) and self._embed_queries is None
        self.is_additive = bool(is_additive) and not self._persistent
        self._newest = _Newest(size, self.dims)
        self.words = WordVectors(embedder)

    def encode(self, texts: Sequence[str]) -> Quantised:
        """One row of whole numbers per text."""
        newest = self._newest
        rows = list(map(newest.rows.get, texts))
        if rows.count(None) == len(texts) == len(set(texts)):  # all are new, as in most calls
            fresh = self._embed(list(texts))
            newest.keep(list(texts), fresh)
            return fresh
        known = [row for row in rows if row is not None]
        if len(known) == len(rows):
            return newest.vectors[known]
        missing = [text for text, row in zip(texts, rows, strict=True) if row is None]
        distinct = dict(zip(dict.fromkeys(missing), range(len(missing)), strict=False))
        fresh = self._embed(list(distinct))
        result = np.empty((len(texts), self.dims), np.int8)
        is_new = np.array([row is None for row in rows])
        result[~is_new] = newest.vectors[known]
        result[is_new] = fresh[[distinct[text] for text in missing]]
        newest.keep(list(distinct), fresh)
        return result

    def encode_queries(self, texts: Sequence[str]) -> Quantised:
        """One row per query, of an embedder that tells queries from texts as of any other."""
        if self._embed_queries is None:
            return self.encode(texts)
        return self.encode([QUERY + text for text in texts])

    def forget(self, text: str) -> None:
        """Don't keep the vector of a text, nor of a query that is the same."""
        self._newest.forget(text)
        self._newest.forget(QUERY + text)
        self.words.forget(text.split(" "))
        for key in keys_of(text):
            self.unsaved.pop(key, None)

    def units(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector of length 1 per text, as mem0 wants them."""
        vectors: list[list[float]] = unit(self.encode(texts)).tolist()
        return vectors

    def _embed(self, texts: list[str]) -> Quantised:
        if type(self.embedder) is OfflineEmbedder and texts:  # a subclass may add up otherwise
            return self._sum(self.embedder, texts)
        if not self._persistent:
            return self._call(texts)
        keys = list(map(key_of, texts))
        known = {**self._stored(keys), **self.unsaved}
        missing = [place for place, key in enumerate(keys) if key not in known]
        for place, vector in zip(missing, self._call([texts[i] for i in missing]), strict=True):
            known[keys[place]] = self.unsaved[keys[place]] = vector.tobytes()
        data = b"".join([known[key] for key in keys])
        return np.frombuffer(data, np.int8).reshape(len(texts), self.dims)

    def _sum(self, embedder: OfflineEmbedder, texts: list[str]) -> Quantised:
        """What the embedder would give, in a quarter of the time if the words were met before."""
        words = embedder.words(" ".join(texts))
        if words is None:
            whole = [place for place, text in enumerate(texts) if embedder.words(text) is None]
            if len(whole) == len(texts):
                return self._call(texts)
            vectors = np.empty((len(texts), self.dims), np.int8)
            vectors[whole] = self._call([texts[place] for place in whole])
            others = np.setdiff1d(np.arange(len(texts)), whole)
            vectors[others] = self._sum(embedder, [texts[place] for place in others])
            return vectors
        sums = self.words.sums(words, [text.count(" ") + 1 for text in texts])
        return self._call(texts) if sums is None else quantise(sums, self.dims, len(texts))

    def _call(self, texts: list[str]) -> Quantised:
        if not texts:
            return np.empty((0, self.dims), np.int8)
        try:
            if self._embed_queries is not None and texts[0].startswith(QUERY):
                rows = self._embed_queries([text.removeprefix(QUERY) for text in texts])
            else:
                rows = self.embedder.embed(texts)
        except (EmbedderError, Untrusted, MemoryError):
            raise
        except Exception as error:  # a caller's own embedder may raise anything
            raise EmbedderError(f"the embedder {self.embedder.name} failed: {error}") from error
        return quantise(rows, self.dims, len(texts))


class _Newest:
    """The vectors of the newest texts: rows of one array, which are written in turn.

    An interrupt or a MemoryError may come between any two steps. So a row is told of when its
    vector is there, ``_next`` moves when the row is done, and ``_letters`` may be too many, which
    makes the next texts be forgotten sooner, but never too few.
    """

    def __init__(self, size: int, dims: int) -> None:
        self.rows: dict[str, int] = {}
        self.vectors: Quantised = np.empty((0, dims), np.int8)
        self._size = size
        self._texts: list[str | None] = []
        """The text of each row; None if it was forgotten."""
        self._next = 0
        self._letters = 0
        """How many letters the texts have together."""

    def keep(self, texts: list[str], vectors: Quantised) -> None:
        """Keep the vectors of these texts; the oldest texts make room."""
        if not self._size:
            return
        texts, vectors = texts[-self._size :], vectors[-self._size :]
        letters, most = sum(map(len, texts)), _LETTERS * self._size
        if letters > most:
            return
        if self._letters + letters > most:
            self._forget_all()
        self._letters += letters
        self._grow(min(self._size, len(self._texts) + len(texts)))
        while texts:
            start, stop = self._next, min(self._next + len(texts), len(self.vectors))
            count = stop - start
            old = self._texts[start:stop]
            for row, text in enumerate(old, start):
                if text is not None and self.rows.get(text) == row:
                    del self.rows[text]
            self._texts[start:stop] = texts[:count]
            self._letters -= sum(map(len, filter(None, old)))
            self.vectors[start:stop] = vectors[:count]
            self.rows.update(zip(texts, range(start, stop), strict=False))
            self._next = stop % self._size
            texts, vectors = texts[count:], vectors[count:]

    def forget(self, text: str) -> None:
        """Keep the vector of a text no longer."""
        row = self.rows.pop(text, None)
        if row is not None:
            self._texts[row] = None
            self._letters -= len(text)
            self.vectors[row] = 0

    def _forget_all(self) -> None:
        self.rows.clear()
        self._next = 0
        self._texts.clear()
        self.vectors = self.vectors[:0]
        self._letters = 0

    def _grow(self, rows: int) -> None:
        if rows > len(self.vectors):
            larger = np.empty((min(self._size, 2 * rows), self.vectors.shape[1]), np.int8)
            larger[: len(self.vectors)] = self.vectors
            self.vectors = larger
