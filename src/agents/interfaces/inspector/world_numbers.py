"""A world's numbers of each agent after a tick, from the state that the journal keeps."""

import contextlib
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ...config.settings import Settings
from ...errors import TierMemError
from ...simulation.protocols import World
from ...simulation.runs.folder import places_of_code, read_folder
from ...simulation.runs.outputs import by_agent_of
from ...simulation.runs.scenario import make_world, set_up
from ...simulation.runs.trust import is_trusted_run
from ...simulation.worlds import WORLDS
from ...storage.journal.ticks import TickRow


class WorldNumbers:
    """Gives a world its state after a tick, and asks it for its numbers."""

    def __init__(self, world: World, agents: list[str]) -> None:
        self._world = world
        self._agents = agents

    @classmethod
    def of_run(cls, folder: Path, settings: Settings) -> Self | None:
        """The numbers of a run's world.

        None if the world has none, or is somebody else's code that is not trusted.
        """
        name = settings.simulation.world or ""
        if name not in WORLDS and not is_trusted_run(folder):
            return None
        with contextlib.suppress(TierMemError):
            world = make_world(settings, *places_of_code(folder, read_folder(folder)[1]))
            if callable(getattr(world, "by_agent", None)):
                set_up(world, settings)
                return cls(world, settings.simulation.agent_ids())
        return None

    def names(self) -> list[str]:
        """The names of the numbers, as the world has them at the start."""
        with contextlib.suppress(Exception):  # a user's own world may raise anything
            return list(by_agent_of(self._world))
        return []

    def of(self, row: TickRow) -> dict[str, NDArray[np.float64]]:
        """The numbers after a tick, in the order of the agents; nothing if they can't be had."""
        if row.packed_state is None:
            return {}
        with contextlib.suppress(Exception):  # a user's own world may raise anything
            self._world.set_state(row.state()["world"])
            found = by_agent_of(self._world)
            return {
                name: np.array([own.get(agent, np.nan) for agent in self._agents], np.float64)
                for name, own in found.items()
            }
        return {}
