"""What agents tell each other and do with groups: read before the world acts, done afterwards.

A memory that an agent tells is copied as it was before the tick, and an agent finds on boards what
was there before the tick. So what one agent tells, finds, posts or leaves changes nothing for the
other agents in the same tick, and parts of a run can be decided apart.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from ...bank.memory_bank import MemoryBank
from ...errors import InvalidAction
from ...memory.sources import Telling
from ...memory.tiers import Tier
from ...storage.state.state import Accesses
from ...telling import tell
from ...telling.groups import (
    JOIN,
    LEAVE,
    GroupChange,
    board_of,
    check_post,
    do_all,
    is_board,
    is_member,
)
from ...telling.tell import correction_of, said_before
from ..protocols import Action, Answer
from .actions import JOIN_GROUP, REFUSED, checked, refusal


class Speech(NamedTuple):
    """An action that tells, with what it says as data."""

    action: Action
    to: Sequence[str] | None
    """The agents that are meant; None for all that can hear."""
    said: Telling | None
    """What each of them is told, without a receiver; None if the action is refused."""
    refusal: str = ""


def speech_of(bank: MemoryBank, agent: str, action: Action) -> Speech:
    """An action that tells, with the memory as it was before the tick."""
    try:
        arguments = checked(action)
        to = _meant(arguments.get("to"), is_one=action.name == "tell")
        memory = bank.agent(agent).get(arguments["memory_id"])
        if action.name == "retract":
            correction = correction_of(bank.engine, memory)
            said = tell.copied(bank.engine, correction)
            earlier = said_before(bank.engine, memory, correction)
            return Speech(action, None, tell.correcting(said, memory, earlier))
        tell.check_is_not_superseded(bank.engine, memory)
        said = tell.copied(bank.engine, memory, arguments.get("as_tier"), arguments.get("note"))
        own = bank.settings.memory
        if said.tier == Tier.CRITICAL and (own.on_tier_full == "reject" or not own.max_critical):
            raise InvalidAction(
                "as_tier critical may be full for a listener", hint="use important, normal or low"
            )
        return Speech(action, to, said)
    except REFUSED as error:
        return Speech(action, None, None, refusal(action.name, error))


def _meant(to: Any, *, is_one: bool) -> Sequence[str] | None:
    if is_one and isinstance(to, str):
        return [to]
    if not is_one and to is None:
        return None
    if not is_one and isinstance(to, list | tuple) and all(isinstance(each, str) for each in to):
        return list(dict.fromkeys(to))
    raise InvalidAction(f"to is {'the id of an agent' if is_one else 'a list of ids'}")


def heard_by(
    speech: Speech, agent: str, agents: Collection[str], may_tell: Callable[[str, str], object]
) -> list[Telling]:
    """What each listener is told, or :class:`InvalidAction`; ``agents`` are those of the run."""
    if speech.said is None:
        return []
    listeners: Iterable[str]
    if speech.to is None:
        listeners = [each for each in agents if each != agent and may_tell(agent, each)]
    else:
        for each in speech.to:
            _check_listener(each, agent, agents, may_tell)
        listeners = speech.to
    return [speech.said._replace(receiver=each) for each in listeners]


def _check_listener(
    listener: str, agent: str, agents: Collection[str], may_tell: Callable[[str, str], object]
) -> None:
    if listener == agent:
        raise InvalidAction("you can't tell yourself", hint="use store_memory")
    if listener not in agents:
        raise InvalidAction(f"there is no agent {listener!r:.60}")
    if not may_tell(agent, listener):
        raise InvalidAction(f"{listener} can't hear you now")


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
