"""Where the ticks of a run happen: its agents in this process, in processes, or in Ray's workers.

While a run over workers goes on, its folder ``shards`` has the cells and the log of the ticks, and
the run's own bank lags behind. Readers bring the bank up to the log; the end of the run does, too,
and then deletes the folder.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ...bank import history
from ...bank.memory_bank import MemoryBank
from ...config.settings import Settings
from ...errors import BankError, ConfigError, RunError, Untrusted
from ...storage.files import lock_folder
from ...storage.whole_folder import put_aside
from ..policies.cassette import Cassette
from ..protocols import Policy, World
from ..tick.branch_rules import BranchRules
from ..workers.carriers import ProcessLink, serve
from ..workers.cells import CASSETTE, LOG, SHARDS, Logged, LoggedLoop, base_of, gather_cassettes
from ..workers.driver import Driver
from ..workers.log import read_log
from ..workers.ray_carrier import Cluster, check_ray
from ..workers.worker import Worker, of_cells
from .folder import Say, places_of_code, quiet, read_folder
from .scenario import make_policy, make_world
from .trust import check_run

_WORKER = "tiermem.simulation.runs.placement"


class Placement(NamedTuple):
    """What runs a run's ticks. No result depends on it."""

    kind: str = "local"
    """local, processes or ray."""
    workers: int = 1
    address: str | None = None
    """The Ray cluster: ``auto`` for one that runs here, ``local`` for one of the run's own."""


LOCAL = Placement()


def engine_of(
    settings: Settings,
    kind: str | None = None,
    workers: int | None = None,
    address: str | None = None,
    about: Mapping[str, Any] | None = None,
) -> Placement:
    """The engine that a caller names, or the one that a run had, or the one of the settings."""
    had = (about or {}).get("engine") or {}
    kind = kind or had.get("kind") or settings.simulation.engine
    if kind == "local" and workers is not None:
        raise ConfigError(
            f"the engine local has no workers: {workers}",
            hint="use --engine processes or --engine ray with them",
        )
    workers = workers or had.get("workers") or settings.simulation.workers or os.cpu_count() or 1
    if kind == "ray":
        address = address or had.get("address")
    check_engine(kind, address)
    embedder = settings.embedder.provider
    if kind != "local" and embedder != "offline":
        # The merge embeds each text again: a model that answers otherwise would change the run.
        raise ConfigError(
            f"the engine {kind} runs with the offline embedder; this is {embedder}",
            hint="use --engine local, or embedder.provider=offline",
        )
    return Placement(kind, workers, address) if kind != "local" else LOCAL


def check_engine(kind: str, address: str | None) -> None:
    """Refuse an engine that does not exist or is not installed, and an address of no cluster."""
    if kind not in ("local", "processes", "ray"):
        raise ConfigError(f"there is no engine {kind!r:.40}", hint="use local, processes or ray")
    if kind == "ray":
        check_ray(address)
    elif address is not None:
        raise ConfigError(
            f"the engine {kind} has no address: {address!r:.60}", hint="use --engine ray with it"
        )


def without_engine(settings: Settings) -> Settings:
    """The settings that a run keeps: results are the same on every engine, and so are these."""
    return replace(settings, simulation=replace(settings.simulation, engine="local", workers=None))


def is_over_workers(folder: Path) -> bool:
    """Whether the agents of a run are in cells, perhaps ahead of its bank."""
    return (folder / SHARDS / LOG).exists()


def policy_of(
    folder: Path, settings: Settings, cassette: Cassette, about: Mapping[str, Any]
) -> Policy:
    """The policy of a run."""
    places = places_of_code(folder, about)
    return make_policy(settings, make_world(settings, *places), cassette, *places)


