"""Who told whom, which beliefs spread, how much agents share: the study of a population at a tick.

The process that sorts the journal makes it (``sorting.py``): it alone has all memories at once.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ...simulation.analysis.beliefs import shares
from ...simulation.analysis.columns import Columns, Numbers
from ...simulation.analysis.spread import first_holders, same_beliefs, spreads, tells, tree
from ...simulation.runs.record import FORGOTTEN

_MOST_EDGES = 500
_MOST_TOLD = 200
_MOST_BELIEFS = 50
_MOST_HOLDERS = 200


def population(columns: Columns, agents: Sequence[str]) -> dict[str, Any]:
    """What the columns have of all agents, and what each two of some agents share."""
    group = same_beliefs(columns)
    edges = tells(columns)
    return {
        "edges": edges.slice(0, _MOST_EDGES).to_pylist(),
        "edges_total": edges.num_rows,
        "told": _last_told(columns),
        "told_total": len(columns.told.row),
        "beliefs": _beliefs(columns, group),
        "overlap": _overlap(columns, group, agents),
    }


def _last_told(columns: Columns) -> list[dict[str, Any]]:
    """The last that agents were told up to the tick, oldest first."""
    told = columns.told
    oldest = max(0, len(told.row) - _MOST_TOLD)
    return [
        {
            "teller": told.teller[place],
            "listener": columns.agents[told.agent[place]],
            "memory_id": columns.id_of(int(told.row[place])),
            "tick": int(told.tick[place]),
            "text": columns.text[int(told.row[place])] or FORGOTTEN,
        }
        for place in range(oldest, len(told.row))
    ]


def _beliefs(columns: Columns, group: Numbers) -> list[dict[str, Any]]:
    """What most agents had up to the tick, who has it after the tick, and who told them."""
    found: list[dict[str, Any]] = spreads(columns, group=group, most=_MOST_BELIEFS).to_pylist()
    origins = [columns.row_of(each["origin"]) for each in found]
    rows = [first_holders(columns, group, origin or 0) for origin in origins]
    listed = [own[:_MOST_HOLDERS] for own in rows]
    holders = tree(columns, np.concatenate([np.zeros(0, np.int64), *listed])).to_pylist()
    ends = list(accumulate(map(len, listed)))
    there = columns.is_there()
    for each, origin, own, end in zip(found, origins, listed, ends, strict=True):
        holding = columns.agent[(group == origin) & there]
        each["text"] = each["text"] or FORGOTTEN
        each["by"] = "source" if columns.hands[own].any() else "text"
        each["now"] = len(np.unique(holding))
        each["first"] = holders[end - len(own) : end]
    return found


def _overlap(columns: Columns, group: Numbers, agents: Sequence[str]) -> list[list[float]]:
    """For each pair of agents the share of their beliefs that both have, from 0 to 1."""
    places = {name: place for place, name in enumerate(columns.agents)}
    known = [place for place, name in enumerate(agents) if name in places]
    found = np.zeros((len(agents), len(agents)))
    if known:
        chosen = [places[agents[place]] for place in known]
        found[np.ix_(known, known)] = shares(columns, chosen, group)
    return [[round(cell, 4) for cell in row] for row in found.tolist()]
