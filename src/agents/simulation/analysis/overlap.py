"""How much two agents believe the same: by where memories came from, and by what they say."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...storage.vectors import norms, product_dtype
from .columns import Columns, Numbers

if TYPE_CHECKING:
    import pyarrow as pa

_NO_BELIEFS = ("observation", "action", "note")
_MOST_NEAR = 60
"""Agents that are compared by nearness, unless some are named."""
_MOST_MEMORIES = 50
"""The newest memories of an agent that are compared by nearness."""


def beliefs(columns: Columns) -> NDArray[np.bool_]:
    """Which memories say what an agent holds for true: no observations, actions or notes."""
    return np.array([kind not in _NO_BELIEFS for kind in columns.kind], np.bool_)


def overlap(columns: Columns, agents: Sequence[int] | None = None) -> "pa.Table":
    """A row for each pair of agents that have something in common, the closest pair first.

    ``shared`` counts beliefs of the same origin that both have, ``exact`` is their share among all
    beliefs of the two. ``near`` is how near the beliefs of the one are to the other's: the mean,
    over the newest 50 beliefs of each, of the cosine with the nearest of the other's. It is null
    for pairs that were not compared: without ``agents``, all but the first 60.
    """
    import pyarrow as pa

    rows = np.flatnonzero(beliefs(columns) & columns.is_there())
    if agents is not None:
        rows = rows[np.isin(columns.agent[rows], list(agents))]
    shared, sizes = _shared(columns, rows, columns.origin)
    chosen = list(range(min(len(columns.agents), _MOST_NEAR))) if agents is None else list(agents)
    near = _near(columns, rows, chosen)
    one, other, both = shared
    exact = _exact(shared, sizes)
    keys = (one << 32) | other
    rest = np.array(sorted(near.keys() - set(keys[np.isin(keys, list(near))].tolist())), np.int64)
    keys = np.concatenate([keys, rest])
    one, other = keys >> 32, keys & 0xFFFFFFFF
    zeros = np.zeros(len(rest), np.int64)
    both, exact = np.concatenate([both, zeros]), np.concatenate([exact, zeros])
    closeness = np.full(len(keys), np.nan)
    compared = np.flatnonzero(np.isin(keys, list(near)))
    closeness[compared] = [near[key] for key in keys[compared].tolist()]
    order = np.lexsort((other, one, -np.nan_to_num(closeness), -exact))
    names = pa.array(columns.agents, pa.string())
    return pa.table(
        {
            "agent": names.take(pa.array(one[order])),
            "other": names.take(pa.array(other[order])),
            "shared": both[order],
            "exact": exact[order],
            "near": pa.array(closeness[order], mask=np.isnan(closeness[order])),
        }
    )


def shares(columns: Columns, agents: Sequence[int], group: Numbers) -> NDArray[np.float64]:
    """For each two agents the share of their beliefs that both have, as a matrix.

    ``group`` says which memories are the same belief.
    """
    rows = np.flatnonzero(beliefs(columns) & columns.is_there())
    places = np.full(len(columns.agents), -1)
    places[agents] = np.arange(len(agents))
    rows = rows[places[columns.agent[rows]] >= 0]
    shared, sizes = _shared(columns, rows, group)
    found = np.zeros((len(agents), len(agents)))
    one, other, exact = places[shared[0]], places[shared[1]], _exact(shared, sizes)
    found[one, other] = found[other, one] = exact
    found[places[agents], places[agents]] = sizes[agents] > 0
    return found


def _exact(shared: tuple[Numbers, Numbers, Numbers], sizes: Numbers) -> NDArray[np.float64]:
    """Of each pair the share of beliefs that both have."""
    one, other, both = shared
    share: NDArray[np.float64] = both / np.maximum(sizes[one] + sizes[other] - both, 1)
    return share


def _shared(
    columns: Columns, rows: Numbers, group: Numbers
) -> tuple[tuple[Numbers, Numbers, Numbers], Numbers]:
    """The pairs of agents with the same beliefs and how many; the beliefs of each agent."""
    from scipy.sparse import csr_matrix, triu

    held = np.unique((columns.agent[rows] << 32) | group[rows])
    who, what = held >> 32, held & 0xFFFFFFFF
    count = len(columns.agents)
    sizes = np.bincount(who, minlength=count)
    _, what, holders = np.unique(what, return_inverse=True, return_counts=True)
    several = holders[what] > 1
    shape = count, len(holders)
    table = csr_matrix((np.ones(several.sum(), np.int64), (who[several], what[several])), shape)
    pairs = triu(table @ table.T, k=1).tocoo()
    return (pairs.row.astype(np.int64), pairs.col.astype(np.int64), pairs.data), sizes


def _near(columns: Columns, rows: Numbers, agents: Sequence[int]) -> dict[int, float]:
    """How near the beliefs of each two agents are, by one number for both."""
    own = {agent: rows[columns.agent[rows] == agent][-_MOST_MEMORIES:] for agent in agents}
    own = {agent: each for agent, each in own.items() if len(each)}
    if len(own) < 2:
        return {}
    places = sorted(own)
    chosen = np.concatenate([own[agent] for agent in places])
    vectors = columns.vectors()[chosen]
    wide = vectors.astype(product_dtype(columns.dims))
    lengths = norms(vectors)
    cosines = (wide @ wide.T) / lengths[:, None] / lengths
    sizes = np.array([len(own[agent]) for agent in places])
    starts = np.cumsum(sizes) - sizes
    nearest = np.maximum.reduceat(cosines, starts, axis=1)
    means = np.add.reduceat(nearest, starts, axis=0) / sizes[:, None]
    return {
        (one << 32) | other: round(float(means[i, j] + means[j, i]) / 2, 6)
        for i, one in enumerate(places)
        for j, other in enumerate(places)
        if i < j
    }
