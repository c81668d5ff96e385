"""The results of the calls that move memories."""

from typing import NamedTuple

from .records import Memory
from .temperature import Temperature

__all__ = ["Compaction", "Recall", "RuledMove", "Spill"]


class Spill(NamedTuple):
    """The memories that left hot."""

    moved: dict[str, Temperature]
    """The new temperature of each memory, by id."""
    notes: tuple[str, ...] = ()
    """Remarks for a person, such as that a memory is larger than all of hot."""


class Recall(NamedTuple):
    """The memories that a recall found, best first; each says how hot it is."""

    items: tuple[Memory, ...]
    """The memories as they are after promotion."""
    scores: tuple[float, ...]
    """How well each memory matches the query, from 0 to 1."""
    promoted: tuple[str, ...]
    """The ids of the found memories that this recall made hot."""
    notes: tuple[str, ...] = ()


class RuledMove(NamedTuple):
    """A move of a memory by a rule."""

    memory: Memory
    """The memory as it was before the move."""
    to: Temperature
    rule: str
    """The name of the rule."""


class Compaction(NamedTuple):
    """The number of memories that a compaction moved, or would move, to each temperature."""

    hot: int
    warm: int
    cold: int
    pruned: int
    """How many cold memories were archived because there were too many."""
    moves: tuple[RuledMove, ...]
    """The moves of a dry run; empty otherwise."""
