"""How relevant a memory is: what its uses, their scores and a promotion make of it.

``relevance = 1 - (3/4 - mean/2) / 2^uses``, where ``mean`` is the running mean of the scores of its
uses, 0.5 at first. So each use halves what is missing to 1. A use with the score 0 halves the mean,
and still lowers nothing: another use never makes a memory less relevant.

The state keeps one number for it, the *record* of a memory's uses: the mean, and 2 for each use
that a promotion granted. A score in the journal has the same form. Powers of two are exact, so all
machines agree to the last bit. ``docs/architecture/relevance.md`` says why.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rank = tuple[int, float]
"""Orders memories by their relevance, the least relevant first. It knows no rounding to 1."""


def after_use(record: float, score: float) -> float:
    """The record after a use with this score.

    >>> after_use(0.5, 1.0), after_use(6.5, 1.0)
    (0.75, 6.75)
    """
    return (record + score) / 2 + record // 2 + score // 2


def after_uses(records: Floats, scores: Floats) -> Floats:
    """:func:`after_use` of many memories, to the same bits."""
    return (records + scores) / 2 + np.floor(records / 2) + np.floor(scores / 2)


def relevance(record: float, accesses: int) -> float:
    """How relevant a memory with this record is, from 0.5 to 1.

    >>> relevance(0.5, 0), relevance(0.25, 1), relevance(0.75, 1)
    (0.5, 0.6875, 0.8125)
    """
    return 1.0 - math.ldexp(_missing(record), -_uses(record, accesses))


def relevances(records: Floats, accesses: NDArray[np.int64]) -> Floats:
    """:func:`relevance` of many memories, to the same bits."""
    granted = np.floor(records / 2)
    missing = 0.75 - np.minimum(records - 2 * granted, 1.0) / 2
    found: Floats = 1.0 - np.ldexp(missing, -(accesses + granted.astype(np.int64)))
    return found


def rank(record: float, accesses: int) -> Rank:
    """The place of a memory in the order of relevance."""
    fraction, exponent = math.frexp(_missing(record))
    return _uses(record, accesses) - exponent, -fraction


def is_promoted(record: float) -> bool:
    """Whether a promotion granted uses to a memory with this record."""
    return record >= 2.0


def promotion(record: float, accesses: int, most: Rank) -> float:
    """The score with which a promotion counts as a use.

    Then the memory is more relevant than a memory with the rank ``most``, and was promoted.
    """
    granted = int(record // 2)
    missing = most[0] - _uses(record, accesses)
    return record % 2 + 2 * max(missing, 0 if granted else 1)


def _uses(record: float, accesses: int) -> int:
    return accesses + int(record // 2)


def _missing(record: float) -> float:
    """What a memory that was never used would lack to be entirely relevant."""
    return 0.75 - min(record % 2, 1.0) / 2
