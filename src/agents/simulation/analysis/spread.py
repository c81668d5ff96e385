"""Who informs whom, and how memories spread: who had one when and from whom, how far, how fast."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...packages import needed
from .beliefs import beliefs
from .columns import Columns, Numbers

if TYPE_CHECKING:
    import pyarrow as pa


def tells(columns: Columns) -> "pa.Table":
    """An edge for each teller and listener, the most used first.

    ``times`` counts all that was told, ``new`` what the listener did not know.
    """
    import pyarrow as pa

    told = columns.told
    names = list(columns.agents)
    places = {name: place for place, name in enumerate(names)}
    for teller in told.teller:  # a world's own voice, such as a herald, is not an agent
        if teller not in places:
            places[teller] = len(names)
            names.append(teller)
    tellers = np.array([places[teller] for teller in told.teller], np.int64)
    keys, first, edge, times = np.unique(
        (tellers << 32) | told.agent, return_index=True, return_inverse=True, return_counts=True
    )
    last = np.zeros(len(keys), np.int64)
    last[edge] = told.tick  # the order of the journal: the last one stays
    new = np.bincount(edge, told.is_new, len(keys)).astype(np.int64)
    order = np.lexsort((keys, -times))
    return pa.table(
        {
            "teller": [names[place] for place in (keys[order] >> 32).tolist()],
            "listener": [names[place] for place in (keys[order] & 0xFFFFFFFF).tolist()],
            "times": times[order],
            "new": new[order],
            "first_tick": told.tick[first[order]],
            "last_tick": last[order],
        }
    )


def centrality(edges: "pa.Table") -> "pa.Table":
    """Numbers of networkx for everybody who told or was told something.

    ``told`` and ``heard`` count agents, ``pagerank`` follows news back to whom it comes from,
    ``betweenness`` is the share of shortest ways that lead through an agent.
    """
    import pyarrow as pa

    with needed("centrality", "networkx"):
        import networkx as nx
    graph = nx.DiGraph()
    pairs = zip(*(edges[name].to_pylist() for name in ("teller", "listener", "times")), strict=True)
    for teller, listener, times in pairs:
        graph.add_edge(teller, listener, weight=times)
    names = sorted(graph)
    # Above this many agents, ways from a sample of them stand for all; the seed fixes the sample.
    sample = None if len(names) <= _MOST_WAYS else _MOST_WAYS
    between = nx.betweenness_centrality(graph, k=sample, seed=0) if names else {}
    rank = nx.pagerank(graph.reverse(copy=False)) if names else {}
    rows = sorted(names, key=lambda name: (-rank[name], name))
    return pa.table(
        {
            "agent": pa.array(rows, pa.string()),
            "told": pa.array([graph.out_degree(name) for name in rows], pa.int64()),
            "heard": pa.array([graph.in_degree(name) for name in rows], pa.int64()),
            "pagerank": pa.array([round(rank[name], 9) for name in rows], pa.float64()),
            "betweenness": pa.array([round(between[name], 9) for name in rows], pa.float64()),
        }
    )


_MOST_WAYS = 100


# How memories spread


class Spread(NamedTuple):
    """The spread of one memory from agent to agent."""

    origin: str
    """The id of the first memory of the chain that is known."""
    text: str
    by: str
    """``source`` if memories say where they came from; ``text`` if only their text is the same."""
    holders: int
    tells: int
    """How often it was told, to whoever had it already, too."""
    r: float
    """How many agents an agent brought it to, on average: see :func:`reproduction`."""
    depth: int
    """Through how many hands it came at most."""
    half_life: int
    """Ticks from the first memory until half of all holders had it."""
    table: "pa.Table"
    """For each holder its first memory: tick, agent, memory_id, teller, parent_id, hands, gone."""

    def lines(self) -> list[str]:
        """The tree as lines: below each agent and farther in, those whom it told."""
        rows = self.table.select(["tick", "agent", "teller"]).to_pylist()
        known = {row["agent"] for row in rows}
        below: dict[str | None, list[dict[str, Any]]] = {}
        for row in rows:
            below.setdefault(row["teller"] if row["teller"] in known else None, []).append(row)
        waiting = [(0, row) for row in reversed(below.get(None, ()))]
        lines = []
        while waiting:
            depth, row = waiting.pop()
            said = f", told by {row['teller']}" if not depth and row["teller"] else ""
            lines.append(f"{'  ' * depth}{row['agent']}, tick {row['tick']}{said}")
            waiting += [(depth + 1, each) for each in reversed(below.get(row["agent"], ()))]
        return lines


class _Firsts(NamedTuple):
    """The first memory of each origin in each agent, origin after origin."""

    rows: Numbers
    starts: Numbers
    """Where each origin begins in ``rows``."""
    origins: Numbers


def same_beliefs(columns: Columns) -> Numbers:
    """For each memory the row of the first one that says the same.

    It is the first of its chain, where the chain has several memories. Beliefs that nobody told on
    are taken together by their text.
    """
    same: Numbers = columns.origin.copy()
    in_chain = np.bincount(same, minlength=len(columns))[same] > 1
    rows = np.flatnonzero(beliefs(columns) & ~in_chain)
    _, first, text = np.unique(columns.same_words()[rows], return_index=True, return_inverse=True)
    same[rows] = rows[first][text]
    return same


def spreads(
    columns: Columns, least: int = 2, group: Numbers | None = None, most: int | None = None
) -> "pa.Table":
    """The memories that ``least`` agents or more had at some time, the ``most`` spread first.

    ``group`` says which memories are the same, as :func:`same_beliefs`; without it, those of one
    chain are.
    """
    import pyarrow as pa

    group = columns.origin if group is None else group
    firsts = _firsts(columns, group)
    counts = np.diff(firsts.starts, append=len(firsts.rows))
    depths, half_lives, rs = _numbers(columns, firsts, counts)
    tells = np.bincount(group[columns.told.row], minlength=len(columns))
    order = np.lexsort((firsts.origins, -counts))
    order = order[counts[order] >= least][:most]
    chosen = firsts.origins[order]
    return pa.table(
        {
            "origin": [columns.id_of(row) for row in chosen.tolist()],
            "agent": [columns.agents[place] for place in columns.agent[chosen].tolist()],
            "tick": columns.born[chosen],
            "text": [columns.text[row] for row in chosen.tolist()],
            "holders": counts[order],
            "tells": tells[chosen],
            "r": rs[order],
            "depth": depths[order],
            "half_life": half_lives[order],
        }
    )


def first_holders(columns: Columns, group: Numbers, first: int) -> Numbers:
    """The first memory of each agent that has a belief, in the order of time."""
    rows = np.flatnonzero(group == first)
    _, places = np.unique(columns.agent[rows], return_index=True)
    rows = rows[places]
    in_time: Numbers = rows[np.lexsort((rows, columns.born[rows]))]
    return in_time


def spread_of(columns: Columns, row: int) -> Spread:
    """The spread of the memory in a row, from the first memory of its chain on."""
    origin = int(columns.origin[row])
    group, by = np.where(columns.origin == origin, origin, -1), "source"
    if (group == origin).sum() == 1 and columns.text[row] is not None:
        same = columns.same_words() == columns.same_words()[row]
        origin, by = int(np.flatnonzero(same)[0]), "text"
        group = np.where(same, origin, -1)
    told = np.isin(columns.told.row, np.flatnonzero(group == origin))
    rows = first_holders(columns, group, origin)
    counts = np.array([len(rows)])
    firsts = _Firsts(rows, np.zeros(1, np.int64), np.array([origin]))
    depths, half_lives, rs = _numbers(columns, firsts, counts)
    return Spread(
        columns.id_of(origin),
        columns.text[origin] or "",
        by,
        len(rows),
        int(told.sum()),
        float(rs[0]),
        int(depths[0]),
        int(half_lives[0]),
        tree(columns, rows),
    )


def reproduction(holders: Numbers, before_last: Numbers) -> NDArray[np.float64]:
    """Harris' estimate of R: those who were told, for each one who could tell.

    Who could tell are the holders of all generations but the last; a generation is a number of
    hands. Without anybody who was told it is 0.
    """
    return np.where(before_last > 0, (holders - 1) / np.maximum(before_last, 1), 0.0)


def _firsts(columns: Columns, origin: Numbers) -> _Firsts:
    keys = (origin << 32) | columns.agent
    keys, rows = np.unique(keys, return_index=True)
    origins, starts = np.unique(keys >> 32, return_index=True)
    return _Firsts(rows, starts, origins)


def _numbers(
    columns: Columns, firsts: _Firsts, counts: Numbers
) -> tuple[Numbers, Numbers, NDArray[np.float64]]:
    """Depth, half-life and R of each origin."""
    if not len(firsts.rows):
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    hands, born = columns.hands[firsts.rows], columns.born[firsts.rows]
    depths = np.maximum.reduceat(hands, firsts.starts)
    before_last = np.add.reduceat(hands < np.repeat(depths, counts), firsts.starts)
    group = np.repeat(np.arange(len(counts)), counts)
    in_time = born[np.lexsort((born, group))]
    half = in_time[firsts.starts + (counts + 1) // 2 - 1] - in_time[firsts.starts]
    return depths, half, reproduction(counts, before_last)


def tree(columns: Columns, rows: Numbers) -> "pa.Table":
    """For each of some memories who had it, since when, and from whom."""
    import pyarrow as pa

    tellers = _first_tellers(columns, rows)
    return pa.table(
        {
            "tick": columns.born[rows],
            "agent": [columns.agents[place] for place in columns.agent[rows].tolist()],
            "memory_id": [columns.id_of(row) for row in rows.tolist()],
            "teller": pa.array(tellers, pa.string()),
            "parent_id": pa.array(
                [None if row < 0 else columns.id_of(row) for row in columns.parent[rows].tolist()],
                pa.string(),
            ),
            "hands": columns.hands[rows],
            "gone": pa.array(columns.gone[rows], mask=columns.gone[rows] < 0),
        }
    )


def _first_tellers(columns: Columns, rows: Numbers) -> list[str | None]:
    told = columns.told
    places = np.flatnonzero(told.is_new & np.isin(told.row, rows)).tolist()
    known = {int(told.row[at]): told.teller[at] for at in places}
    return [known.get(row) for row in rows.tolist()]


def by_text(table: "pa.Table") -> list[dict[str, Any]]:
    """Of each text in :func:`spreads` the chain that most agents had, and how many more there are.

    Chains whose text was forgotten are each their own.
    """
    firsts: dict[str, dict[str, Any]] = {}
    for row in table.to_pylist():
        first = firsts.setdefault(row["text"] or row["origin"], {**row, "alike": -1})
        first["alike"] += 1
    return list(firsts.values())
