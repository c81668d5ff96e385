"""What agents do with groups in a tick: read before the world acts, done when it has acted.

An agent finds on boards what was there before the tick. So what one agent finds, posts or leaves
changes nothing for another one in the same tick, and parts of a run can be decided apart.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ...bank.memory_bank import MemoryBank
from ...engine.groups import (
    JOIN,
    LEAVE,
    GroupChange,
    board_of,
    check_post,
    do_all,
    is_board,
    is_member,
)
from ...errors import InvalidAction
from ...storage.state.accesses import Accesses
from ..protocols import Action, Answer
from .actions import JOIN_GROUP, REFUSED, checked, refusal

_LEAVE_GROUP = "leave_group"


class Wish(NamedTuple):
    """An action on a group, with what is known of it before the world acts."""

    action: Action
    change: GroupChange | None
    """What it would do; None if the action is refused."""
    is_member: bool = False
    """Whether the agent was a member of the group before the tick."""
    refusal: str = ""


class BoardUse(NamedTuple):
    """What a question found on a board."""

    round: int
    """The round of questions in the tick."""
    agent: str
    """Who asked."""
    board: str
    sequences: list[int]
    scores: list[float]


class Boards(NamedTuple):
    """What happens to the boards of groups in a tick, whoever of the agents does it."""

    uses: Sequence[BoardUse]
    """By rounds, then by agents in the order of the run."""
    changes: Sequence[GroupChange]
    """In the order of acting."""

    @classmethod
    def of(cls, plain: Sequence[Any]) -> "Boards":
        """From the lists of :meth:`plain`, which may be empty."""
        if not plain:
            return NO_BOARDS
        uses, changes = plain
        return cls([BoardUse(*each) for each in uses], [GroupChange(*each) for each in changes])

    def plain(self) -> list[Any]:
        """As JSON values; an empty list if nothing happens."""
        return [[list(each) for each in part] for part in self] if any(self) else []


NO_BOARDS = Boards((), ())


def wish(bank: MemoryBank, agent: str, action: Action) -> Wish:
    """An action on a group, read; nothing of it is done yet."""
    try:
        arguments = checked(action)
        name = arguments["group"]
        board = board_of(name)
        if "content" in arguments:
            change = check_post(
                bank.engine, name, agent, arguments["content"], arguments.get("tier")
            )
        else:
            change = GroupChange(LEAVE if action.name == _LEAVE_GROUP else JOIN, name, agent)
        return Wish(action, change, is_member(bank.engine, board, agent))
    except REFUSED as error:
        return Wish(action, None, refusal=refusal(action.name, error))


def granted(
    wished: Wish, now: dict[str, bool], may_join: Callable[[str, str], object] | None
) -> list[GroupChange]:
    """What a wish does, or :class:`InvalidAction`.

    ``now`` has what the agent did in this tick: for a group, whether it is a member by that.
    """
    change = wished.change
    if change is None:
        return []
    agent, group = change.agent, change.group
    is_inside = now.get(group, wished.is_member)
    if wished.action.name == JOIN_GROUP:
        if is_inside:
            raise InvalidAction(f"{agent} is a member of {group} already")
        if may_join is None:
            raise InvalidAction("nobody can join a group here")
        if not may_join(agent, group):
            raise InvalidAction(f"{agent} may not join {group}")
    elif not is_inside:
        raise InvalidAction(f"{agent} is not a member of a group {group}")
    if change.do in (JOIN, LEAVE):
        now[group] = change.do == JOIN
    return [change]


def used_in(asked: Iterable[Iterable[tuple[str, Answer]]]) -> list[BoardUse]:
    """What the questions of a tick found on boards; ``asked`` has them round by round."""
    uses: list[BoardUse] = []
    for number, round_ in enumerate(asked):
        for agent, answer in round_:
            own: dict[str, BoardUse] = {}
            for hit in answer.hits:
                board = hit.memory.agent_id
                if is_board(board):
                    use = own.setdefault(board, BoardUse(number, agent, board, [], []))
                    use.sequences.append(hit.memory.sequence)
                    use.scores.append(hit.score)
            uses += own.values()
    return uses


def change_boards(bank: MemoryBank, boards: Boards) -> None:
    """Count what was found on boards as used, and do what agents do with groups."""
    for use in boards.uses:
        bank.engine.used([use.board], [Accesses.of([(use.sequences, use.scores)])])
    if boards.changes:
        do_all(bank.engine, boards.changes)
