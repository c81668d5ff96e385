"""The laws of a world and its policy: the same seed gives the same run, whatever happens."""

import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol
from unittest import SkipTest

from ..bank.memory_bank import MemoryBank
from ..config.load import load_settings
from ..config.settings import Settings
from ..errors import ConfigError
from ..simulation.kept_ticks import ticks_of
from ..simulation.protocols import (
    NO_ARGUMENTS,
    Action,
    Observation,
    Outcome,
    Persona,
    Policy,
    World,
    WorldRandom,
)
from ..simulation.tick.loop import Loop
from ..simulation.tick.streams import Streams
from ..simulation.tick.user_code import set_up
from ..storage.files import TemporaryFolder
from .laws import law, must
from .processes import elsewhere, file_of, started
from .unseeded import watched

_PACKAGE = Path(__file__).parents[1]
_LONGEST = 80

Story = dict[str, Any]
"""The records of a run's ticks, its memories, and its last world, as JSON values."""


class Ticks(Protocol):
    """What makes the ticks of a run."""

    def tick(self) -> dict[str, Any]:
        """Make one tick, and give its record."""


class Play:
    """A world, its policy and its agents, as laws play them. Each trial is a process of its own."""

    agents: Sequence[str] = ("alice", "bob", "carol")
    ticks: int = 20
    seed: int = 7
    settings: Mapping[str, Any] = {}
    """More settings of the bank."""
    _told: dict[str, Any]
    """What trials of the class gave: laws share them."""

    def __init_subclass__(cls) -> None:
        cls._told = {}

    def given(self) -> dict[str, Any]:
        """The arguments with which another process makes these laws."""
        return {}

    def world(self) -> World:
        """A new world."""
        raise NotImplementedError

    def policy(self, world: World) -> Policy:
        """A new policy for a world."""
        raise NotImplementedError

    def bank_settings(self) -> Settings:
        """The settings of the bank in which the agents' memories are."""
        own = {"seed": self.seed, "storage.sync": "manual", "simulation.ticks": self.ticks}
        return load_settings(dict(self.settings), overrides=own)

    def memories(self) -> Sequence[tuple[object, ...]]:
        """The agents' first memories, in the form that :meth:`MemoryBank.add_many` takes."""
        return ()

    def personas(self) -> Mapping[str, Persona]:
        """Who the agents are; nobody has a persona by default."""
        return {}

    def loop(self, bank: MemoryBank) -> Ticks:
        """A loop on the bank, at its beginning or where the last loop stopped."""
        world = self.world()
        loop = Loop(bank, world, self.policy(world), list(self.agents), personas=self.personas())
        loop.begin(self.memories())
        return loop

    def places(self) -> list[Path]:
        """The folders of the user's own code."""
        return [Path(file_of(type(self))).parent]

    def own_files(self) -> set[str]:
        """The files of the user's world and policy."""
        world = self.world()
        return files_of(world) | files_of(self.policy(world))

    def story(self, anew: Iterable[int] = ()) -> Story:
        """A run in memory; after each tick in ``anew``, the world and the policy are made anew."""
        breaks = set(anew)
        with MemoryBank.ephemeral(self.bank_settings()) as bank:
            loop = self.loop(bank)
            for tick in range(1, self.ticks + 1):
                loop.tick()
                if tick in breaks:
                    loop = self.loop(bank)
            return story_of(bank)

    def shared_draws(self) -> str:
        """A warning, if the world draws for several agents from its one stream in a tick."""
        with MemoryBank.ephemeral(self.bank_settings()) as bank:
            world = SharedDraws(self.world())
            policy, agents = self.policy(world.world), list(self.agents)
            loop = Loop(bank, world, policy, agents, personas=self.personas())
            loop.begin(self.memories())
            for _ in range(self.ticks):
                loop.tick()
                if len(world.drew) > 1:
                    return world.warning(bank.tick)
                world.drew.clear()
        return ""

    def watched_story(self) -> tuple[Story, list[str]]:
        """A run, and the lines of the user's code that neither seed nor settings rule."""
        places, files = self.places(), set[str]()

        def is_own(name: str) -> bool:
            path = Path(name)
            if name in files:
                return True
            ours = path.is_relative_to(_PACKAGE) or "site-packages" in path.parts
            return not ours and any(map(path.is_relative_to, places))

        with watched(is_own, environment=True) as found:
            files |= self.own_files()
            told = self.story()
        return told, [
            f"{_shown(file, places)}, line {line}: {what}" for file, line, what in sorted(found)
        ]

    def told(self, trial: str, hash_seed: int = 1, **arguments: Any) -> Any:
        """What a trial gives in a process of its own; it is made once."""
        key = repr((trial, hash_seed, arguments))
        if key not in self._told:
            self._told[key] = elsewhere(self, trial, hash_seed, **arguments)
        return self._told[key]


