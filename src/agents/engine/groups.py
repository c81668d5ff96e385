"""Groups: a board that members write and search. Its memories belong to an id of no agent."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..errors import InvalidInput, InvalidTier
from ..memory.records import Memory
from ..memory.requests import NewMemories, NewMemory, check_agent_id, check_new
from ..memory.tiers import Retention, Temperature, Tier, TierLike, parse_tier
from ..storage.columns.extras import NO_VALUES
from .engine import Engine

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
    return owner[:1] == _MARK


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
        return bank.add_new(NewMemories.of([_new(bank, board, agent_id, content, wanted)]))[0]


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
            bank.add_new(NewMemories.of(posts))


def on_boards(bank: Engine) -> tuple[Counter[Tier], Counter[Temperature]]:
    """How many of the memories that a bank counts are on boards, by tier and by temperature."""
    tiers, heats = Counter[Tier](), Counter[Temperature]()
    state = bank.state
    for name in groups(bank):
        block = state.block(board_of(name))
        hot = len(block.hot)  # a board has no pinned memories
        heats.update({Temperature.HOT: hot, Temperature.WARM: block.size - hot})
        tiers.update({tier: int((block.tiers == int(tier)).sum()) for tier in Tier})
        shelf = state.shelf.counts(block.agent_id) if state.cold else {}
        for (_, retention, heat, tier), (number, _) in shelf.items():
            if retention == Retention.ACTIVE:
                tiers[Tier(tier)] += number
                heats[Temperature(heat)] += number
        for over in state.expired(block.agent_id):
            tiers[over.tier] -= 1
            heats[over.temperature] -= 1
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
