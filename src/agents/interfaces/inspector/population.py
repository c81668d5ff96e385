"""The answers about all agents: who told whom, which beliefs spread, how much agents share.

The numbers are those of :mod:`tiermem.analysis`, for a journal that ends at the cursor's tick.
"""

from itertools import accumulate
from typing import Any

import numpy as np

from ...simulation.analysis.columns import Columns, Numbers
from ...simulation.analysis.overlap import shares
from ...simulation.analysis.spread import first_holders, same_beliefs, spreads, tree
from ...simulation.analysis.tells import tells
from ...simulation.runs.record import FORGOTTEN
from .inspected import Inspected
from .parameters import Parameters

_MOST_EDGES = 500
_MOST_TOLD = 200
_MOST_BELIEFS = 50
_MOST_HOLDERS = 200
_MOST_AGENTS = 200


def population(run: Inspected, given: Parameters) -> dict[str, Any]:
    """The agents of a run after a tick."""
    tick = run.tick(given)
    offset, limit = given.whole("offset", 0), given.whole("limit", 60, _MOST_AGENTS)
    run.need(tick)
    return run.later(
        ("population", offset, limit), tick, lambda: _population(run, tick, offset, limit)
    )


def _population(run: Inspected, tick: int, offset: int, limit: int) -> dict[str, Any]:
    reader = run.reader
    columns = reader.beliefs.up_to(tick, reader.slices)
    group = same_beliefs(columns)
    agents = run.agents
    shown = agents[offset : offset + limit]
    edges = tells(columns)
    return {
        "tick": tick,
        "edges": edges.slice(0, _MOST_EDGES).to_pylist(),
        "edges_total": edges.num_rows,
        "told": _told(columns),
        "told_total": len(columns.told.row),
        "beliefs": _beliefs(columns, group),
        "agents": shown,
        "total": len(agents),
        "overlap": _overlap(columns, group, shown),
    }


def _told(columns: Columns) -> list[dict[str, Any]]:
    """The last that agents were told up to the tick, oldest first."""
    told = columns.told
    first = max(0, len(told.row) - _MOST_TOLD)
    return [
        {
            "teller": told.teller[place],
            "listener": columns.agents[told.agent[place]],
            "memory_id": columns.id_of(int(told.row[place])),
            "tick": int(told.tick[place]),
            "text": columns.text[int(told.row[place])] or FORGOTTEN,
        }
        for place in range(first, len(told.row))
    ]


def _beliefs(columns: Columns, group: Numbers) -> list[dict[str, Any]]:
    """What most agents had up to the tick, who has it after the tick, and who told them."""
    found: list[dict[str, Any]] = spreads(columns, group=group, most=_MOST_BELIEFS).to_pylist()
    firsts = [columns.row_of(each["origin"]) for each in found]
    rows = [first_holders(columns, group, first or 0) for first in firsts]
    listed = [own[:_MOST_HOLDERS] for own in rows]
    holders = tree(columns, np.concatenate([np.zeros(0, np.int64), *listed])).to_pylist()
    ends = list(accumulate(map(len, listed)))
    there = columns.is_there()
    for each, first, own, end in zip(found, firsts, listed, ends, strict=True):
        holding = columns.agent[(group == first) & there]
        each["text"] = each["text"] or FORGOTTEN
        each["by"] = "source" if columns.hands[own].any() else "text"
        each["now"] = len(np.unique(holding))
        each["first"] = holders[end - len(own) : end]
    return found


def _overlap(columns: Columns, group: Numbers, agents: list[str]) -> list[list[float]]:
    """For each pair of agents the share of their beliefs that both have, from 0 to 1."""
    places = {name: place for place, name in enumerate(columns.agents)}
    known = [place for place, name in enumerate(agents) if name in places]
    found = np.zeros((len(agents), len(agents)))
    if known:
        chosen = [places[agents[place]] for place in known]
        found[np.ix_(known, known)] = shares(columns, chosen, group)
    return [[round(cell, 4) for cell in row] for row in found.tolist()]
