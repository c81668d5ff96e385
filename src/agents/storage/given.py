"""What searches gave to their agents, as numbers: a tick gives thousands of memories."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.memory.events import Accessed

__all__ = ["Given", "events_of_given"]


class Given(NamedTuple):
    """The memories that a group of searches gave, search after search."""

    members: list[int]
    """Which of the searches these are."""
    counts: NDArray[np.intp]
    """How many each of them gave."""
    rows: NDArray[np.intp]
    """Where they are in the table of all resident memories."""
    scores: NDArray[np.float64]

    def at_least(self, least: float) -> "Given":
        """Those that are as similar."""
        enough = self.scores >= least
        if enough.all():
            return self
        whose = np.arange(len(self.members)).repeat(self.counts)
        counts = np.bincount(whose[enough], minlength=len(self.members))
        return Given(self.members, counts, self.rows[enough], self.scores[enough])


def events_of_given(
    agents: Sequence[str], given: Given, sequences: NDArray[np.int64]
) -> dict[int, Accessed]:
    """By its number an event for each search, of ``agents[number]``, that gave some memory.

    ``sequences`` are the numbers of the memories.
    """
    numbers, scores = sequences.tolist(), given.scores.tolist()
    events, start = {}, 0
    for member, stop in zip(given.members, given.counts.cumsum().tolist(), strict=True):
        if start < stop:
            own, similar = numbers[start:stop], scores[start:stop]
            # Accessed(…), at half its cost
            fields = ("access", agents[member], own, similar)
            events[member] = tuple.__new__(Accessed, fields)
        start = stop
    return events
