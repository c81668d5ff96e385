"""Groups: a board that members write and search. Its memories belong to an id of no agent."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from ..engine import status as statuses
from ..engine.engine import Engine
from ..engine.read import find
from ..engine.write import store
from ..errors import InvalidInput, InvalidTier, MemoryNotFound
from ..memory.context import fit
from ..memory.filters import Filter
from ..memory.records import Explanation, Hit, Hits, Memory
from ..memory.requests import NewMemories, NewMemory, check_agent_id, check_new, is_of_agent
from ..memory.scopes import check_same_scope
from ..memory.sources import TRUST
from ..memory.tiers import Retention, Temperature, Tier, TierLike, parse_tier
from ..search.explain import BELOW, OVER_BUDGET
from ..search.request import SearchRequest
from ..storage.columns.extras import NO_VALUES
from ..storage.state.state import Accesses

JOIN, LEAVE, POST = "join", "leave", "post"

_MARK = "."
"""The first character of a board's id, with which no agent's id begins."""
_MEMBERS = "members"
_LONGEST = 127


class GroupChange(NamedTuple):
    """What an agent does with a group; whether it may is decided already."""

    do: str
    """JOIN, LEAVE or POST."""
    group: str
    agent: str
    content: str = ""
    """What is posted."""
    tier: int = int(Tier.NORMAL)


def board_of(name: object) -> str:
    """The id under which the memories of a group's board are stored."""
    if isinstance(name, str) and len(name) > _LONGEST:
        raise InvalidInput(f"a group's name has at most {_LONGEST} characters")
    return _MARK + check_agent_id(name)


def group_of(board: str) -> str | None:
    """The name of the group to whose board this id belongs; None for the id of an agent."""
    return board[1:] if is_board(board) else None


def is_board(owner: str) -> bool:
    """Whether this id belongs to a board, and not to an agent."""
    return not is_of_agent(owner)


def groups(bank: Engine) -> list[str]:
    """The names of all groups, in alphabetical order."""
    return sorted([each[1:] for each in bank.state.blocks if each[0] == _MARK])


def exists(bank: Engine, name: object) -> bool:
    """Whether there is a group of this name, with members or without."""
    return board_of(name) in bank.state.blocks


def members(bank: Engine, board: str) -> dict[str, int]:
    """The members of a group, each with the tick in which it joined."""
    return dict(sorted(_members(bank, board).items()))


def is_member(bank: Engine, board: str, agent_id: str) -> bool:
    """Whether an agent is a member of the group that has this board."""
    return agent_id in _members(bank, board)


def _members(bank: Engine, board: str) -> Mapping[str, int]:
    holdings = bank.state.block(board).holdings
    return NO_VALUES if holdings is None else holdings.of(_MEMBERS)


def groups_of(bank: Engine, agent_id: str) -> list[str]:
    """The groups of which an agent is a member, in alphabetical order."""
    return [name for name in groups(bank) if is_member(bank, board_of(name), agent_id)]


def join(bank: Engine, name: object, agents: Iterable[object]) -> None:
    """Agents become members of a group. Who is a member stays one."""
    board, new = board_of(name), [check_agent_id(each) for each in agents]
    for agent_id in new:
        check_same_scope(board[1:], agent_id)
    with bank.changing():
        for agent_id in new:
            if not is_member(bank, board, agent_id):
                bank.ledger.hold(board, _MEMBERS, agent_id, bank.tick)


def leave(bank: Engine, name: object, agent_id: str) -> None:
    """An agent is not a member any more: from now on, it neither reads nor writes the board."""
    board = _board(bank, name, agent_id)
    with bank.changing():
        bank.ledger.hold(board, _MEMBERS, agent_id, None)


def post(
    bank: Engine, name: object, agent_id: str, content: object, tier: TierLike | None
) -> Memory:
    """A member writes a memory to the board, which keeps who wrote it."""
    wanted = _board_tier(tier)
    with bank.changing():
        board = _board(bank, name, agent_id)
        return store(bank, NewMemories.of([_new(bank, board, agent_id, content, wanted)]))[0]


def check_post(
    bank: Engine, name: object, agent_id: str, content: object, tier: TierLike | None
) -> GroupChange:
    """What a member may post, or :class:`InvalidInput`; whether it is a member is not asked."""
    wanted = _board_tier(tier)
    new = _new(bank, board_of(name), agent_id, content, wanted)
    return GroupChange(POST, new[0][1:], agent_id, new[1], int(wanted))


