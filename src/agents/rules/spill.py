"""What hot may hold, and which memory leaves when hot holds too much.

Hot is what an agent sees each turn, so it is limited in tokens and in number. The least relevant
leaves first, and among equals the oldest. A pinned memory never leaves, but counts. A newcomer
leaves last, or last but one: a promoted memory stays as long as it is the most relevant.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Self

from ..memory.tiers import Temperature
from .relevance import Rank

ANY_NUMBER = 1 << 53
"""More memories than anybody has."""


class HotLimits(NamedTuple):
    """The most that is hot for one agent, pinned memories included."""

    tokens: int
    facts: int

    @classmethod
    def of(cls, tokens: int, facts: int | None) -> Self:
        """From the settings, where None stands for any number."""
        return cls(tokens, ANY_NUMBER if facts is None else facts)


class HotFact(NamedTuple):
    """A hot memory, as far as spilling looks at it."""

    sequence: int
    tokens: int
    relevance: Rank
    created: int
    access_count: int
    pinned: bool
    promoted: bool = False


def choose_spill(
    hot: Sequence[HotFact], limits: HotLimits, newcomers: Collection[int] = ()
) -> list[int]:
    """The sequences that leave, in order, until the rest is within ``limits``.

    The memories in ``newcomers``, which were just added or promoted, leave last, but for the most
    relevant memory if it was promoted. If the pinned memories alone exceed the limits, all other
    memories leave.
    """
    tokens, count = sum(fact.tokens for fact in hot), len(hot)
    spilled = []
    leaving = _order(hot)
    kept = leaving[-1] if leaving and leaving[-1].promoted else None
    leaving.sort(key=lambda fact: (fact is kept, fact.sequence in newcomers))
    for fact in leaving:
        if tokens <= limits.tokens and count <= limits.facts:
            break
        spilled.append(fact.sequence)
        tokens, count = tokens - fact.tokens, count - 1
    return spilled


def least_relevant(hot: Sequence[HotFact], count: int) -> list[int]:
    """The sequences of the ``count`` memories that would leave first, or of all that may."""
    return [fact.sequence for fact in _order(hot)[:count]]


def to_free(hot: Sequence[HotFact], tokens: int) -> list[int]:
    """The least relevant sequences that take at least this many tokens, or all that may leave."""
    chosen = []
    for fact in _order(hot):
        if tokens <= 0:
            break
        chosen.append(fact.sequence)
        tokens -= fact.tokens
    return chosen


def destination(access_count: int, threshold: int) -> Temperature:
    """Where a memory that leaves hot goes: warm if it was retrieved often enough, else cold."""
    return Temperature.WARM if access_count >= threshold else Temperature.COLD


def _order(hot: Sequence[HotFact]) -> list[HotFact]:
    """The memories that may leave, in the order in which they leave."""
    leaving = (fact for fact in hot if not fact.pinned)
    return sorted(leaving, key=lambda fact: (fact.relevance, fact.created, fact.sequence))
