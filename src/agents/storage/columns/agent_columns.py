"""One agent's resident memories: its rows of the table, read and changed where they are, and the
index of their words.
"""

import functools
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from re import Match
from typing import Any, Literal, NamedTuple
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from ...memory.records import (
    NEVER,
    NO_METADATA,
    PLAIN,
    Memory,
    Metadata,
    Traits,
    id_prefix,
    sequence_digits,
)
from ...memory.requests import KeptMetadata, memories_of
from ...memory.sources import OF_A_MEMORY
from ...memory.tiers import Temperature, Tier
from ...rules.ranking import Matches, relevance
from ...rules.spelling import slips, slips_allowed
from ...rules.tiers import Occupant, age, axes_of, entered
from ...rules.words import FUNCTION_WORDS, Stem, Words, words_of
from ..embedding import Quantised, is_known
from ..note import Note
from ..record import MOST_RECALLS
from .extras import Extras, Holdings, Origins, Standing, TierOrder, first_turn
from .sessions import Sessions
from .spellings import Near, Spellings
from .table import WIDTH, Columns, ResidentTable, with_room

Numbers = NDArray[np.int64]

_TIERS, _TEMPERATURES = tuple(Tier), tuple(Temperature)
# NumPy asks an enum a dozen questions before it takes it for the number it is.
_HOT = int(Temperature.HOT)
_FEW = 64
_NOTHING: Numbers = np.empty(0, np.int64)
_UNKNOWN = -1
"""Stands for what a memory takes in a context where nobody counted it."""
NUMBERS = 9
"""Whole numbers per memory in a snapshot: ``WIDTH`` of the table, tier, temperature, uses."""


# The words of an agent's resident memories: a keyword index that grows with them.
#
# The index is a list of entries in three columns: a term, a memory that has it, and how often. A
# search reads all the terms, as it reads all the vectors: that is a tenth of the bytes, and needs
# no second structure to keep true. The index is made from the memories' texts when an agent is
# first searched, and is never written to disk.

_MOST_TERMS = 255
"""A query is searched by its first different terms, up to this many."""
_WORD = re.compile(r"[^\W\d_]+")
_MOST_PIECES = 100_000
_LONGEST_PIECE = 40
_MOST_QUERIES, _LONGEST_QUERY = 4096, 1000
_FEW_TERMS = 100_000
"""A vocabulary with at most this many terms is never worn."""
_MOST_WORDS = 1000
"""The vector of a query is made from its first words, up to this many."""

Terms = NDArray[np.int32]
_NO_MARKS = np.zeros(0, np.uint8)


