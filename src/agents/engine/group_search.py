"""Searches of an agent among its own memories and the boards of its groups."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeVar

from ..memory.context import fit
from ..memory.filters import Filter
from ..memory.records import Explanation, Hit, Hits, Memory
from ..memory.sources import TRUST
from ..memory.tiers import Tier
from ..search.explain import BELOW, OVER_BUDGET
from ..search.request import SearchRequest
from ..storage.columns.extras import NO_VALUES
from ..storage.state.state import Accesses
from .engine import Engine
from .groups import board_of, group_of, groups_of

_Row = TypeVar("_Row", Hit, Explanation)


def search(
    bank: Engine,
    request: SearchRequest,
    *,
    counts_boards: bool = True,
    on_boards: Filter | None = None,
) -> Hits:
    """The hits of one agent's search among its own memories and the boards of its groups.

    The agent's pinned memories come first, where the request says so. What is given counts as used;
    without ``counts_boards``, only what is the agent's own. ``on_boards`` says what may be found on
    boards, if that is another thing than among the agent's own memories.
    """
    result = _found(bank, request, request.only if on_boards is None else on_boards)
    if request.queries[0].strip():
        (own,) = request.agents
        _count(bank, [hit for hit in result if counts_boards or hit.memory.agent_id == own])
    return result


def explain(bank: Engine, request: SearchRequest) -> list[Explanation]:
    """What :func:`search` makes of each memory of the agent and of the boards."""
    (agent_id,) = request.agents
    only = request.only
    given, within = (_found(bank, each, only) for each in (request, request._replace(budget=None)))
    rows: dict[str, Explanation] = {}
    for board in _places(bank, agent_id):
        own = request._replace(agents=[board], limit=_limit(bank, request, board), budget=None)
        for row in bank.search.explain(own, may_sync=bank.may_sync()):
            rows[row.memory.id] = _believed(row, _trust_in(bank, agent_id, row.memory))
    told = [
        rows.pop(hit.memory.id)._replace(rank=place, reason=_reason(bank, hit.memory, request))
        for place, hit in enumerate(given, start=1)
    ]
    over = [rows.pop(hit.memory.id) for hit in within if hit.memory.id in rows]
    told += [row._replace(rank=None, reason=OVER_BUDGET) for row in over]
    return [
        *told,
        *(row._replace(rank=None, reason=BELOW) if row.rank else row for row in rows.values()),
    ]


def _places(bank: Engine, agent_id: str) -> list[str]:
    return [agent_id, *(board_of(name) for name in groups_of(bank, agent_id))]


def _found(bank: Engine, request: SearchRequest, on_boards: Filter) -> Hits:
    (agent_id,), (query,) = request.agents, request.queries
    found: list[Hits] = []
    for board in _places(bank, agent_id):
        own = request._replace(agents=[board], limit=_limit(bank, request, board), budget=None)
        if board != agent_id:
            own = own._replace(only=on_boards)
        found += bank.search.run(bank.search.read(own), may_sync=bank.may_sync()).hits
    first = [hit for hit in found[0] if _comes_first(bank, hit.memory, request)]
    rest = [
        _believed(hit, _trust_in(bank, agent_id, hit.memory))
        for hits in found
        for hit in hits
        if not _comes_first(bank, hit.memory, request)
    ]
    if len(found) > 1:
        by_tier = bank.settings.retrieval.pins_first
        rest.sort(key=_order if query.strip() else partial(_order_of_newest, by_tier))
    chosen = rest[: max(0, request.limit - len(first))]
    kept = fit(first, chosen, request.budget, bank.search.count_tokens)
    result = Hits(kept.kept)
    result.pinned_left_out, result.note = kept.pinned_left_out, found[0].note
    return result


def _limit(bank: Engine, request: SearchRequest, board: str) -> int:
    """How much of a board is looked at: all of it, where trust may change the order."""
    if group_of(board) is None or not _trusts(bank, request.agents[0]):
        return request.limit
    return max(request.limit, bank.state.block(board).next_sequence)


def _trusts(bank: Engine, agent_id: str) -> Mapping[str, float]:
    """The trust of an agent in other agents, where it counts; full trust is left out."""
    holdings = bank.state.block(agent_id).holdings
    if holdings is None or not bank.settings.retrieval.trust:
        return NO_VALUES
    return holdings.of(TRUST)


def _trust_in(bank: Engine, agent_id: str, memory: Memory) -> float:
    """The agent's trust in who wrote a memory on a board; the search knows that of its own."""
    if memory.agent_id == agent_id:
        return 1.0
    return _trusts(bank, agent_id).get(str(memory.speaker), 1.0)


def _believed(row: _Row, trust: float) -> _Row:
    if trust == 1.0:
        return row
    score, boost = row.score * trust, row.boost * trust
    row = row._replace(score=score, boost=boost, boosted_score=score + boost)
    return row._replace(trust=trust) if isinstance(row, Explanation) else row


def _comes_first(bank: Engine, memory: Memory, request: SearchRequest) -> bool:
    return (
        memory.tier is Tier.PINNED and bank.settings.retrieval.pins_first and request.pinned_first
    )


def _reason(bank: Engine, memory: Memory, request: SearchRequest) -> str:
    if _comes_first(bank, memory, request):
        return "pinned"
    group = group_of(memory.agent_id)
    return "chosen" if group is None else f"chosen from the board of {group}"


def _order(hit: Hit) -> tuple[float, float, int, str, int]:
    memory = hit.memory
    return (
        -hit.boosted_score, -hit.score, -memory.created_tick, memory.agent_id, -memory.sequence,
    )  # fmt: skip


def _order_of_newest(by_tier: bool, hit: Hit) -> tuple[int, int, str, int]:
    memory = hit.memory
    return by_tier * memory.tier, -memory.created_tick, memory.agent_id, -memory.sequence


def _count(bank: Engine, hits: Sequence[Hit]) -> None:
    """Count what was given as used."""
    for agent_id in dict.fromkeys(hit.memory.agent_id for hit in hits):
        own = [hit for hit in hits if hit.memory.agent_id == agent_id]
        given = [hit.memory.sequence for hit in own], [hit.score for hit in own]
        bank.used([agent_id], [Accesses.of([given])])
