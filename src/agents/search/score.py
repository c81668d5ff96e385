"""Queries are read as vectors and as words, and score memories, resident or not."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..config.settings import RetrievalSettings, Settings
from ..errors import EmbedderError
from ..memory.records import Hit, Memory
from ..memory.requests import KeptMetadata
from ..memory.sources import given_importance
from ..rules.classics import Judged, Lives, by_age, forgetting, generative
from ..rules.ranking import (
    Floats,
    Matches,
    Measure,
    coverage,
    everywhere,
    keyword_scores,
    measure,
    spread,
    weighted_sum,
    word_weights,
)
from ..rules.spelling import Reading, slips_allowed
from ..rules.weights import Spread
from ..rules.words import FUNCTION_WORDS
from ..storage.columns.agent_columns import AgentColumns, KeywordIndex, Query, Vocabulary
from ..storage.columns.sessions import Sessions
from ..storage.embedding import (
    CachedEmbedder,
    NoEmbedder,
    Quantised,
    beside,
    is_known,
    norm,
    norms,
    products,
    quantise,
)
from .closely import Pieces, closest, gains, key_of_reading, read_closely
from .passages import likeness_of_passages

Truths = NDArray[np.bool_]

# Scores of classic agents: what became of a memory counts beside its match


class ClassicScore:
    """Scores memories by what became of them, and by how well they match."""

    def __init__(self, settings: Settings) -> None:
        self._rule = settings.retrieval.score
        self._weights = settings.retrieval.generative
        self._ticks_per_day = settings.clock.ticks_per_day
        self.by_tier = np.array(settings.retrieval.tier_importance, np.float64)

    def judge(self, relevance: Floats, lives: Lives, seen: Truths | None) -> Judged:
        """The scores of memories; the search sees those of ``seen``, or all."""
        if self._rule == "generative":
            return generative(relevance, lives, self._weights, self._ticks_per_day, seen)
        if self._rule == "forgetting":
            return forgetting(relevance, lives, self._ticks_per_day)
        return by_age(lives)

    def lives(self, block: AgentColumns, tick: int) -> Lives:
        """What became of an agent's resident memories until a tick."""
        used = np.maximum(block.column("last"), block.column("created"))
        return Lives(
            (tick - used).astype(np.float64),
            block.column("accesses").astype(np.float64),
            importances(block, self.by_tier),
            block.column("sequence").astype(np.float64),
        )


def importances(block: AgentColumns, by_tier: Floats) -> Floats:
    """The importance of each resident memory: what it was given, or else that of its tier."""
    result: Floats = by_tier[block.tiers]
    if not block.table.all_plain:
        _take_given(result, block.metadata())
    return result


def _take_given(result: Floats, metadata: Sequence[KeptMetadata | None]) -> None:
    for place, values in enumerate(metadata):
        if values is not None and (importance := given_importance(values)) is not None:
            result[place] = importance


# Queries and what they make of memories

_UNHEARD = np.array([1024.0])
"""The weight of a word that no memory has."""
_ENDING = 2
"""Letters by which two forms of one word may differ."""


class Wording(NamedTuple):
    """How the words of a query match memories."""

    by: Measure
    keyword: Floats
    found: Matches

    def covered(self) -> Floats:
        """How much of the query each memory has, however long the memory is."""
        return coverage(self.by, self.found)


class ScoreSettings(NamedTuple):
    """By which settings queries score memories."""

    settings: RetrievalSettings
    spread: Spread | None
    is_plain: bool
    """Whether a memory's score is its similarity, whatever other memories there are."""
    tick: int
    classic: ClassicScore | None = None
    """What makes another score of the match, if the settings name one."""


class Parts(NamedTuple):
    """The parts of the scores of memories."""

    vector: Floats
    keyword: Floats | None
    """None if no memory has a word of the query."""
    fused: Floats
    score: Floats
    """``fused`` with what memories of a session lend each other."""
    evidence: Floats
    """The largest of a memory's score, its similarity and its share of the query's words, unless
    ``retrieval.match`` is score."""
    judged: Judged | None = None
    """The score of a classic agent, and its parts."""
    reading: Floats | None = None
    """What reading the best memories word by word adds or takes; None if none were read."""


