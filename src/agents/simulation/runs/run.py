"""A run: one folder with a bank, the exact settings, checkpoints and the results.

========================  ====================================================================
config.yaml               every setting of the run, without secrets
run.json                  what made the run, and which run it branched from
code/                     copies of the user's own modules
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
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from shlex import quote
from traceback import format_exception
from types import TracebackType
from typing import Any, Self, final

from ...bank import history
from ...bank.memory_bank import MemoryBank
from ...config.load import load_settings
from ...config.settings import Settings, is_secret
from ...errors import (
    BankDamaged,
    BankNotFound,
    BankTooNew,
    BankTooOld,
    CheckpointDamaged,
    ConfigError,
    RunError,
    SimulationError,
    TickNotKept,
)
from ...storage.checkpoint import file as checkpoint
from ...storage.private_files import replace_file
from ...storage.store_sync import Progress
from ...version import __version__
from ..loop.loop import Loop
from ..loop.standing import Standing
from ..policies.cassette import Cassette
from ..worlds.outside import check_inside
from . import outputs
from .decisions import Decision, decision
from .folder import (
    FORMAT,
    branched_from,
    changed_code,
    checkpoint_tick,
    checkpoints,
    make_folder,
    places_of_code,
    read_folder,
    remove_leftovers,
    settings_of_before,
    write_settings,
)
from .life import Life, life
from .scenario import check_scenario, first_memories, make_policy, make_world
from .trusting import check_run, is_trusted_run, seal_run

__all__ = ["Run", "Say", "go_back"]

Say = Callable[[str], None]
"""Takes a line for the user."""


def _quiet(_: str) -> None:
    pass


@final
class Run:
    """An open run. :meth:`create` and :meth:`open` give one."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        about: Mapping[str, Any],
        say: Say = _quiet,
        *,
        offline: bool = False,
    ) -> None:
        """Callers use :meth:`create` and :meth:`open`."""
        self.folder = folder
        self._offline = offline
        self.settings = settings
        self.about = about
        self.progress: Progress | None = None
        """The run tells it how much of mem0's store is written."""
        self.bank = self._open_bank(say)
        try:
            self._start(say)
        except BaseException:
            self.close()
            raise

    # Making and opening

    @classmethod
    def create(
        cls, folder: Path, settings: Settings, *, scenario: Path | None = None, force: bool = False
    ) -> Self:
        """A new run at tick 0, in a folder that does not exist yet.

        ``scenario`` is the folder of the scenario's file and of the user's own classes. With
        ``force``, the new run replaces a run that has this folder.
        """
        places = [scenario] if scenario else []
        code = check_scenario(settings, places)
        about = {
            "format": FORMAT,
            "tiermem": __version__,
            "scenario": str(scenario.absolute()) if scenario else None,
            "parent": None,
        }

        def fill(new: Path) -> None:  # the folder gets its name when tick 0 is in it
            seal_run(new, settings)
            cls(new, settings, about).close(sync=False)

        make_folder(folder, settings, about, code, force=force, fill=fill)
        return cls(folder, settings, about)

    @classmethod
    def open(
        cls,
        folder: Path,
        assignments: Iterable[str] = (),
        *,
        say: Say = _quiet,
        offline: bool = False,
    ) -> Self:
        """The run in ``folder``, after its last whole tick.

        ``assignments`` give the secrets that ``config.yaml`` leaves out. If the journal is lost or
        damaged, the run tells the user and goes on from the newest whole checkpoint. With
        ``offline``, no language model is asked: a prompt without a recorded answer is an error.
        """
        settings, about = read_folder(folder)
        texts = tuple(assignments)
        for text in texts:
            if not is_secret(text.partition("=")[0]):
                raise ConfigError(
                    f"--set {text.partition('=')[0]}: a run keeps its settings; only secrets, "
                    "which it does not keep, are given again",
                    hint="to change others, branch it with: tiermem branch",
                )
        check_run(folder, settings)
        return cls(folder, load_settings(settings, assignments=texts), about, say, offline=offline)

    def close(self, *, sync: bool = True) -> None:
        """Close the bank: see :meth:`MemoryBank.close`."""
        self.bank.close(sync=sync)

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
        return self.bank.tick

    # Going on

    def advance(self, until: int) -> Iterator[dict[str, Any]]:
        """Run tick after tick, up to ``until``, and give the record of each tick.

        A caller may stop after any tick; the run keeps all ticks so far.
        """
        while self.tick < until:
            try:
                record = self._loop.tick()
            except SimulationError as error:
                with contextlib.suppress(OSError):
                    replace_file(self.folder / "error.txt", "".join(format_exception(error)))
                raise SimulationError(str(error).rstrip("."), hint=self._remedy()) from error
            if self.tick % self.settings.checkpoint.every == 0:
                self.checkpoint()
            yield record

    def checkpoint(self) -> Path:
        """Write a checkpoint of the last tick, unless it has one, and remove the oldest ones."""
        path = self.folder / "checkpoints" / f"tick-{self.tick:06}.tmck"
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
        self.checkpoint()
        parent = self.about.get("parent")
        branched = parent and f"{Path(parent['run']).name}, tick {parent['tick']}"
        return outputs.write(
            self.folder, self.bank, self.settings, self._world, branched=branched, report=report
        )

    def decision(self, agent: str, tick: int) -> Decision:
        """What decided an agent's actions in a tick, and what came of them."""
        return decision(self.folder, agent, tick)

    def life(self, memory_id: str) -> Life:
        """Everything that happened to a memory: born, moved, given to its agent, gone."""
        return life(self.folder, memory_id)

    def extend(self, ticks: int) -> None:
        """Make the run ``ticks`` long."""
        check_inside(self.settings)
        if ticks < self.tick:
            raise RunError(
                f"{self.folder} has {self.tick} ticks already, more than {ticks}",
                hint="to go back, use --from-tick",
            )
        was_trusted = is_trusted_run(self.folder)
        self.settings = load_settings(self.settings, overrides={"simulation": {"ticks": ticks}})
        write_settings(self.folder, self.settings)
        if was_trusted:
            seal_run(self.folder, self.settings)

    def sync(self) -> None:
        """Bring mem0's store up to date, unless ``storage.sync`` is manual."""
        if self.settings.storage.sync != "manual":
            self.bank.sync(self.progress)

    # Inside

    def _open_bank(self, say: Say) -> MemoryBank:
        folder = self.folder / "bank"
        try:
            if not (folder / "journal.db").exists() and self._had_journal():
                raise BankNotFound(f"{folder} has lost its journal")
            bank = MemoryBank.open(folder, self.settings)
            try:
                bank.ticks.state()  # damage shows now, while a checkpoint can replace the bank
            except BankDamaged:
                bank.close(sync=False)
                raise
            return bank
        except (BankTooNew, BankTooOld):
            raise
        except (BankDamaged, BankNotFound) as error:
            say(str(error))
            _restore_newest(self.folder, self.settings, self.about, None, say)
            return MemoryBank.open(folder, self.settings)

    def _had_journal(self) -> bool:
        """Whether the folder shows traces of a journal."""
        traces = ("checkpoints", "summary.json", "bank/journal.db-wal")
        return bool(self.about.get("parent")) or any(
            (self.folder / name).exists() for name in traces
        )

    def _start(self, say: Say) -> None:
        remove_leftovers(self.folder)
        places = places_of_code(self.folder, self.about)
        self._cassette = Cassette(self.folder / "cassette.jsonl", replay=self._offline)
        self._world = make_world(self.settings, *places)
        policy = make_policy(self.settings, self._world, self._cassette, *places)
        agents = self.settings.simulation.agent_ids()
        rules = Standing(self.about.get("rules", ()))
        self._loop = Loop(self.bank, self._world, policy, agents, rules)
        for difference in self._loop.begin(first_memories(self.settings)):
            say(f"after set_state() the metric {difference}: does get_state() leave something out?")
        for name in changed_code(self.folder / "code", places):
            say(f"{name} has changed since; the run goes on with its own copy in its folder code")
        if self.tick and self.tick % self.settings.checkpoint.every == 0:
            self.checkpoint()  # a kill may have come between the tick and its checkpoint

    def _remedy(self) -> str:
        code = self.folder / "code"
        mend = f"mend it in {code}, then go on" if code.is_dir() else "go on"
        return (
            f"the traceback is in {self.folder / 'error.txt'}; {mend} with: tiermem resume "
            f"{quote(str(self.folder))}"
        )


