"""What the calls that move memories give back."""

from typing import NamedTuple

from .records import Memory
from .temperature import Temperature

__all__ = ["Compaction", "Recall", "RuledMove", "Spill"]


class Spill(NamedTuple):
    """What left hot."""

    moved: dict[str, Temperature]
    """Each id, with the temperature that it went to."""
    notes: tuple[str, ...] = ()
    """What a person should know, such as that a memory is larger than all of hot."""


class Recall(NamedTuple):
    """What a recall found among the warm and the cold memories, best first."""

    items: tuple[Memory, ...]
    """As they are now, after promotion."""
    scores: tuple[float, ...]
    """How similar each is to the query, from 0 to 1."""
    promoted: tuple[str, ...]
    """The ids of those that are hot now."""
    notes: tuple[str, ...] = ()


class RuledMove(NamedTuple):
    """A memory that a rule moves."""

    memory: Memory
    """As it was before."""
    to: Temperature
    rule: str
    """The name of the rule."""


class Compaction(NamedTuple):
    """What a compaction moved, or would move."""

    hot: int
    warm: int
    cold: int
    pruned: int
    """How many cold ones were archived, because there were too many."""
    moves: tuple[RuledMove, ...]
    """What would move, and by which rule; filled by a dry run alone."""