class ReadQueries:
    """Queries that were read, each for the memories of one agent."""

    def __init__(
        self,
        asking: ScoreSettings,
        reader: "QueryReader",
        blocks: Sequence[AgentColumns],
        texts: Sequence[str],
        vectors: Quantised,
        wordings: Sequence[Wording | None],
        notes: Mapping[int, str],
        readings: Mapping[int, Sequence[Reading]],
        pieces: Mapping[int, Pieces],
    ) -> None:
        self._asking = asking
        self.is_plain = asking.is_plain
        self._reader = reader
        self._blocks = blocks
        self._texts = texts
        self._wordings = wordings
        self.vectors = vectors
        self.notes = dict(notes)
        """What could not be done, by the place of the query."""
        self.readings = readings
        """The words that were read as other ones, by the place of the query."""
        self._pieces = pieces
        """The pieces of the queries by which memories are read closely, by their places."""

    def one(self, index: int) -> "ReadQueries":
        """One of the queries alone."""
        part = slice(index, index + 1)
        return ReadQueries(
            self._asking,
            self._reader,
            self._blocks[part],
            self._texts[part],
            self.vectors[part],
            self._wordings[part],
            {place - index: note for place, note in self.notes.items() if place == index},
            {place - index: read for place, read in self.readings.items() if place == index},
            {place - index: own for place, own in self._pieces.items() if place == index},
        )

    def told(self, index: int) -> str:
        """What is to be told about how a query was read; empty, if it was read as it is."""
        readings = dict.fromkeys(self.readings.get(index, ()))
        note = self.notes.get(index)
        return "; ".join([*map(str, readings), *([note] if note else [])])

    def parts(
        self,
        index: int,
        similarities: Floats,
        *,
        weighed: bool = True,
        hidden: Truths | None = None,
    ) -> Parts:
        """The parts of the scores of a query's resident memories, which have these similarities.

        If not ``weighed``, nobody asks for the evidence, and the score stands for it. The search
        does not see the ``hidden`` memories.
        """
        block, text, wording = self._blocks[index], self._texts[index], self._wordings[index]
        known = wording if wording is not None and wording.by.is_known else None
        keyword = None if known is None else known.keyword
        fused = self._fused(index, similarities, keyword, block.norms > 1.0)
        score = self._with_context(block, text, fused)
        reading = self._read_closely(index, block, score, hidden)
        if reading is not None:
            score = np.clip(score + reading, 0.0, 1.0)
        judged = self._judged(block, score, hidden)
        if judged is not None:
            score = judged.score
        evidence = score
        if weighed:
            covered = None if known is None else known.covered()
            evidence = self._evidence(score, similarities, covered)
        return Parts(similarities, keyword, fused, score, evidence, judged, reading)

    def _read_closely(
        self, index: int, block: AgentColumns, score: Floats, hidden: Truths | None
    ) -> Floats | None:
        """What reading the best of the memories that the search sees adds to each, or takes."""
        pieces = self._pieces.get(index)
        if pieces is None:
            return None
        seen = None if hidden is None else ~hidden
        rows = closest(score, self._asking.settings.read_closely, seen)
        if not len(rows):
            return None
        try:
            found = gains(self._reader.closeness(pieces, block.contents(rows.tolist())))
        except EmbedderError as error:
            self.notes.setdefault(index, f"no memory was read closely, because {error}")
            return None
        reading = np.zeros(len(score))
        reading[rows] = found
        return reading

    def _evidence(self, score: Floats, vector: Floats, covered: Floats | None) -> Floats:
        """What a least score is compared with, by ``retrieval.match``."""
        if self._asking.settings.match == "score":
            return score
        most: Floats = np.maximum(score, vector)
        return most if covered is None else np.maximum(most, covered)

    def _judged(
        self, block: AgentColumns, relevance: Floats, hidden: Truths | None
    ) -> Judged | None:
        """What a classic agent makes of memories."""
        classic = self._asking.classic
        if classic is None:
            return None
        lives = classic.lives(block, self._asking.tick)
        return classic.judge(relevance, lives, None if hidden is None else ~hidden)

    def _fused(
        self, index: int, vector: Floats, keyword: Floats | None, has_vector: Truths
    ) -> Floats:
        settings = self._asking.settings
        weights = settings.vector_weight, settings.text_weight
        if settings.mode == "keyword":
            return np.zeros(len(vector)) if keyword is None else keyword
        if keyword is None:
            return vector
        if not self.vectors[index].any():
            return keyword
        return weighted_sum(vector, keyword, *weights, has_vector)

    def _with_context(self, block: AgentColumns, text: str, fused: Floats) -> Floats:
        """The scores with what sessions and speakers lend."""
        weights = self._asking.spread
        if weights is None or block.table.all_plain:  # no memory has a session or a speaker
            return fused
        sessions = block.sessions()
        places = sessions.places()
        score = fused
        if places is not None:
            lending = fused
            if block.next_expiry <= self._asking.tick:  # a memory that nobody sees lends nothing
                gone = (block.column("expires") <= self._asking.tick) & (block.tiers != 0)
                lending = np.where(gone, 0.0, fused)
            score = spread(lending, places, weights)
        if weights.speaker and sessions.speakers:
            named = self._reader.speaker_named(text, sessions)
            if named is not None:
                score = np.minimum(score + weights.speaker * sessions.spoken_by(named), 1.0)
        return score


