"""A run: one folder with a bank, the exact settings, checkpoints and the results.

========================  ====================================================================
config.yaml               every setting of the run, without secrets
run.json                  what made the run, and which run it branched from
code/                     copies of the user's own modules
interviews/               what agents answered when they were asked, and what that cost
run.seal                  says who made the run, if it has code or uses a network
bank/                     the memories, and the record of each tick
checkpoints/              portable files to go back to
cassette.jsonl            the questions to an LLM and its answers, if the run has an LLM
metrics.parquet …         the results: see :mod:`tiermem.simulation.runs.outputs`
========================  ====================================================================

One commit to the bank's journal holds everything that a tick changes, also the world's state. So a
run that was killed stands at the end of its last whole tick, and goes on as if it never stopped.
"""

import contextlib
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from traceback import format_exception
from types import TracebackType
from typing import Any, Self, final

from ...bank import history
from ...bank.memory_bank import MemoryBank
from ...config.load import load_settings
from ...config.settings import Settings, is_left_out
from ...errors import (
    BankDamaged,
    BankNotFound,
    BankTooNew,
    BankTooOld,
    CheckpointDamaged,
    ConfigError,
    RunError,
    RunPaused,
    SimulationError,
    TickNotKept,
)
from ...memory.views import View
from ...storage import checkpoint, formats
from ...storage.files import TemporaryFolder, replace_file
from ...storage.store_sync import Progress
from ...version import __version__
from ..kept_ticks import ticks_of
from ..policies.cassette import Cassette
from ..policies.interview import asked
from ..protocols import Waiting
from ..reports.chart import Chart
from ..tick.branch_rules import BranchRules
from ..tick.loop import WorldLoop
from ..workers.cells import SHARDS, split
from ..workers.driver import Driver
from ..worlds.outside import check_inside
from . import outputs
from .above import above
from .budget import Purse, check_prices
from .charts import chart_of
from .driven_run import OutsideRun
from .folder import (
    Say,
    branched_from,
    changed_code,
    checkpoint_tick,
    checkpoints,
    make_folder,
    original_code,
    places_of_code,
    quiet,
    read_folder,
    remove_leftovers,
    write_settings,
)
from .frames import frame
from .interviews import Survey, survey
from .live import only_here
from .personas import personas_of
from .placement import (
    LOCAL,
    Placement,
    checkpoint_cells,
    engine_of,
    gather,
    is_over_workers,
    start_driver,
    without_engine,
)
from .plan import Plan, as_assignments
from .programs import ProgramLoop, loop_of
from .record import RunRecord
from .scenario import check_scenario, first_memories, make_policy, make_world
from .trust import check_run, is_trusted_run, seal_run
from .views import run_view
from .why import Decision, Life, decision, life

CHANGING = ("llm.budget", "llm.prices", "llm.patience", "llm.on_failure")
"""The settings that a run may change when it goes on: no decision depends on them alone."""


