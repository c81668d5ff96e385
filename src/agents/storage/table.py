"""The resident memories of all agents in one table.

A tick searches, uses and stores memories of every agent. One call of NumPy for all of them costs
about as much as one call for each agent would cost ten of them, so their rows are in one table.
Each agent's lie together, with room to spare, and :class:`AgentRows` is its window on them.
"""

import math
import mmap
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from operator import add
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agents.memory.events import Added
from agents.memory.metadata import KeptMetadata
from agents.memory.records import NEW_RELEVANCE, NO_METADATA, Memory, Metadata, digits
from agents.memory.retention import Retention
from agents.memory.temperature import Temperature
from agents.memory.tiers import Tier
from agents.memory.traits import PLAIN, traits
from agents.storage.shelved import NEVER, UNUSED
from agents.storage.vectors import Quantised

__all__ = ["WIDTH", "ResidentTable", "Window", "heat_of"]

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]

_LARGE = 50_000
_PAGED = 1 << 20
WIDTH = 6
"""Whole numbers per memory: sequence, created, entered its tier, expires, accesses, last access."""

_TIERS = np.array(tuple(Tier), object)
_TEMPERATURES = np.array(tuple(Temperature), object)
# NumPy takes its time to find out that an enum is a number.
_HOT, _WARM = int(Temperature.HOT), int(Temperature.WARM)


class Window(Protocol):
    """The rows of one agent."""

    size: int
    """How many of them are in use."""
    room: int
    """How many there are."""

    def columns(self) -> tuple[NDArray[Any], ...]:
        """The rows that are in use, column by column."""

    def look_at(self, start: int, room: int, /) -> None:
        """They are so many rows of the table now, from ``start`` on."""


