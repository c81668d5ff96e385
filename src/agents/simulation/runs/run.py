"""A run: one folder with a bank, the exact settings, checkpoints and what came out.

========================  ====================================================================
config.yaml               every setting, as used, but secrets
run.json                  what made the run, and which run it branched from
code/                     the user's own modules, as they were
bank/                     the memories, and all that is kept of each tick
checkpoints/              portable files to go back to
cassette.jsonl            what an LLM was asked and answered, if one was
metrics.parquet …         what came out: see :mod:`tiermem.simulation.runs.outputs`
========================  ====================================================================

The bank's journal holds all that a tick changes, the world's state too, in one commit. So a run
that was killed is at the end of its last whole tick, and what goes on from there is the run that it
would have been.
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
from ...storage.mem0.store import check_providers
from ...storage.store_sync import Progress
from ...version import __version__
from ..loop.loop import Loop, where_in
from ..loop.streams import Streams
from ..policies.cassette import Cassette
from . import outputs
from .folder import (
    FORMAT,
    checkpoint_tick,
    checkpoints,
    make_folder,
    places_of_code,
    read_folder,
    remove_leftovers,
    write_settings,
)
from .scenario import code_of, first_memories, make_policy, make_world
from .whole_files import replace_file

__all__ = ["Run", "Say", "go_back"]

Say = Callable[[str], None]
"""Takes a line for the user."""


def _quiet(_: str) -> None:
    pass


@final
class Run:
    """A run's folder, opened to go on with it. Made by :meth:`create` and :meth:`open`."""

    def __init__(self, folder: Path, settings: Settings, about: Mapping[str, Any]) -> None:
        """For :meth:`create` and :meth:`open`; callers use these."""
        self.folder = folder
        self.settings = settings
        self.about = about
        self.bank: MemoryBank
        self.progress: Progress | None = None
        """Told how far writing to mem0's store has come."""
        self._parts = contextlib.ExitStack()

    # Making and opening

    @classmethod
    def create(
        cls, folder: Path, settings: Settings, *, scenario: Path | None = None, force: bool = False
    ) -> Self:
        """A new run at tick 0, in a folder that does not exist yet.

        ``scenario`` is the folder of the scenario's file, where classes of the user's own are.
        ``force`` puts it in the place of a run that is there.
        """
        places = [scenario] if scenario else []
        code = check_scenario(settings, places)
        about = {
            "format": FORMAT,
            "tiermem": __version__,
            "scenario": str(scenario.absolute()) if scenario else None,
            "parent": None,
        }

        def fill(new: Path) -> None:  # a run without its first tick is never seen
            first = cls(new, settings, about)._begin(_quiet)
            first._parts.pop_all()
            first.bank.close(sync=False)

        make_folder(folder, settings, about, code, force=force, fill=fill)
        return cls(folder, settings, about)._begin(_quiet)

    @classmethod
    def open(cls, folder: Path, assignments: Iterable[str] = (), *, say: Say = _quiet) -> Self:
        """The run in ``folder``, after its last whole tick.

        ``assignments`` may give back the secrets that ``config.yaml`` leaves out. If the journal is
        lost or damaged, the run goes on from the newest checkpoint that is whole, and says so.
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
        return cls(folder, load_settings(settings, assignments=texts), about)._begin(say)

    def _begin(self, say: Say) -> Self:
        try:
            self._open_bank(say)
            self._start(say)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Close the bank; mem0's store is brought up to date as ``storage.sync`` says."""
        self._parts.close()

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
        """Tick after tick, up to ``until``: what is recorded of each.

        Stop iterating between any two; everything so far is kept.
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
        """Write a checkpoint of the last tick, unless there is one; keep the newest ones."""
        path = self.folder / "checkpoints" / f"tick-{self.tick:06}.tmck"
        if not path.exists():
            extra = {
                "config": self.settings.to_dict(redact=True),
                "branched": _branched(self.about),
                "cassette": self._cassette.position,
            }
            self.bank.checkpoint(path, extra, progress=self.progress)
        for old in checkpoints(self.folder)[: -self.settings.checkpoint.keep]:
            old.unlink(missing_ok=True)
        return path

    def finish(self, *, report: bool = True) -> dict[str, Any]:
        """Write a checkpoint and what came out; the summary."""
        self.checkpoint()
        parent = self.about.get("parent")
        branched = parent and f"{Path(parent['run']).name}, tick {parent['tick']}"
        return outputs.write(
            self.folder, self.bank, self.settings, self._world, branched=branched, report=report
        )

    def extend(self, ticks: int) -> None:
        """Let the run be so many ticks long."""
        if ticks < self.tick:
            raise RunError(
                f"{self.folder} has {self.tick} ticks already, more than {ticks}",
                hint="to go back, use --from-tick",
            )
        self.settings = load_settings(self.settings, overrides={"simulation": {"ticks": ticks}})
        write_settings(self.folder, self.settings)

    def sync(self) -> None:
        """Bring mem0's store up to date, if ``storage.sync`` says that it should be by now."""
        if self.settings.storage.sync != "manual":
            self.bank.sync(self.progress)

    # Inside

    def _open_bank(self, say: Say) -> None:
        folder = self.folder / "bank"
        try:
            if not (folder / "journal.db").exists() and self._had_begun():
                raise BankNotFound(f"{folder} has lost its journal")
            self.bank = MemoryBank.open(folder, self.settings)
            self._check_state()
        except (BankTooNew, BankTooOld):
            raise
        except (BankDamaged, BankNotFound) as error:
            say(str(error))
            _restore_newest(self.folder, self.settings, self.about, None, say)
            self.bank = MemoryBank.open(folder, self.settings)
        self._parts.callback(self.bank.close)
        remove_leftovers(self.folder)

    def _check_state(self) -> None:
        """Find out while there is a way back that the last tick can't be gone on from."""
        try:
            self.bank.ticks.state()
        except BankDamaged:
            self.bank.close(sync=False)
            raise

    def _had_begun(self) -> bool:
        """Whether there are traces of a journal that is not there."""
        traces = ("checkpoints", "summary.json", "bank/journal.db-wal")
        return bool(self.about.get("parent")) or any(
            (self.folder / name).exists() for name in traces
        )

    def _start(self, say: Say) -> None:
        places = places_of_code(self.folder, self.about)
        self._cassette = Cassette(self.folder / "cassette.jsonl")
        self._world = make_world(self.settings, *places)
        policy = make_policy(self.settings, self._world, self._cassette, *places)
        agents = self.settings.simulation.agent_ids()
        self._loop = Loop(self.bank, self._world, policy, agents)
        for difference in self._loop.begin(first_memories(self.settings)):
            say(f"after set_state() the metric {difference}: does get_state() leave something out?")
        for name in _changed(self.folder / "code", places):
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


