"""What searches gave to their agents, as numbers: a tick gives thousands of memories."""

from collections.abc import Sequence
from itertools import compress, repeat
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
) -> list[tuple[int, Accessed]]:
    """An event for each search, of ``agents[number]``, that gave some memory, after its number.

    ``sequences`` are the numbers of the memories.
    """
    stops = given.counts.cumsum()
    parts = list(map(slice, (stops - given.counts).tolist(), stops.tolist()))
    fields = zip(
        repeat("access"),
        map(agents.__getitem__, given.members),
        map(sequences.tolist().__getitem__, parts),
        map(given.scores.tolist().__getitem__, parts),
        strict=False,
    )
    # tuple.__new__ is what Accessed(…) comes down to, at half its cost.
    events = zip(given.members, map(tuple.__new__, repeat(Accessed), fields), strict=True)
    return list(events if given.counts.all() else compress(events, given.counts.tolist()))
