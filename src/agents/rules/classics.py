"""The scores of classic agents, which rank by more than the match of memory and query.

- ``generative``: recency, importance and relevance, as in Generative Agents (Park et al. 2023).
- ``forgetting``: relevance times retention, as in MemoryBank (Zhong et al. 2023).
- ``recency``: the newest memories, whatever the query.

``docs/howto/classic-agents.md`` says where papers and their code differ, and what is followed here.
Each search is scored by itself, and powers are rounded, so that batches and machines agree.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .weights import Generative

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]

_HOURS = 24
_SMALLEST = 1e-6
_EVEN = 0.5
"""The scaled value where all values are equal."""


class Lives(NamedTuple):
    """What became of memories until now."""

    idle: Floats
    """Ticks since the last access, or else since the memory was made."""
    recalls: Floats
    """How many searches returned the memory."""
    importance: Floats
    """From 1 to 10."""
    number: Floats
    """The sequence number: the larger, the newer."""


class Judged(NamedTuple):
    """The scores of memories, from 0 to 1, and their parts besides the relevance."""

    score: Floats
    recency: Floats
    importance: Floats


def scaled(values: Floats, among: Truths | None = None) -> Floats:
    """The values on a scale from 0, the least of ``among``, to 1, the most.

    Values beyond the scale are cut. Where all values are equal, each is 0.5.

    >>> scaled(np.array([2.0, 8.0, 5.0])).tolist(), scaled(np.array([3.0, 3.0])).tolist()
    ([0.0, 1.0, 0.5], [0.5, 0.5])
    """
    measured = values if among is None else values[among]
    if not len(measured):
        return np.zeros(len(values))
    least, most = float(measured.min()), float(measured.max())
    if least == most:
        return np.full(len(values), _EVEN)
    result: Floats = np.clip((values - least) / (most - least), 0.0, 1.0)
    return result


def generative(
    relevance: Floats,
    lives: Lives,
    weights: Generative,
    ticks_per_day: int,
    among: Truths | None = None,
) -> Judged:
    """The weighted mean of recency, importance and relevance, each scaled over the memories.

    ``among`` are the memories that the search sees; None: all. A mean has the order of the sum in
    the paper, and stays between 0 and 1.
    """
    idle = lives.idle if among is None else lives.idle[among]
    # Scaled recency stays the same if all memories are idle for longer. Counted from the memory
    # that was accessed last, a power does not become too small to tell memories apart.
    since = lives.idle - (float(idle.min()) if len(idle) else 0.0)
    hours = np.maximum(since, 0.0) * (_HOURS / ticks_per_day)
    recency = scaled(_rounded(np.power(weights.decay, hours)), among)
    importance = scaled(lives.importance, among)
    total = weights.recency + weights.importance + weights.relevance
    score: Floats = (
        weights.recency * recency
        + weights.importance * importance
        + weights.relevance * scaled(relevance, among)
    ) / total
    return Judged(np.minimum(score, 1.0), recency, importance)


def retentions(lives: Lives, ticks_per_day: int) -> Floats:
    """How much of each memory is retained: ``exp(-t / S)``.

    t are the days since the last access. S, the strength, is 1, and 1 more for each recall.
    """
    return _rounded(np.exp(-(lives.idle / ticks_per_day) / (1.0 + lives.recalls)))


def forgetting(relevance: Floats, lives: Lives, ticks_per_day: int) -> Judged:
    """Relevance times retention: the expected relevance of a memory that may be forgotten."""
    retained = retentions(lives, ticks_per_day)
    return Judged(relevance * retained, retained, np.zeros(len(relevance)))


def by_age(lives: Lives) -> Judged:
    """By the order in which the memories were made: the newest has the score 1."""
    size = len(lives.number)
    score = np.empty(size)
    score[np.argsort(lives.number, kind="stable")] = np.arange(1, size + 1) / max(1, size)
    return Judged(score, score, np.zeros(size))


def _rounded(values: Floats) -> Floats:
    # Powers differ in the last bits from machine to machine.
    result: Floats = np.rint(values / _SMALLEST) * _SMALLEST
    return result