def _changed(copies: Path, places: list[Path]) -> list[str]:
    """The user's own modules that are not what was copied any more."""
    changed = []
    for copy in sorted(copies.rglob("*.py")):
        name = copy.relative_to(copies)
        for place in places:
            original = place / name
            is_other = place != copies and original.is_file()
            if is_other and original.read_bytes() != copy.read_bytes():
                changed.append(str(original))
    return changed


def check_scenario(settings: Settings, places: list[Path]) -> dict[str, Path]:
    """Find mistakes before a folder is made; the user's own modules, by name."""
    check_providers(settings)
    if settings.notes.extra_paths:
        raise ConfigError(
            "notes.extra_paths: a run has none, because what is in these files may change and is "
            "not recorded, and the run could not be repeated",
            hint="write it to the agents' own notes",
        )
    world = make_world(settings, *places)
    make_policy(settings, world, Cassette(Path("cassette.jsonl"), replay=True), *places)
    first_memories(settings)
    agents = settings.simulation.agent_ids()
    streams = Streams(settings.seed, agents)
    streams.begin(0)
    try:
        world.setup(streams.world, tuple(agents))
    except ConfigError:
        raise
    except Exception as error:  # a user's own world may raise anything
        where = f"{type(world).__name__}.setup()"
        raise SimulationError(
            f"{where} raised {type(error).__name__}: {error}{where_in(error)}",
            hint="mend the world, and run it again",
        ) from error
    return code_of(settings, *places)


def go_back(folder: Path, tick: int, *, say: Say = _quiet) -> None:
    """Let a run forget, for good, what came after ``tick``.

    The journal has every tick. Where it has not, because it is damaged or was itself made from a
    checkpoint, the newest whole checkpoint up to that tick is restored.
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
            bank.ticks.state()  # is it there to go on from?
        _forget_checkpoints(folder, tick)
        history.rewind(folder / "bank", tick)
    except (BankTooNew, BankTooOld):
        raise
    except (BankDamaged, BankNotFound, TickNotKept) as error:
        say(str(error))
        _restore_newest(folder, settings, about, tick, say)
        _forget_checkpoints(folder, tick)


def _forget_checkpoints(folder: Path, tick: int) -> None:
    """Remove those of a future that is no more."""
    for path in checkpoints(folder):
        if checkpoint_tick(path) > tick:
            path.unlink(missing_ok=True)


def _restore_newest(
    folder: Path, settings: Settings, about: Mapping[str, Any], tick: int | None, say: Say
) -> None:
    """Go back to the newest checkpoint that is whole, up to ``tick``."""
    for path in reversed(checkpoints(folder)):
        if tick is not None and checkpoint_tick(path) > tick:
            continue
        if _read_whole(path, settings, about, say):
            history.restore(path, folder / "bank", same_bank=True)
            say(f"continuing from the checkpoint {path.name}")
            return
    upto = "" if tick is None else f" up to tick {tick}"
    raise RunError(
        f"{folder}: neither the journal nor any checkpoint{upto} can be used, so it can't go on",
        hint="run the scenario again, or restore the folder from a backup",
    )


def _read_whole(path: Path, settings: Settings, about: Mapping[str, Any], say: Say) -> bool:
    """Whether a checkpoint is whole and of this run; one that is not is moved out of the way."""
    try:
        found = checkpoint.read(path)
    except CheckpointDamaged as error:
        say(str(error))
    else:
        if "config" in found.extra and is_of_run(found, path, settings, about):
            return True
        say(f"{path} is a checkpoint of another run, or of another tick")
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    path.rename(aside)
    return False


def _branched(about: Mapping[str, Any]) -> dict[str, Any] | None:
    """Where a run branched from another, without a path: a checkpoint may be carried elsewhere."""
    parent = about.get("parent")
    return {"tick": parent["tick"], "edits": parent["edits"]} if parent else None


def is_of_run(
    found: checkpoint.Checkpoint, path: Path, settings: Settings, about: Mapping[str, Any]
) -> bool:
    """Whether a checkpoint was made by this run, at the tick that its name says."""
    try:  # settings that came after it was made have their defaults
        made: dict[str, Any] = load_settings(base=found.extra.get("config") or {}).to_dict(
            redact=True
        )
    except ConfigError:
        return False
    own: dict[str, Any] = settings.to_dict(redact=True)
    for each in (made, own):  # a run may be made longer; all else stays
        each["simulation"] = {**each.get("simulation", {}), "ticks": None}
    same = made == own and found.extra.get("branched") == _branched(about)
    return same and found.tick == checkpoint_tick(path)