class _Weighted(NamedTuple):
    """A query, and the weight of each of its terms in its vector."""

    query: Query
    weights: Floats


class _Meant(NamedTuple):
    """What may be meant by a misspelt word; the least is the likeliest."""

    slips: int
    fewer: int
    term: str
    number: int
    written: str
    instead_of: str


class QueryReader:
    """Reads queries as vectors and as words, as the settings say."""

    def __init__(self, embedder: CachedEmbedder, every: Settings) -> None:
        self.settings = settings = every.retrieval
        self._classic = None if settings.score == "tiers" else ClassicScore(every)
        self._embedder = embedder
        weights = settings.spread
        self._spread = weights if any(weights[:3]) or weights.speaker else None
        self._is_plain = (
            settings.mode == "vector"
            and not settings.sif
            and self._spread is None
            and self._classic is None
        )
        self._language = None if settings.stemmer == "none" else settings.stemmer
        self._vocabulary = Vocabulary(self._language)
        is_weighed = settings.sif > 0.0 and settings.mode != "keyword"
        self._weighs = is_weighed and embedder.word_dims > 0
        self._leaves_out = is_weighed and embedder.word_dims < embedder.dims
        self._reads_names = settings.spelling and settings.mode != "vector"
        # The words that are known to be spelled right are English.
        self._spells = self._reads_names and settings.stemmer in ("english", "porter")
        self._words = embedder.words
        by_passage = every.temperature.promote_by == "passage"
        self._reads_passages = by_passage and embedder.word_dims > 0
        self._has_embedder = not isinstance(embedder.embedder, NoEmbedder)
        reads = settings.read_closely and settings.mode != "keyword"
        self._reads = bool(reads) and embedder.tokens is not None
        self._is_plain = self._is_plain and not self._reads

    def read(self, blocks: Sequence[AgentColumns], texts: Sequence[str], tick: int) -> ReadQueries:
        """Read queries that are not blank, each for the memories of its block in this tick."""
        if self._vocabulary.is_worn():
            worn, self._vocabulary = self._vocabulary, Vocabulary(self._language)
            worn.clear()
        by_words = self.settings.mode != "vector"
        wordings: list[Wording | None] = [None] * len(texts)
        weighted: list[_Weighted | None] = [None] * len(texts)
        texts, meant = list(texts), list(texts)
        """The queries with the names that are meant, and what is embedded of them."""
        readings: dict[int, list[Reading]] = {}
        pieces: dict[int, Pieces] = {}
        if by_words or self._weighs or self._leaves_out or self._reads:
            for place, (block, text) in enumerate(zip(blocks, texts, strict=True)):
                index = block.keywords(self._vocabulary)  # first: it brings in new terms
                named = self._by_name(block, index, text) if self._reads_names else []
                if named:
                    text = texts[place] = meant[place] = _replaced(text, named)
                query = self._vocabulary.query(text)
                if not len(query.terms):
                    continue
                found = index.find(query)
                misspelt: list[Reading] = []
                if self._spells:
                    query, found, misspelt = self._spelled(block, index, query, found)
                if named or misspelt:
                    readings[place] = [*(reading for _, reading in named), *misspelt]
                if by_words:
                    wordings[place] = self._wording(measure(found, query.common), found)
                if (self._weighs or self._reads) and query.words:
                    weights = word_weights(found, index.total, self.settings.sif)
                    if self._weighs:
                        weighted[place] = _Weighted(query, weights)
                    if self._reads:
                        pieces[place] = _pieces_to_read(text, query, weights, misspelt)
                if self._leaves_out and (common := everywhere(found)).any():
                    terms = {query.names[each] for each in common.nonzero()[0].tolist()}
                    meant[place] = self._vocabulary.without(text, terms)
        vectors, notes = self._vectors_of(meant, weighted)
        pieces = {place: own for place, own in pieces.items() if place not in notes}
        asking = ScoreSettings(self.settings, self._spread, self._is_plain, tick, self._classic)
        return ReadQueries(asking, self, blocks, texts, vectors, wordings, notes, readings, pieces)

    def plain(self, text: str) -> Quantised:
        """The vector of a text with all its words alike; zeros if it has none."""
        vector: Quantised = self._vectors_of([text], [None])[0][0]
        return vector

    def closeness(self, pieces: Pieces, texts: Sequence[str]) -> NDArray[np.int64]:
        """How near each text is to a query, word by word, in millionths."""
        tokens = self._embedder.tokens
        if tokens is None:
            return np.zeros(len(texts), np.int64)
        key, read = key_of_reading(pieces, texts), partial(read_closely, tokens, pieces, texts)
        return self._embedder.kept(key, len(texts), read)

    def passages(self, query: str, texts: Sequence[str]) -> list[float]:
        """How alike a query and the best passage of each text are, if the settings ask for it."""
        if not self._reads_passages:
            return [0.0] * len(texts)
        return likeness_of_passages(self._words, query, texts)

    def speaker_named(self, text: str, sessions: Sessions) -> int | None:
        """The number of the speaker whose name is in a query, if there is only one."""
        heard = self._vocabulary.heard
        return sessions.named_in(heard(text), heard)

    def _by_name(
        self, block: AgentColumns, index: KeywordIndex, text: str
    ) -> list[tuple[slice, Reading]]:
        """The nicknames in a query, where they stand, and the names of the speakers meant.

        A nickname that a speaker says, too, may be somebody else's, and stays beside the name.
        """
        if block.table.all_plain or not (sessions := block.sessions()).speakers:
            return []
        starts, found = sessions.may_name(), []
        words = self._vocabulary.words_in(text)
        may_name = [match for match in words if match[0][:2].casefold() in starts]
        for match in may_name:
            word = match[0]
            called = sessions.called(word)
            if called is None or word.casefold() in FUNCTION_WORDS:
                continue
            name, speaker = called
            if any(other[0].casefold() == name.casefold() for other in may_name):
                continue
            number = self._vocabulary.number_of(word)
            memories = index.having(number)
            is_new = not len(memories)
            if word[0].isupper() or (is_new and not is_known(word)):
                meant = f"{word} {name}" if sessions.said(memories, speaker) else name
                found.append((slice(*match.span()), Reading(word, meant)))
        return found

    def _spelled(
        self, block: AgentColumns, index: KeywordIndex, query: Query, found: Matches
    ) -> tuple[Query, Matches, list[Reading]]:
        """A query with the nearest terms of the memories for misspelt ones, and its matches."""
        read_as: dict[int, _Meant] = {}
        for place, written in self._vocabulary.strange(query).items():
            if not query.common[place] and not (found.terms == place).any():
                meant = self._meant(block, index, written, query.names[place])
                others = {each.number for each in read_as.values()}.union(query.terms.tolist())
                if meant is not None and meant.number not in others:
                    read_as[place] = meant
        if not read_as:
            return query, found, []
        terms, names = query.terms.copy(), list(query.names)
        for place, meant in read_as.items():
            terms[place], names[place] = meant.number, meant.term
        query = query._replace(terms=terms, names=tuple(names))
        readings = [Reading(meant.instead_of, meant.written) for meant in read_as.values()]
        return query, index.find(query), readings

    def _meant(
        self, block: AgentColumns, index: KeywordIndex, written: str, term: str
    ) -> "_Meant | None":
        """The term of the memories that was meant by a word: the fewest slips, then the most
        memories."""
        vocabulary, most = self._vocabulary, slips_allowed(written)
        found = []
        for near in vocabulary.near(term, most):
            memories = index.having(near.number)
            if len(memories):
                (text,) = block.contents([int(memories[0])])
                theirs = vocabulary.written(text, near.term)
                # Stems may be near where the words are not, as those of tasting and tart.
                between = most + _ENDING
                if vocabulary.apart(written, theirs, between) <= between:
                    of = near.slips, -len(memories), near.term, near.number
                    found.append(_Meant(*of, theirs, written))
        return min(found, default=None)

    def _wording(self, by: Measure, matches: Matches) -> Wording:
        settings = self.settings
        keyword = keyword_scores(by, matches, settings.bm25_k1, settings.bm25_b)
        return Wording(by, keyword, matches)

    def _vectors_of(
        self, texts: Sequence[str], weighted: Sequence[_Weighted | None]
    ) -> tuple[Quantised, dict[int, str]]:
        """A row per query; zeros and a note for a query that can't be embedded."""
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
        for place, text in enumerate(texts):  # one by one: some can be embedded
            try:
                rows[place] = self._embedded([text], weighted[place : place + 1])[0]
            except EmbedderError as error:
                notes[place] = f"found by words alone, because {error}"
        return rows, notes

    def _embedded(self, texts: Sequence[str], weighted: Sequence[_Weighted | None]) -> Quantised:
        if not self._weighs:
            return self._embedder.encode_queries(texts)
        dims, word_dims = self._embedder.dims, self._embedder.word_dims
        plain = [index for index, each in enumerate(weighted) if each is None]
        words = self._words.of([each.query.words for each in weighted if each is not None])
        rows = np.zeros((len(texts), word_dims))
        for index, each in enumerate(weighted):
            if each is not None:
                weights = np.concatenate([each.weights, _UNHEARD])[each.query.places]
                rows[index] = weights @ next(words)
        vectors = quantise(rows, word_dims, len(texts))
        if word_dims < dims:
            whole = self._embedder.encode_queries(texts)
            vectors = quantise(beside(vectors, whole[:, word_dims:]), dims, len(texts))
            vectors[plain] = whole[plain]
        elif plain:
            vectors[plain] = self._embedder.encode_queries([texts[index] for index in plain])
        return vectors