@final
class Run:
    """An open run. :meth:`create` and :meth:`open` give one."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        about: Mapping[str, Any],
        say: Say = quiet,
        engine: Placement = LOCAL,
        *,
        offline: bool = False,
    ) -> None:
        """Callers use :meth:`create` and :meth:`open`."""
        self.folder = folder
        self.settings = settings
        self.about = about
        self.progress: Progress | None = None
        """The run tells it how much of mem0's store is written."""
        self._say = say
        self._engine = engine
        self._bank: MemoryBank | None = None
        self._loop: WorldLoop | ProgramLoop | None = None
        """Runs the ticks; None while nothing does."""
        self._place: TemporaryFolder | None = None
        self._driver: Driver | None = None
        """What the loop lets do the agents' part of a tick, if they are in cells."""
        self._places = places_of_code(folder, about)
        self._purse = Purse(folder, settings, about)
        self._cassette = Cassette(folder / "cassette.jsonl", replay=offline)
        try:
            if engine.kind == "local" or not self._goes_on_over_workers():
                gather(folder, settings, about)
                self._bank = self._open_bank(say)
                self._start(say)
        except BaseException:
            self.close()
            raise

    # Making and opening

    @classmethod
    def create(
        cls,
        folder: Path,
        settings: Settings,
        *,
        scenario: Path | None = None,
        force: bool = False,
        engine: Placement | None = None,
        say: Say = quiet,
    ) -> Self:
        """A new run at tick 0, in a folder that does not exist yet.

        ``scenario`` is the folder of the scenario's file and of the user's own classes. With
        ``force``, the new run replaces a run that has this folder. ``engine`` is what runs the
        ticks, by default what the settings name; the results are the same.
        """
        engine = engine or engine_of(settings)
        settings = without_engine(settings)
        if settings.simulation.model is not None and engine.kind != "local":
            raise ConfigError(
                f"a program of your own runs in one process, not over {engine.kind}",
                hint="leave the engine out; a sweep runs many programs at once",
            )
        places = [scenario] if scenario else []
        code = check_scenario(settings, places)
        about = {
            "format": formats.RUN,
            "tiermem": __version__,
            "scenario": str(scenario.absolute()) if scenario else None,
            "parent": None,
            **({"engine": engine._asdict()} if engine.kind != "local" else {}),
        }

        def fill(new: Path) -> None:  # the folder gets its name when tick 0 is in it
            seal_run(new, settings)
            cls(new, settings, about).close(sync=False)

        make_folder(folder, settings, about, code, force=force, fill=fill)
        return cls(folder, settings, about, say, engine)

    @classmethod
    def open(
        cls,
        folder: Path,
        assignments: Iterable[str] = (),
        *,
        say: Say = quiet,
        offline: bool = False,
        engine: Placement | None = None,
        settings: Settings | None = None,
    ) -> Self:
        """The run in ``folder``, after its last whole tick; ``engine`` may be another than before.

        ``assignments`` give what ``config.yaml`` leaves out: secrets, and addresses with a
        password, as in ``store.config.password=…``. A password that the environment has for a
        database's own library (``PGPASSWORD``) need not be given. If the journal is lost or
        damaged, the run tells the user and goes on from the newest whole checkpoint. With
        ``offline``, no language model is asked: a prompt without a recorded answer is an error.
        ``settings`` stand in the place of those in the folder; the caller knows that they differ in
        secrets and in what a run may change, and in nothing else.
        """
        own, about = read_folder(folder)
        settings = settings or own
        texts = tuple(assignments)
        changed = settings != own
        for name, _, value in (text.partition("=") for text in texts):
            if name.startswith(CHANGING):
                changed = True
            elif not is_left_out(name, value):
                raise ConfigError(
                    f"--set {name}: a run keeps its settings; only secrets, which it does not "
                    "keep, are given again, and what its language model may cost and be away",
                    hint="to change others, branch it with: tiermem branch",
                )
        check_run(folder, settings)
        settings = without_engine(load_settings(settings, assignments=texts))
        check_prices(settings)
        engine = engine or engine_of(settings, about=about)
        run = cls(folder, settings, about, say, engine, offline=offline)
        if changed:
            _keep(folder, settings)
        return run

    def close(self, *, sync: bool = True) -> None:
        """Close the bank: see :meth:`MemoryBank.close`. End the workers, if there are some."""
        self._end_workers()
        if self._bank is not None:
            self._bank.close(sync=sync)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def tick(self) -> int:
        """The last whole tick."""
        return self.bank.tick if self._driver is None else self._driver.tick

    @property
    def driver(self) -> Driver | None:
        """The driver of the workers; None while the agents are in the bank."""
        return self._driver

    @property
    def bank(self) -> MemoryBank:
        """The run's bank. The agents of a run over workers come back to it."""
        if self._bank is None:
            self._end_workers()
            gather(self.folder, self.settings, self.about)
            self._cassette = Cassette(self._cassette.path, self._cassette.replay)  # it is longer
            self._bank = self._open_bank(self._say)
        return self._bank

    # Going on

    def advance(self, until: int) -> Iterator[dict[str, Any]]:
        """Run tick after tick, up to ``until``, and give the record of each tick.

        A caller may stop after any tick; the run keeps all ticks so far. :class:`RunPaused` comes
        between two ticks, and the same call goes on.
        """
        purse, is_after_tick = self._purse, False
        while self.tick < until:
            purse.check(is_after_tick=is_after_tick)
            try:
                record = self._next_tick()
            except RunError:  # no mistake of the world or the policy
                raise
            except RunPaused as error:
                self._undo_tick()
                raise RunPaused(error.why.rstrip("."), hint=self._way_on(error)) from error
            except SimulationError as error:
                with contextlib.suppress(OSError):
                    replace_file(self.folder / "error.txt", "".join(format_exception(error)))
                raise SimulationError(str(error).rstrip("."), hint=self._remedy()) from error
            if self.tick % self.settings.checkpoint.every == 0:
                self.checkpoint()
            is_after_tick = True
            yield record

    def checkpoint(self) -> Path:
        """Write a checkpoint of the last tick, unless it has one, and remove the oldest ones."""
        path = self.folder / "checkpoints" / f"tick-{self.tick:06}.tmck"
        if self._driver is not None:
            return checkpoint_cells(self._driver, self.folder, self.settings.checkpoint.keep)
        if not path.exists():
            extra = {
                "config": self.settings.to_dict(redact=True),
                "branched": branched_from(self.about),
                "cassette": self._cassette.position,
            }
            self.bank.checkpoint(path, extra, progress=self.progress)
        for old in checkpoints(self.folder)[: -self.settings.checkpoint.keep]:
            old.unlink(missing_ok=True)
        return path

    def finish(self, *, report: bool = True) -> dict[str, Any]:
        """Write a checkpoint and the results, and give the summary."""
        bank = self.bank
        self.checkpoint()
        parent = self.about.get("parent")
        came_from = parent and f"{Path(parent['run']).name}, tick {parent['tick']}"
        exchanges = list(self._cassette)
        summary = outputs.write(
            self.folder, bank, self.settings, self._world, exchanges,
            branched=came_from, report=report,
        )  # fmt: skip
        calls = summary.get("calls")
        if calls and not calls["usable"] and self.tick >= self.settings.simulation.ticks:
            why = next(iter(calls["problems"]), "nobody answered")
            raise RunError(
                f"none of the {calls['unusable']:,} replies of the language model was usable, so "
                f"no agent did anything; most often: {why}",
                hint=f"{self.folder / 'summary.json'} has the reasons and an example; give the "
                "model another prompt, or take another model",
            )
        return summary

    def summary(self) -> dict[str, Any]:
        """What the run came to so far; nothing is written."""
        exchanges = list(self._cassette)
        return outputs.summary_of(self.bank, self.settings, self._world, exchanges)

    def frame(self, table: str = "metrics") -> Any:
        """A table of the run so far, as a data frame of pandas or polars, whichever is installed.

        ``metrics`` and ``ticks`` have a row per tick, ``decisions`` one per agent and tick,
        ``calls`` one per call of a language model.
        """
        if table not in outputs.TABLES:
            raise RunError(
                f"a run has no table {table!r:.40}", hint=f"use {', '.join(outputs.TABLES)}"
            )
        record = RunRecord.of(self.bank, self.settings)
        return frame(outputs.parquet_of(table, record, list(self._cassette)))

    def decision(self, agent: str, tick: int) -> Decision:
        """What decided an agent's actions in a tick, and what came of them."""
        return decision(self.folder, agent, tick)

    def life(self, memory_id: str) -> Life:
        """Everything that happened to a memory: born, moved, given to its agent, gone."""
        return life(self.folder, memory_id)

    def ask(
        self,
        question: str,
        *,
        agent: str | Iterable[str] | None = None,
        tick: int | None = None,
        choice: Sequence[str] | None = None,
        scale: tuple[int, int] | None = None,
        number: bool = False,
        times: int = 1,
        assignments: Iterable[str] = (),
        offline: bool = False,
    ) -> Survey:
        """What agents answer as they were after a tick: see :func:`.interviews.survey`.

        The default is all agents after the last tick. The answer is one of ``choice``, a place on
        ``scale``, a ``number``, or a text. The run does not change: an agent that was asked does
        not remember it.
        """
        asks = asked(question, choice=choice, scale=scale, number=number)
        return survey(
            self.folder,
            [asks],
            ticks=[self.tick if tick is None else tick],
            agents=[agent] if isinstance(agent, str) else agent,
            times=times,
            settings=self.settings,
            assignments=assignments,
            offline=offline,
            say=self._say,
        )

    def extend(self, ticks: int) -> None:
        """Make the run ``ticks`` long."""
        check_inside(self.settings)
        if ticks < self.tick:
            raise RunError(
                f"{self.folder} has {self.tick} ticks already, more than {ticks}",
                hint="to go back, use --from-tick",
            )
        self.settings = load_settings(self.settings, overrides={"simulation": {"ticks": ticks}})
        _keep(self.folder, self.settings)

    def sync(self) -> None:
        """Bring mem0's store up to date, unless there is none, or ``storage.sync`` is manual."""
        settings = self.settings
        if settings.storage.sync != "manual" and settings.store.provider != "none":
            self.bank.sync(self.progress)

    # Questions of a person: see docs/howto/notebooks.md

    def resume(self, ticks: int | None = None, *, progress: bool | None = None) -> Self:
        """Run to the end, or make the run ``ticks`` long first, and write the results.

        ``progress`` is whether there is a bar; without it, there is one on a terminal and in a
        notebook. An error or Ctrl-C leaves the run after its last whole tick: it can go on.
        """
        if ticks is not None:
            self.extend(ticks)
        above("go_on")(self, progress)
        return self

    def keep(self, place: TemporaryFolder) -> Self:
        """The temporary folder in which the run is: it is removed with this object, or at exit."""
        self._place = place
        weakref.finalize(self, place.cleanup)
        return self

    @property
    def is_temporary(self) -> bool:
        """Whether the run's folder is removed with this object."""
        return self._place is not None

    @property
    def metrics(self) -> Any:
        """The world's metrics, a row per tick: see :meth:`frame`."""
        return self.frame("metrics")

    def plot(
        self,
        *metrics: str,
        beside: "Run | Iterable[Run] | Mapping[str, Run]" = (),
        name: str | None = None,
    ) -> Chart:
        """A chart of metrics over ticks, by default of all; other runs may stand beside this one.

        A run has the name of its folder; ``name`` is another for this one, and a mapping gives the
        others theirs.
        """
        others = [beside] if isinstance(beside, Run) else beside
        if not isinstance(others, Mapping):
            shown = [(other.folder.name, other) for other in others]
        else:
            shown = list(others.items())
        return chart_of([(name or self.folder.name, self), *shown], metrics)

    def why(self, agent: str, tick: int | None = None) -> Decision:
        """What decided an agent's actions in a tick, by default the last one."""
        return self.decision(agent, self.tick if tick is None else tick)

    def branch(self, at: int) -> Plan:
        """What if: a plan of a branch, which takes the changes after tick ``at`` and runs it."""
        return Plan(self, at)

    def effect(
        self,
        *,
        set: Mapping[str, Any] | str | Iterable[str] = (),  # noqa: A002 - as on the command line
        workers: int | None = 1,
        progress: bool | None = None,
        **arguments: Any,
    ) -> Any:
        """What a change did: the :class:`Effect` of :func:`tiermem.simulation.effects.effect`.

        The arguments are those of that function: ``at``, ``forget``, ``never_heard``, ``block``,
        ``pin``, ``call``, ``futures``, ``seeds``, ``metrics``, ``out``. ``set`` may be a mapping of
        settings, named as in :func:`tiermem.simulate`. ``workers`` are processes: a script that has
        more than one calls this below ``if __name__ == "__main__":``.
        """
        changed = as_assignments(set) if isinstance(set, Mapping) else set
        return above("effect")(self, progress, set=changed, workers=workers, **arguments)

    def inspect(self, *, height: int = 720, export: bool | None = None) -> Any:
        """Look at the run: the inspector's page, in a notebook below the cell.

        This process serves the page as long as there is this object; outside a notebook, the
        address is printed. With ``export``, the page is all in itself, and larger.
        """
        return above("inspect")(self, height, export)

    def __repr__(self) -> str:
        return self._view().text()

    def _repr_html_(self) -> str:
        return self._view().html()

    # Inside

    def _view(self) -> View:
        """What a person sees of the run; its agents stay where they are."""
        if self._driver is not None or self._bank is None or not self._bank.engine.is_open:
            state = "closed" if self._driver is None else f"tick {self.tick}, over workers"
            return View(f"{self.folder.name}: {state}", [str(self.folder)])
        where = f"in {self.folder}"
        if self.is_temporary:
            where = "in a temporary folder, which is removed with this object"
        return run_view(self.folder.name, where, self._bank, self.settings)

    def _open_bank(self, say: Say) -> MemoryBank:
        folder = self.folder / "bank"
        try:
            if not (folder / "journal.db").exists() and self._had_journal():
                raise BankNotFound(f"{folder} has lost its journal")
            bank = MemoryBank.open(folder, self.settings)
            try:
                ticks_of(bank).state()  # damage shows now, while a checkpoint can replace the bank
            except BankDamaged:
                bank.close(sync=False)
                raise
            return bank
        except (BankTooNew, BankTooOld):
            raise
        except (BankDamaged, BankNotFound) as error:
            say(str(error))
            restore_newest(self.folder, self.settings, self.about, None, say)
            return MemoryBank.open(folder, self.settings)

    def _had_journal(self) -> bool:
        """Whether the folder shows traces of a journal."""
        traces = ("checkpoints", "summary.json", "bank/journal.db-wal")
        return bool(self.about.get("parent")) or any(
            (self.folder / name).exists() for name in traces
        )

    def _start(self, say: Say) -> None:
        remove_leftovers(self.folder)
        self._world = make_world(self.settings, *self._places)
        policy = make_policy(self.settings, self._world, self._cassette, *self._places)
        if isinstance(policy, Waiting):
            policy.on_wait(self._say)
        loop = self._loop = loop_of(
            self.bank, self._world, policy, self.settings, self.about, self.folder, self._places
        )
        self._tell(loop.begin(first_memories(self.settings)))
        if self.tick and self.tick % self.settings.checkpoint.every == 0:
            self.checkpoint()  # a kill may have come between the tick and its checkpoint

    def _tell(self, differences: Iterable[str]) -> None:
        for each in differences:
            self._say(f"after set_state() the metric {each}: does get_state() leave something out?")
        for name in changed_code(self.folder / "code", self._places):
            self._say(
                f"{name} has changed since; the run goes on with its own copy in its folder code"
            )

    def _goes_on_over_workers(self) -> bool:
        """Start the workers of a run that has cells already; whether it has, and all of them."""
        if not is_over_workers(self.folder):
            return False
        try:
            self._begin_workers()
        except (BankDamaged, BankNotFound) as error:  # the log has all that a cell had
            self._say(f"{error}; the cells are made anew from the bank and the log")
            return False
        return True

    def _next_tick(self) -> dict[str, Any]:
        here = self._driver is None and self._engine.kind == "local"
        if here and self._loop is not None and self._loop.is_spent:
            self._undo_tick()
        loop: WorldLoop | ProgramLoop | None = self._loop
        if loop is None or (self._driver is None and self._engine.kind != "local"):
            loop = self._begin_workers()
        return loop.tick()

    def _begin_workers(self) -> WorldLoop:
        """Let the agents live in the workers' cells; the bank stays where it is until the end."""
        if self._bank is not None:
            agents = self.settings.simulation.agent_ids()
            split(self._bank, self.folder / SHARDS, agents, self._cassette)
            self._bank.engine.release()
            self._bank = self._loop = None  # the memories of all agents are in the cells now
        self._world = make_world(self.settings, *self._places)
        self._driver = start_driver(
            self.folder, self.settings, self._world, self._engine, self.about,
            offline=self._cassette.replay, say=self._say,
        )  # fmt: skip
        rules = BranchRules(self.about.get("rules", ()))
        agents, seed = self.settings.simulation.agent_ids(), self.settings.seed
        try:
            personas = personas_of(self.settings, *self._places)
            loop = WorldLoop(self._driver, self._world, agents, seed, rules, personas)
            self._loop = loop
            self._tell(loop.go_on() or ())
        except BaseException:
            self._end_workers()
            raise
        return loop

    def _end_workers(self) -> None:
        """End the workers, if there are some; their cells stay as they are."""
        if self._driver is not None:
            self._driver.close()
            self._driver = self._loop = None

    def _undo_tick(self) -> None:
        """Make world and policy anew as they were after the last whole tick, as memories are."""
        self._end_workers()
        self._start(quiet)

    def _way_on(self, error: RunPaused) -> str:
        first = vars(error).get("hint", "")
        return f"{first}{', then ' if first else ''}go on with: {self._again()}"

    def _again(self) -> str:
        if self.is_temporary or only_here(self.settings):  # no command can
            return "its method resume()"
        return f"tiermem resume {quote(str(self.folder))}"

    def _remedy(self) -> str:
        code, again = self.folder / "code", self._again()
        mend = f"mend it in {code}, then go on" if code.is_dir() else "go on"
        remedy = f"{mend} with: {again}"
        own = original_code(code, self._places)
        if own and self.tick == 0 and not self.about.get("parent"):  # there is nothing to keep
            remedy = f"mend it in {own}, then run the scenario again with --force"
        return f"the traceback is in {self.folder / 'error.txt'}; {remedy}"


