"""The laws of the world or the program that a scenario names: ``tiermem world check``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import SkipTest

from ..bank.memory_bank import MemoryBank
from ..config.load import load_settings
from ..config.settings import Settings
from ..errors import ConfigError, TierMemError
from ..simulation.policies.cassette import Cassette
from ..simulation.protocols import Persona, Policy, World
from ..simulation.runs.personas import personas_of
from ..simulation.runs.programs import ProgramLoop
from ..simulation.runs.scenario import (
    check_scenario,
    first_memories,
    function_of,
    make_policy,
    make_world,
)
from ..simulation.worlds.outside import Outside
from .laws import BrokenLaw, DoesNotApply, laws_of
from .world_laws import RepeatLaws, Story, Ticks, WorldLaws, files_of


class Findings(NamedTuple):
    """What was tried and held, and what is wrong, in lines for a person."""

    tried: list[str]
    problems: list[str]
    warnings: list[str]
    """What is sound, and makes experiments with branches less clear."""


class ScenarioLaws(WorldLaws):
    """Laws for the world and the policy of a scenario, whose modules are in a folder."""

    def __init__(self, scenario: Mapping[str, Any], place: str) -> None:
        self._scenario, self._place = load_settings(dict(scenario)), Path(place)
        self.agents = self._scenario.simulation.agent_ids()
        self.ticks = self._scenario.simulation.ticks
        self._told = {}  # each object has a scenario of its own

    def given(self) -> dict[str, Any]:
        """The scenario and the folder."""
        return {"scenario": self._scenario.to_dict(), "place": str(self._place)}

    def make(self) -> World:
        """The world that the scenario names."""
        return make_world(self._scenario, self._place)

    def make_policy(self, world: World) -> Policy:
        """The policy that the scenario names."""
        cassette = Cassette(Path("none"), replay=True)
        return make_policy(self._scenario, world, cassette, self._place)

    def bank_settings(self) -> Settings:
        """The scenario itself."""
        return self._scenario

    def memories(self) -> Sequence[tuple[object, ...]]:
        """The first memories of the scenario."""
        return first_memories(self._scenario)

    def personas(self) -> Mapping[str, Persona]:
        """The personas of the scenario."""
        return personas_of(self._scenario, self._place)

    def places(self) -> list[Path]:
        """The folder of the scenario."""
        return [self._place]


class ProgramLaws(RepeatLaws):
    """Laws for the program that a scenario names, whose module is in a folder."""

    def __init__(self, scenario: Mapping[str, Any], place: str) -> None:
        self._scenario, self._place = load_settings(dict(scenario)), Path(place)
        self.ticks = self._scenario.simulation.ticks
        self._told = {}

    def given(self) -> dict[str, Any]:
        """The scenario and the folder."""
        return {"scenario": self._scenario.to_dict(), "place": str(self._place)}

    def bank_settings(self) -> Settings:
        """The scenario itself."""
        return self._scenario

    def places(self) -> list[Path]:
        """The folder of the scenario."""
        return [self._place]

    def own_files(self) -> set[str]:
        """The file of the function that makes the program."""
        make = function_of("simulation.model", str(self._scenario.simulation.model), self.places())
        return files_of(make)

    def loop(self, bank: MemoryBank) -> Ticks:
        """A loop on an empty bank."""
        settings, place = self._scenario, self._place
        loop = ProgramLoop(bank, Outside(), settings, {}, place, [place])
        loop.begin()
        return loop

    def two_stories_and_one_anew(self) -> list[Story]:
        """Three runs in this process."""
        return [self.story() for _ in range(3)]


def check_world(settings: Settings, place: Path) -> Findings:
    """Try the world that the settings name; its module is in the folder ``place``, or installed.

    An error of the world itself is :class:`SimulationError`.
    """
    if settings.simulation.policy == "llm":
        raise ConfigError(
            "simulation.policy is llm, and a model's replies can't be tried again",
            hint="check the world with rules, a script or a class of your own as --policy",
        )
    if settings.simulation.ticks < 2:
        raise ConfigError(
            "one tick is too few to stop and go on", hint="give two ticks or more: --ticks"
        )
    place = place.absolute()
    # mem0's store says nothing about a world.
    settings = load_settings(settings, overrides={"storage.sync": "manual"})
    check_scenario(settings, [place])
    kind = ScenarioLaws if settings.simulation.model is None else ProgramLaws
    return _found(kind(settings.to_dict(), str(place)))


def _found(laws: ScenarioLaws | ProgramLaws) -> Findings:
    findings, left_out = Findings([], [], []), []
    for name in laws_of(type(laws)):
        test = getattr(laws, name)
        try:
            test()
        except BrokenLaw as error:
            if isinstance(error.__cause__, TierMemError):
                raise error.__cause__ from None
            findings.problems.extend(error.problem.splitlines())
        except DoesNotApply:
            continue
        except SkipTest:
            left_out.append(test.__doc__)
        else:
            findings.tried.append(test.__doc__)
    if left_out:
        findings.problems.append(
            f"not tried, because no two runs are the same: {'; '.join(left_out)}"
        )
    if isinstance(laws, ProgramLaws):
        return findings
    if not findings.problems and (warning := laws.told("shared_draws")):
        findings.warnings.append(warning)
    return findings