def _pieces_to_read(
    text: str, query: Query, weights: Floats, misspelt: Sequence[Reading]
) -> Pieces:
    """The words of a query as they are meant, each with the weight of its term.

    A question mark has no weight, but what stands before it is read as a question.
    """
    meant = dict(misspelt)
    every = np.concatenate([weights, _UNHEARD])[query.places].astype(np.int64).tolist()
    pieces = [
        (meant.get(word, word), weight) for word, weight in zip(query.words, every, strict=True)
    ]
    return [*pieces, ("?", 0)] if text.rstrip().endswith("?") else pieces


def _replaced(text: str, named: Sequence[tuple[slice, Reading]]) -> str:
    """The text with what is meant in place of these words."""
    for place, reading in reversed(named):
        text = text[: place.start] + reading.meant + text[place.stop :]
    return text


# Vectors and hits


def similarities(
    vectors: Quantised, query: Quantised, lengths: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """The cosine similarity of each row to a query, the same bits as :func:`score` gives.

    ``lengths`` are those of the rows, if they are known.
    """
    row_lengths = norms(vectors) if lengths is None else lengths
    scores: NDArray[np.float64] = products(vectors, query) / (row_lengths * norm(query))
    return np.minimum(np.maximum(scores, 0.0, out=scores), 1.0, out=scores)


class Weigher(Protocol):
    """Gives each memory a factor, from 0 to 1, by which its score and its boost count."""

    def factors(self, block: AgentColumns) -> NDArray[np.float64] | None:
        """The factor of each resident memory of an agent; None if all are 1."""

    def of(self, memory: Memory) -> float:
        """The factor of one memory, resident or not."""


def hits_of(
    block: AgentColumns,
    rows: list[int],
    scores: Iterable[float],
    boosts: Sequence[float],
    weigher: Weigher | None,
    matches: Iterable[float | None] = repeat(None),
) -> list[Hit]:
    """The memories in these rows of an agent, as hits; ``boosts`` are those of the tiers."""
    memories = block.memories(rows)
    added = [boosts[memory.tier] for memory in memories]
    factors = None if weigher is None else weigher.factors(block)
    if factors is not None:
        added = [boost * factors.item(row) for row, boost in zip(rows, added, strict=True)]
    return [
        Hit(memory, similarity, boost, similarity + boost, match)
        for memory, similarity, boost, match in zip(memories, scores, added, matches, strict=False)
    ]