class Query(NamedTuple):
    """A query's terms, each once, and its words as they are written."""

    terms: Terms
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
        self._spellings = Spellings()
        self._strange: dict[tuple[str, ...], dict[int, str]] = {}
        self._in_queries: dict[str, list[Match[str]]] = {}
        self._apart: dict[tuple[str, str, int], int] = {}
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
        self._spellings.clear()
        for known in (
            self._terms, self._pieces, self._spoken, self._queries, self._strange,
            self._in_queries, self._apart,
        ):  # fmt: skip
            known.clear()

    def terms(self, text: str) -> list[int]:
        """The terms of a text; a term that comes twice is there twice."""
        found: list[int] = []
        known = self._pieces
        for piece in text.split():
            numbers = known.get(piece)
            found += self._learn(piece) if numbers is None else numbers
        return found

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

    def strange(self, query: Query) -> Mapping[int, str]:
        """The words of a query that are not well known as they are written, by their terms' places.

        They may be misspelt, if no memory has them.
        """
        known = self._strange.get(query.names)
        if known is None:
            known = {
                place: word
                for place, word in zip(query.places.tolist(), query.words, strict=True)
                if place >= 0 and slips_allowed(word) and word.isalpha() and not is_known(word)
            }
            if len(self._strange) >= _MOST_QUERIES:
                self._strange.clear()
            self._strange[query.names] = known
        return known

    def number_of(self, word: str) -> int:
        """The number of the term of a word; -1 if no memory ever had it."""
        numbers = [self._terms.get(term, -1) for term in words_of(word, self._stem).terms]
        return numbers[0] if len(numbers) == 1 else -1

    def written(self, text: str, term: str) -> str:
        """The first word of a text that has a term, as it is written there."""
        for piece in text.split():
            found = self._spoken.get(piece) or self._hear(piece)
            if term in found.terms:
                return next((word for word, its in found.spoken if its == term), term)
        return term

    def apart(self, word: str, other: str, most: int) -> int:
        """How many slips lie between two words, whatever their capitals; ``most + 1``: more."""
        found = self._apart.get((word, other, most))
        if found is None:
            found = slips(word.casefold(), other.casefold(), most)
            if len(self._apart) >= _MOST_QUERIES:
                self._apart.clear()
            self._apart[word, other, most] = found
        return found

    def words_in(self, query: str) -> list[Match[str]]:
        """The words of a query, and where they stand."""
        found = self._in_queries.get(query)
        if found is None:
            found = list(_WORD.finditer(query))
            if len(query) <= _LONGEST_QUERY:
                if len(self._in_queries) >= _MOST_QUERIES:
                    self._in_queries.clear()
                self._in_queries[query] = found
        return found

    def near(self, term: str, most: int) -> list[Near]:
        """The terms of all agents that so many slips make of a term, and that say something."""
        found = self._spellings.near(term, most, self._terms)
        return [each for each in found if each.number not in self._common]

    def heard(self, text: str) -> set[str]:
        """The terms of a text; new ones are not learned."""
        known = self._spoken
        pieces = (known.get(piece) or self._hear(piece) for piece in text.split())
        return {term for found in pieces for term in found.terms}

    def without(self, text: str, terms: set[str]) -> str:
        """A text without the pieces that have such terms alone, and the whole text if it says
        nothing without them."""
        heard = [(piece, self._spoken.get(piece) or self._hear(piece)) for piece in text.split()]
        left = [(piece, found) for piece, found in heard if not terms.issuperset(found.terms)]
        says = {self._terms.get(term, -1) for _, found in left for term in found.terms}
        return text if says <= self._common else " ".join([piece for piece, _ in left])

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
        self._terms: Terms = np.empty(0, np.int32)
        self._memories: Terms = np.empty(0, np.int32)
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

    def having(self, number: int) -> Terms:
        """The memories that have a term, oldest first."""
        entries = self._terms[: self._used] == number
        memories: Terms = self._memories[: self._used][entries]
        return memories

    def contents(self) -> list[list[str]]:
        """The terms of each memory, in order: equal for two indexes of the same memories."""
        names = self.vocabulary.names()
        result: list[list[str]] = [[] for _ in range(self.size)]
        columns = (each[: self._used] for each in (self._terms, self._memories, self._counts))
        for term, memory, count in zip(*columns, strict=True):
            result[memory] += [names[term]] * int(count)
        return result


class Outline(NamedTuple):
    """A memory without what became of it. Its metadata is the table's own: only to look at."""

    id: str
    agent_id: str
    content: str
    tier: Tier
    metadata: Metadata