def _keep(folder: Path, settings: Settings) -> None:
    """Write other settings than the run had."""
    was_trusted = is_trusted_run(folder)
    write_settings(folder, settings)
    if was_trusted:
        seal_run(folder, settings)


def finish_outside(run: OutsideRun, *, report: bool = True) -> dict[str, Any]:
    """End the run of a program, write its results if it has a folder, and give its summary.

    To end it again gives the same summary.
    """
    if run.close() and run.folder is not None:
        with Run.open(run.folder) as opened:
            run.summary = opened.finish(report=report)
    return dict(run.summary)


# Going back: a run at an earlier tick, from its journal or from a checkpoint


def go_back(folder: Path, tick: int, *, say: Say = quiet) -> None:
    """Remove all that came after ``tick`` from a run, for good.

    If the journal can't go back to this tick, because it is damaged or was made from a later
    checkpoint, the newest whole checkpoint up to the tick is restored.
    """
    settings, about = read_folder(folder)
    parent = about.get("parent")
    if parent and tick < parent["tick"]:
        raise RunError(
            f"{folder} branched from {parent['run']} at tick {parent['tick']}",
            hint="to go back further, branch that one",
        )
    gather(folder, settings, about)
    if (folder / "bank").is_dir():
        history.check_unused(folder / "bank")
    for path in checkpoints(folder):
        if checkpoint_tick(path) <= tick:
            _read_whole(path, settings, about, say)
    try:
        with MemoryBank.at(folder / "bank") as bank:
            last = bank.tick
        if tick > last:
            raise RunError(
                f"{folder} has {last} ticks, and can't go back to tick {tick}",
                hint=f"name a tick up to {last}",
            )
        with MemoryBank.at(folder / "bank", tick) as bank:
            ticks_of(bank).state()  # raises TickNotKept where a run can't go on
        _forget_checkpoints(folder, tick)
        history.rewind(folder / "bank", tick)
    except (BankTooNew, BankTooOld):
        raise
    except (BankDamaged, BankNotFound, TickNotKept) as error:
        say(str(error))
        restore_newest(folder, settings, about, tick, say)
        _forget_checkpoints(folder, tick)


