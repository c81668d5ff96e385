"""One agent's resident memories, as columns: how they lie there, and how they are read."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ...memory.kinds import PLAIN, Traits
from ...memory.metadata import KeptMetadata
from ...memory.records import NEVER, Memory, id_prefix, memories_of
from ...memory.temperature import Temperature
from ...memory.tiers import Tier
from ...rules.caps import Occupant
from ..digests import of_activity, of_memory, sums_of
from ..note import Note
from ..vectors import Quantised
from .keyword_index import KeywordIndex, Vocabulary
from .sessions import Sessions
from .table import WIDTH, ResidentTable

__all__ = ["NUMBERS", "AgentRows"]

Numbers = NDArray[np.int64]

_TIERS, _TEMPERATURES = tuple(Tier), tuple(Temperature)
_HOT = int(Temperature.HOT)
_FEW = 64
NUMBERS = 9
"""Columns of the table that a snapshot has: these, tier, temperature and relevance."""


class Standing(NamedTuple):
    """Where a memory stands in its tier."""

    sequence: int
    tier: Tier
    tier_tick: int


class AgentRows:
    """One agent's memories from the oldest to the newest: its rows of the table.

    A :class:`Memory` is made for whoever asks for one and not kept.
    """

    __slots__ = (
        "_activity",
        "_contents",
        "_figures",
        "_fingerprint",
        "_hot",
        "_keywords",
        "_metadata",
        "_norms",
        "_numbers",
        "_pinned",
        "_places",
        "_relevance",
        "_sessions",
        "_temperatures",
        "_tiers",
        "_traits",
        "_vectors",
        "agent_id",
        "critical_elsewhere",
        "hot_tokens",
        "next_decay",
        "next_expiry",
        "next_sequence",
        "notes",
        "prefix",
        "recalls",
        "room",
        "shelf_sum",
        "size",
        "start",
        "table",
    )

    def __init__(self, agent_id: str, seed: int, table: ResidentTable) -> None:
        self.agent_id = agent_id
        self.prefix = id_prefix(seed, agent_id)
        self.next_sequence = 1
        self.size = 0
        """How many memories there are."""
        self.next_expiry = NEVER
        """No memory expires before this tick."""
        self.next_decay = 0
        """No memory fades to another temperature before this tick."""
        self.recalls: dict[int, tuple[int, ...]] = {}
        """By sequence number, the ticks in which a memory was recalled, of those that were."""
        self.critical_elsewhere: dict[int, Memory] = {}
        """The critical memories that are cold: they count for the cap."""
        self.shelf_sum = 0
        """The sum of the hashes over the agent's memories that are not resident."""
        self.notes: dict[str, Note] = {}
        """The agent's Markdown notes, by path."""
        self.hot_tokens: int | None = None
        """What the hot memories take in a context, if somebody counted since they changed."""
        self._fingerprint: int | None = None
        self._activity = 0
        self.table = table
        self.look_at(0, 0)
        self._pinned: tuple[int, ...] | None = None
        self._hot: list[int] | None = None
        self._keywords: KeywordIndex | None = None
        self._sessions: Sessions | None = None

    def __len__(self) -> int:
        return self.size

    def look_at(self, start: int, room: int) -> None:
        """The memories are in these rows of the table, of which the first ``size`` are in use."""
        table, rows = self.table, slice(start, start + room)
        self.start, self.room = start, room
        self._contents, self._metadata = table.contents[rows], table.metadata[rows]
        self._traits, self._vectors = table.traits[rows], table.vectors[rows]
        self._tiers, self._temperatures = table.tiers[rows], table.temperatures[rows]
        self._norms, self._figures = table.norms[rows], table.numbers[rows]
        # One by one, numbers are read from these: they are Python's own, and twice as fast.
        self._numbers = self._figures.reshape(-1).data
        self._relevance = cast("memoryview[float]", table.relevance[rows].data)
        self._places = table.places[rows]

    def columns(self) -> tuple[NDArray[Any], ...]:
        """The rows that are in use, column by column, as the table has them."""
        columns = (
            self._vectors, self._norms, self._tiers, self._temperatures, self._figures,
            np.asarray(self._relevance), self._places, self._contents, self._metadata, self._traits,
        )  # fmt: skip
        return tuple(column[: self.size] for column in columns)

    # Reading

    def memories(self, rows: Iterable[int]) -> list[Memory]:
        """The memories in these rows."""
        rows = list(rows)
        if not rows:
            return []
        # As the table does for many agents at once; of a few memories, this takes a tenth of that.
        numbers, relevance, contents = self._numbers, self._relevance, self._contents
        tiers, temperatures = self._tiers.item, self._temperatures.item
        sequences, created, entered, expires, counts, last = zip(
            *[numbers[WIDTH * row : WIDTH * (row + 1)] for row in rows], strict=True
        )
        is_plain = self.table.all_plain
        return memories_of(
            prefixes=repeat(self.prefix),
            agents=repeat(self.agent_id),
            contents=[contents[row] for row in rows],
            tiers=[_TIERS[tiers(row)] for row in rows],
            created=created,
            entered=entered,
            sequences=sequences,
            temperatures=[_TEMPERATURES[temperatures(row)] for row in rows],
            metadata=None if is_plain else [self._metadata[row] for row in rows],
            traits=None if is_plain else [self._traits[row] for row in rows],
            expires=expires,
            counts=counts,
            last=last,
            relevance=[relevance[row] for row in rows],
        )

    def labels(self, rows: Iterable[int]) -> list[tuple[str, Tier, str]]:
        """Text, tier and kind of the memories in these rows: what a line shows of them."""
        tiers, contents, kinds = self._tiers, self._contents, self._traits
        return [
            (contents[row], _TIERS[tiers.item(row)], (kinds[row] or PLAIN).kind) for row in rows
        ]

    def memory(self, row: int) -> Memory:
        """The memory in a row."""
        return self.memories((row,))[0]

    def contents(self) -> list[str]:
        """The text of each memory."""
        texts: list[str] = self._contents[: self.size].tolist()
        return texts

    def metadata(self) -> list[KeptMetadata | None]:
        """The metadata of each memory."""
        kept: list[KeptMetadata | None] = self._metadata[: self.size].tolist()
        return kept

    def traits(self) -> list[Traits | None]:
        """Kind and tags of each memory; None for a plain fact."""
        kept: list[Traits | None] = self._traits[: self.size].tolist()
        return kept

    def row_of(self, sequence: int) -> int | None:
        """The row of the memory with this sequence number."""
        # Without gaps it is the number less one; gaps only move it up.
        row = min(sequence, len(self)) - 1
        if row < 0 or self._numbers[WIDTH * row] == sequence:
            return row if row >= 0 else None
        row = bisect_left(range(row), sequence, key=lambda row: self._numbers[WIDTH * row])
        return row if self._numbers[WIDTH * row] == sequence else None

    def rows_of(self, sequences: Sequence[int]) -> tuple[list[int], list[int]]:
        """The rows of these memories, and the sequence numbers of those that are not here."""
        if len(sequences) < _FEW:
            found = [(each, self.row_of(each)) for each in sequences]
            rows = [row for _, row in found if row is not None]
            return rows, [each for each, row in found if row is None]
        own = self._figures[: self.size, 0]
        wanted = np.asarray(sequences, np.int64)
        places = np.searchsorted(own, wanted)
        here = own[np.minimum(places, max(0, len(own) - 1))] == wanted if len(own) else wanted < 0
        return places[here].tolist(), wanted[~here].tolist()

    def sequence(self, row: int) -> int:
        """The sequence number of the memory in a row."""
        return self._numbers[WIDTH * row]

    def occupants(self, tier: Tier) -> Sequence[Occupant]:
        """The memories of a tier, in any order: those that are cold as well."""
        rows: Sequence[int]
        if tier is Tier.PINNED:
            rows = self.pinned
        else:  # NumPy asks an enum a dozen questions before it takes it for the number it is
            rows = (self.tiers == int(tier)).nonzero()[0].tolist()
        numbers = self._numbers
        own = [Standing(numbers[WIDTH * row], tier, numbers[WIDTH * row + 2]) for row in rows]
        return [*own, *self.critical_elsewhere.values()] if tier is Tier.CRITICAL else own

    @property
    def pinned(self) -> tuple[int, ...]:
        """The rows of the pinned memories, oldest pin first."""
        if self._pinned is None:
            numbers = self._numbers
            rows: list[int] = (self.tiers == 0).nonzero()[0].tolist()
            rows.sort(key=lambda row: numbers[WIDTH * row + 2])  # age(): rows are in sequence
            self._pinned = tuple(rows)
        return self._pinned

    def pinned_memories(self) -> list[Memory]:
        """The pinned memories, oldest pin first."""
        return self.memories(self.pinned)

    @property
    def hot(self) -> list[int]:
        """The rows of the hot memories that are not pinned, oldest first."""
        if self._hot is None:
            is_hot = self.temperatures == _HOT
            self._hot = (is_hot & (self.tiers != 0)).nonzero()[0].tolist()
        return self._hot

    @property
    def tiers(self) -> NDArray[np.int8]:
        """The tier of each memory."""
        return self._tiers[: self.size]

    @property
    def temperatures(self) -> NDArray[np.int8]:
        """The temperature of each memory."""
        return self._temperatures[: self.size]

    @property
    def figures(self) -> Numbers:
        """The whole numbers of each memory: a row of ``WIDTH`` of them."""
        return self._figures[: self.size]

    @property
    def relevance(self) -> NDArray[np.float64]:
        """How relevant each memory is."""
        return np.asarray(self._relevance)[: self.size]

    def column(
        self, what: Literal["sequence", "created", "expires", "accesses", "last"]
    ) -> Numbers:
        """One number of each memory."""
        place = {"sequence": 0, "created": 1, "expires": 3, "accesses": 4, "last": 5}[what]
        return self._figures[: self.size, place].copy()

    @property
    def norms(self) -> NDArray[np.float64]:
        """The length of each vector."""
        return self._norms[: self.size]

    def vectors(self, rows: slice | Sequence[int] = slice(None)) -> Quantised:
        """The vectors of all memories, or of these rows."""
        return self._vectors[: self.size][rows]

    def numbers(self) -> NDArray[np.int64]:
        """A table of whole numbers, a row per memory: sequence, created, entered its tier, expires,
        accesses, last access, tier, temperature, and the bits of its relevance.
        """
        table = np.empty((self.size, NUMBERS), np.int64)
        table[:, :WIDTH] = self._figures[: self.size]
        table[:, 6], table[:, 7] = self.tiers, self.temperatures
        table[:, 8] = np.asarray(self._relevance)[: self.size].view(np.int64)
        return table

    def fingerprint(self) -> bytes:
        """A hash over all memories, the same for equal ones however they came about.

        The sum of a hash over each, so that a change costs as much as what it changed. Kept up to
        date from the first time that it is asked for.
        """
        if self._fingerprint is None:
            self._fingerprint = sum(map(self._fingerprint_of, range(self.size)))
            self.unmark(slice(self.size))
            self._activity = 0
            self._mark((self.column("accesses") > 0).nonzero()[0].tolist())
        total = (self._fingerprint + self._activity + self.shelf_sum) % (1 << 256)
        result = total.to_bytes(32, "big")
        if self.recalls:
            result += repr(sorted(self.recalls.items())).encode()
        for path, note in sorted(self.notes.items()):
            result += b"\0%s\0%s" % (path.encode(), note.digest)
        return result

    def _fingerprint_of(self, row: int) -> int:
        place = WIDTH * row
        sequence, created, entered, expires = self._numbers[place : place + 4]
        return of_memory(
            sequence,
            self._tiers.item(row),
            self._temperatures.item(row),
            created,
            entered,
            expires,
            self._contents[row],
            self._vectors[row].tobytes(),
            self._metadata[row],
            self._traits[row],
        )

    def unmark(self, rows: slice | Sequence[int]) -> int:
        """The sum of the hashes over how these memories were used, which are kept no longer."""
        places = self._places[rows]
        total = self.table.marks.take(places)
        self._places[rows] = places
        return total

    def _mark(self, rows: Sequence[int]) -> None:
        """These memories, no two alike, were used: the hashes over that are other ones now."""
        if not rows:
            return
        marks = []
        for row in rows:
            sequence, _, _, _, count, last = self._numbers[WIDTH * row : WIDTH * (row + 1)]
            marks.append(of_activity(sequence, count, last, self._relevance[row]))
        places = self._places[rows]
        (more,) = sums_of(marks, self.table.marks.exchange(places, marks), [len(marks)])
        self._places[rows] = places
        self._activity += more

    def keywords(self, vocabulary: Vocabulary) -> KeywordIndex:
        """The words of all memories; what is new is indexed now, when somebody searches."""
        index = self._keywords
        if index is None:
            index = self._keywords = KeywordIndex(vocabulary)
        if index.size < self.size:
            index.extend(self._contents[index.size : self.size].tolist())
        return index

    def sessions(self) -> Sessions:
        """Where the memories stand in their sessions."""
        sessions = self._sessions
        if sessions is None:
            sessions = self._sessions = Sessions()
        if sessions.size < self.size:
            new = slice(sessions.size, self.size)
            try:
                sessions.extend(zip(self._contents[new], self._metadata[new], strict=True))
            except BaseException:  # an interrupt may leave its columns of different length
                self._sessions = None
                raise
        return sessions
