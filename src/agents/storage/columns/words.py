"""The words of an agent's resident memories: a keyword index that grows with them.

The index is a list of entries in three columns: a term, a memory that has it, and how often. A
search reads all the terms, as it reads all the vectors: that is a tenth of the bytes, and needs no
second structure to keep true. The index is made from the memories' texts when an agent is first
searched, and is never written to disk.
"""

import functools
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypeVar
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from ...rules.ranking import Matches
from ...rules.words import FUNCTION_WORDS, Stem, Words, words_of

_MOST_TERMS = 255
"""A query is searched by its first different terms, up to this many."""
_MOST_PIECES = 100_000
_LONGEST_PIECE = 40
_MOST_QUERIES, _LONGEST_QUERY = 4096, 1000
_FEW_TERMS = 100_000
"""A vocabulary with at most this many terms is never worn."""
_MOST_WORDS = 1000
"""The vector of a query is made from its first words, up to this many."""

Numbers = NDArray[np.int32]
_NO_MARKS = np.zeros(0, np.uint8)
_Cell = TypeVar("_Cell", np.int32, np.float32, np.float64)


class Query(NamedTuple):
    """A query's terms, each once, and its words as they are written."""

    terms: Numbers
    """-1 for a term that no memory ever had."""
    words: tuple[str, ...]
    places: NDArray[np.intp]
    """For each word the place of its term in ``terms``; -1 if the term was left out."""
    common: NDArray[np.bool_]
    """Which terms say little in any text."""
    names: tuple[str, ...]
    """The terms themselves."""


def stem_of(language: str | None) -> Stem | None:
    """The stemmer of a language; None without a language."""
    if language is None or language == "none":
        return None
    import Stemmer

    stem: Stem = Stemmer.Stemmer(language).stemWord
    return stem


@functools.cache
def _function_terms(language: str | None) -> tuple[tuple[str, ...], ...]:
    """The terms of the words that say little in any text."""
    stem = stem_of(language)
    return tuple(words_of(word, stem).terms for word in sorted(FUNCTION_WORDS))


class Vocabulary:
    """The terms of all agents of a bank, numbered in the order in which they come up."""

    def __init__(self, language: str | None) -> None:
        self._stem = stem_of(language)
        self._terms: dict[str, int] = {}
        self._pieces: dict[str, tuple[int, ...]] = {}
        self._spoken: dict[str, Words] = {}
        self._queries: dict[str, tuple[int, Query]] = {}
        self._marks = _NO_MARKS
        self.indexes: WeakSet[KeywordIndex] = WeakSet()
        """The indexes that use the numbers of these terms."""
        self._most = _FEW_TERMS
        spoken = _function_terms(language)
        self._common = {number for terms in spoken for number in self._numbers(terms)}

    def is_worn(self) -> bool:
        """Whether there are many terms, and most are of memories that are gone."""
        if len(self._terms) <= self._most:
            return False
        self._most = max(_FEW_TERMS, 2 * sum(index.entries for index in self.indexes))
        return len(self._terms) > self._most

    def clear(self) -> None:
        """Forget all words; an index that still has this vocabulary is of no use."""
        for known in (self._terms, self._pieces, self._spoken, self._queries):
            known.clear()

    def terms(self, text: str) -> list[int]:
        """The terms of a text; a term that comes twice is there twice."""
        found: list[int] = []
        known = self._pieces
        for piece in text.split():
            numbers = known.get(piece)
            found += self._learn(piece) if numbers is None else numbers
        return found

    def count(self, query: str, texts: Sequence[str]) -> Matches:
        """Where the query's terms are in texts that no index has."""
        index = KeywordIndex(self)
        index.extend(texts)
        return index.find(self.query(query))

    def names(self) -> list[str]:
        """The terms, by their numbers."""
        return list(self._terms)

    def take_marks(self) -> NDArray[np.uint8]:
        """A zero for each term; a caller that wrote zeros again gives them back.

        What an error keeps from that is lost, and the next caller gets new ones.
        """
        marks, self._marks = self._marks, _NO_MARKS
        few = len(marks) < len(self._terms)
        return np.zeros(2 * len(self._terms), np.uint8) if few else marks

    def give_back(self, marks: NDArray[np.uint8]) -> None:
        """Keep marks, which are zeros, for the next caller."""
        self._marks = marks

    def _learn(self, piece: str) -> tuple[int, ...]:
        numbers = self._numbers(words_of(piece, self._stem).terms)
        if len(piece) <= _LONGEST_PIECE:
            if len(self._pieces) >= _MOST_PIECES:
                self._pieces.clear()
            self._pieces[piece] = numbers
        return numbers

    def _numbers(self, terms: Sequence[str]) -> tuple[int, ...]:
        known = self._terms
        return tuple([known.setdefault(term, len(known)) for term in terms])

    def query(self, text: str) -> Query:
        """A query by its terms; new words are not learned, or queries would fill the vocabulary."""
        size, known = self._queries.get(text, (-1, None))
        if known is not None and (size == len(self._terms) or known.terms.min(initial=0) >= 0):
            return known
        query = self._read(text)
        if len(text) <= _LONGEST_QUERY:
            if len(self._queries) >= _MOST_QUERIES:
                self._queries.clear()
            self._queries[text] = (len(self._terms), query)
        return query

    def heard(self, text: str) -> set[str]:
        """The terms of a text; new ones are not learned."""
        known = self._spoken
        pieces = (known.get(piece) or self._hear(piece) for piece in text.split())
        return {term for found in pieces for term in found.terms}

    def _read(self, text: str) -> Query:
        place: dict[str, int] = {}
        spoken: list[tuple[str, str]] = []
        for piece in text.split():
            found = self._spoken.get(piece) or self._hear(piece)
            for term in found.terms:
                place.setdefault(term, len(place))
            spoken += found.spoken[: _MOST_WORDS - len(spoken)]
        terms = list(place)[:_MOST_TERMS]
        numbers = [self._terms.get(term, -1) for term in terms]
        return Query(
            np.array(numbers, np.int32),
            tuple([word for word, _ in spoken]),
            np.array(
                [at if (at := place[term]) < _MOST_TERMS else -1 for _, term in spoken], np.intp
            ),
            np.array([number in self._common for number in numbers], bool),
            tuple(terms),
        )

    def _hear(self, piece: str) -> Words:
        found = words_of(piece, self._stem)
        if len(piece) <= _LONGEST_PIECE:
            if len(self._spoken) >= _MOST_PIECES:
                self._spoken.clear()
            self._spoken[piece] = found
        return found


