"""The third phase of a tick: the world applies what agents do, in the order that was drawn.

What agents tell each other and do with groups is read before the world acts, and done afterwards. A
memory that an agent tells is copied as it was before the tick, and an agent finds on boards what
was there before the tick. So what one agent tells, finds, posts or leaves changes nothing for the
other agents in the same tick, and parts of a run can be decided apart.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from operator import itemgetter
from typing import Any, NamedTuple

from ...bank.memory_bank import MemoryBank
from ...errors import InvalidAction, SimulationError
from ...memory.scopes import check_same_scope, scope_of
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
from ..protocols import Action, Answer, Outcome, World
from ..society import society_at
from .actions import JOIN_GROUP, NO_OP, OWN_ACTIONS, REFUSED, as_action, checked, refusal
from .decision_log import DONE, FAILED, REFUSAL, UNANSWERED
from .user_code import failed

# Actions that tell, and actions on groups


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
        own = scope_of(agent)
        near = [each for each in agents if each != agent and scope_of(each) == own]
        listeners = [each for each in near if may_tell(agent, each)]
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
    if scope_of(listener) != scope_of(agent) or not may_tell(agent, listener):
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
            check_same_scope(agent, name)
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
            by_board: dict[str, BoardUse] = {}
            for hit in answer.hits:
                board = hit.memory.agent_id
                if is_board(board):
                    use = by_board.setdefault(board, BoardUse(number, agent, board, [], []))
                    use.sequences.append(hit.memory.sequence)
                    use.scores.append(hit.score)
            uses += by_board.values()
    return uses


def change_boards(bank: MemoryBank, boards: Boards) -> None:
    """Count what was found on boards as used, and do what agents do with groups."""
    for use in boards.uses:
        bank.engine.used([use.board], [Accesses.of([(use.sequences, use.scores)])])
    if boards.changes:
        do_all(bank.engine, boards.changes)


# The world acts


_SCALARS = {str, int, float, bool, type(None)}


class Deed(NamedTuple):
    """What came of one action of an agent. The agent remembers outcomes in the order of deeds."""

    action: Action | None
    """None stands for an answer of the policy that is not an action."""
    result: int | None
    """What came of it, as the log of decisions counts; None for an action on the agent's own
    memory, which is done when the deeds are recorded."""
    outcome: Outcome | None = None
    """What the agent remembers; the reason, which it is only told, if the action was refused."""
    told: Sequence[Telling] = ()
    """What the action told other agents, in the order of telling."""
    changes: Sequence[GroupChange] = ()
    """What the action does with a group."""


def read_action(value: object) -> Action | Deed:
    """The action that a policy gave, or the deed of an action that can't be read."""
    if isinstance(value, Deed):
        return value
    if isinstance(value, Speech | Wish):
        return value.action
    try:
        return as_action(value)
    except REFUSED as error:
        return refused(None, error)


def act(
    world: World,
    order: Iterable[str],
    actions: Mapping[str, Sequence[object]],
    tick: int,
) -> dict[str, list[Deed]]:
    """Apply the actions of each agent; the deeds of each agent, in the order of acting."""
    own_actions = getattr(world, "actions", ())
    deeds: dict[str, list[Deed]] = {}
    for agent in order:
        joined: dict[str, bool] = {}
        done = deeds[agent] = []
        for wanted in actions[agent]:
            if not isinstance(wanted, Speech | Wish) or wanted.action.name in own_actions:
                done.append(_act(world, agent, read_action(wanted), tick))
            elif isinstance(wanted, Speech):
                done.append(_tell(world, agent, wanted, actions, tick))
            else:
                done.append(_grant(world, wanted, joined, tick))
    return deeds


def told_in(deeds: Mapping[str, Sequence[Deed]]) -> list[Telling]:
    """What agents told each other, in the order of receivers, senders and numbers."""
    told = []
    for own in deeds.values():
        said = [each for deed in own for each in deed.told]
        told += [each._replace(number=number) for number, each in enumerate(said)]
    return sorted(told, key=itemgetter(0, 1, 2))


