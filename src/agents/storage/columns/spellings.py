"""Which terms are spelled nearly as a word of a query is that no memory has."""

from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...rules.spelling import slips
from .table import with_room

_LEAST = 4
"""Shorter stems have too many neighbours."""
_MOST_KEPT = 4096
_CHANGED = 2
"""A slip changes at most so many of the letters that a word has."""


class Near(NamedTuple):
    """A term that is spelled nearly as a word is."""

    slips: int
    number: int
    term: str


class Spellings:
    """The terms of a vocabulary by their letters; follows the vocabulary as it grows."""

    def __init__(self) -> None:
        self._terms: list[str] = []
        # These arrays have room to spare.
        self._letters: NDArray[np.int64] = np.empty(0, np.int64)
        """A bit for each letter of a term; 0 for a term that is no word, or a short one."""
        self._firsts: NDArray[np.int64] = np.empty(0, np.int64)
        self._near: dict[tuple[str, int], tuple[int, list[Near]]] = {}
        """What so many slips make of a word, among so many of the first terms."""

    def near(self, word: str, most: int, terms: Mapping[str, int]) -> list[Near]:
        """The terms that begin as the word does, and that so many slips make of it.

        ``terms`` are those of the vocabulary, numbered in their order.
        """
        self._follow(terms)
        size = len(self._terms)
        seen, found = self._near.get((word, most), (0, []))
        if seen < size:
            letters = self._letters[seen:size]
            changed = np.bitwise_count(letters ^ _letters(word))
            alike = (changed <= _CHANGED * most) & (self._firsts[seen:size] == ord(word[0]))
            for place in (np.flatnonzero(alike & (letters > 0)) + seen).tolist():
                term = self._terms[place]
                between = slips(word, term, most)
                if 0 < between <= most:
                    found = [*found, Near(between, place, term)]
            if len(self._near) >= _MOST_KEPT:
                self._near.clear()
            self._near[word, most] = size, found
        return found

    def clear(self) -> None:
        """Forget all terms."""
        self._terms.clear()
        self._near.clear()

    def _follow(self, terms: Mapping[str, int]) -> None:
        start, stop = len(self._terms), len(terms)
        if start == stop:
            return
        new = list(islice(terms, start, None))
        self._letters = with_room(self._letters, start, stop)
        self._firsts = with_room(self._firsts, start, stop)
        self._letters[start:stop] = [_letters(term) for term in new]
        self._firsts[start:stop] = [ord(term[0]) for term in new]
        self._terms += new  # last: an interrupt must not leave terms without letters


def _letters(term: str) -> int:
    """A bit for each letter of a word; other scripts than Latin share the bits."""
    bits = 0
    if len(term) >= _LEAST and term.isalpha():
        for letter in term:
            bits |= 1 << ord(letter) % 32
    return bits
