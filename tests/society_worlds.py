"""Worlds whose agents tell and talk as a society lets them."""

from typing import Any

import tiermem
from tiermem.simulation import Action, Society


@tiermem.world(told=0)
def hall(tick: Any) -> Any:
    """Everybody says whom it is near, and passes on what it heard."""
    for agent in tick.agents:
        tick.sees(agent, f"I am near {len(tick.near(agent))} others in tick {tick.number}")
    while (yield):
        tick.state["told"] += 1


@hall.decide
def pass_on(observation: Any, memories: Any, rng: Any) -> Any:
    """Tell everybody near what comes to mind first."""
    return [Action("broadcast", {"memory_id": hit.memory.id}) for hit in memories[:1]]


class Moving(hall):
    """A hall in which agents walk."""

    @property
    def society(self) -> Society:
        """Where they are is state: each tick, each one is a step farther."""
        at = [[(number * number + self._number) % 8] for number in range(len(self.agents))]
        return Society.of_positions(self.agents, at, 1)