class KeywordIndex:
    """The terms of one agent's memories, of which the oldest ``size`` are indexed."""

    __slots__ = (
        "__weakref__",
        "_counts",
        "_lengths",
        "_memories",
        "_terms",
        "_used",
        "size",
        "total",
        "vocabulary",
    )

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        vocabulary.indexes.add(self)
        self.size = 0
        self.total = 0
        """How many terms all memories have together."""
        self._used = 0
        # These arrays have room to spare.
        self._terms: Numbers = np.empty(0, np.int32)
        self._memories: Numbers = np.empty(0, np.int32)
        self._counts: NDArray[np.float32] = np.empty(0, np.float32)
        self._lengths: NDArray[np.float64] = np.empty(0)

    @property
    def entries(self) -> int:
        """How many pairs of a term and a memory there are."""
        return self._used

    def extend(self, texts: Sequence[str]) -> None:
        """Index the next memories."""
        terms_of, flat, counts = self.vocabulary.terms, list[int](), list[int]()
        lengths, entries = [], []
        for text in texts:
            terms = terms_of(text)
            lengths.append(len(terms))
            once = dict.fromkeys(terms, 1)
            if len(once) < len(terms):
                once = Counter(terms)
            entries.append(len(once))
            flat += once
            counts += once.values()
        first, last = self.size, self.size + len(texts)
        start, stop = self._used, self._used + len(flat)
        self._terms = with_room(self._terms, start, stop)
        self._memories = with_room(self._memories, start, stop)
        self._counts = with_room(self._counts, start, stop)
        self._lengths = with_room(self._lengths, first, last)
        self._terms[start:stop] = flat
        self._memories[start:stop] = np.repeat(np.arange(first, last, dtype=np.int32), entries)
        self._counts[start:stop] = counts
        self._lengths[first:last] = lengths
        total = self.total + sum(lengths)
        self.size, self._used, self.total = last, stop, total  # at once, also for an interrupt

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Keep only these memories; ``kept`` also covers memories that are not indexed yet."""
        kept = kept[: self.size]
        number = np.cumsum(kept, dtype=np.int32) - np.int32(1)
        memories = self._memories[: self._used]
        entries = kept[memories]
        self._terms = self._terms[: self._used][entries]
        self._memories = number[memories[entries]]
        self._counts = self._counts[: self._used][entries]
        self._lengths = self._lengths[: self.size][kept]
        self.size, self._used = len(self._lengths), len(self._terms)
        self.total = int(self._lengths.sum())

    def reorder(self, order: NDArray[np.intp]) -> None:
        """Put the memories in this order: the first is the memory that was at ``order[0]``."""
        places = np.empty(len(order), np.int32)
        places[order] = np.arange(len(order), dtype=np.int32)
        self._memories = places[self._memories[: self._used]]
        self._lengths = self._lengths[: self.size][order]

    def find(self, query: Query) -> Matches:
        """Where the query's terms are, and how often."""
        marks = self.vocabulary.take_marks()
        places = (query.terms >= 0).nonzero()[0]
        known = query.terms[places]
        marks[known] = (places + 1).astype(np.uint8)
        found = marks.take(self._terms[: self._used])
        marks[known] = 0
        self.vocabulary.give_back(marks)
        entries = found.view(bool).nonzero()[0]  # as bytes it would take ten times as long
        terms = found.take(entries).astype(np.intp)
        terms -= 1
        memories, counts = self._memories.take(entries), self._counts.take(entries)
        return Matches(terms, memories, counts, self._lengths[: self.size], len(query.terms))

    def contents(self) -> list[list[str]]:
        """The terms of each memory, in order: equal for two indexes of the same memories."""
        names = self.vocabulary.names()
        result: list[list[str]] = [[] for _ in range(self.size)]
        columns = (each[: self._used] for each in (self._terms, self._memories, self._counts))
        for term, memory, count in zip(*columns, strict=True):
            result[memory] += [names[term]] * int(count)
        return result


def with_room(column: NDArray[_Cell], used: int, needed: int) -> NDArray[_Cell]:
    """The column, of which so much is used; a larger one if it has less room than is needed."""
    if needed <= len(column):
        return column
    larger = np.empty(needed + needed // 4, column.dtype)
    larger[:used] = column[:used]
    return larger
