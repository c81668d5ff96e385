"""What searches gave to their agents, as numbers: a tick gives thousands of memories."""

from collections.abc import Iterable, Sequence
from itertools import compress, repeat
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...memory.events import Row

__all__ = ["Given", "apart", "rows_of_given"]

_Value = TypeVar("_Value")


class Given(NamedTuple):
    """The memories that a group of searches gave, search after search."""

    members: list[int]
    """Which of the searches these are."""
    counts: NDArray[np.intp]
    """How many each of them gave."""
    rows: NDArray[np.intp]
    """Where they are in the table of all resident memories."""
    sequences: NDArray[np.int64]
    """Their sequence numbers."""
    scores: NDArray[np.float64]

    def at_least(self, least: float) -> "Given":
        """Those that are as similar, of the searches that gave some."""
        enough = self.scores >= least
        if enough.all() and self.counts.all():
            return self
        whose = np.arange(len(self.members)).repeat(self.counts)
        counts = np.bincount(whose[enough], minlength=len(self.members))
        members = list(compress(self.members, counts.tolist()))
        rows, sequences = self.rows[enough], self.sequences[enough]
        return Given(members, counts[counts > 0], rows, sequences, self.scores[enough])


def apart(values: list[_Value], counts: NDArray[np.intp]) -> Iterable[Sequence[_Value]]:
    """So many values for each search, as tuples or lists, one search after the other."""
    most = int(counts.max(initial=0))
    if 0 < len(counts) * most == len(values):  # as many for each: tuples take half the time
        return zip(*[iter(values)] * most, strict=True)
    stops = counts.cumsum()
    return map(values.__getitem__, map(slice, (stops - counts).tolist(), stops.tolist()))


def rows_of_given(agents: Sequence[str], given: Given) -> list[Row]:
    """The events of searches by these agents, each of which gave some memory."""
    sequences = apart(given.sequences.tolist(), given.counts)
    scores = apart(given.scores.tolist(), given.counts)
    return list(zip(repeat("access"), agents, sequences, scores, strict=False))
