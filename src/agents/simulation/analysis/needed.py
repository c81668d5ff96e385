"""What was forgotten and then needed: queries that came nearer to a memory that was gone."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
_BLOCK = 1 << 24
"""Products that are made at one time."""


class _Question(NamedTuple):
    """A query of an agent in a tick, and the sequence numbers of what it was given."""

    tick: int
    given: Numbers


_Asked = dict[int, dict[str, list[_Question]]]
"""By agent and query."""


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

    gone = {agent: rows for agent, rows in _gone(columns).items() if agent < agents}
    asked = _asked(columns, gone, decisions) if gone else {}
    texts = list(dict.fromkeys(query for own in asked.values() for query in own))
    vectors, known = embed(texts)
    places = {text: at for at, text in enumerate(texts) if known[at]}
    found: dict[int, dict[str, Any]] = {}
    bests: dict[tuple[int, int, int], float] = {}
    for row, query, score in _near(columns, gone, asked, places, vectors, near):
        agent = int(columns.agent[row])
        for question in asked[agent].get(texts[query], ()):
            if question.tick <= columns.gone[row]:
                continue
            moment = agent, question.tick, query
            best = bests.get(moment)
            if best is None:
                best = bests[moment] = _best(columns, agent, question.given, vectors[query])
            if score > best:
                own = found.setdefault(
                    row, {"times": 0, "first_tick": question.tick, "score": -1.0}
                )
                own["times"] += 1
                own["first_tick"] = min(own["first_tick"], question.tick)
                if score > own["score"]:
                    own |= {"score": score, "query": texts[query], "best_given": max(best, 0.0)}
    rows = [{**_told(columns, row), **own} for row, own in found.items()]
    rows.sort(key=lambda row: (-row["times"], -row["score"], row["memory_id"]))
    types = {
        "agent": pa.string(), "memory_id": pa.string(), "text": pa.string(), "gone": pa.int64(),
        "cause": pa.string(), "times": pa.int64(), "first_tick": pa.int64(), "query": pa.string(),
        "score": pa.float64(), "best_given": pa.float64(),
    }  # fmt: skip
    return pa.Table.from_pylist(rows, pa.schema(types))


def _told(columns: Columns, row: int) -> dict[str, Any]:
    return {
        "agent": columns.agents[int(columns.agent[row])],
        "memory_id": columns.id_of(row),
        "text": columns.text[row],
        "gone": int(columns.gone[row]),
        "cause": columns.cause[row],
    }


def _gone(columns: Columns) -> dict[int, Numbers]:
    """The memories of each agent that were gone at some time, and that no other one replaced."""
    found: dict[int, list[int]] = {}
    agents = columns.agent.tolist()
    for row in np.flatnonzero(columns.gone != NOT_GONE).tolist():
        if columns.cause[row] != _REPLACED and columns.text[row] is not None:
            found.setdefault(agents[row], []).append(row)
    return {agent: np.array(rows) for agent, rows in found.items()}


def _asked(
    columns: Columns, gone: Mapping[int, Numbers], decisions: Iterable[tuple[int, bytes, bytes]]
) -> _Asked:
    """What agents asked that have lost a memory by then."""
    since = np.array([columns.gone[rows].min() for rows in gone.values()])
    losers = np.array(list(gone))
    found: _Asked = {agent: {} for agent in gone}
    keys, first = np.unique((columns.agent << 32) | columns.born, return_index=True)
    observed = dict(zip(keys.tolist(), first.tolist(), strict=True))
    for tick, log, retrieved in decisions:
        mine = losers[since < tick].tolist()
        if tick > columns.last_tick or not mine:
            continue
        queries, has_text = asked_first(log)
        numbers = np.frombuffer(retrieved, "<u4").astype(np.int64)
        sequences, ends = numbers[len(queries) :], np.cumsum(numbers[: len(queries)]).tolist()
        for agent in mine:
            query = queries[agent] if agent < len(queries) else ""
            if query is None and has_text[agent]:
                query = columns.text[observed[(agent << 32) | tick]]
            if query and not query.isspace():
                given = sequences[ends[agent - 1] if agent else 0 : ends[agent]]
                found[agent].setdefault(query, []).append(_Question(tick, given))
    return found


def _near(
    columns: Columns,
    gone: Mapping[int, Numbers],
    asked: _Asked,
    places: Mapping[str, int],
    vectors: NDArray[np.int8],
    near: float,
) -> Iterator[tuple[int, int, float]]:
    """Memories that are gone and queries that are near each other: row, query, cosine.

    Where agents mostly ask the same, all memories are compared with all queries in a few products;
    pairs of which nobody asked come along.
    """
    own = {
        agent: np.array(sorted(places[query] for query in queries if query in places), np.int64)
        for agent, queries in asked.items()
    }
    pairs = sum(len(gone[agent]) * len(each) for agent, each in own.items())
    rows = np.concatenate([np.zeros(0, np.int64), *(gone[agent] for agent in own)])
    groups: Iterable[tuple[Numbers, Numbers]]
    if len(rows) * len(places) <= 4 * pairs:
        groups = [(rows, np.array(sorted(places.values()), np.int64))]
    else:
        groups = [(gone[agent], each) for agent, each in own.items()]
    memories, wide = columns.vectors(), product_dtype(columns.dims)
    for rows, queries in groups:
        if not len(queries):
            continue
        turned: NDArray[Any] = vectors[queries].astype(wide).T
        lengths = norms(vectors[queries])
        step = max(1, _BLOCK // len(queries))
        for start in range(0, len(rows), step):
            part = memories[rows[start : start + step]]
            cosines: NDArray[Any] = part.astype(wide)
            cosines = (cosines @ turned) / norms(part)[:, None] / lengths
            for at, query in zip(*np.nonzero(cosines >= near), strict=True):
                yield int(rows[start + at]), int(queries[query]), float(cosines[at, query])


def _best(columns: Columns, agent: int, given: Numbers, query: NDArray[np.int8]) -> float:
    """How near the nearest of the given memories is to the query."""
    rows = columns.rows(np.full(len(given), agent), given)
    own = columns.vectors()[rows[rows >= 0]]
    if not len(own):
        return -1.0
    lengths = norms(own) * norms(query[None])
    return float((products(own, query) / lengths).max())
