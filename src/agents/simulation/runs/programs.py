"""Programs of the user as runs: a Mesa model, or anything that a function makes and that steps.

A program keeps its state in its own objects. So nothing but the program can bring it to a tick: it
is made again with the same seed and steps as often, each step is compared with the record, and from
there on it goes on with the run's own bank. A program that has ``get_state`` and ``set_state`` is
brought there by these.
"""

import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random, SystemRandom
from typing import Any, NamedTuple, final

import numpy as np

from ...bank import history
from ...bank.memory_bank import MemoryBank
from ...config.load import load_settings
from ...config.settings import Settings
from ...errors import RunError, SimulationError, TierMemError
from ...memory.records import Hits
from ...storage.files import TemporaryFolder
from ..kept_ticks import ticks_of
from ..protocols import Policy, World
from ..tick.branch_rules import BranchRules
from ..tick.loop import Loop
from ..tick.user_code import check_state, where_in
from ..worlds.outside import Outside
from .driven_run import OutsideRun
from .edits import begin_branch
from .model_memory import ModelMemory
from .personas import personas_of
from .recorded import Recorded
from .scenario import PROGRAM, function_of, given_to

PAST = "past"
"""In ``run.json`` of a branched program: for each branch its tick, the settings before it, and the
edits with which it began.
"""


@final
class ProgramMemories:
    """The memories of a program's agents: the argument ``memories`` of the function that makes it.

    ``memories["alice"]`` is the memory of an agent in the program's steps: what it remembers in a
    step is stored when the step ends, and is found from the next step on.
    """

    def __init__(self, run: OutsideRun) -> None:
        """TierMem makes one for a program."""
        self._run = run
        self._agents: dict[str, ModelMemory] = {}

    def __repr__(self) -> str:
        return f"<ProgramMemories of {len(self._agents)} agents: tick {self.tick}>"

    def __getitem__(self, agent_id: str) -> ModelMemory:
        if agent_id not in self._agents:
            memory = self._agents[agent_id] = ModelMemory(self._run, lambda: agent_id)
            _ = memory.agent_id  # the run knows the agent from now on
        return self._agents[agent_id]

    def recall(self, questions: Mapping[str, str]) -> dict[str, Hits]:
        """What agents have in mind for their questions, by agent: one search for all of them."""
        for agent in questions:
            _ = self[agent]
        self._run.recall(questions.items())
        return {agent: self._run.given(agent) for agent in questions}

    @property
    def bank(self) -> MemoryBank:
        """The bank of the run. What is written to it by itself is found in the same step."""
        return self._run.bank

    @property
    def tick(self) -> int:
        """How many steps were recorded; inside a step, the number of this one."""
        return self._run.bank.tick


class _Past(NamedTuple):
    """What holds for a branched program before the branch, and with what it begins."""

    until: int
    settings: Settings
    edits: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> "_Past":
        """From ``run.json``."""
        return cls(kept["until"], load_settings(base=kept["settings"]), kept["edits"])


