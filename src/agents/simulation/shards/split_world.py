"""A worker's copy of a world that says how it splits."""

from collections.abc import Callable

from ...config.settings import Settings
from ..loop.acting import changes_in, told_in
from ..loop.failures import call
from ..loop.regions import act_in_region
from ..loop.standing import Standing
from ..loop.streams import Streams
from ..protocols import World
from . import wire


class SplitWorld:
    """A world in which some regions act; it is made when the first one does."""

    def __init__(self, settings: Settings, rules: Standing, make: Callable[[], World]) -> None:
        own = settings.simulation
        self._agents = own.agent_ids()
        self._streams = Streams(settings.seed, (), own.streams, rules)
        self._make = make
        self._world: World | None = None
        self._tick = 0

    def apply(self, tick: int, part: bytes) -> bytes:
        """Apply the actions of a region's agents, in their order.

        The frame has the region's name, its state, the agents and their actions; the answer what
        came of them, what was told, the region's state, and what was done with groups.
        """
        world = self._world or self._begun()
        if tick != self._tick:
            self._streams.begin(tick)
            self._tick = tick
        name, state, order, wanted = wire.decode(part)
        actions = dict(zip(order, map(wire.actions_of, wanted), strict=True))
        deeds, after = act_in_region(world, (name, state), order, actions, tick, self._agents)
        return wire.encode(
            [
                wire.plain_deeds(deeds.values()),
                told_in(deeds),
                after,
                [list(each) for each in changes_in(deeds)],
            ],
            f"{type(world).__name__}.apply() or get_region()",
        )

    def _begun(self) -> World:
        world = self._world = self._make()
        self._streams.begin(0)
        call(world, "setup", 0, self._streams.world, tuple(self._agents))
        return world
