"""What agents believe: how much two have in common, and rumours against truth."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...storage.embedding import norms, product_dtype
from .columns import NOT_GONE, Columns, Numbers

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
    matrix = np.zeros((len(agents), len(agents)))
    one, other, exact = places[shared[0]], places[shared[1]], _exact(shared, sizes)
    matrix[one, other] = matrix[other, one] = exact
    matrix[places[agents], places[agents]] = sizes[agents] > 0
    return matrix


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
    rows_of = {agent: rows[columns.agent[rows] == agent][-_MOST_MEMORIES:] for agent in agents}
    rows_of = {agent: each for agent, each in rows_of.items() if len(each)}
    if len(rows_of) < 2:
        return {}
    places = sorted(rows_of)
    chosen = np.concatenate([rows_of[agent] for agent in places])
    vectors = columns.vectors()[chosen]
    wide = vectors.astype(product_dtype(columns.dims))
    lengths = norms(vectors)
    cosines = (wide @ wide.T) / lengths[:, None] / lengths
    sizes = np.array([len(rows_of[agent]) for agent in places])
    starts = np.cumsum(sizes) - sizes
    nearest = np.maximum.reduceat(cosines, starts, axis=1)
    means = np.add.reduceat(nearest, starts, axis=0) / sizes[:, None]
    return {
        (one << 32) | other: round(float(means[i, j] + means[j, i]) / 2, 6)
        for i, one in enumerate(places)
        for j, other in enumerate(places)
        if i < j
    }


# Rumours against truth, where the world says what is true


Facts = Mapping[str, Mapping[str, bool]]
"""By subject, sentences that go round, and whether each is true."""


def truth(columns: Columns, facts: Facts) -> "pa.Table":
    """For each subject and tick, how many agents believe what is true, and what is not.

    A memory says a sentence if the sentence is in its text. An agent believes what more of its
    memories say, where a memory that came through many hands weighs less: 1 / (1 + hands).
    """
    import pyarrow as pa

    ticks = np.arange(columns.last_tick + 1)
    table: dict[str, list[Any]] = {"subject": [], "tick": [], "true": [], "false": []}
    said = _sayings(columns, facts)
    for subject, signs in said.items():
        balance = weight_of(columns, signs)
        table["subject"] += [subject] * len(ticks)
        table["tick"] += ticks.tolist()
        table["true"] += (balance > 0).sum(axis=1).tolist()
        table["false"] += (balance < 0).sum(axis=1).tolist()
    return pa.table(
        {
            name: pa.array(values, pa.string() if name == "subject" else pa.int64())
            for name, values in table.items()
        }
    )


def overtaking(curves: "pa.Table") -> "pa.Table":
    """For each subject the believers at the end, and the tick in which truth overtook the lie.

    That is the first tick from which on at least as many believe the truth as the lie, and more at
    the end; null if the lie was never ahead, or is not behind at the end.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = []
    for subject in dict.fromkeys(curves["subject"].to_pylist()):
        curve = curves.filter(pc.equal(curves["subject"], subject))
        true, false = curve["true"].to_numpy(), curve["false"].to_numpy()
        ahead = np.flatnonzero(false > true)
        overtook = None
        if len(ahead) and true[-1] > false[-1]:
            overtook = int(curve["tick"][int(ahead[-1]) + 1].as_py())
        rows.append(
            {
                "subject": subject,
                "true": int(true[-1]),
                "false": int(false[-1]),
                "most_false": int(false.max()),
                "overtook": overtook,
            }
        )
    numbers = {name: pa.int64() for name in ("true", "false", "most_false", "overtook")}
    return pa.Table.from_pylist(rows, pa.schema({"subject": pa.string(), **numbers}))


def _sayings(columns: Columns, facts: Facts) -> dict[str, Numbers]:
    """For each subject and memory 1 if it says what is true, -1 for what is false, else 0."""
    rows = np.flatnonzero(beliefs(columns))
    by_text: dict[str, list[int]] = {}
    for row in rows.tolist():
        text = columns.text[row]
        if text is not None:
            by_text.setdefault(text, []).append(row)
    signs_of = {}
    for subject, sentences in facts.items():
        signs = np.zeros(len(columns), np.int64)
        for text, places in by_text.items():
            says = {is_true for sentence, is_true in sentences.items() if sentence in text}
            if len(says) == 1:
                signs[places] = 1 if says == {True} else -1
        signs_of[subject] = signs
    return signs_of


def weight_of(columns: Columns, signs: Numbers) -> NDArray[np.float64]:
    """For each tick and agent the weight of its memories; those of the sign -1 count against it.

    A memory weighs 1 / (1 + hands), and nothing with the sign 0.
    """
    rows = np.flatnonzero(signs)
    weights = signs / (1 + columns.hands)
    change = np.zeros((columns.last_tick + 2, len(columns.agents)))
    np.add.at(change, (columns.born[rows], columns.agent[rows]), weights[rows])
    gone = rows[columns.gone[rows] != NOT_GONE]
    np.add.at(change, (columns.gone[gone], columns.agent[gone]), -weights[gone])
    # What comes and goes again must leave nothing behind.
    return np.cumsum(change[:-1], axis=0).round(9)
