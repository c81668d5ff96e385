"""Which memories of an agent are near to each other: duplicates, most likely."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..storage.resident.agent_columns import AgentColumns
from ..storage.vectors import product_dtype

__all__ = ["near_ones"]

_STACKED_CELLS = 300_000
"""Vectors are widened in stacks that stay in the processor's cache."""
_SLACK = 1e-6
"""More than roots and products are rounded by: what is possible is looked at exactly."""

_FAR = 1e15
"""The length of padding, which is near to nothing."""


def near_ones(
    blocks: Sequence[AgentColumns], most: int, at: float
) -> Iterator[tuple[AgentColumns, NDArray[np.bool_]]]:
    """Which of the ``most`` newest memories are near to which, of the blocks that have such.

    Many agents are worked on at once: a product each would cost more than what it computes. At
    first with a quarter of the dimensions: the others add at most the product of the lengths that
    they have, which shows for nearly all agents that no two memories are near.
    """
    if not blocks:
        return
    dims = blocks[0].vectors().shape[1]
    head = -(-dims // 4)
    width = min(most, max(block.size for block in blocks))
    together = max(1, _STACKED_CELLS // (width * head))
    below = np.tri(width, k=-1, dtype=bool)
    for start in range(0, len(blocks), together):
        group = blocks[start : start + together]
        table = group[0].table
        ends = np.array([block.start + block.size for block in group])
        rows = ends[:, None] + np.arange(-width, 0)
        padding = np.array([block.size for block in group])[:, None] + np.arange(-width, 0) < 0
        rows[padding] = 0
        heads: NDArray[np.floating] = table.vectors[:, :head][rows].astype(product_dtype(dims))
        lengths: NDArray[np.floating] = table.norms[rows].astype(heads.dtype)
        squares = lengths**2 - np.einsum("ijk,ijk->ij", heads, heads)
        tails = np.sqrt(np.maximum(squares, 0.0))
        heads[padding], lengths[padding], tails[padding] = 0.0, _FAR, 0.0
        # The least product of the heads: what is needed in all, less what the tails may add.
        parts = np.stack([(at - _SLACK) * lengths, -tails], axis=2)
        needed = parts @ np.stack([lengths, tails], axis=1)
        possible = (heads @ heads.transpose(0, 2, 1) >= needed) & below
        for place in np.flatnonzero(possible.any(axis=(1, 2))).tolist():
            near = _similarity(group[place], width) >= at
            if (near & below[: len(near), : len(near)]).any():
                yield group[place], near


def _similarity(block: AgentColumns, most: int) -> NDArray[np.float64]:
    """The similarity of each of the ``most`` newest memories to each, exact."""
    newest = slice(max(0, block.size - most), None)
    vectors = block.vectors(newest)
    wide: NDArray[np.floating] = vectors.astype(product_dtype(vectors.shape[1]))
    lengths = block.norms[newest]
    similarity: NDArray[np.float64] = (wide @ wide.T) / (lengths[:, None] * lengths)
    return similarity
