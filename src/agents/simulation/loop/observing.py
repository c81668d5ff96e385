"""The first phase of a tick: the world says what each agent perceives."""

from collections.abc import Sequence

from ...errors import SimulationError
from ..protocols import Observation, Remark, World
from .failures import failed


def observe(world: World, agents: Sequence[str], tick: int) -> list[Observation]:
    """What each agent perceives, checked; the fields that the loop sets are not set yet."""
    try:
        ask = world.observe
        given = [ask(agent) for agent in agents]
    except Exception as error:  # a user's own world may raise anything
        raise failed(world, "observe", tick, error) from error
    name = type(world).__name__
    return [_checked(name, agent, seen) for agent, seen in zip(agents, given, strict=True)]


def _checked(world: str, agent: str, seen: object) -> Observation:
    if isinstance(seen, str):
        return Observation(seen)
    if not isinstance(seen, Observation):
        raise SimulationError(
            f"{world}.observe({agent!r}) gave {seen!r:.60}; an Observation or a text is needed"
        )
    heard = seen.heard
    if not isinstance(heard, list | tuple) or [
        each for each in heard if not isinstance(each, Remark)
    ]:
        raise SimulationError(
            f"{world}.observe({agent!r}) gave heard={heard!r:.60}; a list of Remarks is needed"
        )
    return seen
