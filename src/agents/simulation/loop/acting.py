"""The third phase of a tick: the world applies what agents do, in the order that was drawn."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...errors import SimulationError
from ..protocols import Action, Outcome, World
from .actions import NO_OP, OWN_ACTIONS, REFUSED, as_action, refusal
from .decisions import DONE, FAILED, REFUSAL, UNANSWERED
from .failures import failed

__all__ = ["Deed", "act"]


class Deed(NamedTuple):
    """What came of one action of an agent. The agent remembers its deeds in their order."""

    action: Action | None
    """None stands for an answer of the policy that is no action."""
    result: int | None
    """What came of it, as the log of decisions counts; None for an action on the agent's own
    memory, which is done when the deeds are recorded."""
    outcome: Outcome | None = None
    """What the agent is told; the reason, if the action was refused."""


def act(
    world: World, order: Iterable[str], actions: Mapping[str, Sequence[object]], tick: int
) -> dict[str, list[Deed]]:
    """Apply the actions of each agent; the deeds of each agent, in the order of acting."""
    return {agent: [_act(world, agent, each, tick) for each in actions[agent]] for agent in order}


def _act(world: World, agent: str, given: object, tick: int) -> Deed:
    name, action = "an action", None
    try:
        action = as_action(given)
        name = action.name
        if name in OWN_ACTIONS:
            return Deed(action, None)
        if name == NO_OP:
            reason = action.arguments.get("reason", "no reason given")
            return Deed(action, UNANSWERED, Outcome(f"did nothing: {reason}", success=False))
        outcome = world.apply(agent, action)
    except REFUSED as error:
        return Deed(action, REFUSAL, Outcome(refusal(name, error), success=False))
    except Exception as error:  # a user's own world may raise anything
        raise failed(world, "apply", tick, error) from error
    if outcome is None:
        return Deed(action, DONE)
    if isinstance(outcome, str):
        outcome = Outcome(outcome)
    if not isinstance(outcome, Outcome):
        raise SimulationError(
            f"{type(world).__name__}.apply({agent!r}, {name}) gave {outcome!r:.60}; an Outcome, a "
            "text or None is needed"
        )
    return Deed(action, DONE if outcome.success else FAILED, outcome)
