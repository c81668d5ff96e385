"""The memories that searches gave to their agents, as columns: a tick gives thousands."""

from collections.abc import Iterable, Sequence
from itertools import chain, compress, repeat
from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...memory.events import Row

__all__ = ["Accesses", "apart"]

_Value = TypeVar("_Value")


class Accesses(NamedTuple):
    """The memories that a group of searches gave, search after search."""

    members: list[int]
    """The number of each search."""
    counts: NDArray[np.intp]
    """How many memories each search gave."""
    sequences: NDArray[np.int64]
    scores: NDArray[np.float64]
    rows: NDArray[np.intp] | None = None
    """The row of each memory in the table; None where a memory may be cold or given twice."""

    @classmethod
    def of(cls, given: Sequence[tuple[Sequence[int], Sequence[float]]]) -> Self:
        """What each search gave: sequence numbers and scores."""
        return cls(
            list(range(len(given))),
            np.array([len(sequences) for sequences, _ in given], np.intp),
            np.array(list(chain.from_iterable([sequences for sequences, _ in given])), np.int64),
            np.array(list(chain.from_iterable([scores for _, scores in given])), np.float64),
        )

    def at_least(self, least: float) -> "Accesses":
        """The accesses with at least this score; searches without any are left out."""
        enough = self.scores >= least
        if enough.all() and self.counts.all():
            return self
        whose = np.arange(len(self.members)).repeat(self.counts)
        counts = np.bincount(whose[enough], minlength=len(self.members))
        members = list(compress(self.members, counts.tolist()))
        rows = None if self.rows is None else self.rows[enough]
        return Accesses(
            members, counts[counts > 0], self.sequences[enough], self.scores[enough], rows
        )

    def events(self, agents: Sequence[str], kind: str) -> list[Row]:
        """An event for each search; ``agents`` has the agent of each number of a search."""
        owners = [agents[member] for member in self.members]
        sequences = apart(self.sequences.tolist(), self.counts)
        scores = apart(self.scores.tolist(), self.counts)
        return list(zip(repeat(kind), owners, sequences, scores, strict=False))


def apart(values: list[_Value], counts: NDArray[np.intp]) -> Iterable[Sequence[_Value]]:
    """The values cut into one tuple or list for each search, which has as many as its count."""
    most = int(counts.max(initial=0))
    if 0 < len(counts) * most == len(values):  # as many for each: tuples take half the time
        return zip(*[iter(values)] * most, strict=True)
    stops = counts.cumsum()
    return map(values.__getitem__, map(slice, (stops - counts).tolist(), stops.tolist()))