class RepeatLaws(Play):
    """What holds for all that can be played again: nothing but the seed decides."""

    @law
    def test_no_line_reads_a_clock_or_draws_unseeded_numbers(self) -> None:
        """no call of a clock, of the environment or of unseeded randomness in its code"""
        lines = self.told("watched_story", 2)[1]
        must(not lines, "\n".join(lines))

    @law
    def test_the_same_seed_gives_the_same_run(self) -> None:
        """the same seed twice in one process"""
        first, second, _ = self._twice()
        _same(first, second, "the second run of the same seed in one process is another")

    @law
    def test_another_hash_seed_gives_the_same_run(self) -> None:
        """another PYTHONHASHSEED, in another process"""
        _same(
            self._first(),
            self.told("watched_story", 2)[0],
            "with another PYTHONHASHSEED, in another process, the run is another: does the order "
            "of a set decide?",
        )

    def two_stories_and_one_anew(self) -> list[Story]:
        """Two runs in this process, and one whose world is made anew again and again."""
        return [self.story(), self.story(), self.story(self._breaks())]

    def _twice(self) -> tuple[Story, Story, Story]:
        first, second, anew = self.told("two_stories_and_one_anew")
        return first, second, anew

    def _first(self) -> Story:
        """A run of the seed, with which others can be compared."""
        first, second, _ = self._twice()
        if difference(first, second) is not None:
            raise SkipTest("no two runs are the same")
        return first

    def _breaks(self) -> list[int]:
        """Some ticks in which a world is made anew, drawn from the seed."""
        settings = self.bank_settings()
        ticks = range(1, self.ticks)
        streams = Streams(settings.seed, ())
        streams.begin(0)
        return sorted(streams.world.sample(ticks, min(5, len(ticks))))


