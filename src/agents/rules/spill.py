"""What hot may hold, and which memory leaves when hot holds too much.

Hot is what an agent sees each turn, so it is limited in tokens and in number. The least relevant
leaves first, and among equals the oldest. A pinned memory never leaves, but counts.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ..memory.temperature import Temperature

__all__ = ["HotFact", "HotLimits", "choose_spill", "destination", "least_relevant"]


class HotLimits(NamedTuple):
    """The most that is hot for one agent, pinned memories included."""

    tokens: int
    facts: int


class HotFact(NamedTuple):
    """A hot memory, as far as spilling looks at it."""

    sequence: int
    tokens: int
    relevance: float
    created: int
    access_count: int
    pinned: bool


def choose_spill(
    hot: Sequence[HotFact], limits: HotLimits, newcomers: Collection[int] = ()
) -> list[int]:
    """The sequences that leave, in order, until the rest is within ``limits``.

    The memories in ``newcomers``, which were just added or promoted, leave last. If the pinned
    memories alone exceed the limits, all other memories leave.
    """
    tokens, count = sum(fact.tokens for fact in hot), len(hot)
    spilled = []
    for fact in sorted(_order(hot), key=lambda fact: fact.sequence in newcomers):
        if tokens <= limits.tokens and count <= limits.facts:
            break
        spilled.append(fact.sequence)
        tokens, count = tokens - fact.tokens, count - 1
    return spilled


def least_relevant(hot: Sequence[HotFact], count: int) -> list[int]:
    """The sequences of the ``count`` memories that would leave first, or of all that may."""
    return [fact.sequence for fact in _order(hot)[:count]]


def destination(access_count: int, threshold: int) -> Temperature:
    """Where a memory that leaves hot goes: warm if it was retrieved often enough, else cold."""
    return Temperature.WARM if access_count >= threshold else Temperature.COLD


def _order(hot: Sequence[HotFact]) -> list[HotFact]:
    """The memories that may leave, in the order in which they leave."""
    leaving = (fact for fact in hot if not fact.pinned)
    return sorted(leaving, key=lambda fact: (fact.relevance, fact.created, fact.sequence))
