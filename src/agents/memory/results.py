"""The results of the calls that move memories."""

from typing import NamedTuple

from .records import Memory
from .temperature import Temperature


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
    matches: tuple[float | None, ...] = ()
    """For each memory, what ``min_relevance`` was compared with: the largest of the score, the
    similarity and the share of the query's words. None without ``min_relevance``."""


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


class TimePassed(NamedTuple):
    """What happened to a bank's memories as its clock moved."""

    before: int
    """The tick before."""
    tick: int
    """The tick now."""
    expired: int
    """How many memories were deleted because their lifetime is over."""
    purged: int
    """How many deleted memories are gone for good, because their grace is over."""
    promoted: int
    """How many memories became hot by ``temperature.rules``."""
    cooled: int
    """How many memories became warm or cold, by decay or by ``temperature.rules``."""
    archived: int
    """How many cold memories were archived because there were too many."""


class Reembedding(NamedTuple):
    """What another embedder does to a bank."""

    before: str
    """The name of the embedder that the bank had."""
    after: str
    texts: int
    """How many texts the bank has, those of its history too; 0 if both embedders are the same."""
    agreement: float | None
    """The share of each text's nearest texts, up to ten, that stay its nearest.

    None for too few texts.
    """
    compared: int
    """How many texts were compared for it."""
