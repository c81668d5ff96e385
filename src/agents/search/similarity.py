"""Similarities of queries to all memories of their agents, exact and for many agents at once."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import simsimd
from numpy.typing import NDArray

from ..rules.ranking import EXCLUDED
from ..storage.resident.agent_columns import AgentColumns
from ..storage.vectors import Quantised, norms, products
from .hybrid_score import HybridScore

__all__ = ["Scope", "Scored", "score", "similarities"]

_GROUP_CELLS = 2_000_000
"""Agents are scored together up to this many cells, which bounds the memory of a batch."""


class Scope(NamedTuple):
    """What of an agent's memories a search is about, where that is not simply all of them."""

    hidden: NDArray[np.bool_] | None
    """The memories that it does not see."""
    front: list[int]
    """The rows that come first, whatever their score: pinned, then hot."""
    pinned: int
    """How many of these are pinned."""
    min_score: float = 0.0


class Front(NamedTuple):
    """What comes first in a group of searches, search after search.

    Pinned, oldest pin first; then what else a scope puts in front.
    """

    counts: NDArray[np.intp]
    """How many it is in each of them."""
    rows: NDArray[np.intp]
    """Counted from the first row of the agent, not of the table."""
    scores: NDArray[np.float64]


class Scored(NamedTuple):
    """A group of searches: for each, a row of scores, oldest memory first."""

    members: list[int]
    """Which of the searches these are."""
    scores: NDArray[np.float64]
    """Cosine similarities; what comes first, what is hidden and padding are EXCLUDED."""
    tiers: Callable[[NDArray[np.intp]], NDArray[np.int8]]
    """The tiers of the memories in these columns, of which each search has a row."""
    front: Front


def score(
    blocks: Sequence[AgentColumns],
    queries: Quantised,
    scopes: Sequence[Scope | None],
    asked: HybridScore | None = None,
) -> Iterator[Scored]:
    """Score every memory of ``blocks[i]`` against ``queries[i]``, in groups of similar size.

    The scores are similarities; or what ``asked``, whose vectors these are, makes of them.
    """
    lengths = norms(queries)
    sizes = [block.size for block in blocks]
    order = sorted(range(len(blocks)), key=sizes.__getitem__)
    ordered = [sizes[index] for index in order]
    start = 0
    while start < len(order):
        stop = bisect_right(ordered, ordered[start] * 1.25 + 8)
        stop = min(stop, start + max(1, _GROUP_CELLS // max(1, ordered[stop - 1])))
        yield _score_group(blocks, queries, lengths, scopes, asked, order[start:stop])
        start = stop


def _score_group(
    blocks: Sequence[AgentColumns],
    queries: Quantised,
    lengths: NDArray[np.float64],
    scopes: Sequence[Scope | None],
    asked: HybridScore | None,
    members: list[int],
) -> Scored:
    group = [blocks[i] for i in members]
    sizes = [block.size for block in group]
    width = sizes[-1]
    table = group[0].table
    # An agent without memories has no row of its own.
    starts = [block.start if block.size else group[-1].start for block in group]
    vectors = table.vectors
    made: list[Any] = [  # products(), without arrays in between
        simsimd.dot(query, vectors[start : start + size])
        for query, start, size in zip(queries[members], starts, sizes, strict=True)
        if size
    ]
    products = np.frombuffer(b"".join(made)) if made else np.empty(0)
    first = np.array(starts)[:, None]
    scale = _runs(table.norms, first, width)
    padding = None
    if sizes[0] != width:  # the rows after an agent's own are another's, or nobody's
        padding = np.arange(width) >= np.array(sizes)[:, None]
        scale[padding] = 1.0
    scale *= lengths[members, None]
    if padding is None:
        scores = np.divide(products.reshape(scale.shape), scale, out=scale)
    else:
        scores = np.zeros(scale.shape)
        scores[~padding] = products
        scores /= scale
    # Below 0 means unrelated; a root rounded down can lift a perfect match above 1.
    np.clip(scores, 0.0, 1.0, out=scores)
    evidence: dict[int, NDArray[np.float64]] = {}
    if asked is not None and not asked.is_plain:
        for row, size, member in zip(scores, sizes, members, strict=True):
            scope = scopes[member]
            weighed = scope is not None and scope.min_score > 0.0
            parts = asked.parts(member, row[:size].copy(), weighed=weighed)
            row[:size] = parts.score
            evidence[member] = parts.evidence
    if padding is not None:
        scores[padding] = EXCLUDED
    own = [scopes[member] for member in members]
    front = _take_front(group, own, scores)
    for row, size, scope, member in zip(scores, sizes, own, members, strict=True):
        if scope is not None:
            if scope.hidden is not None:
                row[:size][scope.hidden] = EXCLUDED
            row[:size][evidence.get(member, row[:size]) < scope.min_score] = EXCLUDED
    return Scored(members, scores, lambda columns: table.tiers.take(first + columns), front)


def similarities(vectors: Quantised, query: Quantised) -> NDArray[np.float64]:
    """The cosine similarity of each row to a query: the same bits as in the columns."""
    lengths = norms(vectors) * norms(query[None])[0]
    scores: NDArray[np.float64] = np.clip(products(vectors, query) / lengths, 0.0, 1.0)
    return scores


def _runs(values: NDArray[np.float64], first: NDArray[np.intp], width: int) -> NDArray[np.float64]:
    """So many values from each first one on; any others for what is behind the last of all."""
    if first.max() + width > len(values):
        return values.take(first + np.arange(width), mode="clip")
    # Every run of so many is a row of these, which are copied as such, in a third of the time.
    step = values.itemsize
    shape = (len(values) - width + 1, width)
    runs = np.ndarray(shape, values.dtype, values, strides=(step, step))
    return runs[first[:, 0]]


def _take_front(
    group: list[AgentColumns], scopes: list[Scope | None], scores: NDArray[np.float64]
) -> Front:
    """Read the scores of what comes first, and exclude it from the ranking."""
    own = [
        block.pinned if scope is None else scope.front
        for block, scope in zip(group, scopes, strict=True)
    ]
    counts = np.array(list(map(len, own)))
    rows = np.array(list(chain.from_iterable(own)), np.intp)
    cells = np.arange(len(group)).repeat(counts) * scores.shape[1] + rows
    front = Front(counts, rows, scores.take(cells))
    scores.put(cells, EXCLUDED)
    return front
