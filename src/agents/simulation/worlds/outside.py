"""The world of a run whose ticks a program of the user makes: a Mesa model.

The run has what the program recorded. Where its settings name the program as ``simulation.model``,
TierMem makes the program again, and so more ticks; else only who made the program can.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from ...config.settings import Settings
from ...errors import InvalidAction, RunError
from ...memory.records import Hits
from ...storage.journal.journal import Journal
from ..kept_ticks import KeptTick, KeptTicks
from ..protocols import Action, Observation

OUTSIDE = "outside"
"""The name of this world in the settings."""


class Outside:
    """Gives the metrics that the program recorded, for the reports."""

    def __init__(self, program: str = "", model: str = "") -> None:
        """``program`` and ``model`` say in words what made the ticks."""
        self._told = program, model
        self._state: dict[str, Any] = {"agents": [], "metrics": {}}

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        """The program set everything up."""

    def observe(self, agent_id: str) -> Observation:
        """Refused: nobody but the program knows."""
        raise InvalidAction(f"only {' '.join(self._told)} knows what {agent_id} sees")

    def apply(self, agent_id: str, action: Action) -> None:
        """Refused, as :meth:`observe`."""
        raise InvalidAction(f"only {' '.join(self._told)} knows what {action.name} does")

    def end_tick(self) -> None:
        """The program ends its ticks."""

    def metrics(self) -> Mapping[str, float]:
        """The metrics that the program recorded last."""
        metrics: Mapping[str, float] = self._state["metrics"]
        return metrics

    def get_state(self) -> Any:
        """The agents and the metrics."""
        return self._state

    def set_state(self, state: Any) -> None:
        """Take what the program recorded."""
        self._state = state

    def rules(self) -> "Outside":
        """The policy is the program's."""
        return self

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> Sequence[Action]:
        """Nothing: the program decides."""
        return ()


def is_outside(settings: Settings) -> bool:
    """Whether a program of the user makes the ticks of a run."""
    return settings.simulation.world == OUTSIDE or settings.simulation.model is not None


def check_inside(settings: Settings) -> None:
    """Refuse to make ticks of a run whose ticks a program makes that TierMem can't make."""
    if is_outside(settings) and settings.simulation.model is None:
        program = " ".join(map(str, settings.simulation.world_options.values()))
        raise RunError(
            f"a program makes the ticks of this run, and TierMem can't make them: {program}",
            hint="run the program by tiermem.experiment(), or name it as simulation.model in a "
            "scenario: such a run is resumed, replayed and branched; show, why, diff and report "
            "look at what this one recorded",
        )


def agents_of(journal: Journal, settings: Settings) -> list[str]:
    """The agents of a run, in the order of its log; a program may have added some in any tick."""
    if not is_outside(settings):
        return settings.simulation.agent_ids()
    last = KeptTicks(journal).last_tick()
    return [] if last is None else agents_in(last)


def agents_in(kept: KeptTick) -> list[str]:
    """The agents that a program's run had in a tick; none where the journal has no state of it."""
    return list(kept.state()["world"]["agents"]) if kept.has_state else []
