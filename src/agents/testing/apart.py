"""A world whose regions act in worlds of their own, as on the workers of a spread run."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from ..simulation.loop.regions import regions_of
from ..simulation.loop.streams import Streams
from ..simulation.protocols import Action, Outcome, World, WorldRandom


class Apart:
    """A world; in each tick, each of its regions is another new world, with the region's state."""

    def __init__(self, make: Callable[[], World], seed: int, streams: int) -> None:
        self.world = make()
        self._make, self._seed, self._version = make, seed, streams
        self._regions: dict[str, World] = {}
        self._of: dict[str, str] = {}
        self._tick = 0

    def setup(self, rng: WorldRandom, agent_ids: Sequence[str]) -> None:
        """Set the world up."""
        self._agents = agent_ids
        self.world.setup(rng, agent_ids)

    def observe(self, agent_id: str) -> Any:
        """As the world does; the regions part when all have seen."""
        self._regions = {}
        return self.world.observe(agent_id)

    def apply(self, agent_id: str, action: Action) -> Outcome | str | None:
        """As the agent's region does."""
        return self._region(agent_id).apply(agent_id, action)

    def may_tell(self, teller: str, listener: str) -> bool:
        """As the teller's region says."""
        may_tell = getattr(self._region(teller), "may_tell", None)
        return may_tell is None or bool(may_tell(teller, listener))

    @property
    def may_join(self) -> Callable[[str, str], object]:
        """As the agent's region says, if the world says who may join a group."""
        if not hasattr(self.world, "may_join"):
            raise AttributeError("may_join")
        return lambda agent, group: self._region(agent).may_join(agent, group)  # type: ignore[attr-defined]

    def end_tick(self) -> None:
        """Bring the regions together, and go on."""
        for name, region in self._regions.items():
            self.world.set_region(name, _sent(region.get_region(name)))  # type: ignore[attr-defined]
        self._regions = {}
        self.world.end_tick()
        self._tick += 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self.world, name)

    def _region(self, agent: str) -> World:
        if not self._regions:
            self._part()
        return self._regions[self._of[agent]]

    def _part(self) -> None:
        tick = self._tick + 1
        regions = regions_of(self.world, self._agents, tick) or {}
        self._of = {agent: name for name, own in regions.items() for agent in own}
        for name in regions:
            made: Any = self._make()
            streams = Streams(self._seed, (), self._version)
            streams.begin(0)
            made.setup(streams.world, tuple(self._agents))
            streams.begin(tick)
            state: Any = self.world.get_region(name)  # type: ignore[attr-defined]
            made.set_region(name, _sent(state))
            self._regions[name] = made


def _sent(state: Any) -> Any:
    """A state as another process gets it."""
    return json.loads(json.dumps(state))
