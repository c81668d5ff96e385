"""Who is like those whom it hears, and how far along the ties of a society a memory came."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...memory.records import Scalar
from ..society import Society
from .spread import Spread

if TYPE_CHECKING:
    import pyarrow as pa


def homophily(ties: Sequence[tuple[str, str]], values: Mapping[str, Scalar]) -> float | None:
    """How alike those are who hear each other: Newman's assortativity, from -1 to 1.

    For numbers it is the correlation over ties, for all else (and true and false) the part of ties
    between equals beyond what chance gives. Ties of agents without a value do not count. None
    where there is nothing to compare: no ties, or one value.
    """
    pairs = [
        (values[one], values[other]) for one, other in ties if one in values and other in values
    ]
    if not pairs:
        return None
    if all(type(each) in (int, float) for pair in pairs for each in pair):
        return _correlation(np.array(pairs, np.float64))
    return _beyond_chance(pairs)


def _correlation(pairs: Any) -> float | None:
    """Pearson's, over ties; a tie of both ways is there twice, so both sides count alike."""
    one, other = (pairs - pairs.mean(axis=0)).T
    scale = np.sqrt((one * one).sum() * (other * other).sum())
    return None if not scale else round(float((one * other).sum() / scale), 9)


def _beyond_chance(pairs: Sequence[tuple[Hashable, Hashable]]) -> float | None:
    places: dict[Hashable, int] = {}
    for pair in pairs:
        for each in pair:
            places.setdefault(each, len(places))
    counts = np.zeros((len(places), len(places)), np.int64)
    for one, other in pairs:
        counts[places[one], places[other]] += 1
    total = len(pairs)
    alike = int(np.trace(counts))
    by_chance = int((counts.sum(axis=1) * counts.sum(axis=0)).sum())
    if by_chance == total * total:
        return None
    return round((alike * total - by_chance) / (total * total - by_chance), 9)


def reach(spread: Spread, society: Society) -> "pa.Table":
    """How far a memory came: a row for each distance from the agent with whom it began.

    ``agents`` are at this distance, ``holders`` of them had it at some time, ``first_tick`` is when
    the first of these did. ``r`` is to how many agents each of these brought it, on average. The
    last row, without a distance, has those to whom no ties lead.
    """
    import pyarrow as pa

    rows = spread.table.to_pylist()
    first = {row["agent"]: row["tick"] for row in rows}
    brought = dict.fromkeys(first, 0)
    for row in rows:
        if row["teller"] in brought:
            brought[row["teller"]] += 1
    begins = rows[0]["agent"]
    distances = society.distances(begins) if begins in society.agents else {}
    at: dict[int | None, list[str]] = {}
    for agent in society.agents:
        at.setdefault(distances.get(agent), []).append(agent)
    found = []
    for distance in sorted(at, key=lambda each: (each is None, each)):
        holders = [agent for agent in at[distance] if agent in first]
        found.append(
            {
                "origin": spread.origin,
                "distance": distance,
                "agents": len(at[distance]),
                "holders": len(holders),
                "share": round(len(holders) / len(at[distance]), 9),
                "first_tick": min((first[agent] for agent in holders), default=None),
                "r": round(sum(brought[agent] for agent in holders) / len(holders), 9)
                if holders
                else None,
            }
        )
    numbers = {name: pa.int64() for name in ("distance", "agents", "holders")}
    kinds = {"origin": pa.string(), **numbers, "share": pa.float64(), "first_tick": pa.int64()}
    return pa.Table.from_pylist(found, pa.schema({**kinds, "r": pa.float64()}))
