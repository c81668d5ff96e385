"""Who informs whom: edges from tellers to listeners, and who is in the middle of them."""

from typing import TYPE_CHECKING

import numpy as np

from ...errors import ConfigError
from .columns import Columns

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

    try:
        import networkx as nx
    except ImportError as error:
        raise ConfigError(
            "centrality needs networkx, which is not installed",
            hint="pip install 'tiermem[analysis]'",
        ) from error
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
