"""How active a memory is: what is hot, warm or cold.

A memory begins with a temperature. It cools while nobody uses it, and leaves hot when hot is full.
Where too many memories are cold, some are archived.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..memory.tiers import TEMPERATURE_NAMES, Temperature, Tier
from .ranking import Rank
from .tiers import PINNED

Floats = NDArray[np.float64]


# How warm a new memory starts: what is soon forgotten need not be hot.


def initial_temperature(
    tier: Tier,
    asked: Temperature | None,
    ttl: int | None,
    initial: Temperature,
    warm_below: int | None,
    cold_below: int | None,
) -> Temperature:
    """The temperature of a new memory.

    Pinned is hot. Else it is what was ``asked`` for; else cold or warm if it lives for fewer than
    ``cold_below`` or ``warm_below`` ticks (``ttl``; None: for ever); else ``initial``. Raises
    :class:`InvalidInput` for a pinned memory that is asked to be anything but hot.
    """
    if tier is Tier.PINNED:
        if asked not in (None, PINNED.temperature):
            raise InvalidInput(
                f"a pinned memory is hot; got temperature {TEMPERATURE_NAMES[asked]}",
                hint="leave the temperature out, or use another tier",
            )
        return PINNED.temperature
    if asked is not None:
        return asked
    if ttl is not None:
        if cold_below is not None and ttl < cold_below:
            return Temperature.COLD
        if warm_below is not None and ttl < warm_below:
            return Temperature.WARM
    return initial


# How a memory that nobody uses cools down.
#
# Its score starts at 1 and halves with every half-life of its tier that it lies idle. One use
# doubles the half-life, and each doubling of the uses adds as much again: 2, 3 or 4 half-lives
# with 1, 2 or 4 uses. Once the score is below a threshold, the memory moves down one temperature:
# from hot to warm, from warm to cold.
#
# Scores are for people to look at. Two machines may differ in the last bit of a power, so what
# moves is decided by whole numbers: the idle ticks from which on the score is below the threshold.

NEVER_IDLE = 2**62
"""More ticks than any memory is ever idle."""
SLOWEST = 32
"""More than four billion uses add no more half-lives."""


@dataclass(frozen=True, slots=True)
class Decay:
    """How fast each tier fades, and how far until it moves."""

    half_lives: tuple[int, ...]
    """In ticks, from pinned to low. 0 means that the tier never fades, as pinned."""
    hot_below: float
    """A hot memory with a score below this becomes warm. 0 means never."""
    warm_below: float
    """A warm memory with a score below this becomes cold. 0 means never."""

    def idle_limit(self, tier: int, temperature: Temperature, slowness: int) -> int | None:
        """The number of idle ticks from which on it moves down, or None for never.

        ``slowness`` is that of its uses. A score that equals the threshold is not below it:

        >>> Decay((0, 0, 0, 720, 0), 0.5, 0.25).idle_limit(3, Temperature.HOT, slowness=0)
        721
        """
        half_life = self.half_lives[tier] * (1 + slowness)
        if temperature is Temperature.COLD or half_life == 0:
            return None
        threshold = self.hot_below if temperature is Temperature.HOT else self.warm_below
        if threshold <= 0:
            return None
        # The logarithm too may differ in its last bit, so only nine digits of it count.
        return math.floor(half_life * round(-math.log2(threshold), 9)) + 1


def idle_limits(decay: Decay) -> NDArray[np.int64]:
    """All idle limits, as ``[tier, temperature, slowness]``; :data:`NEVER_IDLE` where none is."""
    table = np.full((len(Tier), len(Temperature), SLOWEST + 1), NEVER_IDLE, np.int64)
    for tier in Tier:
        for temperature in Temperature:
            for slowness in range(SLOWEST + 1):
                limit = decay.idle_limit(tier, temperature, slowness)
                if limit is not None:
                    table[tier, temperature, slowness] = min(limit, NEVER_IDLE)
    return table


def slownesses(uses: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many half-lives the uses of each memory add.

    >>> slownesses(np.array([0, 1, 2, 3, 4, 1000])).tolist()
    [0, 1, 2, 2, 3, 10]
    """
    digits = np.frexp(uses.astype(np.float64))[1]  # of the number in base two
    return np.minimum(digits, SLOWEST).astype(np.int64)


def faded_score(idle: int, half_life: int, uses: int) -> float:
    """The score of one memory, for people to read; always 1 where ``half_life`` is 0.

    >>> faded_score(720, 720, uses=0), faded_score(720, 360, uses=1)
    (0.5, 0.5)
    """
    slowness = min(uses.bit_length(), SLOWEST)
    return math.pow(2.0, -idle / (half_life * (1 + slowness))) if half_life else 1.0


# What hot may hold, and which memory leaves when hot holds too much.
#
# Hot is what an agent sees each turn, so it is limited in tokens and in number. The least relevant
# leaves first, and among equals the oldest. A pinned memory never leaves, but counts. A newcomer
# leaves last, or last but one: a promoted memory stays as long as it is the most relevant.

ANY_NUMBER = 1 << 53
"""More memories than anybody has."""


class HotLimits(NamedTuple):
    """The most that is hot, of an agent or of a session, pinned memories included."""

    tokens: int
    facts: int

    @classmethod
    def of(cls, tokens: int | None, facts: int | None) -> Self:
        """From the settings, where None stands for any number."""
        return cls(*[ANY_NUMBER if each is None else each for each in (tokens, facts)])

    def within(self, outer: "HotLimits") -> "HotLimits":
        """These limits, where the outer ones are not smaller."""
        return HotLimits(*map(min, self, outer))

    def beside(self, facts: "Iterable[HotFact]") -> "HotLimits":
        """What is left of the limits beside these memories; it may be less than nothing."""
        taken = [fact.tokens for fact in facts]
        return HotLimits(self.tokens - sum(taken), self.facts - len(taken))

    def hold(self, tokens: int, facts: int = 1) -> bool:
        """Whether this many memories with these tokens are within the limits."""
        return tokens <= self.tokens and facts <= self.facts


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


# Which cold memories are archived when there are too many.


def choose_prune(
    sequences: NDArray[np.int64],
    tiers: NDArray[np.int8],
    relevances: NDArray[np.float64],
    access_counts: NDArray[np.int64],
    most: int,
) -> list[int]:
    """The sequences to archive, in order, so that at most ``most`` cold memories remain.

    The arrays hold an agent's cold memories, oldest first. The lowest relevance goes first; among
    equals the memory with fewer retrievals, then the oldest. Pinned and critical memories are kept,
    even if more than ``most`` remain.
    """
    excess = len(sequences) - most
    if excess <= 0:
        return []
    open_to_it = np.flatnonzero(tiers > Tier.CRITICAL)
    # Equals stay oldest first.
    order = np.lexsort((access_counts[open_to_it], relevances[open_to_it]))[:excess]
    chosen: list[int] = sequences[open_to_it[order]].tolist()
    return chosen
