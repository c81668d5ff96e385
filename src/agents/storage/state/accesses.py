"""The memories that searches gave, and how their use is counted."""

from collections.abc import Iterable, Sequence
from itertools import chain, compress, repeat
from operator import gt
from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...memory.events import Row
from .state import State

_Value = TypeVar("_Value")


class Accesses(NamedTuple):
    """The memories that a group of searches gave, as columns, search after search."""

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
        """From the sequence numbers and the scores that each search gave."""
        return cls(
            list(range(len(given))),
            np.array([len(sequences) for sequences, _ in given], np.intp),
            np.array(list(chain.from_iterable([sequences for sequences, _ in given])), np.int64),
            np.array(list(chain.from_iterable([scores for _, scores in given])), np.float64),
        )

    def at_least(self, least: float) -> "Accesses":
        """The accesses with at least this score; a search that has none is left out."""
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
    if 0 < len(counts) * most == len(values):  # as many for each search: tuples are faster
        return zip(*[iter(values)] * most, strict=True)
    stops = counts.cumsum()
    return map(values.__getitem__, map(slice, (stops - counts).tolist(), stops.tolist()))


def count_uses(
    state: State, agents: Sequence[str], accesses: Sequence[Accesses], kind: str
) -> list[Row]:
    """Count the use of memories in the state; the events, in the order of the searches."""
    events: list[Row] = []
    for each in accesses:
        if not each.members:
            continue
        own = each.events(agents, kind)
        if each.rows is None or kind == "recall":
            state.access(own)
        else:
            owners = [event[1] for event in own]
            state.use(owners, each.counts.tolist(), each.rows, each.scores)
        events += own
    members = [member for each in accesses for member in each.members]
    if any(map(gt, members, members[1:])):
        order = sorted(range(len(members)), key=members.__getitem__)
        events = [events[place] for place in order]
    return events
