"""A run whose ticks a program of the user makes: an agent-based model of another framework.

The program says when a tick begins and ends, which agents there are, what they ask and what they
remember. As in every run, one commit holds everything of a tick, and what is remembered in a tick
is found from the next tick on.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, final
from weakref import WeakValueDictionary

from ...bank.memory_bank import MemoryBank
from ...config.load import load_settings
from ...config.settings import Settings
from ...errors import BankClosed, InvalidInput, RunError, SimulationError
from ...memory.records import Hits, Memory
from ...memory.requests import check_agent_id, check_new, plain_scalar
from ...memory.sources import source_of
from ...storage import formats
from ...version import __version__
from ..protocols import Action, Answer, Ask, Observation, Remark
from ..tick.branch_rules import NO_RULES, BranchRules
from ..tick.decision_log import DONE, FAILED, DecisionLog
from ..tick.given import given_hits
from ..tick.minds import do_what_is_due, record_tick, tick_counts
from ..tick.remember import Item, Recorder
from ..tick.user_code import check_number
from ..worlds.outside import Outside
from .compare import flat
from .folder import make_folder
from .outputs import summary_of
from .scenario import check_repeatable

_open = WeakValueDictionary[Path, "OutsideRun"]()
"""The runs of this process that are open, by their folder."""

_lent: ContextVar["OutsideRun | None"] = ContextVar("_lent", default=None)
"""The run of a program that TierMem makes, while it is made: it records there."""
_OF_RUNS = ("seed", "simulation", "checkpoint", "storage", "store")
"""The sections of the settings that a program does not know when it is made again."""


class _Done(NamedTuple):
    action: Action
    result: int
    row: Item | None
    """The memory that it becomes."""


class _AgentTick:
    """What one agent sees and does in a tick."""

    def __init__(self) -> None:
        self.observed: list[Item] = []
        self.deeds: list[_Done] = []
        self.query: str | None = None
        self.given = Hits()

    def rows(self) -> list[Item]:
        """The new memories, in the order in which the log counts them."""
        return [*self.observed, *(deed.row for deed in self.deeds if deed.row is not None)]


@final
class OutsideRun:
    """An open run of a program. :meth:`create` makes one."""

    def __init__(
        self, folder: Path | None, bank: MemoryBank, metrics: Callable[[], Mapping[str, object]]
    ) -> None:
        """Callers use :meth:`create`."""
        self.summary: dict[str, Any] = {}
        """What the run came to, once it is closed."""
        self.folder = folder
        self.bank = bank
        self.record: dict[str, Any] = {}
        """The record of the last tick."""
        self.rules: BranchRules = NO_RULES
        """What is kept from agents."""
        self.state: dict[str, Any] = {}
        """The agents and the metrics after the last tick, as the run keeps them."""
        self.is_lent = False
        """Whether somebody else made the run, and ends it."""
        self.is_taken = False
        """Whether a program that was lent the run makes its ticks itself."""
        self._metrics = metrics
        self._own_state: Callable[[], Any] | None = None
        self._agents: dict[str, None] = {}
        self._unclaimed: set[str] = set()
        """Agents whom a lent run knows, and whom the program has not named itself."""
        self._doings: dict[str, _AgentTick] = {}
        self._answers: list[tuple[str, Answer]] = []
        self._is_inside = self._has_failed = False
        self._unused: Tick | None = None

    @classmethod
    def create(
        cls,
        folder: Path | None,
        settings: Settings,
        metrics: Callable[[], Mapping[str, object]],
        *,
        replace: bool = False,
    ) -> Self:
        """A new run in a folder that does not exist yet, or in memory alone.

        ``metrics`` gives the numbers that describe the program's world after a tick. With
        ``replace``, the new run replaces a run that has this folder. A program that TierMem makes
        gets the run that it was lent.
        """
        check_repeatable(settings)
        lent = _lent.get()
        if isinstance(lent, cls):
            lent.take(settings, metrics)
            return lent
        if folder is None:
            return cls(None, MemoryBank.ephemeral(settings), metrics)
        folder = folder.absolute()
        if folder.exists() and not replace:
            raise RunError(
                f"{folder} exists already",
                hint="name another folder, or give replace=True to lose the run that is in it",
            )
        if former := _open.get(folder):
            former.leave()
        about = {"format": formats.RUN, "tiermem": __version__, "scenario": None, "parent": None}

        def fill(new: Path) -> None:
            MemoryBank.open(new / "bank", settings).close(sync=False)

        remedy = "name another folder"
        make_folder(folder, settings, about, {}, force=replace, fill=fill, remedy=remedy)
        made = cls(folder, MemoryBank.open(folder / "bank", settings), metrics)
        _open[folder] = made
        return made

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Inside, a program that makes its own run gets this one."""
        self.is_lent = True
        token = _lent.set(self)
        try:
            yield
        finally:
            _lent.reset(token)

    def take(self, settings: Settings, metrics: Callable[[], Mapping[str, object]]) -> None:
        """Let a program have the run that it was lent."""
        if self.is_taken:
            raise InvalidInput("a program has one run", hint="make one Memories in it, not two")
        own, run, usual = (
            flat(each.to_dict()) for each in (settings, self.bank.settings, load_settings())
        )
        for name, value in own.items():
            if value not in (usual.get(name), run.get(name)) and not name.startswith(_OF_RUNS):
                raise InvalidInput(
                    f"the program sets {name} to {value!r:.60}, and its run has "
                    f"{run.get(name)!r:.60}",
                    hint="give the settings of its memories to the run: in the scenario, or to "
                    "tiermem.experiment()",
                )
        self.is_taken, self._metrics = True, metrics

    def measure(self, metrics: Callable[[], Mapping[str, object]]) -> None:
        """Record these numbers after each tick."""
        self._metrics = metrics

    def keep_state(self, state: Callable[[], Any]) -> None:
        """Keep after each tick the program's own state, as JSON."""
        self._own_state = state

    # Agents

    def welcome(self, agent_id: str) -> None:
        """From now on, there is this agent; :class:`InvalidInput` if there is one already."""
        if check_agent_id(agent_id) in self._unclaimed:
            self._unclaimed.remove(agent_id)
            return
        if agent_id in self._agents:
            raise InvalidInput(
                f"there is an agent {agent_id!r} already", hint="give each agent a name of its own"
            )
        self._agents[agent_id] = None

    def observe(self, agent_id: str, row: Item) -> None:
        """An agent sees something, which becomes a memory.

        What it sees after it did something is told among what it did: it may have come of that.
        """
        doing, kept = self._of(agent_id), self._checked(row)
        if doing.deeds:
            doing.deeds.append(_Done(Action("observe"), DONE, kept))
        else:
            doing.observed.append(kept)

    def do(
        self, agent_id: str, action: Action, row: Item | None = None, *, success: bool = True
    ) -> None:
        """An agent does something; ``row`` is the memory that it becomes."""
        kept = None if row is None else self._checked(row)
        own = Action(action.name, {key: _copied(each) for key, each in action.arguments.items()})
        self._of(agent_id).deeds.append(_Done(own, DONE if success else FAILED, kept))

    def recall(self, questions: Iterable[tuple[str, str]]) -> None:
        """Give agents what they should have in mind for a query: one search for all of them."""
        self.check_inside("agents recall")
        asked, known = list(questions), set[str]()
        for agent, _ in asked:
            if self._of(agent).query is not None or agent in known:
                raise InvalidInput(
                    f"{agent} recalls twice in this tick", hint="use search() for more questions"
                )
            known.add(agent)
        for (agent, query), hits in zip(asked, self.bank.context_many(asked), strict=True):
            own = self._of(agent)
            own.query, own.given = query, hits

    def given(self, agent_id: str) -> Hits:
        """What an agent was given in this tick, or in the last one."""
        return self._of(agent_id).given

    def search(self, agent_id: str, query: str, limit: int | None = None) -> Hits:
        """What an agent finds. Inside a tick, it counts as a use, and is in the log."""
        memory = self.bank.agent(agent_id)
        if not self._is_inside:
            with self.bank.engine.observing():
                return memory.search(query, limit)
        hits = memory.search(query, limit)
        self._answers.append((agent_id, Answer(Ask(query, limit), hits)))
        return hits

    # Ticks

    def tick(self) -> "Tick":
        """One tick, as a block: ``with run.tick(): …``. An error undoes all of the tick."""
        if self._unused is not None:
            raise SimulationError(
                "the step before was begun and not done",
                hint="a step is a block: write `with self.memories.step():`",
            )
        self._unused = Tick(self)
        return self._unused

    def begin(self) -> AbstractContextManager[None]:
        """Begin a tick: its transaction, which is open; :class:`Tick` calls it."""
        self._unused = None
        if self._is_inside:
            raise SimulationError("a step is under way already", hint="end it first")
        if self._has_failed:
            raise SimulationError(
                "a step failed, and the model is not what it was",
                hint="make the model again, with the same seed",
            )
        if not self.record:
            self.record_beginning()
        transaction = self.bank.transaction()
        transaction.__enter__()
        self._is_inside = self._has_failed = True  # until the tick is committed
        for doing in self._doings.values():
            doing.query, doing.given = None, Hits()
        self.bank.advance(self.bank.tick + 1)
        return transaction

    def end(self) -> None:
        """Store what the agents remember, and record the tick; :class:`Tick` calls it."""
        metrics = self._numbers()
        if self.rules:
            self._keep_from_agents()
        agents = self._all_agents()
        doings = [self._doings.get(agent) or _AgentTick() for agent in agents]
        seen = list(map(_seen, doings))
        log = DecisionLog(seen, given_hits([doing.given for doing in doings]))
        for agent, answer in self._answers:
            log.asked(agent, answer)
        for agent, doing in self._doings.items():
            for action, result, row in doing.deeds:
                log.did(agent, action, result, born=row is not None)
        recorder = Recorder(self.bank)
        recorder.store(self._rows())
        log.repeated(recorder.repeated)
        do_what_is_due(self.bank)
        self._record(metrics, [doing.given for doing in doings if doing.query is not None], log)

    def done(self, *, failed: bool) -> None:
        """The tick is committed, or undone; :class:`Tick` calls it."""
        self._is_inside, self._has_failed = False, failed
        self._forget_doings()

    def check_inside(self, what: str) -> None:
        """Refuse ``what`` outside a tick."""
        if not self._is_inside:
            raise SimulationError(
                f"{what} inside a step", hint="write it inside `with self.memories.step():`"
            )

    def close(self) -> bool:
        """End the last tick, and close the bank; whether the run has results to be written.

        What agents remembered after the last tick becomes one more tick.
        """
        if self.is_lent or not self.bank.engine.is_open:
            return False
        if not self._has_failed:
            if not self.record:
                self.record_beginning()
            elif self._rows():
                with self.tick():
                    pass
        if self.folder is None:
            self.summary = summary_of(self.bank, self.bank.settings, Outside())
        self.leave()
        return self.folder is not None

    def leave(self) -> None:
        """Close the bank and write no results: ``tiermem report`` can write them later."""
        self.bank.close(sync=False)
        if self.folder is not None:
            _open.pop(self.folder, None)

    # Inside

    def _of(self, agent_id: str) -> _AgentTick:
        if agent_id not in self._agents:
            raise InvalidInput(f"there is no agent {agent_id!r:.60}")
        return self._doings.setdefault(agent_id, _AgentTick())

    def _checked(self, row: Item) -> Item:
        """The row as it is now: the program may change what it gave before the tick ends."""
        if not self.bank.engine.is_open:
            raise BankClosed("the memories of this model were closed", hint="make the model again")
        most = self.bank.settings.memory.max_content_bytes
        agent, content, tier, metadata, options = check_new(row, most)
        plain = None if metadata is None else dict(metadata)  # so that equal ones are shared
        return agent, content, None if options.keeps_tier else tier, plain, options

    def _rows(self) -> list[Item]:
        """What the agents remember of the tick so far."""
        return [row for doing in self._doings.values() for row in doing.rows()]

    def record_beginning(self) -> None:
        """Tick 0: the agents' first memories."""
        metrics = self._numbers()
        with self.bank.transaction():
            self.bank.add_many(self._rows())
            self._all_agents()
            self._record(metrics, (), None)
        self._forget_doings()

    def go_on(self, record: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Go on after a tick that the bank has; the program is as it was then."""
        self.record, self.state = dict(record), dict(state)
        self._unclaimed |= {*state["agents"]} - self._agents.keys()
        self._agents = dict.fromkeys(state["agents"])
        self._doings = {}

    def _all_agents(self) -> list[str]:
        """All agents that ever came, also those that wrote to the bank by themselves."""
        if self.is_lent and not self.is_taken:
            new = [agent for agent in self.bank.agents() if agent not in self._agents]
            self._agents |= dict.fromkeys(new)
            self._unclaimed.update(new)
        return list(self._agents)

    def _forget_doings(self) -> None:
        """Begin the next tick's notes; what the agents were given stays until then."""
        for doing in self._doings.values():
            doing.observed, doing.deeds = [], []
        self._answers = []

    def _keep_from_agents(self) -> None:
        """Let nothing become a memory that the rules keep from agents."""
        tick, rules = self.bank.tick, self.rules
        for agent, doing in self._doings.items():

            def is_kept_away(row: Item, agent: str = agent) -> bool:
                return rules.is_unsaid(agent, _remark(row), tick)

            doing.observed = [row for row in doing.observed if not is_kept_away(row)]
            doing.deeds = [
                deed._replace(row=None) if deed.row is not None and is_kept_away(deed.row) else deed
                for deed in doing.deeds
            ]
        if self.is_taken:
            return
        for name in self.bank.agents():  # what a program wrote to the bank by itself
            agent_memory = self.bank.agent(name)
            for memory in agent_memory.all():
                if memory.created_tick == tick and rules.is_unsaid(name, _said(memory), tick):
                    agent_memory.unpin(memory.id)
                    agent_memory.forget(memory.id)

    def _record(
        self, metrics: Mapping[str, float], memories: Sequence[Hits], log: DecisionLog | None
    ) -> None:
        agents = list(self._agents)  # all that ever came: the log has a place for each
        counts = {**tick_counts(self.bank, memories), "agents": len(agents)}
        self.state = {"agents": agents, "metrics": metrics}
        if self._own_state is not None:
            self.state["program"] = self._own_state()
        state = {"world": self.state, "errors": {}}
        self.record = record_tick(self.bank, counts, metrics, state, log)

    def _numbers(self) -> dict[str, float]:
        """The program's metrics. To give them, it may welcome new agents first."""
        numbers: dict[str, float] = {}
        for name, value in self._metrics().items():
            try:
                numbers[str(name)] = check_number(value)
            except (TypeError, ValueError) as error:
                raise SimulationError(f"the metric {name} can't be kept: {error}") from None
        return numbers


class Tick:
    """A tick of a program's run, as a block."""

    def __init__(self, run: OutsideRun) -> None:
        self._run = run

    def __enter__(self) -> None:
        self._transaction = self._run.begin()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        failed = True
        try:
            if error is None:
                try:
                    self._run.end()
                except BaseException as own:
                    self._transaction.__exit__(type(own), own, own.__traceback__)
                    raise
            self._transaction.__exit__(kind, error, trace)
            failed = error is not None
        finally:
            self._run.done(failed=failed)


def _remark(row: Item) -> Remark:
    """A new memory as what somebody said, if its metadata says who."""
    return Remark(str(row[1]), metadata=row[3])


def _said(memory: Memory) -> Remark:
    """A memory as what somebody said or told."""
    told = source_of(memory.metadata)
    return Remark(memory.content, metadata=memory.metadata, speaker=told.teller if told else None)


def _copied(value: object) -> object:
    """A JSON value of the program's, which it can't change any more."""
    if isinstance(value, Mapping):
        return {key: _copied(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_copied, value))
    return plain_scalar(value)


def _seen(doing: _AgentTick) -> Observation:
    """What the log keeps of an agent's query, and of how many memories it saw."""
    text = str(doing.observed[0][1]) if doing.observed else ""
    heard = [Remark(str(row[1])) for row in doing.observed[1:]]
    return Observation(text, query=doing.query, heard=heard)
