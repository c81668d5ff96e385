"""Groups: a board that members write and search. Its memories belong to an id of no agent."""

from collections.abc import Iterable

from ..errors import InvalidInput, InvalidTier
from ..memory.records import Memory
from ..memory.requests import NewBatch, check_agent_id, check_new
from ..memory.tiers import Tier, TierLike, parse_tier
from ..storage.resident.holdings import NO_VALUES
from .open_bank import OpenBank

__all__ = [
    "board_of",
    "check_board_tier",
    "exists",
    "group_of",
    "groups",
    "groups_of",
    "join",
    "leave",
    "members",
    "post",
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


def group_of(board: str) -> str | None:
    """The name of the group to whose board this id belongs; None for the id of an agent."""
    return board[1:] if board[:1] == _MARK else None


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
    check_board_tier(wanted)
    with bank.changing():
        board = _board(bank, name, agent_id)
        most = bank.settings.memory.max_content_bytes
        checked = check_new((agent_id, content, wanted, None, {"speaker": agent_id}), most)
        return bank.add_new(NewBatch.of([(board, *checked[1:])]))[0]


def check_board_tier(tier: Tier) -> None:
    """Raise :class:`InvalidTier` for a tier with a cap: it would push out what others wrote."""
    if tier <= Tier.CRITICAL:
        raise InvalidTier(
            "a board has no pinned and no critical memories",
            hint="use important, normal or low",
        )


def _board(bank: OpenBank, name: object, agent_id: str) -> str:
    board = board_of(name)
    if agent_id not in members(bank, board):
        raise InvalidInput(
            f"{agent_id} is no member of a group {name}", hint="bank.group(name, members) adds one"
        )
    return board