class WorldLaws(RepeatLaws):
    """The laws of a world: ``class TestMine(WorldLaws)`` with ``make``, and ``make_policy``.

    The class is at the top of a module, because other processes import it.
    """

    def make(self) -> World:
        """A new world, before its setup."""
        raise NotImplementedError(f"{type(self).__name__} needs make(self), which gives a world")

    def make_policy(self, world: World) -> Policy:
        """A new policy; without this method, the world's own rules."""
        rules = getattr(world, "rules", None)
        if rules is None:
            raise ConfigError(
                f"{type(world).__name__} has no rules()", hint="give the laws a make_policy()"
            )
        policy: Policy = rules()
        return policy

    def world(self) -> World:
        """:meth:`make`."""
        return self.make()

    def policy(self, world: World) -> Policy:
        """:meth:`make_policy`."""
        return self.make_policy(world)

    @law
    def test_a_world_made_anew_from_its_state_goes_on_alike(self) -> None:
        """get_state() and set_state() of a new world after some ticks"""
        first, ticks = self._first(), ", ".join(map(str, self._breaks()))
        _same(
            first,
            self._twice()[2],
            f"with the world made anew by set_state() after ticks {ticks}, the run is another: "
            "does get_state() leave something out?",
        )

    @law
    def test_a_run_that_was_killed_goes_on_alike(self) -> None:
        """killed with SIGKILL after a tick, and resumed"""
        first, breaks = self._first(), self._breaks()
        begun, resumed = self._killed(after=breaks[len(breaks) // 2])
        _same(
            first,
            resumed,
            f"killed with SIGKILL after tick {begun} and resumed, the run is another: does "
            "get_state() leave something out?",
        )

    def run_to_be_killed(self, place: str) -> None:
        """A run in a folder, which waits before its last tick."""
        with MemoryBank.open(place, self.bank_settings()) as bank:
            loop = self.loop(bank)
            for _ in range(self.ticks - 1):
                print(loop.tick()["tick"], file=sys.__stdout__, flush=True)
            sys.stdin.readline()

    def resumed(self, place: str) -> tuple[int, Story]:
        """The run that was killed: where it began again, and its story up to its end."""
        with MemoryBank.open(place, self.bank_settings()) as bank:
            loop, begun = self.loop(bank), bank.tick
            while bank.tick < self.ticks:
                loop.tick()
            return begun, story_of(bank)

    def _killed(self, after: int) -> tuple[int, Story]:
        """Kill a run in a folder once ``after`` is over, and go on with it in another process."""
        with TemporaryFolder("laws") as scratch:
            place = str(Path(scratch, "bank"))
            with started(self, "run_to_be_killed", Path(scratch), place=place) as child:
                for line in child.stdout or ():
                    if int(line) >= after:
                        child.kill()
                        break
            must(child.returncode == -signal.SIGKILL, "the run ended before it was killed")
            begun, story = elsewhere(self, "resumed", place=place)
        return begun, story


def _same(first: Story, other: Story, problem: str) -> None:
    found = difference(first, other)
    must(found is None, f"{problem} ({found})")


def files_of(made: object) -> set[str]:
    """The files of a function, or of the methods of a class or an object."""
    parts = made.__mro__ if isinstance(made, type) else type(made).__mro__
    methods = [made, *(each for part in parts for each in vars(part).values())]
    return {each.__code__.co_filename for each in methods if hasattr(each, "__code__")}


def _shown(file: str, places: Sequence[Path]) -> Path:
    path = Path(file)
    near = [place for place in places if path.is_relative_to(place)]
    return path.relative_to(near[0]) if near else path


def story_of(bank: MemoryBank) -> Story:
    """The story of the run in a bank."""
    fields = ("tick", "metrics", "state_hash")
    return {
        "ticks": [{key: row[key] for key in fields} for row, _ in ticks_of(bank).records()],
        "memories": {
            agent: [[each.created_tick, each.content] for each in bank.agent(agent).all()]
            for agent in bank.agents()
        },
        "world": ticks_of(bank).state()["world"],
    }


def difference(first: Story, other: Story) -> str | None:
    """Where two stories part: the first tick, with a metric or a memory; or the last world."""
    for one, two in zip(first["ticks"], other["ticks"], strict=True):
        if one != two:
            what = unlike("metric ", one["metrics"], two["metrics"])
            memory = _unlike_memory(first["memories"], other["memories"], one["tick"])
            return f"tick {one['tick']}: {memory or what or 'the memories have other places'}"
    where = unlike("", first["world"], other["world"])
    return f"after the last tick, the state of the world: {where}" if where else None


def _unlike_memory(one: dict[str, Any], two: dict[str, Any], tick: int) -> str | None:
    for agent in one:
        texts = [
            [text for made, text in memories.get(agent, ()) if made == tick]
            for memories in (one, two)
        ]
        if texts[0] != texts[1]:
            return unlike(f"memory of {agent} ", *texts)
    return None


def unlike(where: str, one: Any, two: Any) -> str | None:
    """The first place in which two JSON values differ, and what is there."""
    if type(one) is type(two) and isinstance(one, dict | list) and len(one) == len(two):
        keys = one if isinstance(one, dict) else range(len(one))
        for key in keys:
            if isinstance(one, dict) and key not in two:
                return f"{where}{key} is missing in one"
            found = unlike(
                f"{where}{key}" if not where or where[-1] == " " else f"{where}.{key}",
                one[key],
                two[key],
            )
            if found:
                return found
        return None
    return None if one == two else f"{where} is {', and '.join(_near(repr(one), repr(two)))}"


def _near(*texts: str) -> list[str]:
    """The texts; of long ones, the part in which they differ."""
    if max(map(len, texts)) <= _LONGEST:
        return list(texts)
    same = takewhile(lambda each: len(set(each)) == 1, zip(*texts, strict=False))
    start = max(0, sum(1 for _ in same) - _LONGEST // 2)
    return [
        ("…" if start else "")
        + each[start : start + _LONGEST]
        + ("…" if len(each) > start + _LONGEST else "")
        for each in texts
    ]


class SharedDraws:
    """A world that notes for whom it draws from the generator of its ``setup``."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.drew: dict[str, str] = {}
        """The method that drew, by agent, since somebody cleared it."""

    def setup(
        self,
        rng: WorldRandom,
        agent_ids: Sequence[str],
        personas: Mapping[str, Persona] = NO_ARGUMENTS,
    ) -> None:
        """Set the world up, and keep its generator."""
        self._rng = rng
        set_up(self.world, rng, agent_ids, personas)

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
