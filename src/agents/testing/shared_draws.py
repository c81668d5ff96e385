"""Which agents' calls draw from the one stream that a world has beside its named ones."""

from collections.abc import Sequence
from typing import Any

from ..simulation.protocols import Action, Observation, Outcome, World, WorldRandom


class SharedDraws:
    """A world that notes for whom it draws from the generator of its ``setup``."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.drew: dict[str, str] = {}
        """The method that drew, by agent, since somebody cleared it."""

    def setup(self, rng: WorldRandom, agent_ids: Sequence[str]) -> None:
        """Set the world up, and keep its generator."""
        self._rng = rng
        self.world.setup(rng, agent_ids)

    def observe(self, agent_id: str) -> Observation | str:
        """As the world does."""
        before = self._rng.getstate()
        seen = self.world.observe(agent_id)
        self._note(agent_id, "observe", before)
        return seen

    def apply(self, agent_id: str, action: Action) -> Outcome | str | None:
        """As the world does."""
        before = self._rng.getstate()
        try:
            return self.world.apply(agent_id, action)
        finally:
            self._note(agent_id, "apply", before)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.world, name)

    def warning(self, tick: int) -> str:
        """What a person should know of the draws of a tick."""
        (one, method), (other, _), *_ = self.drew.items()
        return (
            f"{type(self.world).__name__}.{method}() draws for {one} and for {other} from one "
            f"stream (tick {tick}): what one of them does may shift the luck of the other, and an "
            f'experiment can\'t tell the two apart; draw from rng.stream("{method}", agent_id)'
        )

    def _note(self, agent_id: str, method: str, before: object) -> None:
        if self._rng.getstate() != before:
            self.drew.setdefault(agent_id, method)
