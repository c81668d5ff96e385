"""All memories of a journal as columns: when they began, who told them, when they were gone."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...memory.records import id_prefix, memory_id, sequence_of
from ...storage.once import once

NOT_GONE = -1
"""Stands for the tick in which a memory was gone, for a memory that is there."""
SEQUENCE_BITS = 32
"""A memory's agent and sequence number make one number: the agent's place has the bits above."""
PREFIX = 24
"""Letters of a memory's id that name its agent."""

Numbers = NDArray[np.int64]


class Told(NamedTuple):
    """Everything that was told, one place for each time, in the order of the journal."""

    tick: Numbers
    teller: list[str]
    agent: Numbers
    """The listener."""
    row: Numbers
    """The listener's memory."""
    is_new: NDArray[np.bool_]
    """Whether the listener had no memory of it before."""


class Columns:
    """The memories of a journal up to a tick, in the order of the journal.

    An agent is the place of its id in ``agents``. A memory is its place in the columns, a row.
    """

    def __init__(self, seed: int, agents: Iterable[str], last_tick: int) -> None:
        self.agents = list(agents)
        self.last_tick = last_tick
        self.agent: Numbers
        self.sequence: Numbers
        self.born: Numbers
        """The tick in which each memory began."""
        self.tier: Numbers
        """The tier with which it began."""
        self.kind: list[str] = []
        self.text: Sequence[str | None] = []
        """None for a text that was purged."""
        self.words: Numbers | None = None
        """A number for each text, equal for equal texts; see :meth:`same_words`."""
        self.gone: Numbers
        """The tick in which it was archived, deleted, expired or purged."""
        self.cause: list[str] = []
        """Why it was gone; empty for a memory that is there."""
        self.origin: Numbers
        """The row of the first memory of its chain that is here; its own row, if nobody told it."""
        self.parent: Numbers
        """The row of the memory that its teller told; -1 if nobody told it, or it is not here."""
        self.hands: Numbers
        """Through how many hands it came: 0 for an agent's own memory."""
        self.told: Told
        self.is_whole = True
        """Whether the journal has everything since tick 0."""
        self.dims = 0
        self.packed: list[bytes] = []
        """The vectors of the memories, commit by commit."""
        self.seed = seed
        self._keys: Numbers | None = None
        self._order: Numbers

    def __len__(self) -> int:
        return len(self.agent)

    @once
    def _prefixes(self) -> dict[str, int]:
        """The place of each agent, by the first part of the ids of its memories."""
        return {id_prefix(self.seed, agent): place for place, agent in enumerate(self.agents)}

    @once
    def _prefix(self) -> list[str]:
        return list(self._prefixes)

    def id_of(self, row: int) -> str:
        """The id of a memory."""
        return memory_id(self._prefix[int(self.agent[row])], int(self.sequence[row]))

    def ids(self) -> list[str]:
        """The ids of all memories."""
        prefix, agents = self._prefix, self.agent.tolist()
        return [
            memory_id(prefix[agent], number)
            for agent, number in zip(agents, self.sequence.tolist(), strict=True)
        ]

    def row_of(self, identifier: str) -> int | None:
        """The row of the memory with an id; None if there is none."""
        place = self._prefixes.get(identifier[:PREFIX])
        number = None if place is None else sequence_of(self._prefix[place], identifier)
        if number is None:
            return None
        (row,) = self.rows(np.array([place]), np.array([number])).tolist()
        return None if row < 0 else int(row)

    def rows(self, agents: Numbers, sequences: Numbers) -> Numbers:
        """The rows of memories by agent and sequence number; -1 for one that is not here."""
        return self.rows_of_keys((agents << SEQUENCE_BITS) | sequences)

    def rows_of_keys(self, wanted: Numbers) -> Numbers:
        """The rows of memories by one number for agent and sequence; -1 for one not here."""
        if self._keys is None:
            keys = (self.agent << SEQUENCE_BITS) | self.sequence
            self._order = np.argsort(keys, kind="stable")
            self._keys = keys[self._order]
        if not len(self._keys):
            return np.full(len(wanted), -1)
        places = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where(self._keys[places] == wanted, self._order[places], -1)

    def same_words(self) -> Numbers:
        """A number for each text: memories with the same text have the same one."""
        if self.words is None:
            known: dict[str | None, int] = {}
            numbers = [known.setdefault(text, len(known)) for text in self.text]
            self.words = np.array(numbers, np.int64)
        return self.words

    def vectors(self) -> NDArray[np.int8]:
        """The vector of each memory; zeros where it is not kept."""
        if len(self.packed) != 1:
            self.packed = [b"".join(self.packed)]
        own = np.frombuffer(self.packed[0], np.int8).reshape(-1, max(1, self.dims))
        missing = len(self) - len(own)
        return own if not missing else np.vstack([np.zeros((missing, self.dims), np.int8), own])

    def is_there(self, tick: int | None = None) -> NDArray[np.bool_]:
        """Which memories the agents had after a tick; the default is the last one."""
        if tick is None:
            tick = self.last_tick
        there: NDArray[np.bool_] = (self.gone == NOT_GONE) | (self.gone > tick)
        there &= self.born <= tick
        return there
