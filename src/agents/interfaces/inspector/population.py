"""The answers about all agents: who told whom, which texts spread, how much agents share."""

from typing import Any

import numpy as np

from ...memory.records import memory_id
from .inspected import Inspected
from .parameters import Parameters

__all__ = ["population"]

_MOST_TOLD = 500
_MOST_BELIEFS = 50
_MOST_CANDIDATES = 400
_MOST_AGENTS = 200
_MOST_MEMORIES = 100_000
_HOLDERS = (
    "SELECT agent, min(tick), min(text) FROM memories WHERE digest = ? AND tick <= ? AND "
    "(gone IS NULL OR gone > ?) AND kind NOT IN ('observation', 'action', 'note') "
    "GROUP BY agent ORDER BY 2, 1"
)
_TEXTS = (
    "SELECT DISTINCT digest FROM memories WHERE agent = ? AND tick <= ? AND "
    "(gone IS NULL OR gone > ?) LIMIT ?"
)


def population(run: Inspected, given: Parameters) -> dict[str, Any]:
    """The agents of a run after a tick."""
    tick = run.tick(given)
    offset, limit = given.whole("offset", 0), given.whole("limit", 60, _MOST_AGENTS)
    run.need(tick)
    agents = run.agents
    shown = range(len(agents))[offset : offset + limit]
    told, total = _told(run, tick)
    return {
        "tick": tick,
        "told": told,
        "told_total": total,
        "beliefs": _beliefs(run, tick),
        "agents": [agents[place] for place in shown],
        "total": len(agents),
        "overlap": _overlap(run, tick, shown),
    }


def _told(run: Inspected, tick: int) -> tuple[list[dict[str, Any]], int]:
    """The last that agents were told up to a tick, oldest first, and how much it is in all."""
    slices = run.reader.slices
    ((total,),) = slices.ask("SELECT count(*) FROM told WHERE tick <= ?", (tick,))
    rows = slices.ask(
        "SELECT told.tick, sender, told.agent, told.sequence, text FROM told JOIN memories "
        "USING (agent, sequence) WHERE told.tick <= ? ORDER BY told.tick DESC, told.rowid DESC "
        "LIMIT ?",
        (tick, _MOST_TOLD),
    )
    return [
        {
            "from": sender,
            "to": slices.agents[place],
            "memory_id": memory_id(run.prefix(slices.agents[place]), number),
            "tick": when,
            "text": text or "",
        }
        for when, sender, place, number, text in reversed(rows)
    ], total


def _beliefs(run: Inspected, tick: int) -> list[dict[str, Any]]:
    """The texts that most agents hold after a tick, without observations and actions."""
    slices = run.reader.slices
    candidates = slices.ask(
        "SELECT digest FROM shared WHERE holders > 1 ORDER BY holders DESC, digest LIMIT ?",
        (_MOST_CANDIDATES,),
    )
    found = []
    for (digest,) in candidates:
        rows = slices.ask(_HOLDERS, (digest, tick, tick))
        if len(rows) > 1:
            holders = [slices.agents[place] for place, *_ in rows]
            since, text = rows[0][1:]
            found.append({"text": text, "holders": holders, "count": len(holders), "since": since})
    found.sort(key=lambda each: (-each["count"], each["since"], each["text"]))
    return found[:_MOST_BELIEFS]


def _overlap(run: Inspected, tick: int, shown: range) -> list[list[float]]:
    """For each pair of agents the share of their texts that both hold, from 0 to 1."""
    texts: list[set[int]] = []
    for place in shown:
        most = _MOST_MEMORIES // len(shown)
        rows = run.reader.slices.ask(_TEXTS, (place, tick, tick, most))
        texts.append({digest for (digest,) in rows})
    places = {digest: at for at, digest in enumerate(set[int]().union(*texts))}
    held = np.zeros((len(texts), len(places)), np.float32)
    for own, row in zip(texts, held, strict=True):
        row[[places[digest] for digest in own]] = 1
    both = held @ held.T
    sizes = held.sum(axis=1)
    either = sizes[:, None] + sizes[None, :] - both
    share = np.divide(both, either, out=np.zeros_like(both), where=either > 0)
    return [[round(cell, 4) for cell in row] for row in share.tolist()]