def first_passed_over(folder: Path) -> int | None:
    """The first tick of a run in which a question to its language model was passed over."""
    settings, about = read_folder(folder)
    gather(folder, settings, about)
    parent = about.get("parent") or {"tick": 0}
    return Cassette(folder / "cassette.jsonl", replay=True).passed_over(parent["tick"])


def _forget_checkpoints(folder: Path, tick: int) -> None:
    """Remove the checkpoints of later ticks."""
    for path in checkpoints(folder):
        if checkpoint_tick(path) > tick:
            path.unlink(missing_ok=True)


def restore_newest(
    folder: Path, settings: Settings, about: Mapping[str, Any], tick: int | None, say: Say
) -> None:
    """Restore the newest whole checkpoint up to ``tick``."""
    for path in reversed(checkpoints(folder)):
        if tick is not None and checkpoint_tick(path) > tick:
            continue
        if _read_whole(path, settings, about, say):
            history.restore(path, folder / "bank", same_bank=True).release()
            say(f"continuing from the checkpoint {path.name}")
            return
    upto = "" if tick is None else f" up to tick {tick}"
    raise RunError(
        f"{folder}: neither the journal nor any checkpoint{upto} can be used, so it can't go on",
        hint="run the scenario again, or restore the folder from a backup",
    )


def _read_whole(path: Path, settings: Settings, about: Mapping[str, Any], say: Say) -> bool:
    """Whether a checkpoint is whole and of this run; if not, it gets another name."""
    try:
        kept = checkpoint.read(path)
    except CheckpointDamaged as error:
        say(str(error))
    else:
        if is_of_run(kept, path, settings, about):
            return True
        say(f"{path} is a checkpoint of another run, or of another tick")
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    path.rename(aside)
    return False


def is_of_run(
    kept: checkpoint.Checkpoint, path: Path, settings: Settings, about: Mapping[str, Any]
) -> bool:
    """Whether a checkpoint was made by this run, at the tick that its name says."""
    llm: Any = settings.to_dict()["llm"]
    since = {name: llm[name.removeprefix("llm.")] for name in CHANGING}
    since["simulation.ticks"] = settings.simulation.ticks  # these may have changed since
    try:  # a setting that is newer than the checkpoint has its default
        made = load_settings(base=kept.extra["config"] or {}, overrides=since)
    except (KeyError, ConfigError):
        return False
    same = made.to_dict(redact=True) == settings.to_dict(redact=True)
    same = same and kept.extra.get("branched") == branched_from(about)
    return same and kept.tick == checkpoint_tick(path)
