"""How well words match: BM25, on a scale that means the same for every query."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Counts", "Measure", "keyword_scores", "measure", "word_weights"]

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
"""How often each term (a row) is in each memory (a column)."""

_SMALLEST = 1e-6
_PRIOR = 5000
"""Words that an agent is taken to have heard before its first memory, none of them the query's.
Without, all that a few memories have in common with a query would count for nothing."""
_PRIOR_MEMORIES = 100
"""So many memories without the query's words an agent is taken to have, for the same reason."""
_COMMON_WEIGHT = 0.2
"""What a word that says little in any text counts for when it matches."""


class Measure(NamedTuple):
    """What an agent's memories make of a query's terms."""

    weights: Floats
    """What each says: the rarer, the more."""
    total: float
    mean: float
    """The mean length of a memory, in terms."""
    is_known: bool
    """Whether a memory has any of them."""


def measure(counts: Counts, lengths: Floats, common: NDArray[np.bool_]) -> Measure:
    """The measure of a query's terms, some of them common, for memories that have them so often."""
    memories = len(lengths)
    frequencies = np.count_nonzero(counts, axis=1)
    weights = np.log1p((memories + _PRIOR_MEMORIES - frequencies + 0.5) / (frequencies + 0.5))
    weights[common] *= _COMMON_WEIGHT
    total = 0.0
    for weight in weights.tolist():  # in this order on every machine
        total += weight
    mean = float(lengths.sum()) / memories if memories else 0.0
    return Measure(weights, total, mean, bool(frequencies.any()))


def keyword_scores(by: Measure, counts: Counts, lengths: Floats, k1: float, b: float) -> Floats:
    """For each memory how well it matches, from 0 to 1.

    1 is what a memory of average length reaches that has every term once: the sum of the terms'
    weights. Rounded to 1e-6, because logarithms differ in the last bits from machine to machine.
    """
    weights = by.weights * ((k1 + 1.0) / by.total)
    present = np.flatnonzero(np.count_nonzero(counts, axis=1))
    if len(present) < len(counts):
        counts, weights = counts[present], weights[present]
    saturation = lengths * (k1 * b / (by.mean or 1.0))
    saturation += k1 * (1.0 - b)
    parts: Floats = counts / np.maximum(counts + saturation, _SMALLEST)
    parts *= weights[:, None]
    scores: Floats = np.add.reduce(parts, axis=0)  # row by row
    np.minimum(scores, 1.0, out=scores)
    return np.rint(scores / _SMALLEST) * _SMALLEST


def word_weights(counts: Counts, total: int, sif: float) -> Floats:
    """How much each term says about what is meant: names that are everywhere say little.

    ``sif / (sif + p)`` with p, the term's share of all words (smooth inverse frequency), in whole
    1024ths, so that what is weighted by them stays exact.
    """
    shares: Floats = counts.sum(axis=1) / (total + _PRIOR)
    return np.rint(1024.0 * sif / (sif + shares))