class ResidentTable:
    """Columns with a row per memory; ``windows`` are those that somebody still looks through.

    Its arrays hold no lists of memories: a million would be a million objects for Python's garbage
    collector to walk through, and it looks into lists but not into arrays.
    """

    def __init__(self, dims: int, windows: Mapping[str, Window]) -> None:
        self._windows = windows
        self._dims = dims
        self._make(0)

    def _make(self, rows: int) -> None:
        self._used = 0
        self.vectors: Quantised = _array((rows, self._dims), np.int8)
        self.norms: Floats = _array((rows,), np.float64)
        self.tiers: NDArray[np.int8] = _array((rows,), np.int8)
        self.temperatures: NDArray[np.int8] = _array((rows,), np.int8)
        self.numbers: NDArray[np.int64] = _array((rows, WIDTH), np.int64)
        self.relevance: Floats = _array((rows,), np.float64)
        self.contents = np.empty(rows, object)
        self.metadata = np.empty(rows, object)  # None for a memory without
        self.traits = np.empty(rows, object)  # None for a plain fact

    @property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """All columns."""
        return (
            self.vectors, self.norms, self.tiers, self.temperatures, self.numbers, self.relevance,
            self.contents, self.metadata, self.traits,
        )  # fmt: skip

    # Room

    def expect(self, memories: int) -> None:
        """So many will come into a table that is empty: it need not grow meanwhile."""
        self._make(memories + memories // 2)

    def make_room(self, wanted: Sequence[tuple[Window, int]]) -> None:
        """Have room for so many more memories of each of these agents."""
        moving = {
            id(window): (window, _room(window.size + count))
            for window, count in wanted
            if window.size + count > window.room
        }
        rows = sum(room for _, room in moving.values())
        if self._used + rows <= len(self.norms):
            for window, room in moving.values():
                old = window.columns()
                self._move(window, room)
                for column in old[-3:]:  # what is forgotten must not be kept here
                    column[:] = None
            return
        # None are left: all agents move to a larger table, without the rows that were given up.
        rooms = {id(each): (each, _room(each.size)) for each in self._windows.values()}
        rooms |= {id(window): (window, _room(window.size + count)) for window, count in wanted}
        rows = sum(room for _, room in rooms.values())
        # Rows given up later are kept until all move again: in a large table they may be few.
        self._make(rows + rows // (2 if rows < _LARGE else 8))
        for window, room in rooms.values():
            self._move(window, room)

    def _move(self, window: Window, room: int) -> None:
        start, stop = self._used, self._used + window.size
        for column, own in zip(self.columns, window.columns(), strict=True):
            column[start:stop] = own
        self._used += room
        window.look_at(start, room)

    # Many agents at once

    def memories(
        self, rows: Rows, agents: Iterable[str], prefixes: Iterable[str]
    ) -> Iterable[Memory]:
        """The memories in these rows, whose agents and the beginnings of their ids are given."""
        sequences, created, entered, expires, counts, last = self.numbers[rows].T.tolist()
        metadata, kinds = self.metadata[rows].tolist(), self.traits[rows].tolist()
        # Most memories have none of what few have.
        names: Iterable[str] = repeat(PLAIN.kind)
        tags: Iterable[tuple[str, ...]] = repeat(PLAIN.tags)
        given: Iterable[Metadata] = repeat(NO_METADATA)
        if kinds.count(None) < len(kinds):
            names, tags, _ = zip(*[own or PLAIN for own in kinds], strict=True)
        if metadata.count(None) < len(metadata):
            given = [NO_METADATA if own is None else MappingProxyType(own) for own in metadata]
        fields = zip(
            map(add, prefixes, map(digits, sequences)),
            agents,
            self.contents[rows].tolist(),
            _TIERS[self.tiers[rows]].tolist(),
            created,
            entered,
            sequences,
            given,
            names,
            tags,
            _TEMPERATURES[self.temperatures[rows]].tolist(),
            repeat(Retention.ACTIVE),
            repeat(None) if expires.count(NEVER) == len(expires) else map(_or_none, expires),
            counts,
            [None if tick == UNUSED else tick for tick in last],
            self.relevance[rows].tolist(),
            strict=False,
        )
        # tuple.__new__ is what Memory(…) comes down to, at half its cost.
        return map(tuple.__new__, repeat(Memory), fields)

    def write(
        self, rows: list[int], events: Sequence[Added], tick: int, vectors: Quantised, norms: Floats
    ) -> None:
        """New memories come into these rows, in this tick; their vectors have these lengths."""
        # Rows that lie together are written in a tenth of the time.
        together = rows[-1] - rows[0] == len(rows) - 1 and rows == sorted(rows)
        where = slice(rows[0], rows[0] + len(rows)) if together else np.array(rows)
        _, _, sequences, tiers, contents, metadata, starts = zip(*events, strict=True)
        self.vectors[where] = vectors
        self.norms[where] = norms
        self.tiers[where] = tiers
        self.temperatures[where] = _WARM
        self.numbers[where] = (0, tick, tick, NEVER, 0, UNUSED)
        self.numbers[where, 0] = sequences
        self.relevance[where] = NEW_RELEVANCE
        self.contents[where] = _objects(contents)
        self.metadata[where] = _objects(metadata)
        self.traits[where] = None
        for row, tier, start in zip(rows, tiers, starts, strict=True):
            if tier == 0:
                self.temperatures[row] = _HOT
            if start is not None:
                heat, kind, tags, expires = start
                if tier:
                    self.temperatures[row] = heat
                if kind != "fact" or tags:
                    self.traits[row] = traits(kind, tags)
                if expires is not None:
                    self.numbers[row, 3] = expires

    def use(self, rows: Rows, scores: Floats, tick: int) -> None:
        """A search gave the memories in these rows, each once."""
        self.numbers[rows, 4] += 1
        self.numbers[rows, 5] = tick
        self.relevance[rows] = (self.relevance[rows] + scores) / 2


def heat_of(event: Added) -> int:
    """How warm a new memory is."""
    if event.tier == 0:
        return _HOT
    return _WARM if event.start is None else event.start.temperature


def _array(shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
    """A new array; a large one has pages of its own.

    So it takes no more than what is written to it, and all of that is given back with it. What
    NumPy takes from the heap leaves holes there when a table moves to a larger one.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < _PAGED:
        return np.empty(shape, dtype)
    return np.frombuffer(mmap.mmap(-1, size), dtype).reshape(shape)


def _or_none(tick: int) -> int | None:
    """A tick, or None for never."""
    return None if tick == NEVER else tick


def _room(size: int) -> int:
    return size + max(8, min(size // 2, 128 + size // 16))


def _objects(values: Sequence[str | KeptMetadata | None]) -> NDArray[Any]:
    """An array of these values, as they are."""
    array = np.empty(len(values), object)
    array[:] = values
    return array
