"""A run: one folder with a bank, the exact settings, checkpoints and what came out.

========================  ====================================================================
config.yaml               every setting, as used
run.json                  what made the run, and which run it branched from
code/                     the user's own modules, as they were
bank/                     the memories, and all that is kept of each tick
checkpoints/              portable files to go back to
cassette.jsonl            what an LLM was asked and answered, if one was
metrics.parquet …         what came out: see :mod:`agents.simulation.outputs`
========================  ====================================================================

The bank's journal holds all that a tick changes, the world's state too, in one commit. So a run
that was killed is at the end of its last whole tick, and what goes on from there is the run that it
would have been.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

import yaml

from agents import __version__, history
from agents.bank import MemoryBank
from agents.config import load_settings
from agents.errors import (
    BankDamaged,
    BankError,
    BankLocked,
    BankNotFound,
    CheckpointDamaged,
    RunError,
)
from agents.settings import Settings
from agents.simulation import outputs
from agents.simulation.cassette import Cassette
from agents.simulation.files import replace_file
from agents.simulation.loop import Loop
from agents.simulation.scenario import code_of, first_memories, make_policy, make_world
from agents.storage import checkpoint
from agents.storage.sync import Progress

__all__ = [
    "Run",
    "Say",
    "checkpoint_tick",
    "checkpoints",
    "go_back",
    "places_of_code",
    "prepare_folder",
    "read_folder",
]

Say = Callable[[str], None]
"""Takes a line for the user."""

_FORMAT = 1


def _quiet(_: str) -> None:
    pass


@final
class Run:
    """A run's folder, opened to go on with it. Made by :meth:`create` and :meth:`open`."""

    def __init__(self, folder: Path, settings: Settings, about: Mapping[str, Any]) -> None:
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
        world = make_world(settings, *([scenario] if scenario else []))  # finds mistakes early
        cassette = Cassette(folder / "cassette.jsonl")
        make_policy(settings, world, cassette, *([scenario] if scenario else []))
        first_memories(settings)
        about = {"format": _FORMAT, "tiermem": __version__, "parent": None}
        prepare_folder(folder, settings, about, scenario, force=force)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path, *, say: Say = _quiet) -> Self:
        """The run in ``folder``, after its last whole tick.

        If its journal is lost or damaged, after the newest checkpoint that is whole.
        """
        run = cls(folder, *read_folder(folder))
        try:
            run._open_bank(say)
            run._begin()
        except BaseException:
            run.close()
            raise
        return run

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
            record = self._loop.tick()
            if self.tick % self.settings.checkpoint.every == 0:
                self.checkpoint()
            yield record

    def checkpoint(self) -> Path:
        """Write a checkpoint of the last tick, unless there is one; keep the newest ones."""
        path = self.folder / "checkpoints" / f"tick-{self.tick:06}.tmck"
        if not path.exists():
            extra = {
                "config": self.settings.to_dict(redact=True),
                "run": dict(self.about),
                "cassette": self._cassette.position,
            }
            self.bank.checkpoint(path, extra, progress=self.progress)
        for old in checkpoints(self.folder)[: -self.settings.checkpoint.keep]:
            old.unlink(missing_ok=True)
        return path

    def finish(self, *, report: bool = True) -> dict[str, Any]:
        """Write a checkpoint and what came out; the summary."""
        self.checkpoint()
        return outputs.write(self.folder, self.bank, self.settings, self._world, report=report)

    def extend(self, ticks: int) -> None:
        """Let the run be so many ticks long."""
        self.settings = load_settings(self.settings, overrides={"simulation": {"ticks": ticks}})
        replace_file(self.folder / "config.yaml", _yaml(self.settings))

    def sync(self) -> None:
        """Bring mem0's store up to date, if ``storage.sync`` says that it should be by now."""
        if self.settings.storage.sync != "manual":
            self.bank.sync(self.progress)

    # Inside

    def _open_bank(self, say: Say) -> None:
        folder = self.folder / "bank"
        try:
            if not (folder / "journal.db").exists() and checkpoints(self.folder):
                raise BankNotFound(f"{folder} has lost its journal")
            self.bank = MemoryBank.open(folder, self.settings)
        except (BankDamaged, BankNotFound) as error:
            say(str(error))
            _restore_newest(self.folder, None, say)
            self.bank = MemoryBank.open(folder, self.settings)
        self._parts.callback(self.bank.close)

    def _begin(self) -> None:
        places = places_of_code(self.folder, self.about)
        self._cassette = Cassette(self.folder / "cassette.jsonl")
        self._world = make_world(self.settings, *places)
        policy = make_policy(self.settings, self._world, self._cassette, *places)
        agents = self.settings.simulation.agent_ids()
        self._loop = Loop(self.bank, self._world, policy, agents)
        self._loop.begin(first_memories(self.settings))
        if self.tick and self.tick % self.settings.checkpoint.every == 0:
            self.checkpoint()  # a kill may have come between the tick and its checkpoint