def changes_in(deeds: Mapping[str, Sequence[Deed]]) -> list[GroupChange]:
    """What agents do with groups, in the order of acting."""
    return [each for own in deeds.values() for deed in own for each in deed.changes]


def _tell(world: World, agent: str, speech: Speech, agents: Collection[str], tick: int) -> Deed:
    """Let those hear a speech who may, if the world says who may."""
    why = speech.refusal
    if not why:
        try:
            may_tell = _may_tell(world, agent, speech.to, tick)
            return Deed(speech.action, DONE, told=heard_by(speech, agent, agents, may_tell))
        except REFUSED as error:
            why = refusal(speech.action.name, error)
        except Exception as error:  # a user's own world may raise anything
            raise failed(world, "may_tell", tick, error) from error
    return Deed(speech.action, REFUSAL, Outcome(why, success=False))


def _grant(world: World, wished: Wish, joined: dict[str, bool], tick: int) -> Deed:
    """Let an agent do something with a group, if it may; the world says who joins."""
    why = wished.refusal
    if not why:
        try:
            may_join = getattr(world, "may_join", None)
            return Deed(wished.action, DONE, changes=granted(wished, joined, may_join))
        except REFUSED as error:
            why = refusal(wished.action.name, error)
        except Exception as error:  # a user's own world may raise anything
            raise failed(world, "may_join", tick, error) from error
    return Deed(wished.action, REFUSAL, Outcome(why, success=False))


def _may_tell(
    world: World, agent: str, to: Sequence[str] | None, tick: int
) -> Callable[[str, str], object]:
    """Who can hear an agent: as the world says, or its society; everybody without both."""
    own: Callable[[str, str], object] | None = getattr(world, "may_tell", None)
    if own is not None:
        return own
    society = society_at(world, tick)
    if society is None:
        return _everybody_may
    if to is not None:
        return society.may_tell
    near = frozenset(society.near(agent))  # asked once, and not for each agent of the run
    return lambda _, listener: listener in near


def _everybody_may(_: str, __: str) -> bool:
    return True


def refused(action: Action | None, error: Exception) -> Deed:
    """The deed of an action that is refused."""
    why = refusal(action.name if action else "an action", error)
    return Deed(action, REFUSAL, Outcome(why, success=False))


def _own(action: Action) -> Action:
    """The world's own action: what it does with the arguments changes neither log nor policy."""
    name, arguments, reason = action
    if not arguments or not isinstance(arguments, dict):
        return action
    if type(arguments) is dict and _SCALARS.issuperset(map(type, arguments.values())):
        return Action(name, arguments.copy(), reason)
    return Action(name, _deeply(arguments, {}), reason)


def _deeply(value: Any, known: dict[int, Any]) -> Any:
    """A copy of dicts, lists and tuples, which may be in a circle; other objects are shared."""
    if id(value) in known:
        return known[id(value)]
    if isinstance(value, dict):
        new = known[id(value)] = copy(value)
        for key, each in value.items():
            new[key] = _deeply(each, known)
        return new
    if type(value) is list:
        known[id(value)] = own = list[Any]()
        own += [_deeply(each, known) for each in value]
        return own
    return tuple([_deeply(each, known) for each in value]) if type(value) is tuple else value


def _act(world: World, agent: str, action: Action | Deed, tick: int) -> Deed:
    if isinstance(action, Deed):
        return action
    if action.name in OWN_ACTIONS:
        return Deed(action, None)
    if action.name == NO_OP:
        return Deed(action, UNANSWERED if action.reason is None else DONE)
    try:
        outcome = world.apply(agent, _own(action))
    except REFUSED as error:
        return refused(action, error)
    except Exception as error:  # a user's own world may raise anything
        raise failed(world, "apply", tick, error) from error
    if outcome is None:
        return Deed(action, DONE)
    if isinstance(outcome, str):
        outcome = Outcome(outcome)
    if not isinstance(outcome, Outcome):
        raise SimulationError(
            f"{type(world).__name__}.apply({agent!r}, {action.name}) gave {outcome!r:.60}; an "
            "Outcome, a text or None is needed"
        )
    return Deed(action, DONE if outcome.success else FAILED, outcome)
