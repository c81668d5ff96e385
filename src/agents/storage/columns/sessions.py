"""Where an agent's resident memories stand in their sessions, and who speaks in them."""

from array import array
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ...memory.metadata import KeptMetadata
from ...rules.ranking import Places

SESSION, SPEAKER = "session", "speaker"
"""The keys of a memory's metadata that say where it belongs and who said it."""

_NONE = -1
_NEAR_THE_END = 60
_NOBODY: Mapping[int, set[str]] = {}
_QUESTION_MARKS = ("?", "？", "؟", "\u037e")


class Sessions:
    """Grows with the memories; made anew when memories leave or come back."""

    __slots__ = (
        "_asks",
        "_by_term",
        "_following",
        "_is_question",
        "_known",
        "_latest",
        "_number",
        "_places",
        "_previous",
        "_second",
        "_speaker",
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
        self._latest: dict[str, tuple[int, int]] = {}
        """The number and the latest memory of each session."""
        self._number = array("q")
        self._previous = array("q")
        self._second = array("q")
        self._following = array("q")
        self._speaker = array("q")
        self._asks = bytearray()
        self._is_question = bytearray()
        self._places: Places | None = None

    def extend(self, memories: Iterable[tuple[str, KeptMetadata | None]]) -> None:
        """The memories that follow, by text and metadata."""
        for content, metadata in memories:
            row = self.size
            session = speaker = None
            if metadata is not None:
                session, speaker = metadata.get(SESSION), metadata.get(SPEAKER)
            self._place(row, None if session is None else str(session))
            number = _NONE
            if speaker is not None:
                number = self.speakers.setdefault(str(speaker), len(self.speakers))
            self._speaker.append(number)
            asks = is_question = False
            if session is not None:
                end = content[-_NEAR_THE_END:].rstrip()
                asks = any(mark in end for mark in _QUESTION_MARKS)
                is_question = asks and end.endswith(_QUESTION_MARKS)
            self._asks.append(asks)
            self._is_question.append(is_question)
            self.size += 1
        self._places = None

    def _place(self, row: int, session: str | None) -> None:
        number = previous = second = _NONE
        if session is not None:
            number, previous = self._latest.get(session, (len(self._latest), _NONE))
            if previous != _NONE:
                second = self._previous[previous]
                self._following[previous] = row
            self._latest[session] = (number, row)
        self._number.append(number)
        self._previous.append(previous)
        self._second.append(second)
        self._following.append(_NONE)

    def places(self) -> Places | None:
        """Where each memory stands; None if no memory has a session."""
        if not self._latest:
            return None
        if self._places is None:
            self._places = Places.among(
                np.array(self._number, np.intp),
                np.array(self._previous, np.intp),
                np.array(self._second, np.intp),
                np.array(self._following, np.intp),
                np.array(self._asks, bool),
                np.array(self._is_question, bool),
            )
        return self._places

    def number_of(self, session: str) -> int | None:
        """The number of a session; None if no memory is part of it."""
        found = self._latest.get(session)
        return None if found is None else found[0]

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

    def spoken_by(self, number: int) -> NDArray[np.bool_]:
        """Which memories this speaker said."""
        spoken: NDArray[np.bool_] = np.array(self._speaker, np.intp) == number
        return spoken