@final
class ProgramLoop:
    """Makes a program and lets it step; each step is a tick of a run."""

    def __init__(
        self,
        bank: MemoryBank,
        world: Outside,
        settings: Settings,
        about: Mapping[str, Any],
        folder: Path,
        places: Sequence[Path],
    ) -> None:
        """``folder`` is the run's, in which its ticks are recorded."""
        self._bank = bank
        self._world = world
        self._folder = folder
        self._places = places
        self._settings = settings
        self._past = [_Past.read(kept) for kept in about.get(PAST, ())]
        self._rules = BranchRules(about.get("rules", ()))
        self._make = function_of("simulation.model", str(settings.simulation.model), places)
        self._name = str(settings.simulation.model).partition(":")[2]
        self._future = ""
        self.is_spent = False
        """Whether a step failed: the program is not what it was."""

    def begin(self, memories: Sequence[tuple[object, ...]] = ()) -> list[str]:
        """Make the program; on a bank that has ticks, bring it to the last one."""
        kept = ticks_of(self._bank).last_tick()
        if kept is None:
            self._first_tick()
        elif kept.has_state and "program" in (state := kept.state()["world"]):
            self._take_state(state)
        else:
            self._step_to(kept.tick)
        return []

    def tick(self) -> dict[str, Any]:
        """Let the program step, and give the tick's record."""
        if self.is_spent:
            raise SimulationError(
                "a step of this program failed, and the program is not what it was",
                hint="open the run again",
            )
        self.is_spent = True
        tick = self._bank.tick + 1
        calls, future = self._rules.calls(tick), self._rules.future(tick)
        if future != self._future:
            self._future = future
            self._draw_anew(f"tiermem\0{self._settings.seed}\0{future}")
        with self._bank.transaction():
            for name in calls:
                self._call(self._function(name), tick)
            self._step(tick)
            if self._bank.tick != tick:
                made = self._bank.tick - tick + 1
                raise SimulationError(
                    f"step {tick} of {self._name} made {made} ticks in its bank",
                    hint="write `with self.memories.step():` once in step(), and never advance the "
                    "bank",
                )
        self.is_spent = False
        self._world.set_state(self._run.state)
        return self._run.record

    # The program: made, stepped, changed

    def _first_tick(self) -> None:
        with self._bank.transaction():
            self._make_program()
            with self._user_code("could not be recorded", 0):
                self._run.record_beginning()
        self._world.set_state(self._run.state)

    def _make_program(self) -> None:
        """Make the program; its generator has come to its first ``yield``."""
        run = self._run = OutsideRun(None, self._bank, dict)
        run.rules = self._rules
        self._future = ""
        memories = ProgramMemories(run)
        given = given_to(self._make, self._bank.settings.seed, self._bank, memories)
        given |= self._first_settings().simulation.world_options
        with run.lent(), self._user_code("could not be made", 0):
            self._program = self._make(**given)
        if inspect.isgenerator(self._program):
            self._said: Mapping[str, object] = {}
            run.measure(lambda: self._said)
            self._next(0)
        elif not callable(getattr(self._program, "step", None)):
            raise SimulationError(
                f"{self._name} gave {self._program!r:.60}, which has no step()", hint=PROGRAM
            )
        elif not run.is_taken and callable(getattr(self._program, "metrics", None)):
            run.measure(self._measured)
        if all(callable(getattr(self._program, name, None)) for name in ("get_state", "set_state")):
            run.keep_state(self._state)

    def _measured(self) -> Mapping[str, object]:
        with self._user_code("could not say its metrics", self._bank.tick):
            said = self._program.metrics()
        if not isinstance(said, Mapping):
            raise SimulationError(
                f"{self._name}.metrics() gave {said!r:.60}", hint="give {name: number}"
            )
        return said

    def _state(self) -> object:
        with self._user_code("could not say its state", self._bank.tick):
            state = self._program.get_state()
        try:
            check_state(state)
            json.dumps(state, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise SimulationError(
                f"{self._name}.get_state() gave what is not JSON: {error}",
                hint="give lists, dicts, texts and numbers",
            ) from error
        return state

    def _first_settings(self) -> Settings:
        return self._past[0].settings if self._past else self._settings

    def _step(self, tick: int) -> None:
        if self._run.is_taken:  # it is a tick by itself
            with self._user_code("failed", tick):
                self._program.step()
            return
        with self._run.tick():
            if inspect.isgenerator(self._program):
                self._next(tick)
                return
            with self._user_code("failed", tick):
                self._program.step()

    def _next(self, tick: int) -> None:
        with self._user_code("failed", tick):
            said = next(self._program, _OVER)
        if said is _OVER:
            raise SimulationError(
                f"{self._name} ended before its step {tick}",
                hint="let it yield after each step for ever, or give the run fewer ticks",
            )
        if said is not None and not isinstance(said, Mapping):
            raise SimulationError(
                f"{self._name} yielded {said!r:.60} after step {tick}",
                hint="yield nothing, or the metrics of the step: {name: number}",
            )
        self._said = said or {}

    def _function(self, name: str) -> Any:
        """A function that changes the program; of the program's own module, if it is there."""
        module, _, own = name.partition(":")
        if module == str(self._settings.simulation.model).partition(":")[0]:
            return _namespace(self._make).get(own) or function_of("a call", name, self._places)
        return function_of("a call", name, self._places)

    def _call(self, function: Callable[[Any], object], tick: int) -> None:
        with self._user_code(f"could not be changed by {_named(function)}", tick):
            function(self._program)

    def _draw_anew(self, key: str) -> None:
        """Let the program have another chance from now on."""
        own = getattr(self._program, "reseed", None)
        if callable(own):
            with self._user_code("could not be seeded anew", self._bank.tick):
                own(_number(key, "reseed"))
            return
        found = list(_generators(self._program))
        if not found:
            raise RunError(
                f"{self._name} has no chance that could fall out otherwise: no generator "
                "(random.Random or NumPy's) is an attribute of it",
                hint="give it a method reseed(number), or compare seeds in place of futures",
            )
        for name, generator in found:
            if isinstance(generator, Random):
                generator.seed(_number(key, name))
            elif isinstance(generator, np.random.RandomState):
                generator.seed(_number(key, name) % 2**32)
            else:
                kind: Any = type(generator.bit_generator)
                generator.bit_generator.state = kind(_number(key, name)).state

    @contextmanager
    def _user_code(self, what: str, tick: int) -> Iterator[None]:
        where = f"{self._name} {what} {f'in step {tick}' if tick else 'before its first step'}"
        try:
            yield
        except TierMemError as error:
            raise SimulationError(f"{where}: {error.why}", hint=error.hint) from error
        except Exception as error:  # a program may raise anything
            raise SimulationError(
                f"{where}: {type(error).__name__}: {error}{where_in(error)}"
            ) from error

    # To a tick that the run has

    def _take_state(self, state: Mapping[str, Any]) -> None:
        """Make the program, and give it the state that it had."""
        last = ticks_of(self._bank).last_tick()
        record = next(ticks_of(self._bank).records(self._bank.tick - 1))[0] if last else {}
        with self._apart(MemoryBank.ephemeral(self._first_settings())):
            self._first_tick()
        with self._user_code("could not take its state", self._bank.tick):
            self._program.set_state(state["program"])
        self._run.go_on(record, state)
        self._future = self._rules.future(self._bank.tick)
        self._world.set_state(self._run.state)

    def _step_to(self, last: int) -> None:
        """Make the program, and let it step as it did, on a bank of its own."""
        recorded = Recorded(self._folder)
        with self._apart(recorded.first_bank(self._first_settings())):
            self._first_tick()
            self._compare(recorded, 0)
            for tick in range(1, last + 1):
                self._branch_at(tick - 1, recorded)
                self.tick()
                self._compare(recorded, tick)

    def _branch_at(self, tick: int, recorded: Recorded) -> None:
        """Where the run branched after this tick: do what the branch began with."""
        for place, branched in enumerate(self._past, start=1):
            if branched.until != tick:
                continue
            after = [*(each.settings for each in self._past[place:]), self._settings][0]
            with TemporaryFolder("branch") as scratch:
                file, folder = Path(scratch, "before.tmck"), Path(scratch, "bank")
                self._bank.checkpoint(file)
                history.restore(file, folder).release()
                begin_branch(folder, after, branched.edits)
                then = MemoryBank.at(folder, None, after)
            recorded.give_vectors(then)
            self._bank.engine.exchange(then.engine)
            then.close()

    @contextmanager
    def _apart(self, other: MemoryBank) -> Iterator[None]:
        """Inside, whoever holds the run's bank has ``other``."""
        own, others = self._bank.engine, other.engine
        own.exchange(others)
        try:
            yield
        finally:
            own.exchange(others)
            other.close()

    def _compare(self, recorded: Recorded, tick: int) -> None:
        found = recorded.differs(self._bank, tick) if tick in recorded else None
        if found is not None:
            raise RunError(
                f"{self._name} made again is not what it was: {found}",
                hint="something but the seed decides: a clock, unseeded randomness, the order of a "
                "set, the environment, or the code has changed; tiermem world check finds which",
            )


_OVER = object()


def loop_of(
    bank: MemoryBank,
    world: World,
    policy: Policy,
    settings: Settings,
    about: Mapping[str, Any],
    folder: Path,
    places: Sequence[Path],
) -> Loop | ProgramLoop:
    """What makes the ticks of a run in one bank: a world's loop, or a program's."""
    if isinstance(world, Outside) and settings.simulation.model is not None:
        return ProgramLoop(bank, world, settings, about, folder, places)
    rules = BranchRules(about.get("rules", ()))
    personas = personas_of(settings, *places)
    return Loop(bank, world, policy, settings.simulation.agent_ids(), rules, personas)


def _generators(program: Any) -> Iterator[tuple[str, Any]]:
    """The generators that a program has as attributes, or in the variables of its function."""
    own: Mapping[str, Any] = getattr(program, "__dict__", {})
    if inspect.isgenerator(program):
        own = inspect.getgeneratorlocals(program)
    seen: set[int] = set()
    for name in sorted(own):
        value = own[name]
        is_random = isinstance(value, Random) and not isinstance(value, SystemRandom)
        is_random |= isinstance(value, np.random.Generator | np.random.RandomState)
        if is_random and id(value) not in seen:
            seen.add(id(value))
            yield name, value


def _namespace(make: Any) -> Mapping[str, Any]:
    """The names of the module in which a function, or a method of a class, was made."""
    made = [make, *vars(make).values()] if inspect.isclass(make) else [make]
    return next((each.__globals__ for each in made if hasattr(each, "__globals__")), {})


def _number(key: str, name: str) -> int:
    digest = hashlib.sha256(f"{key}\0{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % sys.maxsize


def _named(function: Any) -> str:
    return getattr(function, "__name__", repr(function))
