"""What is asked: a query as a vector, as words, and as both."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.errors import EmbedderError
from agents.memory.bm25 import Matches, Measure, keyword_scores, measure, word_weights
from agents.memory.fusion import reciprocal_ranks, weighted_sum
from agents.memory.spread import spread
from agents.settings import RetrievalSettings
from agents.storage.columns import AgentColumns
from agents.storage.embedders import CachedEmbedder
from agents.storage.keywords import Query, Vocabulary
from agents.storage.vectors import Quantised, quantise
from agents.storage.word_vectors import WordVectors

__all__ = ["Asked", "Parts", "QueryReader"]

Floats = NDArray[np.float64]

_UNHEARD = 1024.0
"""The weight of a word that no memory has."""


class Parts(NamedTuple):
    """What the scores of an agent's memories are made of."""

    vector: Floats
    keyword: Floats | None
    """None where the query has no word that a memory has."""
    fused: Floats
    score: Floats
    """With what memories lend each other."""


class QueryReader:
    """Reads queries as the settings say."""

    def __init__(self, embedder: CachedEmbedder, settings: RetrievalSettings) -> None:
        self.settings = settings
        self._embedder = embedder
        weights = settings.spread
        self.spread = weights if any(weights[:3]) or weights.speaker else None
        self.is_plain = settings.mode == "vector" and not settings.sif and self.spread is None
        """Whether a memory's score is its similarity, which does not change with the others."""
        self._vocabulary = Vocabulary(None if settings.stemmer == "none" else settings.stemmer)
        self._weighs = settings.sif > 0.0 and settings.mode != "keyword" and embedder.is_additive
        self._words = WordVectors(embedder.embedder)

    def read(self, blocks: Sequence[AgentColumns], texts: Sequence[str]) -> "Asked":
        """Queries that are not blank, each asked of its block."""
        settings, vocabulary = self.settings, self._vocabulary
        by_words = settings.mode != "vector"
        keywords: list[Floats | None] = [None] * len(texts)
        measures: list[Measure | None] = [None] * len(texts)
        weighted: list[tuple[Query, Floats] | None] = [None] * len(texts)
        if by_words or self._weighs:
            for place, (block, text) in enumerate(zip(blocks, texts, strict=True)):
                query = vocabulary.query(text)
                if not len(query.terms):
                    continue
                index = block.keywords(vocabulary)
                found = index.find(query)
                if by_words:
                    own = measures[place] = measure(found, query.common)
                    if own.is_known:
                        keywords[place] = self._keyword_scores(own, found)
                if self._weighs and query.words:
                    weights = word_weights(found, index.total, settings.sif)
                    weighted[place] = query, weights
        vectors, note = self._vectors_of(texts, weighted)
        return Asked(self, blocks, texts, vectors, keywords, measures, note)

    def keywords_of(self, by: Measure, query: str, texts: Sequence[str]) -> Floats:
        """How well the words of a query match texts that no index has."""
        found = self._vocabulary.count(self._vocabulary.query(query), texts)
        return self._keyword_scores(by, found)

    def _keyword_scores(self, by: Measure, found: Matches) -> Floats:
        return keyword_scores(by, found, self.settings.bm25_k1, self.settings.bm25_b)

    def rarest(self, by: Measure, query: str, most: int) -> list[str]:
        """The words of a query that say most, as they are written; function words are none."""
        asked = self._vocabulary.query(query)
        order = np.argsort(-by.weights, kind="stable").tolist()
        return [asked.written[place] for place in order if not asked.common[place]][:most]

    def speaker_named(self, text: str, speakers: Mapping[str, int]) -> int | None:
        """The number of the speaker whose name a query has, if it is one alone."""
        asked = set(self._vocabulary.query(text).terms.tolist())
        named = [
            number
            for name, number in speakers.items()
            if (terms := set(self._vocabulary.terms(name))) and terms <= asked
        ]
        return named[0] if len(named) == 1 else None

    def _vectors_of(
        self, texts: Sequence[str], weighted: Sequence[tuple[Query, Floats] | None]
    ) -> tuple[Quantised, str]:
        dims = self._embedder.dims
        if self.settings.mode == "keyword":
            return np.zeros((len(texts), dims), np.int8), ""
        try:
            if not self._weighs:
                return self._embedder.encode(texts), ""
            plain = [index for index, each in enumerate(weighted) if each is None]
            words = self._words.of([query.words for query, _ in filter(None, weighted)])
            rows = np.zeros((len(texts), dims))
            for index, each in enumerate(weighted):
                if each is not None:
                    query, weights = each
                    rows[index] = np.append(weights, _UNHEARD)[query.places] @ next(words)
            vectors = quantise(rows, dims, len(texts))
            if plain:
                vectors[plain] = self._embedder.encode([texts[index] for index in plain])
            return vectors, ""
        except EmbedderError as error:
            if self.settings.mode == "vector":
                raise
            note = f"found by words alone, because {error}"
            return np.zeros((len(texts), dims), np.int8), note


