"""What hot may hold, and who leaves when it holds too much.

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

    The sequences in ``newcomers``, which were just added or promoted, leave only once no other is
    left that may. Where the pinned alone exceed the limits, everything else leaves.
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
    """The sequences of the ``count`` that would leave first; fewer where there are not as many."""
    return [fact.sequence for fact in _order(hot)[:count]]


def destination(access_count: int, threshold: int) -> Temperature:
    """Where a memory goes that leaves hot: warm if it was retrieved often enough, else cold."""
    return Temperature.WARM if access_count >= threshold else Temperature.COLD


def _order(hot: Sequence[HotFact]) -> list[HotFact]:
    """Those that may leave, the first to go first."""
    leaving = (fact for fact in hot if not fact.pinned)
    return sorted(leaving, key=lambda fact: (fact.relevance, fact.created, fact.sequence))
