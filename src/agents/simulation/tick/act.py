"""The third phase of a tick: the world applies what agents do, in the order that was drawn."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from operator import itemgetter
from typing import Any, NamedTuple

from ...errors import SimulationError
from ...memory.sources import Telling
from ...telling.groups import GroupChange
from ..protocols import Action, Outcome, World
from .actions import NO_OP, OWN_ACTIONS, REFUSED, as_action, refusal
from .decision_log import DONE, FAILED, REFUSAL, UNANSWERED
from .social import Speech, Wish, granted, heard_by
from .user_code import failed

_COMPOSED = (Speech, Wish)
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


def read_action(given: object) -> Action | Deed:
    """The action that a policy gave, or the deed of an action that can't be read."""
    if isinstance(given, Deed):
        return given
    if isinstance(given, _COMPOSED):
        return given.action
    try:
        return as_action(given)
    except REFUSED as error:
        return _refused(None, error)


def act(
    world: World,
    order: Iterable[str],
    actions: Mapping[str, Sequence[object]],
    tick: int,
) -> dict[str, list[Deed]]:
    """Apply the actions of each agent; the deeds of each agent, in the order of acting."""
    own = getattr(world, "actions", ())
    deeds: dict[str, list[Deed]] = {}
    for agent in order:
        joined: dict[str, bool] = {}
        done = deeds[agent] = []
        for each in actions[agent]:
            if not isinstance(each, _COMPOSED) or each.action.name in own:
                done.append(_act(world, agent, read_action(each), tick))
            elif isinstance(each, Speech):
                done.append(_tell(world, agent, each, actions, tick))
            else:
                done.append(_grant(world, each, joined, tick))
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
            may_tell = getattr(world, "may_tell", None) or _everybody_may
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


def _everybody_may(_: str, __: str) -> bool:
    return True


def _refused(action: Action | None, error: Exception) -> Deed:
    told = refusal(action.name if action else "an action", error)
    return Deed(action, REFUSAL, Outcome(told, success=False))


def _own(action: Action) -> Action:
    """The world's own action: what it does with the arguments changes neither log nor policy."""
    name, arguments = action
    if not arguments or not isinstance(arguments, dict):
        return action
    if type(arguments) is dict and _SCALARS.issuperset(map(type, arguments.values())):
        return Action(name, arguments.copy())
    return Action(name, _deeply(arguments, {}))


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
        return Deed(action, UNANSWERED)
    try:
        outcome = world.apply(agent, _own(action))
    except REFUSED as error:
        return _refused(action, error)
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