def start_driver(
    folder: Path,
    settings: Settings,
    world: World,
    engine: Placement,
    about: Mapping[str, Any],
    *,
    offline: bool = False,
    say: Say = quiet,
) -> Driver:
    """Start the workers of a run whose agents live in cells."""
    options: dict[str, Any] = {"rules": about.get("rules", ()), "offline": offline, "say": say}
    if engine.kind == "processes":
        start = partial(ProcessLink, _WORKER)
        return Driver(folder, settings, world, engine.workers, start, **options)
    cluster = Cluster(engine.address, engine.workers)
    try:
        begin = partial(cluster.start, _WORKER)
        return Driver(folder, settings, world, engine.workers, begin, cluster.close, **options)
    except BaseException:
        cluster.close()
        raise


def checkpoint_cells(driver: Driver, folder: Path, keep: int) -> Path:
    """Write a checkpoint of each cell, into a folder of its own, and remove the oldest folders."""
    made = folder / "checkpoints" / f"tick-{driver.tick:06}"
    driver.checkpoint(made)
    for old in _cell_checkpoints(folder)[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return made


def reading(folder: Path) -> tuple[Settings, dict[str, Any]]:
    """A run's settings and ``run.json``; its bank is brought up to date, as far as this can."""
    settings, about = read_folder(folder)
    bring_up(folder, settings, about)
    return settings, about


def bring_up(folder: Path, settings: Settings, about: Mapping[str, Any]) -> None:
    """Bring the bank of a run over workers up to the log.

    Where another process has the bank, or the folder can't be written, the bank stays as it is.
    """
    if not is_over_workers(folder):
        return
    try:
        bank = MemoryBank.open(folder / "bank", of_cells(settings), create=False, apply_caps=False)
    except (BankError, OSError):
        return
    try:
        _merge(folder, bank, settings, about)
    except Untrusted:  # somebody else's policy would have to flush
        return
    finally:
        bank.engine.release()


def gather(folder: Path, settings: Settings, about: Mapping[str, Any]) -> None:
    """Bring the bank of a run up to the log, and remove its cells. No process may have them."""
    if not is_over_workers(folder):
        return
    shards = folder / SHARDS
    lock = lock_folder(shards)
    try:
        history.check_unused(folder / "bank")
        bank = MemoryBank.open(folder / "bank", of_cells(settings), create=False, apply_caps=False)
        try:
            _merge(folder, bank, settings, about)
        finally:
            bank.engine.release()
        gone = put_aside(shards)
    except OSError as error:
        raise RunError(f"the cells of {folder} can't be gathered: {error}") from error
    finally:
        lock.release()
    shutil.rmtree(gone, ignore_errors=True)
    for old in _cell_checkpoints(folder):  # the checkpoints of one bank take their place
        shutil.rmtree(old, ignore_errors=True)


def _cell_checkpoints(folder: Path) -> list[Path]:
    found = (folder / "checkpoints").glob("tick-*")
    return sorted(each for each in found if each.is_dir())


def _merge(folder: Path, bank: MemoryBank, settings: Settings, about: Mapping[str, Any]) -> None:
    """Do the ticks of the log again in the run's bank."""
    shards = folder / SHARDS
    base = base_of(shards)
    ticks = sum(1 for _ in read_log(shards / LOG, after=bank.tick))
    gather_cassettes(shards, base.cells, Cassette(folder / CASSETTE))  # they have these ticks
    if not ticks:
        return
    policy: Policy = Logged({})
    reflection = settings.reflection
    if settings.flush.enabled or reflection.enabled or reflection.ratings == "policy":
        # Only then a policy has a say in what is recorded.
        check_run(folder, settings)
        cassette = Cassette(folder / CASSETTE, replay=True)
        policy = policy_of(folder, settings, cassette, about)
    loop = LoggedLoop(bank, base.cells, policy, BranchRules(about.get("rules", ())))
    for entry in islice(read_log(shards / LOG, after=bank.tick), ticks):
        loop.tick(entry)


# A worker's process: it makes the policy of the run, and answers the driver


def make_worker() -> Worker:
    """A worker that has no cells yet."""
    return Worker(_policy)


def _policy(folder: Path, settings: Settings, cassette: Cassette) -> Policy:
    return policy_of(folder, settings, cassette, read_folder(folder)[1])


def main() -> None:
    """Serve the driver that started this process."""
    serve(make_worker())


if __name__ == "__main__":
    main()