class Asked:
    """Queries, read."""

    def __init__(
        self,
        reader: QueryReader,
        blocks: Sequence[AgentColumns],
        texts: Sequence[str],
        vectors: Quantised,
        keywords: Sequence[Floats | None],
        measures: Sequence[Measure | None],
        note: str,
    ) -> None:
        self._reader = reader
        self._blocks = blocks
        self._texts = texts
        self._keywords = keywords
        self._measures = measures
        self.vectors = vectors
        self.note = note
        """What could not be done."""

    @property
    def is_plain(self) -> bool:
        """Whether a memory's score is its similarity, which does not change with the others."""
        return self._reader.is_plain

    def keyword(self, index: int) -> Floats | None:
        """How well the words of a query match each memory; None where none of them does."""
        return self._keywords[index]

    def parts(self, index: int, similarities: Floats) -> Parts:
        """What the scores of a query's memories are made of; these are the similarities."""
        block, keyword = self._blocks[index], self._keywords[index]
        # 1 stands for the length of a row of zeros.
        fused = self._fused(index, similarities, keyword, block.norms > 1.0)
        score = self._with_context(block, self._texts[index], fused)
        return Parts(similarities, keyword, fused, score)

    def elsewhere(self, index: int, similarities: Floats, texts: Sequence[str]) -> Parts:
        """The same for memories that are not resident; nobody lends them anything."""
        own = self._measures[index]
        keyword = None
        if own is not None and len(texts):
            keyword = self._reader.keywords_of(own, self._texts[index], texts)
            keyword = keyword if own.is_known or keyword.any() else None
        fused = self._fused(index, similarities, keyword, None)
        return Parts(similarities, keyword, fused, fused)

    def rarest(self, index: int, most: int) -> list[str]:
        """The words of a query that say most about what is meant."""
        own = self._measures[index]
        return [] if own is None else self._reader.rarest(own, self._texts[index], most)

    def _fused(
        self,
        index: int,
        similarities: Floats,
        keyword: Floats | None,
        has_vector: NDArray[np.bool_] | None,
    ) -> Floats:
        settings = self._reader.settings
        weights = settings.vector_weight, settings.text_weight
        if settings.mode == "keyword":
            return np.zeros(len(similarities)) if keyword is None else keyword
        if keyword is None:
            return similarities
        if not self.vectors[index].any():
            return keyword
        if settings.fusion == "rrf":
            return reciprocal_ranks(similarities, keyword, *weights)
        return weighted_sum(similarities, keyword, *weights, has_vector)

    def _with_context(self, block: AgentColumns, text: str, fused: Floats) -> Floats:
        weights = self._reader.spread
        if weights is None:
            return fused
        sessions = block.sessions()
        places = sessions.places()
        score = fused if places is None else spread(fused, places, weights)
        if weights.speaker and sessions.speakers:
            named = self._reader.speaker_named(text, sessions.speakers)
            if named is not None:
                score = np.minimum(score + weights.speaker * sessions.spoken_by(named), 1.0)
        return score