def go_back(folder: Path, tick: int, *, say: Say = _quiet) -> None:
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
            bank.ticks.state()  # raises TickNotKept where a run can't go on
        _forget_checkpoints(folder, tick)
        history.rewind(folder / "bank", tick)
    except (BankTooNew, BankTooOld):
        raise
    except (BankDamaged, BankNotFound, TickNotKept) as error:
        say(str(error))
        _restore_newest(folder, settings, about, tick, say)
        _forget_checkpoints(folder, tick)


def _forget_checkpoints(folder: Path, tick: int) -> None:
    """Remove the checkpoints of later ticks."""
    for path in checkpoints(folder):
        if checkpoint_tick(path) > tick:
            path.unlink(missing_ok=True)


def _restore_newest(
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
        found = checkpoint.read(path)
    except CheckpointDamaged as error:
        say(str(error))
    else:
        if is_of_run(found, path, settings, about):
            return True
        say(f"{path} is a checkpoint of another run, or of another tick")
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    path.rename(aside)
    return False


def is_of_run(
    found: checkpoint.Checkpoint, path: Path, settings: Settings, about: Mapping[str, Any]
) -> bool:
    """Whether a checkpoint was made by this run, at the tick that its name says."""
    length = {"simulation.ticks": settings.simulation.ticks}  # which may have changed since
    try:  # a setting that is newer than the checkpoint has its default, or its value of before
        config = found.extra["config"] or {}
        made = load_settings(base=config, overrides={**settings_of_before(config), **length})
    except (KeyError, ConfigError):
        return False
    same = made.to_dict(redact=True) == settings.to_dict(redact=True)
    same = same and found.extra.get("branched") == branched_from(about)
    return same and found.tick == checkpoint_tick(path)