def do_all(bank: Engine, changes: Iterable[GroupChange]) -> None:
    """Do what agents may do with groups, in one commit: they join and leave, then they post."""
    changes = list(changes)
    with bank.changing():
        for each in changes:
            if each.do != POST:
                since = bank.tick if each.do == JOIN else None
                bank.ledger.hold(board_of(each.group), _MEMBERS, each.agent, since)
        posts = [
            _new(bank, board_of(each.group), each.agent, each.content, Tier(each.tier))
            for each in changes
            if each.do == POST
        ]
        if posts:
            store(bank, NewMemories.of(posts))


def agent_counts(bank: Engine) -> tuple[dict[Tier, int], dict[Temperature, int]]:
    """How many memories all agents have, by tier and by temperature, as ``AgentMemory.count``.

    What is on boards of groups is left out.
    """
    state = bank.state
    tiers, heats = state.tier_counts(), state.temperature_counts()
    for name in groups(bank):
        block = state.block(board_of(name))
        hot = len(block.hot)  # a board has no pinned memories
        heats[Temperature.HOT] -= hot
        heats[Temperature.WARM] -= block.size - hot
        for tier in Tier:
            tiers[tier] -= int((block.tiers == int(tier)).sum())
        shelf = state.shelf.counts(block.agent_id) if state.cold else {}
        for (_, retention, heat, at), (number, _) in shelf.items():
            if retention == Retention.ACTIVE:
                tiers[Tier(at)] -= number
                heats[Temperature(heat)] -= number
        for over in state.expired(block.agent_id):
            tiers[over.tier] += 1
            heats[over.temperature] += 1
    return tiers, heats


def _board_tier(tier: TierLike | None) -> Tier:
    wanted = Tier.NORMAL if tier is None else parse_tier(tier)
    check_board_tier(wanted)
    return wanted


def _new(bank: Engine, board: str, agent_id: str, content: object, tier: Tier) -> NewMemory:
    most = bank.settings.memory.max_content_bytes
    checked = check_new((agent_id, content, tier, None, {"speaker": agent_id}), most)
    return (board, *checked[1:])


def check_board_tier(tier: Tier) -> None:
    """Raise :class:`InvalidTier` for a tier with a cap: it would push out what others wrote."""
    if tier <= Tier.CRITICAL:
        raise InvalidTier(
            "a board has no pinned and no critical memories",
            hint="use important, normal or low",
        )


def _board(bank: Engine, name: object, agent_id: str) -> str:
    board = board_of(name)
    if not is_member(bank, board, agent_id):
        raise InvalidInput(
            f"{agent_id} is not a member of a group {name}",
            hint="an agent has to join a group first",
        )
    return board


def status(bank: Engine, agent_id: str | None, session: str | None = None) -> statuses.Status:
    """:meth:`MemoryBank.status`: the status of the agents, with the number of their groups."""
    with bank.using():
        found = statuses.status(bank, agent_id, session)
        number = len(groups(bank) if agent_id is None else groups_of(bank, agent_id))
        return found._replace(groups=number)


def find_on_board(bank: Engine, name: str, memory_id: str) -> Memory:
    """The memory of a group's board with this id, deleted or not, or :class:`MemoryNotFound`."""
    try:
        return find(bank, board_of(name), memory_id, deleted=True)
    except MemoryNotFound:
        raise MemoryNotFound(
            f"the board of {name} has no memory {memory_id!r:.80}",
            hint="tiermem social group and Group.all give ids",
        ) from None


# Searches among an agent's own memories and the boards of its groups

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
    hits_of_places: list[Hits] = []
    for board in _places(bank, agent_id):
        there = request._replace(agents=[board], limit=_limit(bank, request, board), budget=None)
        if board != agent_id:
            there = there._replace(only=on_boards)
        hits_of_places += bank.search.run(bank.search.read(there), may_sync=bank.may_sync()).hits
    first = [hit for hit in hits_of_places[0] if _comes_first(bank, hit.memory, request)]
    rest = [
        _believed(hit, _trust_in(bank, agent_id, hit.memory))
        for hits in hits_of_places
        for hit in hits
        if not _comes_first(bank, hit.memory, request)
    ]
    if len(hits_of_places) > 1:
        by_tier = bank.settings.retrieval.pins_first
        rest.sort(key=_order if query.strip() else partial(_order_of_newest, by_tier))
    chosen = rest[: max(0, request.limit - len(first))]
    kept = fit(first, chosen, request.budget, bank.search.count_tokens)
    result = Hits(kept.kept)
    result.pinned_left_out, result.note = kept.pinned_left_out, hits_of_places[0].note
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
