"""What was forgotten and then needed: queries that came nearer to a memory that was gone."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...storage.vectors import norms, product_dtype, products
from ..loop.decisions import asked_first
from .columns import NOT_GONE, Columns, Numbers

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Embed", "needed"]

Embed = Callable[[Sequence[str]], tuple[NDArray[np.int8], NDArray[np.bool_]]]
"""The vectors of texts, and which of the texts have one."""
_REPLACED = "supersede"


class _Asked(NamedTuple):
    """A query of an agent in a tick, and the sequence numbers of what it was given."""

    tick: int
    query: str
    given: Numbers


def needed(
    columns: Columns,
    decisions: Iterable[tuple[int, bytes, bytes]],
    agents: int,
    embed: Embed,
    near: float,
) -> "pa.Table":
    """A row for each memory that was gone and then needed, the most needed first.

    A memory was needed if it is at least ``near`` to the query of a later decision (a cosine), and
    nearer than all that the agent was given. ``decisions`` have tick, log and what was retrieved;
    the log has the first ``agents`` agents.
    """
    import pyarrow as pa

    gone = _gone(columns)
    asked = _asked(columns, gone, decisions, agents)
    texts = list({each.query: None for own in asked.values() for each in own})
    vectors, known = embed(texts)
    places = {text: at for at, text in enumerate(texts) if known[at]}
    found = []
    for agent, own in asked.items():
        found += _of_agent(columns, agent, gone[agent], own, places, vectors, near)
    found.sort(key=lambda row: (-row["times"], -row["score"], row["memory_id"]))
    types = {
        "agent": pa.string(), "memory_id": pa.string(), "text": pa.string(), "gone": pa.int64(),
        "cause": pa.string(), "times": pa.int64(), "first_tick": pa.int64(), "query": pa.string(),
        "score": pa.float64(), "best_given": pa.float64(),
    }  # fmt: skip
    return pa.Table.from_pylist(found, pa.schema(types))


def _gone(columns: Columns) -> dict[int, Numbers]:
    """The memories of each agent that were gone at some time, and that no other one replaced."""
    found: dict[int, list[int]] = {}
    for row in np.flatnonzero(columns.gone != NOT_GONE).tolist():
        if columns.cause[row] != _REPLACED and columns.text[row] is not None:
            found.setdefault(int(columns.agent[row]), []).append(row)
    return {agent: np.array(rows) for agent, rows in found.items()}


def _asked(
    columns: Columns,
    gone: dict[int, Numbers],
    decisions: Iterable[tuple[int, bytes, bytes]],
    agents: int,
) -> dict[int, list[_Asked]]:
    """The queries of agents that have lost a memory by then."""
    since = {agent: int(columns.gone[rows].min()) for agent, rows in gone.items()}
    found: dict[int, list[_Asked]] = {agent: [] for agent in gone if agent < agents}
    keys, first = np.unique((columns.agent << 32) | columns.born, return_index=True)
    observed = dict(zip(keys.tolist(), first.tolist(), strict=True)) if found else {}
    for tick, log, retrieved in decisions:
        mine = [agent for agent in found if since[agent] < tick]
        if tick > columns.last_tick or not mine:
            continue
        queries = asked_first(log)
        numbers = np.frombuffer(retrieved, "<u4").astype(np.int64)
        sizes, sequences = numbers[: len(queries)], numbers[len(queries) :]
        ends = np.cumsum(sizes)
        for agent in mine:
            if agent >= len(queries):
                continue
            query, has_text = queries[agent]
            if query is None and has_text:
                query = columns.text[observed[(agent << 32) | tick]]
            if query and query.strip():
                given = sequences[ends[agent] - sizes[agent] : ends[agent]]
                found[agent].append(_Asked(tick, query, given))
    return found


def _of_agent(
    columns: Columns,
    agent: int,
    rows: Numbers,
    asked: Sequence[_Asked],
    places: dict[str, int],
    vectors: NDArray[np.int8],
    near: float,
) -> list[dict[str, Any]]:
    asked = [each for each in asked if each.query in places]
    if not asked:
        return []
    memories = columns.vectors()
    at, which = np.unique([places[each.query] for each in asked], return_inverse=True)
    wide = product_dtype(columns.dims)
    cosines = memories[rows].astype(wide) @ vectors[at].astype(wide).T
    cosines = cosines / norms(memories[rows])[:, None] / norms(vectors[at])
    ticks = np.array([each.tick for each in asked])
    hits = (cosines[:, which] >= near) & (columns.gone[rows][:, None] < ticks)
    found: dict[int, dict[str, Any]] = {}
    for column in np.flatnonzero(hits.any(axis=0)).tolist():
        one = asked[column]
        query = vectors[places[one.query]]
        best = _best(columns, agent, one.given, query)
        for place in np.flatnonzero(hits[:, column]).tolist():
            score, row = float(cosines[place, which[column]]), int(rows[place])
            if score <= best:
                continue
            known = found.setdefault(row, {"times": 0, "score": 0.0, "first_tick": one.tick})
            known["times"] += 1
            if score > known["score"]:
                known |= {"score": score, "query": one.query, "best_given": max(best, 0.0)}
    return [
        {
            "agent": columns.agents[agent],
            "memory_id": columns.id_of(row),
            "text": columns.text[row],
            "gone": int(columns.gone[row]),
            "cause": columns.cause[row],
            **known,
        }
        for row, known in found.items()
    ]


def _best(columns: Columns, agent: int, given: Numbers, query: NDArray[np.int8]) -> float:
    """How near the nearest of the given memories is to the query."""
    rows = columns.rows(np.full(len(given), agent), given)
    own = columns.vectors()[rows[rows >= 0]]
    if not len(own):
        return -1.0
    lengths = norms(own) * norms(query[None])
    return float((products(own, query) / lengths).max())
