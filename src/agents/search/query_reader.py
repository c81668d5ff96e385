"""What is asked: a query as a vector, as words, and as both."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..config.settings import RetrievalSettings
from ..errors import EmbedderError
from ..rules.bm25 import Matches, Measure, keyword_scores, measure, word_weights
from ..storage.embedding.cache import CachedEmbedder
from ..storage.embedding.embedders import NoEmbedder
from ..storage.resident.agent_columns import AgentColumns
from ..storage.resident.keyword_index import Query, Vocabulary
from ..storage.resident.sessions import Sessions
from ..storage.vectors import Quantised, quantise
from .hybrid_score import HybridScore, ScoreSettings, Wording

__all__ = ["QueryReader"]

Floats = NDArray[np.float64]

_UNHEARD = 1024.0
"""The weight of a word that no memory has."""


class _Weighted(NamedTuple):
    """A query, and what each of its terms counts for in its vector."""

    query: Query
    weights: Floats


class QueryReader:
    """Reads queries as the settings say."""

    def __init__(self, embedder: CachedEmbedder, settings: RetrievalSettings) -> None:
        self.settings = settings
        self._embedder = embedder
        weights = settings.spread
        self._spread = weights if any(weights[:3]) or weights.speaker else None
        self._is_plain = settings.mode == "vector" and not settings.sif and self._spread is None
        self._vocabulary = Vocabulary(None if settings.stemmer == "none" else settings.stemmer)
        self._weighs = settings.sif > 0.0 and settings.mode != "keyword" and embedder.is_additive
        self._words = embedder.words
        self._has_embedder = not isinstance(embedder.embedder, NoEmbedder)

    def read(self, blocks: Sequence[AgentColumns], texts: Sequence[str], tick: int) -> HybridScore:
        """Queries that are not blank, each asked of its block in this tick."""
        by_words = self.settings.mode != "vector"
        wordings: list[Wording | None] = [None] * len(texts)
        weighted: list[_Weighted | None] = [None] * len(texts)
        if by_words or self._weighs:
            for place, (block, text) in enumerate(zip(blocks, texts, strict=True)):
                index = block.keywords(self._vocabulary)  # first: it brings in new terms
                query = self._vocabulary.query(text)
                if not len(query.terms):
                    continue
                found = index.find(query)
                if by_words:
                    wordings[place] = self._wording(measure(found, query.common), found)
                if self._weighs and query.words:
                    weights = word_weights(found, index.total, self.settings.sif)
                    weighted[place] = _Weighted(query, weights)
        vectors, notes = self._vectors_of(texts, weighted)
        asking = ScoreSettings(self.settings, self._spread, self._is_plain, tick)
        return HybridScore(asking, self, blocks, texts, vectors, wordings, notes)

    def wording_of(self, by: Measure, query: str, texts: Sequence[str]) -> Wording:
        """How well the words of a query match texts that no index has."""
        return self._wording(by, self._vocabulary.count(query, texts))

    def rarest(self, by: Measure, query: str, most: int) -> list[str]:
        """The words of a query that say most, as they are written; function words are none."""
        asked = self._vocabulary.query(query)
        order = np.argsort(-by.weights, kind="stable").tolist()
        return [asked.written[place] for place in order if not asked.common[place]][:most]

    def speaker_named(self, text: str, sessions: Sessions) -> int | None:
        """The number of the speaker whose name a query has, if it is one alone."""
        heard = self._vocabulary.heard
        return sessions.named_in(heard(text), heard)

    def _wording(self, by: Measure, found: Matches) -> Wording:
        settings = self.settings
        keyword = keyword_scores(by, found, settings.bm25_k1, settings.bm25_b)
        return Wording(by, keyword, found)

    def _vectors_of(
        self, texts: Sequence[str], weighted: Sequence[_Weighted | None]
    ) -> tuple[Quantised, dict[int, str]]:
        """A row per query; zeros for one that can't be embedded, with a note that says so."""
        rows = np.zeros((len(texts), self._embedder.dims), np.int8)
        if self.settings.mode == "keyword":
            return rows, {}
        if not self._has_embedder:
            note = "found by words alone, because there is no embedder"
            return rows, dict.fromkeys(range(len(texts)), note)
        try:
            return self._embedded(texts, weighted), {}
        except EmbedderError:
            if self.settings.mode == "vector":
                raise
        notes: dict[int, str] = {}
        for place, text in enumerate(texts):  # those that can be, alone or with others
            try:
                rows[place] = self._embedded([text], weighted[place : place + 1])[0]
            except EmbedderError as error:
                notes[place] = f"found by words alone, because {error}"
        return rows, notes

    def _embedded(self, texts: Sequence[str], weighted: Sequence[_Weighted | None]) -> Quantised:
        if not self._weighs:
            return self._embedder.encode(texts)
        dims = self._embedder.dims
        plain = [index for index, each in enumerate(weighted) if each is None]
        words = self._words.of([each.query.words for each in weighted if each is not None])
        rows = np.zeros((len(texts), dims))
        for index, each in enumerate(weighted):
            if each is not None:
                weights = np.append(each.weights, _UNHEARD)[each.query.places]
                rows[index] = weights @ next(words)
        vectors = quantise(rows, dims, len(texts))
        if plain:
            vectors[plain] = self._embedder.encode([texts[index] for index in plain])
        return vectors
