"""Worlds that say how they split: what agents do in one region changes nothing in another."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import SimulationError
from ..protocols import World
from .acting import Deed, act
from .failures import call


def regions_of(
    world: World, agents: Sequence[str], tick: int
) -> Mapping[str, Sequence[str]] | None:
    """The agents of each region in this tick; None for a world that does not split."""
    if not hasattr(world, "regions"):
        return None
    regions: Mapping[str, Sequence[str]] = call(world, "regions", tick)
    try:
        counts = Counter(agent for own in regions.values() for agent in own)
    except (AttributeError, TypeError):
        raise _wrong(world, f"is {regions!r:.60}, not names with the agents of each") from None
    known = dict.fromkeys(agents, 1)
    for agent in {**known, **counts}:
        if counts[agent] != known.get(agent, 0):
            raise _wrong(world, f"has {agent!r:.60} {counts[agent]} times, not each agent once")
    return regions


def _wrong(world: World, why: str) -> SimulationError:
    return SimulationError(f"{type(world).__name__}.regions() {why}")


def act_in_region(
    world: World,
    region: tuple[str, Any],
    order: Sequence[str],
    actions: Mapping[str, Sequence[object]],
    tick: int,
    agents: Sequence[str],
) -> tuple[dict[str, list[Deed]], Any]:
    """Apply the actions of a region's agents, in ``order``, in a world that has the region's state.

    ``region`` is its name and its state, ``agents`` are all agents of the run. The deeds of each
    agent, and the state of the region after them.
    """
    name, state = region
    call(world, "set_region", tick, name, state)
    deeds = act(world, order, actions, tick, agents)
    return deeds, call(world, "get_region", tick, name)
