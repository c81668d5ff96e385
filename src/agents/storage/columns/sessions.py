"""Where an agent's resident memories stand in their sessions, and who speaks in them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...memory.records import session_of
from ...memory.requests import KeptMetadata
from ...rules.ranking import Places
from ...rules.spelling import is_of_name, may_be_nickname
from .table import with_room

SPEAKER = "speaker"
"""The key of a memory's metadata that says who said it."""

_NONE = -1
_NEAR_THE_END = 60
_NOBODY: Mapping[int, set[str]] = {}
_QUESTION_MARKS = ("?", "？", "؟", "\u037e")


class Sessions:
    """Follows the memories, as if it were made anew from those that are there.

    Sessions and speakers are numbered in the order of their first memories.
    """

    __slots__ = (
        "_asks",
        "_by_start",
        "_by_term",
        "_called",
        "_is_question",
        "_known",
        "_names",
        "_numbers",
        "_places",
        "_speakers",
        "size",
        "speakers",
    )

    def __init__(self) -> None:
        self.size = 0
        self.speakers: dict[str, int] = {}
        """The number of each speaker, by name."""
        self._by_term: dict[str, dict[int, set[str]]] = {}
        """For each name its number and its terms, by the first of the terms."""
        self._known = 0
        """How many names ``_by_term`` has."""
        self._by_start: dict[str, list[tuple[str, int]]] = {}
        """The words of the names with the numbers of their speakers, by their first two letters."""
        self._called = 0
        """How many names ``_by_start`` has."""
        self._names: dict[str, int] = {}
        """The number of each session, by name."""
        # These arrays have room to spare.
        self._numbers: NDArray[np.int32] = np.empty(0, np.int32)
        self._speakers: NDArray[np.int32] = np.empty(0, np.int32)
        self._asks: NDArray[np.bool_] = np.empty(0, bool)
        self._is_question: NDArray[np.bool_] = np.empty(0, bool)
        self._places: Places | None = None

    def extend(self, memories: Iterable[tuple[str, KeptMetadata | None]]) -> None:
        """The memories that follow, by text and metadata."""
        rows = [self._read(*memory) for memory in memories]
        if not rows:
            return
        first, last = self.size, self.size + len(rows)
        columns: list[Any] = [self._numbers, self._speakers, self._asks, self._is_question]
        columns = [with_room(column, first, last) for column in columns]
        for column, values in zip(columns, zip(*rows, strict=True), strict=True):
            column[first:last] = values
        self._take(columns, last)

    def _read(self, content: str, metadata: KeptMetadata | None) -> tuple[int, int, bool, bool]:
        """Session, speaker, and whether a text has a question near its end, and ends with it."""
        session, speaker = session_of(metadata), None
        if metadata is not None:
            speaker = metadata.get(SPEAKER)
        said_by = _NONE
        if speaker is not None:
            said_by = self.speakers.setdefault(str(speaker), len(self.speakers))
        if session is None:
            return _NONE, said_by, False, False
        end = content[-_NEAR_THE_END:].rstrip()
        asks = any(mark in end for mark in _QUESTION_MARKS)
        is_question = asks and end.endswith(_QUESTION_MARKS)
        return self._names.setdefault(session, len(self._names)), said_by, asks, is_question

    def keep(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> None:
        """Keep these memories, in this order."""
        size = self.size
        kept = [column[:size][rows] for column in (self._asks, self._is_question)]
        numbers, self._names = _renumbered(self._numbers[:size][rows], self._names)
        speakers, names = _renumbered(self._speakers[:size][rows], self.speakers)
        if names != self.speakers:
            self.speakers, self._by_term, self._known = names, {}, 0
            self._by_start, self._called = {}, 0
        self._take([numbers, speakers, *kept], len(numbers))

    def _take(self, columns: Sequence[Any], size: int) -> None:
        self._numbers, self._speakers, self._asks, self._is_question = columns
        self.size, self._places = size, None

    @property
    def numbers(self) -> NDArray[np.int32]:
        """The number of each memory's session; -1 for a memory without one."""
        return self._numbers[: self.size]

    @property
    def names(self) -> Sequence[str]:
        """The names of the sessions, by their numbers."""
        return list(self._names)

    def places(self) -> Places | None:
        """Where each memory stands; None if no memory has a session."""
        if not self._names:
            return None
        if self._places is None:
            asks, is_question = self._asks[: self.size], self._is_question[: self.size]
            self._places = Places.among(self.numbers.astype(np.intp), asks, is_question)
        return self._places

    def members(self, session: str) -> NDArray[np.bool_]:
        """Which memories are part of a session."""
        number = self._names.get(session)
        if number is None:
            return np.zeros(self.size, bool)
        members: NDArray[np.bool_] = self.numbers == number
        return members

    def named_in(self, asked: set[str], heard: Callable[[str], set[str]]) -> int | None:
        """The speaker whose name is in these terms, if there is only one; ``heard`` reads names."""
        if self._known < len(self.speakers):
            for name, number in islice(self.speakers.items(), self._known, None):
                if terms := heard(name):
                    self._by_term.setdefault(min(terms), {})[number] = terms
            self._known = len(self.speakers)
        named = [
            number
            for term in asked
            for number, terms in self._by_term.get(term, _NOBODY).items()
            if terms <= asked
        ]
        return named[0] if len(named) == 1 else None

    def may_name(self) -> Mapping[str, list[tuple[str, int]]]:
        """The words of the speakers' names with their numbers, by the first two letters."""
        if self._called < len(self.speakers):
            for name, number in islice(self.speakers.items(), self._called, None):
                for part in filter(str.isalpha, name.split()):
                    self._by_start.setdefault(part[:2].casefold(), []).append((part, number))
            self._called = len(self.speakers)
        return self._by_start

    def called(self, word: str) -> tuple[str, int] | None:
        """The name that a word is a nickname of, as it is written, and the number of its speaker.

        None if it is a name itself, or may stand for none or for more than one.
        """
        if not may_be_nickname(word):
            return None
        own = word.casefold()
        near = self.may_name().get(own[:2], ())
        found = [(part, number) for part, number in near if is_of_name(own, part.casefold())]
        if len(found) != 1 or found[0][0].casefold() == own:
            return None
        return found[0]

    def said(self, memories: NDArray[np.int32], number: int) -> bool:
        """Whether this speaker said one of these memories."""
        return bool((self._speakers[: self.size][memories] == number).any())

    def spoken_by(self, number: int) -> NDArray[np.bool_]:
        """Which memories this speaker said."""
        spoken: NDArray[np.bool_] = self._speakers[: self.size] == number
        return spoken


def _renumbered(
    numbers: NDArray[np.int32], names: dict[str, int]
) -> tuple[NDArray[np.int32], dict[str, int]]:
    """The numbers in the order in which they first come, and the names that are left."""
    there, first = np.unique(numbers, return_index=True)
    order = there[np.argsort(first)]
    order = order[order >= 0].tolist()
    if order == list(range(len(names))):
        return numbers, names
    new = np.full(len(names) + 1, _NONE, np.int32)  # the last place is that of no name
    new[order] = np.arange(len(order), dtype=np.int32)
    known = list(names)
    return new[numbers], {known[number]: place for place, number in enumerate(order)}
