"""The third phase of a tick: the world applies what agents do, in the order that was drawn."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...errors import SimulationError
from ..protocols import Action, Outcome, World
from .actions import NO_OP, OWN_ACTIONS, REFUSED, as_action, refusal
from .decisions import DONE, FAILED, REFUSAL, UNANSWERED
from .failures import failed

__all__ = ["Deed", "act", "read_action"]


class Deed(NamedTuple):
    """What came of one action of an agent. The agent remembers its deeds in their order."""

    action: Action | None
    """None stands for an answer of the policy that is no action."""
    result: int | None
    """What came of it, as the log of decisions counts; None for an action on the agent's own
    memory, which is done when the deeds are recorded."""
    outcome: Outcome | None = None
    """What the agent is told; the reason, if the action was refused."""


def read_action(given: object) -> Action | Deed:
    """The action that a policy gave, or the deed of an action that can't be read."""
    if isinstance(given, Deed):
        return given
    try:
        return as_action(given)
    except REFUSED as error:
        return _refused(None, error)


def act(
    world: World, order: Iterable[str], actions: Mapping[str, Sequence[object]], tick: int
) -> dict[str, list[Deed]]:
    """Apply the actions of each agent; the deeds of each agent, in the order of acting."""
    return {
        agent: [_act(world, agent, read_action(each), tick) for each in actions[agent]]
        for agent in order
    }


def _refused(action: Action | None, error: Exception) -> Deed:
    told = refusal(action.name if action else "an action", error)
    return Deed(action, REFUSAL, Outcome(told, success=False))


def _act(world: World, agent: str, action: Action | Deed, tick: int) -> Deed:
    if isinstance(action, Deed):
        return action
    if action.name in OWN_ACTIONS:
        return Deed(action, None)
    if action.name == NO_OP:
        reason = action.arguments.get("reason", "no reason given")
        return Deed(action, UNANSWERED, Outcome(f"did nothing: {reason}", success=False))
    try:
        outcome = world.apply(agent, action)
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
