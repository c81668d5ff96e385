"""Which memories of an agent are near to each other: duplicates, most likely."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from agents.storage.columns import AgentColumns
from agents.storage.vectors import product_dtype

__all__ = ["near_ones"]

_STACKED_CELLS = 300_000
"""Vectors are widened in stacks that stay in the processor's cache."""
_SLACK = 1e-9
"""More than roots and products are rounded by."""


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
        heads = np.zeros((len(group), width, head), product_dtype(dims))
        lengths = np.full((len(group), width), np.inf)  # of padding, which is near to nothing
        for block, own, length in zip(group, heads, lengths, strict=True):
            number = min(width, block.size)
            own[:number] = block.vectors()[-number:, :head]
            length[:number] = block.norms[-number:]
        tails = np.sqrt(np.maximum(lengths**2 - np.einsum("ijk,ijk->ij", heads, heads), 0.0))
        tails[np.isinf(tails)] = 0.0
        needed = (at - _SLACK) * lengths[:, :, None] * lengths[:, None]
        needed -= tails[:, :, None] * tails[:, None]
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