def go_back(folder: Path, tick: int, *, say: Say = _quiet) -> None:
    """Let a run forget, for good, what came after ``tick``.

    The journal has every tick. Where it has not, because it is damaged or was itself made from a
    checkpoint, the newest whole checkpoint up to that tick is restored.
    """
    read_folder(folder)
    for path in checkpoints(folder):
        if checkpoint_tick(path) <= tick:
            try:
                checkpoint.read(path)
            except CheckpointDamaged as error:
                say(str(error))
    try:
        with MemoryBank.at(folder / "bank") as bank:
            last = bank.tick
        if tick > last:
            raise RunError(f"{folder} has {last} ticks, and can't go back to tick {tick}")
        history.rewind(folder / "bank", tick)
    except BankLocked:
        raise
    except BankError as error:
        say(str(error))
        _restore_newest(folder, tick, say)
    for path in checkpoints(folder):
        if checkpoint_tick(path) > tick:
            path.unlink(missing_ok=True)


def _restore_newest(folder: Path, tick: int | None, say: Say) -> None:
    """Go back to the newest checkpoint that is whole, up to ``tick``."""
    for path in reversed(checkpoints(folder)):
        if tick is not None and checkpoint_tick(path) > tick:
            continue
        try:
            history.restore(path, folder / "bank", same_bank=True)
        except CheckpointDamaged as error:
            say(f"{error}; trying the one before")
        else:
            say(f"continuing from the checkpoint {path.name}")
            return
    raise RunError(
        f"{folder}: neither the journal nor any checkpoint can be read, so it can't go on. Run "
        "the scenario again, or restore the folder from a backup"
    )


def prepare_folder(
    folder: Path,
    settings: Settings,
    about: Mapping[str, Any],
    scenario: Path | None,
    *,
    force: bool,
    fill: Callable[[Path], None] | None = None,
) -> None:
    """Make a run's folder, all of it or nothing; ``fill`` adds to it before it gets its name."""
    if folder.exists():
        _make_way(folder, force)
    about = {**about, "scenario": str(scenario.absolute()) if scenario else None}
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        replace_file(temporary / "config.yaml", _yaml(settings))
        replace_file(temporary / "run.json", json.dumps(about, indent=2) + "\n")
        for file in code_of(settings, scenario) if scenario else []:
            (temporary / "code").mkdir(exist_ok=True)
            shutil.copy(file, temporary / "code" / file.name)
        if fill:
            fill(temporary)
        temporary.rename(folder)
    except OSError as error:
        raise RunError(f"the run {str(folder)!r} can't be made: {error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def read_folder(folder: Path) -> tuple[Settings, dict[str, Any]]:
    """A run's settings, and what made it."""
    if not folder.is_dir():
        raise RunError(f"there is no run {folder}")
    try:
        about = json.loads((folder / "run.json").read_text())
        known = about["format"]
    except FileNotFoundError:
        raise RunError(f"{folder} is no run: it has no run.json") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{folder / 'run.json'} can't be read: {error}") from None
    if known != _FORMAT:
        raise RunError(
            f"{folder} has format {known}, and this version of TierMem reads format {_FORMAT}"
        )
    if not (folder / "config.yaml").is_file():
        raise RunError(f"{folder} is missing config.yaml, without which it can't go on")
    return load_settings(folder / "config.yaml"), about


def checkpoints(folder: Path) -> list[Path]:
    """A run's checkpoints, oldest first."""
    return sorted((folder / "checkpoints").glob("tick-*.tmck"), key=checkpoint_tick)


def checkpoint_tick(path: Path) -> int:
    """The tick in a checkpoint's name."""
    number = path.stem.removeprefix("tick-")
    return int(number) if number.isdecimal() else -1


def _make_way(folder: Path, force: bool) -> None:
    if not force:
        raise RunError(
            f"{folder} exists already. Go on with it by `tiermem resume {folder}`, choose another "
            "folder with --out, or replace it with --force"
        )
    if not (folder / "run.json").is_file():
        raise RunError(f"{folder} is no run, so --force does not replace it")
    if (folder / "bank").is_dir():
        history.check_unused(folder / "bank")
    shutil.rmtree(folder)


def places_of_code(folder: Path, about: Mapping[str, Any]) -> list[Path]:
    """Where a run finds the user's own modules: its copies, then their neighbours of old."""
    return [folder / "code", *([Path(about["scenario"])] if about.get("scenario") else [])]


def _yaml(settings: Settings) -> str:
    return str(yaml.safe_dump(settings.to_dict(redact=True), sort_keys=False, allow_unicode=True))
