"""Groups: a board that members write and search. Its memories belong to an id of no agent."""

from collections.abc import Iterable

from ..errors import InvalidInput, InvalidTier
from ..memory.context import fit
from ..memory.records import Hit, Hits, Memory
from ..memory.requests import NewBatch, check_agent_id, check_new
from ..memory.tiers import Tier, TierLike, parse_tier
from ..search.request import SearchRequest
from ..storage.resident.holdings import NO_VALUES
from ..storage.state.accesses import Accesses
from .open_bank import OpenBank

__all__ = [
    "board_of",
    "exists",
    "groups",
    "groups_of",
    "join",
    "leave",
    "members",
    "post",
    "search",
]

_MARK = "."
"""The first character of a board's id, with which no agent's id begins."""
_MEMBERS = "members"
_LONGEST = 127


def board_of(name: object) -> str:
    """The id under which the memories of a group's board are stored."""
    if isinstance(name, str) and len(name) > _LONGEST:
        raise InvalidInput(f"a group's name has at most {_LONGEST} characters")
    return _MARK + check_agent_id(name)


def groups(bank: OpenBank) -> list[str]:
    """The names of all groups, in alphabetical order."""
    return sorted([each[1:] for each in bank.ledger.resident.blocks if each[0] == _MARK])


def exists(bank: OpenBank, name: object) -> bool:
    """Whether there is a group of this name, with members or without."""
    return board_of(name) in bank.ledger.resident.blocks


def members(bank: OpenBank, board: str) -> dict[str, int]:
    """The members of a group, each with the tick in which it joined."""
    holdings = bank.ledger.resident.block(board).holdings
    return dict(sorted((NO_VALUES if holdings is None else holdings.of(_MEMBERS)).items()))


def groups_of(bank: OpenBank, agent_id: str) -> list[str]:
    """The groups of which an agent is a member, in alphabetical order."""
    return [name for name in groups(bank) if agent_id in members(bank, board_of(name))]


def join(bank: OpenBank, name: object, agents: Iterable[object]) -> None:
    """Agents become members of a group. Who is a member stays one."""
    board, new = board_of(name), [check_agent_id(each) for each in agents]
    with bank.changing():
        for agent_id in new:
            if agent_id not in members(bank, board):
                bank.ledger.hold(board, _MEMBERS, agent_id, bank.tick)


def leave(bank: OpenBank, name: object, agent_id: str) -> None:
    """An agent is no member any more: from now on, it neither reads nor writes the board."""
    board = _board(bank, name, agent_id)
    with bank.changing():
        bank.ledger.hold(board, _MEMBERS, agent_id, None)


def post(
    bank: OpenBank, name: object, agent_id: str, content: object, tier: TierLike | None
) -> Memory:
    """A member writes a memory to the board, which keeps who wrote it."""
    wanted = Tier.NORMAL if tier is None else parse_tier(tier)
    if wanted <= Tier.CRITICAL:  # its cap would push out what other members wrote
        raise InvalidTier(
            "a board has no pinned and no critical memories",
            hint="use important, normal or low",
        )
    with bank.changing():
        board = _board(bank, name, agent_id)
        most = bank.settings.memory.max_content_bytes
        checked = check_new((agent_id, content, wanted, None, {"speaker": agent_id}), most)
        return bank.add_new(NewBatch.of([(board, *checked[1:])]))[0]


def _board(bank: OpenBank, name: object, agent_id: str) -> str:
    board = board_of(name)
    if agent_id not in members(bank, board):
        raise InvalidInput(
            f"{agent_id} is no member of a group {name}", hint="bank.group(name, members) adds one"
        )
    return board


def search(bank: OpenBank, request: SearchRequest) -> Hits:
    """The hits of one agent's search among its own memories and the boards of its groups.

    The agent's pinned memories come first.
    """
    (agent_id,), (query,) = request.agents, request.queries
    boards = [board_of(name) for name in groups_of(bank, agent_id)]
    agents = [agent_id, *boards]
    wide = request._replace(agents=agents, queries=[query] * len(agents), budget=None)
    found = bank.search.run(bank.search.read(wide), may_sync=bank.may_sync()).hits
    own = [hit for hit in found[0] if hit.memory.tier is Tier.PINNED]
    rest = [hit for hits in found for hit in hits if hit.memory.tier is not Tier.PINNED]
    rest.sort(key=_order if query.strip() else _order_of_newest)
    chosen = rest[: max(0, request.limit - len(own))]
    kept = fit(own, chosen, request.budget, bank.search.count_tokens)
    result = Hits(kept.kept)
    result.pinned_left_out, result.note = kept.pinned_left_out, found[0].note
    if query.strip():
        _count(bank, agents, result)
    return result


def _order(hit: Hit) -> tuple[float, float, int, str, int]:
    memory = hit.memory
    return (
        -hit.boosted_score, -hit.score, -memory.created_tick, memory.agent_id, -memory.sequence,
    )  # fmt: skip


def _order_of_newest(hit: Hit) -> tuple[int, int, str, int]:
    memory = hit.memory
    return int(memory.tier), -memory.created_tick, memory.agent_id, -memory.sequence


def _count(bank: OpenBank, agents: list[str], hits: Hits) -> None:
    """Count what was given as used."""
    for agent_id in agents:
        own = [hit for hit in hits if hit.memory.agent_id == agent_id]
        if own:
            given = [hit.memory.sequence for hit in own], [hit.score for hit in own]
            bank.used([agent_id], [Accesses.of([given])])
