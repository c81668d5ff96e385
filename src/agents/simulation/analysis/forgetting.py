"""How long memories last, by Kaplan and Meier, and which were forgotten and then needed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...memory.tiers import TIER_NAMES
from ...storage.embedding import norms, product_dtype, products
from ..tick.decision_log import asked_first
from .columns import NOT_GONE, Columns, Numbers

if TYPE_CHECKING:
    import pyarrow as pa


_NORMAL = 1.959963984540054
"""The 97.5 % point of the normal distribution, for intervals of 95 %."""


def survival(columns: Columns) -> "pa.Table":
    """Curves for each tier with which memories began, and for memories of one's own or told ones.

    A row for each age at which memories were gone: ``survived`` is the share that lasted longer,
    with its interval of 95 %, which knows that memories of one agent are not independent. It is
    null where all memories are of one agent. Memories that are there at the end count up to their
    age then.
    """
    import pyarrow as pa

    is_gone = columns.gone != NOT_GONE
    ages = np.where(is_gone, columns.gone, columns.last_tick) - columns.born
    curves: dict[str, list[object]] = {name: [] for name in _FIELDS}
    for by, group, chosen in _groups(columns):
        curve = kaplan_meier(ages[chosen], is_gone[chosen], columns.agent[chosen])
        curves["by"] += [by] * len(curve[0])
        curves["group"] += [group] * len(curve[0])
        for name, column in zip(_FIELDS[2:], curve, strict=True):
            curves[name] += column.tolist()
    types = (pa.string(), pa.string(), *[pa.int64()] * 3, *[pa.float64()] * 3)
    return pa.table(
        {
            name: pa.array(curves[name], kind, from_pandas=True)  # NaN is null
            for name, kind in zip(_FIELDS, types, strict=True)
        }
    )


_FIELDS = ("by", "group", "age", "at_risk", "gone", "survived", "low", "high")


def kaplan_meier(
    ages: Numbers, is_gone: NDArray[np.bool_], agents: Numbers | None = None
) -> tuple[NDArray[Any], ...]:
    """Ages with losses, at risk, lost, the share that survived, and the bounds of its interval.

    The interval is on the scale log(-log): it stays between 0 and 1. With ``agents``, its variance
    is robust: each agent's memories together are one observation, of which there are as many as
    agents. Without, it is Greenwood's, and all memories are independent.
    """
    lost_at, lost = np.unique(ages[is_gone], return_counts=True)
    in_order = np.sort(ages)
    at_risk = len(ages) - np.searchsorted(in_order, lost_at, side="left")
    share = np.cumprod(1 - lost / at_risk) if len(lost_at) else np.zeros(0)
    left = at_risk - lost
    with np.errstate(divide="ignore", invalid="ignore"):
        if agents is None:
            reach, variance = _NORMAL, np.cumsum(lost / (at_risk * left))
        else:
            reach, variance = _by_agents(ages, is_gone, agents, lost_at, at_risk, lost)
        spread = np.sqrt(variance) / np.log(share)
        low, high = share ** np.exp(-reach * spread), share ** np.exp(reach * spread)
    # At 0 the curve has ended, and the formula has nothing to say.
    return (
        lost_at,
        at_risk,
        lost,
        share,
        np.where(left > 0, low, 0.0),
        np.where(left > 0, high, 0.0),
    )


def _by_agents(
    ages: Numbers,
    is_gone: NDArray[np.bool_],
    agents: Numbers,
    lost_at: Numbers,
    at_risk: Numbers,
    lost: Numbers,
) -> tuple[float, NDArray[np.float64]]:
    """How many deviations an interval reaches, and the robust variance of log(survived).

    What a memory adds to log(survived) at an age is the sum, up to there, of its own loss less what
    was to be expected of it. If each agent had one memory, the squares of that would add up to
    Greenwood's variance; the sums of an agent's memories are squared together.
    """
    known, own = np.unique(agents, return_inverse=True)
    count, steps = len(known), len(lost_at)
    if count < 2:
        return np.nan, np.full(steps, np.nan)
    from scipy.special import stdtrit

    left = at_risk - lost
    per_loss = np.where(left > 0, 1 / left, 0.0)
    per_risk = np.where(left > 0, lost / (at_risk * left), 0.0)
    passed = np.searchsorted(lost_at, ages, side="right")
    total = np.zeros(steps)
    size = max(1, _BLOCK // (steps + 1))
    for first in range(0, count, size):
        number = min(size, count - first)
        here = (own >= first) & (own < first + number)
        rows = own[here] - first
        shape = (number, steps + 1)
        each = np.bincount(rows * (steps + 1) + passed[here], minlength=number * (steps + 1))
        # At risk at an age are those that pass it.
        risk = each.reshape(shape)[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
        lost_here = is_gone[here]
        places = rows[lost_here] * steps + passed[here][lost_here] - 1
        gone = np.bincount(places, minlength=number * steps).reshape(number, steps)
        sums = np.cumsum(gone * per_loss - risk * per_risk, axis=1)
        for row in sums:  # one after the other: one order of the sums
            total += row * row
    return float(stdtrit(count - 1, 0.975)), total * (count / (count - 1))


def _groups(columns: Columns) -> Iterator[tuple[str, str, NDArray[np.bool_]]]:
    yield "all", "all", np.ones(len(columns), np.bool_)
    for tier, name in TIER_NAMES.items():
        if (chosen := columns.tier == tier).any():
            yield "tier", name, chosen
    is_told = np.zeros(len(columns), np.bool_)
    is_told[columns.told.row[columns.told.is_new]] = True
    for name, chosen in (("own", ~is_told), ("told", is_told)):
        if chosen.any():
            yield "source", name, chosen


# What was forgotten and then needed: queries that came nearer to a memory that was gone


Embed = Callable[[Sequence[str]], tuple[NDArray[np.int8], NDArray[np.bool_]]]
"""The vectors of texts, and which of the texts have one."""
_REPLACED, _EXPIRED = "supersede", "expire"
_BLOCK = 1 << 20
"""Numbers that are made at one time."""
_ROUGH = 1e-4
"""More than what float32 loses of a cosine."""


class _Asked(NamedTuple):
    """What agents asked that had lost a memory by then."""

    texts: list[str]
    """The queries, in the order in which they were first asked."""
    queries: dict[int, Numbers]
    """By agent, for each tick with a log the place of its query in ``texts``; -1 for none."""
    ticks: Numbers
    """The ticks with a log."""
    retrieved: list[tuple[bytes, int]]
    """What all agents were given in these ticks, and how many agents the log has."""

    def given(self, agent: int, at: int) -> Numbers:
        """The sequence numbers of what an agent was given in a tick, by the place of the tick."""
        packed, agents = self.retrieved[at]
        numbers = np.frombuffer(packed, "<u4")
        start = agents + int(numbers[:agent].sum())
        return numbers[start : start + int(numbers[agent])].astype(np.int64)


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
    last = _last(columns)
    asked = _asked(columns, gone, last, decisions)
    texts = asked.texts
    vectors, known = embed(texts)
    needs: dict[int, dict[str, Any]] = {}
    moments: dict[tuple[int, int], list[int]] = {}
    bests: dict[tuple[int, int], float] = {}
    for row, query, score in _near(columns, gone, asked, vectors, known, near):
        agent = int(columns.agent[row])
        places = moments.get((agent, query))
        if places is None:
            places = np.flatnonzero(asked.queries[agent] == query).tolist()
            moments[agent, query] = places
        for at in places:
            tick = int(asked.ticks[at])
            if tick <= last[row]:
                continue
            best = bests.get((agent, at))
            if best is None:
                best = _best(columns, agent, asked.given(agent, at), vectors[query])
                bests[agent, at] = best
            if score > best:
                need = needs.setdefault(row, {"times": 0, "first_tick": tick, "score": -1.0})
                need["times"] += 1
                need["first_tick"] = min(need["first_tick"], tick)
                if score > need["score"]:
                    need |= {"score": score, "query": texts[query], "best_given": max(best, 0.0)}
    rows = [{**_lost(columns, row), **own} for row, own in needs.items()]
    rows.sort(key=lambda row: (-row["times"], -row["score"], row["memory_id"]))
    types = {
        "agent": pa.string(), "memory_id": pa.string(), "text": pa.string(), "gone": pa.int64(),
        "cause": pa.string(), "times": pa.int64(), "first_tick": pa.int64(), "query": pa.string(),
        "score": pa.float64(), "best_given": pa.float64(),
    }  # fmt: skip
    return pa.Table.from_pylist(rows, pa.schema(types))


def _lost(columns: Columns, row: int) -> dict[str, Any]:
    return {
        "agent": columns.agents[int(columns.agent[row])],
        "memory_id": columns.id_of(row),
        "text": columns.text[row],
        "gone": int(columns.gone[row]),
        "cause": columns.cause[row],
    }


def _gone(columns: Columns) -> dict[int, Numbers]:
    """The memories of each agent that were gone at some time, and that no other one replaced."""
    cause, text = columns.cause, columns.text
    rows = np.array(
        [
            row
            for row in np.flatnonzero(columns.gone != NOT_GONE).tolist()
            if cause[row] != _REPLACED and text[row] is not None
        ],
        np.int64,
    )
    agents, first, which = np.unique(columns.agent[rows], return_index=True, return_inverse=True)
    parts = np.split(rows[np.argsort(which, kind="stable")], np.cumsum(np.bincount(which)))
    return {int(agents[at]): parts[at] for at in np.argsort(first).tolist()}


def _last(columns: Columns) -> Numbers:
    """The last tick in which a decision could find each memory.

    One that expires is out of reach in its tick; one that goes otherwise goes after the decisions.
    """
    expired = np.array([cause == _EXPIRED for cause in columns.cause], np.bool_)
    last: Numbers = columns.gone - expired
    return last


def _asked(
    columns: Columns,
    gone: Mapping[int, Numbers],
    last: Numbers,
    decisions: Iterable[tuple[int, bytes, bytes]],
) -> _Asked:
    """What agents asked that have lost a memory by then."""
    losers = np.array(list(gone), np.int64)
    since = np.array([last[rows].min() for rows in gone.values()], np.int64)
    # An observation is the agent's first memory of a tick.
    keys, first = np.unique((columns.born << 32) | columns.agent, return_index=True)
    places_of = {agent: place for place, agent in enumerate(columns.agents)}
    known: dict[str | None, int] = {}
    ticks: list[int] = []
    retrieved: list[tuple[bytes, int]] = []
    asked = []
    numbers = np.full(int(losers.max(initial=-1)) + 1, -1)
    for tick, log, packed in decisions:
        if tick > columns.last_tick or not (since < tick).any():
            continue
        queries, has_text, repeated = asked_first(log)
        some = queries[: len(numbers)]
        if None in some:
            here = slice(*np.searchsorted(keys, (tick << 32, (tick + 1) << 32)))
            rows = dict(zip((keys[here] & 0xFFFFFFFF).tolist(), first[here].tolist(), strict=True))
            rows |= _repeated(columns, places_of, repeated)
            observed = {agent: columns.text[row] for agent, row in rows.items() if row >= 0}
            some = [
                observed.get(agent) if query is None and has_text[agent] else query
                for agent, query in enumerate(some)
            ]
        numbers[: len(some)] = [known.setdefault(query, len(known)) for query in some]
        numbers[len(some) :] = -1
        asked.append(np.where(since < tick, numbers[losers], -1))
        ticks.append(tick)
        retrieved.append((packed, len(queries)))
    table = np.array(asked, np.int64).reshape(len(ticks), len(losers))
    texts = list(known)
    blank = np.array([not text or text.isspace() for text in texts], np.bool_)
    table[np.append(blank, True)[table]] = -1
    used = np.unique(table[table >= 0])
    places = np.full(len(texts) + 1, -1)  # the last one is that of -1
    places[used] = np.arange(len(used))
    return _Asked(
        [texts[at] or "" for at in used.tolist()],
        {int(agent): places[table[:, at]] for at, agent in enumerate(losers)},
        np.array(ticks, np.int64),
        retrieved,
    )


def _repeated(
    columns: Columns, places_of: Mapping[str, int], repeated: Mapping[str, int]
) -> dict[int, int]:
    """The rows of the memories that observations repeated, by the places of their agents."""
    places = {places_of[agent]: number for agent, number in repeated.items()}
    rows = columns.rows(np.array([*places], np.int64), np.array([*places.values()], np.int64))
    return dict(zip(places, rows.tolist(), strict=True))


def _near(
    columns: Columns,
    gone: Mapping[int, Numbers],
    asked: _Asked,
    vectors: NDArray[np.int8],
    known: NDArray[np.bool_],
    near: float,
) -> Iterator[tuple[int, int, float]]:
    """Memories that are gone and queries that are near each other: row, query, cosine.

    Where agents mostly ask the same, all memories are compared with all queries in a few products;
    pairs of which nobody asked come along.
    """
    queries_of = {
        agent: np.unique(queries[queries >= 0]) for agent, queries in asked.queries.items()
    }
    queries_of = {agent: queries[known[queries]] for agent, queries in queries_of.items()}
    pairs = sum(len(gone[agent]) * len(each) for agent, each in queries_of.items())
    rows = np.concatenate([np.zeros(0, np.int64), *(gone[agent] for agent in queries_of)])
    groups: Iterable[tuple[Numbers, Numbers]]
    if len(rows) * int(known.sum()) <= 4 * pairs:
        groups = [(rows, np.flatnonzero(known))]
    else:
        groups = [(gone[agent], each) for agent, each in queries_of.items()]
    memories, wide = columns.vectors(), product_dtype(columns.dims)
    for rows, queries in groups:
        if not len(queries):
            continue
        chosen, which = distinct(columns, rows)
        turned: NDArray[Any] = vectors[queries].astype(wide).T
        lengths = norms(vectors[queries])
        limits: NDArray[Any] = lengths.astype(wide)
        step = max(1, _BLOCK // len(queries))
        parts = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
        for start in range(0, len(chosen), step):
            part = memories[chosen[start : start + step]]
            own_lengths = norms(part)
            least: NDArray[Any] = (own_lengths * (near - _ROUGH)).astype(wide)
            both = part.astype(wide) @ turned
            # Most pairs are far from each other: only the rest is worth two exact divisions.
            at, query = np.nonzero(both >= least[:, None] * limits)
            cosines = both[at, query] / own_lengths[at] / lengths[query]
            is_near = cosines >= near
            parts.append((start + at[is_near], query[is_near], cosines[is_near]))
        at, query, cosines = map(np.concatenate, zip(*parts, strict=True))
        # Each memory gets the pairs of the one that stands for it.
        counts = np.bincount(at, minlength=len(chosen))
        repeats = counts[which]
        places = np.repeat(
            (np.cumsum(counts) - counts)[which] - (np.cumsum(repeats) - repeats), repeats
        )
        places += np.arange(len(places))
        yield from zip(
            np.repeat(rows, repeats).tolist(),
            queries[query[places]].tolist(),
            cosines[places].tolist(),
            strict=True,
        )


def distinct(columns: Columns, rows: Numbers) -> tuple[Numbers, Numbers]:
    """Memories that stand for all with their text and vector, and which stands for each."""
    memories = columns.vectors()
    _, first, which = np.unique(columns.same_words()[rows], return_index=True, return_inverse=True)
    chosen = rows[first]
    if (memories[rows] == memories[chosen[which]]).all():
        return chosen, which
    return rows, np.arange(len(rows))


def _best(columns: Columns, agent: int, given: Numbers, query: NDArray[np.int8]) -> float:
    """How near the nearest of the given memories is to the query."""
    rows = columns.rows(np.full(len(given), agent), given)
    vectors = columns.vectors()[rows[rows >= 0]]
    if not len(vectors):
        return -1.0
    lengths = norms(vectors) * norms(query[None])
    return float((products(vectors, query) / lengths).max())
