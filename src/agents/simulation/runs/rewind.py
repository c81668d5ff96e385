"""Going back: a run at an earlier tick, from its journal or from a checkpoint."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...bank import history
from ...bank.memory_bank import MemoryBank
from ...config.load import load_settings
from ...config.settings import Settings
from ...errors import (
    BankDamaged,
    BankNotFound,
    BankTooNew,
    BankTooOld,
    CheckpointDamaged,
    ConfigError,
    RunError,
    TickNotKept,
)
from ...storage import checkpoint
from .folder import Say, branched_from, checkpoint_tick, checkpoints, quiet, read_folder
from .placement import gather


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
            bank.ticks.state()  # raises TickNotKept where a run can't go on
        _forget_checkpoints(folder, tick)
        history.rewind(folder / "bank", tick)
    except (BankTooNew, BankTooOld):
        raise
    except (BankDamaged, BankNotFound, TickNotKept) as error:
        say(str(error))
        restore_newest(folder, settings, about, tick, say)
        _forget_checkpoints(folder, tick)


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
    try:  # a setting that is newer than the checkpoint has its default
        made = load_settings(base=found.extra["config"] or {}, overrides=length)
    except (KeyError, ConfigError):
        return False
    same = made.to_dict(redact=True) == settings.to_dict(redact=True)
    same = same and found.extra.get("branched") == branched_from(about)
    return same and found.tick == checkpoint_tick(path)