class AgentColumns:
    """One agent's memories from the oldest to the newest: its rows of the table.

    A :class:`Memory` is made for each caller that asks for one, and is not kept.
    """

    __slots__ = (
        "_costs",
        "_extras",
        "_hot",
        "_keywords",
        "_pinned",
        "_sessions",
        "agent_id",
        "has_extras",
        "holdings",
        "hot_tokens",
        "next_decay",
        "next_expiry",
        "next_sequence",
        "origins",
        "prefix",
        "room",
        "size",
        "slot",
        "start",
        "table",
    )

    def __init__(self, agent_id: str, seed: int, table: ResidentTable, slot: int = -1) -> None:
        self.agent_id = agent_id
        self.slot = slot
        """The agent's number in the population; -1 for an agent that is not in it."""
        self.prefix = id_prefix(seed, agent_id)
        self.next_sequence = 1
        self.size = 0
        """How many memories there are."""
        self.next_expiry = NEVER
        """No memory expires before this tick."""
        self.next_decay = 0
        """No memory fades to another temperature before this tick."""
        self.holdings: Holdings | None = None
        """What the agent holds beside its memories, if anything."""
        self.origins: Origins | None = None
        """The agent's memories by their origins, if somebody asked for them."""
        self.hot_tokens: int | None = None
        """What the hot memories take in a context, if somebody counted since they changed."""
        self.table = table
        self.start = self.room = 0
        self.has_extras = False
        """Whether the agent has :class:`Extras`."""
        self._costs: Numbers = _NOTHING
        self._extras: Extras | None = None
        self._pinned: tuple[int, ...] | None = None
        self._hot: tuple[int, ...] | None = None
        self._keywords: KeywordIndex | None = None
        self._sessions: Sessions | None = None

    def __len__(self) -> int:
        return self.size

    def look_at(self, start: int, room: int) -> None:
        """The memories are in these rows of the table, of which the first ``size`` are in use."""
        self.start, self.room = start, room

    @property
    def cells(self) -> Columns:
        """The agent's rows of the table's columns; the first ``size`` rows hold memories.

        They are made for each caller: an agent that nobody looks at has only its numbers.
        """
        rows = slice(self.start, self.start + self.room)
        return Columns._make([column[rows] for column in self.table.columns])

    def columns(self) -> tuple[NDArray[Any], ...]:
        """The rows that are in use, column by column, as the table has them."""
        rows = slice(self.start, self.start + self.size)
        return tuple([column[rows] for column in self.table.columns])

    @property
    def is_hashed(self) -> bool:
        """Whether the sum of the hashes over the memories is kept up to date."""
        return self.table.sums.knows(self.slot)

    @property
    def shelf_sum(self) -> int:
        """The sum of the hashes over the agent's memories that are not resident."""
        return self.table.shelf_sums.of(self.slot)

    @shelf_sum.setter
    def shelf_sum(self, total: int) -> None:
        self.table.shelf_sums.put(self.slot, total)

    # Extras

    @property
    def is_bare(self) -> bool:
        """Whether the agent has nothing beside its memories that the hash over it covers."""
        return self._extras is None and self.holdings is None

    @property
    def extras(self) -> Extras:
        """The agent's extras; an agent that had none has empty ones from now on."""
        extras = self._extras
        if extras is None:
            extras, self.has_extras = Extras(), True
            self._extras = extras
        return extras

    @property
    def recalls(self) -> dict[int, tuple[int, ...]]:
        """The ticks in which a memory was recalled, by its sequence number."""
        return self.extras.recalls

    @property
    def critical_elsewhere(self) -> dict[int, Memory]:
        """The critical memories that are cold: they count for the cap."""
        return self.extras.critical_elsewhere

    @property
    def tier_order(self) -> TierOrder:
        """The order in which memories entered the tiers that have a cap."""
        return self.extras.tier_order

    @property
    def notes(self) -> dict[str, Note]:
        """The agent's Markdown notes, by path."""
        return self.extras.notes

    # Reading

    def memories(self, rows: Iterable[int]) -> list[Memory]:
        """The memories in these rows."""
        rows = list(rows)
        if not rows:
            return []
        if len(rows) > _FEW:
            places = np.array(rows, np.intp) + self.start
            numbers_of = self.table.numbers.take(places, axis=0)
            return self.table.memories(
                places, numbers_of, repeat(self.agent_id), repeat(self.prefix)
            )
        # As the table does for many agents at once; of a few memories, this takes a tenth of that.
        table, start = self.table, self.start
        numbers, records = table.flat_numbers, table.flat_records
        contents, tiers, temperatures = table.contents, table.tiers.item, table.temperatures.item
        rows = [start + row for row in rows]
        sequences, created, entered, expires, counts, last = zip(
            *[numbers[WIDTH * row : WIDTH * (row + 1)] for row in rows], strict=True
        )
        is_plain = table.all_plain
        return memories_of(
            prefixes=repeat(self.prefix),
            agents=repeat(self.agent_id),
            contents=[contents[row] for row in rows],
            tiers=[_TIERS[tiers(row)] for row in rows],
            created=created,
            entered=entered,
            sequences=sequences,
            temperatures=[_TEMPERATURES[temperatures(row)] for row in rows],
            metadata=None if is_plain else [table.metadata[row] for row in rows],
            traits=None if is_plain else [table.traits[row] for row in rows],
            expires=expires,
            counts=counts,
            last=last,
            relevance=[
                relevance(records[row], count) for row, count in zip(rows, counts, strict=True)
            ],
        )

    def labels(self, rows: Iterable[int]) -> list[tuple[str, Tier, str]]:
        """Text, tier and kind of the memories in these rows: what a line shows of them."""
        table, start = self.table, self.start
        tiers, contents, kinds = table.tiers, table.contents, table.traits
        return [
            (contents[row], _TIERS[tiers.item(row)], (kinds[row] or PLAIN).kind)
            for row in [start + row for row in rows]
        ]

    def outlines(self, rows: NDArray[np.intp], sequences: Iterable[int]) -> list[Outline]:
        """The memories in these rows of the table, in a third of the time of :meth:`memories`."""
        table = self.table
        fields = zip(
            map(self.prefix.__add__, map(sequence_digits, sequences)),  # memory_id()
            repeat(self.agent_id),
            table.contents.take(rows).tolist(),
            map(_TIERS.__getitem__, table.tiers.take(rows).tolist()),
            [kept or NO_METADATA for kept in table.metadata.take(rows).tolist()],
            strict=False,
        )
        return list(map(tuple.__new__, repeat(Outline), fields))  # Outline(…), at half its cost

    def memory(self, row: int) -> Memory:
        """The memory in a row."""
        return self.memories((row,))[0]

    def contents(self, rows: slice | Sequence[int] | NDArray[np.intp] = slice(None)) -> list[str]:
        """The text of each memory, or of those in these rows."""
        texts: list[str] = self._own(self.table.contents)[rows].tolist()
        return texts

    def metadata(self) -> list[KeptMetadata | None]:
        """The metadata of each memory."""
        kept: list[KeptMetadata | None] = self._own(self.table.metadata).tolist()
        return kept

    def traits(self) -> list[Traits | None]:
        """Kind and tags of each memory; None for a plain fact."""
        kept: list[Traits | None] = self._own(self.table.traits).tolist()
        return kept

    def row_of(self, sequence: int) -> int | None:
        """The row of the memory with this sequence number."""
        # Without gaps it is the number less one; gaps only move it up.
        row, of_row = min(sequence, self.size) - 1, self.sequence
        if row < 0 or of_row(row) == sequence:
            return row if row >= 0 else None
        row = bisect_left(range(row), sequence, key=of_row)
        return row if of_row(row) == sequence else None

    def rows_of(self, sequences: Sequence[int]) -> tuple[list[int], list[int]]:
        """The rows of these memories, and the sequence numbers of memories that are not here."""
        if len(sequences) < _FEW:
            pairs = [(sequence, self.row_of(sequence)) for sequence in sequences]
            rows = [row for _, row in pairs if row is not None]
            return rows, [sequence for sequence, row in pairs if row is None]
        numbers = self.figures[:, 0]
        wanted = np.asarray(sequences, np.int64)
        places = np.searchsorted(numbers, wanted)
        here = (
            numbers[np.minimum(places, max(0, len(numbers) - 1))] == wanted
            if len(numbers)
            else wanted < 0
        )
        return places[here].tolist(), wanted[~here].tolist()

    def sequence(self, row: int) -> int:
        """The sequence number of the memory in a row."""
        return self.table.flat_numbers[WIDTH * (self.start + row)]

    def occupants(self, tier: Tier) -> Sequence[Occupant]:
        """The memories of a tier, the cold ones too, in any order."""
        rows: Sequence[int]
        if tier is Tier.PINNED:
            rows = self.pinned
        else:
            rows = (self.tiers == int(tier)).nonzero()[0].tolist()
        occupants = [self._standing(row, tier) for row in rows]
        if tier is Tier.CRITICAL and self.has_extras:
            elsewhere = self.critical_elsewhere.values()
            occupants += [
                self.tier_order.standing(memory.sequence, tier, memory.tier_tick)
                for memory in elsewhere
            ]
        return occupants

    def _standing(self, row: int, tier: Tier) -> Standing:
        place = WIDTH * (self.start + row)
        sequence, _, entered = self.table.flat_numbers[place : place + 3]
        if self._extras is None:
            return Standing(sequence, tier, entered, first_turn(sequence))
        return self.tier_order.standing(sequence, tier, entered)

    @property
    def pinned(self) -> tuple[int, ...]:
        """The rows of the pinned memories, oldest pin first."""
        if self._pinned is None:
            rows: list[int] = (self.tiers == 0).nonzero()[0].tolist()
            rows.sort(key=lambda row: age(self._standing(row, Tier.PINNED)))
            self._pinned = tuple(rows)
        return self._pinned

    def pinned_memories(self) -> list[Memory]:
        """The pinned memories, oldest pin first."""
        return self.memories(self.pinned)

    @property
    def hot(self) -> tuple[int, ...]:
        """The rows of the hot memories that are not pinned, oldest first."""
        if self._hot is None:
            is_hot = self.temperatures == _HOT
            self._hot = tuple((is_hot & (self.tiers != 0)).nonzero()[0].tolist())
        return self._hot

    @property
    def has_hot(self) -> bool:
        """Whether a memory that is not pinned is hot."""
        if self._hot is None:
            if ((self.temperatures == _HOT) & (self.tiers != 0)).any():
                return True
            self._hot = ()
        return bool(self._hot)

    def front(self, session: str | None = None) -> list[int]:
        """The rows of the pinned memories, then of the other hot ones; of a session, if given."""
        if session is None:
            return [*self.pinned, *self.hot]
        members = self.sessions().members(session)
        hot = members & (self.temperatures == _HOT) & (self.tiers != 0)
        return [*self.pinned_in(session), *hot.nonzero()[0].tolist()]

    def pinned_in(self, session: str | None) -> list[int]:
        """The rows of the pinned memories, of a session if given, oldest pin first."""
        if session is None:
            return list(self.pinned)
        members = self.sessions().members(session)
        return [row for row in self.pinned if members[row]]

    def front_rows(self) -> NDArray[np.intp]:
        """The rows of all hot memories, pinned ones among them, oldest first."""
        rows: NDArray[np.intp] = ((self.temperatures == _HOT) | (self.tiers == 0)).nonzero()[0]
        return rows

    def costs(self, rows: NDArray[np.intp], cost: Callable[[str, Tier, str], int]) -> Numbers:
        """What the memories in these rows take in a context.

        ``cost`` says it of a label, once for each memory that it is asked about.
        """
        if len(self._costs) < self.size:
            more = self.size + self.size // 4 - len(self._costs)
            self._costs = np.concatenate([self._costs, np.full(more, _UNKNOWN)])
        unknown = rows[self._costs[rows] == _UNKNOWN]
        if len(unknown):
            self._costs[unknown] = [cost(*label) for label in self.labels(unknown.tolist())]
        return self._costs[rows]

    @property
    def tiers(self) -> NDArray[np.int8]:
        """The tier of each memory."""
        return self._own(self.table.tiers)

    @property
    def temperatures(self) -> NDArray[np.int8]:
        """The temperature of each memory."""
        return self._own(self.table.temperatures)

    def expired(self, tick: int) -> NDArray[np.bool_]:
        """Which memories are over in ``tick``; a pinned memory does not expire."""
        expired: NDArray[np.bool_] = (self.figures[:, 3] <= tick) & (self.tiers != 0)
        return expired

    @property
    def figures(self) -> Numbers:
        """The whole numbers of each memory: a row of ``WIDTH`` of them."""
        return self._own(self.table.numbers)

    @property
    def use_records(self) -> NDArray[np.float64]:
        """What the uses of each memory came to."""
        return self._own(self.table.use_records)

    def column(
        self, what: Literal["sequence", "created", "expires", "accesses", "last"]
    ) -> Numbers:
        """One number of each memory."""
        place = {"sequence": 0, "created": 1, "expires": 3, "accesses": 4, "last": 5}[what]
        return self.figures[:, place].copy()

    @property
    def norms(self) -> NDArray[np.float64]:
        """The length of each vector."""
        return self._own(self.table.norms)

    def vectors(self, rows: slice | Sequence[int] = slice(None)) -> Quantised:
        """The vectors of all memories, or of these rows."""
        return self._own(self.table.vectors)[rows]

    def numbers(self) -> Numbers:
        """A table of whole numbers, a row per memory: sequence, created, entered its tier, expires,
        accesses, last access, tier, temperature, and the bits of the record of its uses.
        """
        table = np.empty((self.size, NUMBERS), np.int64)
        table[:, :WIDTH] = self.figures
        table[:, 6], table[:, 7] = self.tiers, self.temperatures
        table[:, 8] = self.use_records.view(np.int64)
        return table

    def hash_of(self, rows: Sequence[int]) -> int:
        """The sum of the hashes over what the memories in these rows are."""
        hashes = self.table.hashes_of(np.array(rows, np.intp) + self.start)
        return sum([int.from_bytes(each, "big") for each in hashes])

    def fingerprint(self) -> bytes:
        """A hash over all memories, the same for equal memories however they came about.

        The table keeps its sum up to date from the first call on.
        """
        table, slots = self.table, [self.slot]
        if not self.is_hashed:
            table.make_sums(slots, [self.start], [self.size])
        return table.sums.digests(slots, table.shelf_sums) + self.hashed_beside()

    def hashed_beside(self) -> bytes:
        """What the hash over the agent has beside the sum over its memories."""
        result = b""
        if self.has_extras:
            if self.recalls:
                result += repr(sorted(self.recalls.items())).encode()
            for path, note in sorted(self.notes.items()):
                result += b"\0%s\0%s" % (path.encode(), note.digest)
        if self.holdings:
            result += b"\0\0" + (self.holdings.total % (1 << 256)).to_bytes(32, "big")
        return result

    def keywords(self, vocabulary: Vocabulary) -> KeywordIndex:
        """The words of all memories; new memories are indexed now, when somebody searches."""
        index = self._keywords
        if index is None or index.vocabulary is not vocabulary:
            index = self._keywords = KeywordIndex(vocabulary)
        if index.size < self.size:
            index.extend(self._own(self.table.contents)[index.size :].tolist())
        return index

    def sessions(self) -> Sessions:
        """Where the memories stand in their sessions."""
        sessions = self._sessions
        if sessions is None or sessions.size < self.size:
            self._sessions = None  # an error may leave its columns of different length
            sessions = sessions or Sessions()
            contents, metadata = self._own(self.table.contents), self._own(self.table.metadata)
            new = slice(sessions.size, None)
            sessions.extend(zip(contents[new], metadata[new], strict=True))
            self._sessions = sessions
        return sessions

    # Changing

    def change_tier(self, row: int, tier: int, tick: int) -> None:
        """Move a memory to a tier that it enters in ``tick``."""
        tiers, temperatures, before = self.tiers, self.temperatures, self._hash_before([row])
        if tier == 0 or tiers[row] == 0:
            now = axes_of(tiers.item(row), temperatures.item(row))
            temperatures[row] = int(entered(now, tier).temperature)
            if tier:  # while it was pinned, it could not expire
                self.next_expiry = min(self.next_expiry, self.figures.item(row, 3))
        tiers[row] = tier
        self._costs[row : row + 1] = _UNKNOWN
        self.figures[row, 2] = tick
        self._rehash([row], before)
        self._heat_changed()

    def set_temperature(self, rows: Sequence[int], temperature: int) -> None:
        """Memories are hot or warm now."""
        before = self._hash_before(rows)
        self.temperatures[list(rows)] = temperature
        self._rehash(rows, before)
        self._heat_changed()

    def recalled(self, sequence: int, tick: int) -> None:
        """An agent asked for a memory by :meth:`AgentMemory.recall`."""
        self.recalls[sequence] = (*self.recalls.get(sequence, ()), tick)[-MOST_RECALLS:]

    def forget(self, sequences: Iterable[int]) -> None:
        """These memories are gone for good."""
        if self._extras is not None:
            self.tier_order.forget(sequences)
        if self.holdings is not None:
            for sequence in sequences:
                for topic in OF_A_MEMORY:
                    self.holdings.hold(topic, str(sequence), None)

    # Rows that come and go

    def front_changed(self) -> None:
        """Other memories than before may be pinned or hot."""
        self._pinned = self._hot = self.hot_tokens = None

    def rows_left(self, kept: NDArray[np.bool_]) -> None:
        """Only these rows are left, and the memories after a gap moved up."""
        if self._keywords is not None:
            self._keywords.keep(kept)
        sessions, self._sessions = self._sessions, None  # an error leaves none
        if sessions is not None:
            sessions.keep(kept[: sessions.size])
            self._sessions = sessions
        self._costs = self._costs[: len(kept)][kept[: len(self._costs)]]
        self._heat_changed()

    def rows_came(
        self, came: Sequence[tuple[str, KeptMetadata | None]], order: NDArray[np.intp]
    ) -> None:
        """Memories with these texts and metadata came back; all rows are in this order now."""
        index, known = self._keywords, self.size - len(came)
        if index is not None and index.size == known:
            index.extend([text for text, _ in came])
            index.reorder(order)
        else:  # some are not indexed yet, and stand between memories that are
            self._keywords = None
        sessions, self._sessions = self._sessions, None
        if sessions is not None and sessions.size == known:
            sessions.extend(came)
            sessions.keep(order)
            self._sessions = sessions
        self._costs = _NOTHING
        self._heat_changed()

    def _own(self, column: NDArray[Any]) -> NDArray[Any]:
        """The agent's rows of a column that are in use."""
        return column[self.start : self.start + self.size]

    def _heat_changed(self) -> None:
        self.front_changed()
        self.next_decay = 0

    def _hash_before(self, rows: Sequence[int]) -> int:
        return self.hash_of(rows) if self.is_hashed else 0

    def _rehash(self, rows: Sequence[int], before: int) -> None:
        """The hashes over these memories, which summed to ``before``, are other ones now."""
        if self.is_hashed:
            self.table.sums.add(self.slot, self.hash_of(rows) - before)
