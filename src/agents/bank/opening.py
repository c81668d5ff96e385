"""Ways to make an open bank: in a folder, in memory, or as a copy of an earlier state."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from ..config.load import load_settings
from ..config.settings import Settings
from ..engine import clock
from ..engine.engine import Engine
from ..engine.move import spill_all_over_limits
from ..errors import ConfigError, InvalidInput
from ..memory.context import TokenCounter, approximate_tokens
from ..notes.opening import open_notes
from ..storage.beside_journal import lost_journal, mark
from ..storage.embedding.embedders import Embedder
from ..storage.files import BankLock, lock_folder, sweep_bank
from ..storage.identity import Guard, prepare
from ..storage.journal.journal import Journal
from ..storage.mem0.store import check_installed, check_providers
from ..storage.sqlite import as_it_was
from . import history

Config = str | PathLike[str] | Mapping[str, object] | Settings | None
"""Settings: the path of a YAML file, a mapping, or settings that are loaded already."""
_NOT_SETTINGS = {"create", "apply_caps", "embedder", "count_tokens", "assignments", "preset"}


def open_folder(
    folder: str | PathLike[str],
    config: Config,
    lock: BankLock | None = None,
    clock_mode: str = "ticks",
    is_brief: bool = False,
    /,
    *,
    preset: str | None = None,
    assignments: Iterable[str] = (),
    create: bool = True,
    apply_caps: bool = True,
    embedder: Embedder | Mapping[str, object] | None = None,
    count_tokens: TokenCounter = approximate_tokens,
    **overrides: object,
) -> Engine:
    """:meth:`MemoryBank.open`. If opening fails, the folder is as it was before.

    ``lock`` is the folder's lock, if the caller holds it. ``clock_mode`` counts where neither the
    settings nor the bank say which one. A bank that ``is_brief`` is open for one command: closing
    it compacts nothing, and mem0's store is left alone unless ``storage.sync`` is commit.
    """
    path = _path_of(folder)
    if isinstance(assignments, str):
        raise InvalidInput("assignments is a list of texts such as 'memory.max_pinned=3'")
    assignments = tuple(assignments)
    if isinstance(embedder, Mapping):
        overrides["embedder"], embedder = embedder, None
    if not create and not (path / "journal.db").is_file():
        raise history.no_bank(folder)
    load = partial(
        load_settings, config, preset=preset, assignments=assignments, overrides=overrides
    )
    own = load()  # finds most mistakes before anything is written
    lock = lock or lock_folder(path)
    with ExitStack() as undo:
        undo.callback(lock.release)
        if lost := lost_journal(path):
            raise lost
        undo.callback(as_it_was(path / "journal.db"))
        journal = Journal(path / "journal.db")
        undo.callback(journal.leave)
        identity = journal.get("bank")
        load = partial(load, base=_kept_settings(journal, clock_mode))
        settings = load()
        _check_clock(journal, settings)
        check_providers(settings)
        guard = Guard(path, identity, settings, own)
        guard.check_files()
        at_work = _at_work(settings, is_brief)
        check_installed(at_work)
        chosen = prepare(journal, settings, embedder, guard.embedder())
        settings = at_work
        engine = Engine(path, journal, settings, chosen, count_tokens, lock)
        engine.guard = guard
        engine.settings_with = lambda texts: load(assignments=texts)
        undo.callback(engine.store.close)
        if settings.storage.sync != "manual":
            engine.store.check()  # a broken store is reported now, not when the bank is closed
        if apply_caps:
            with engine.changing():
                engine.ledger.demote_over_caps(engine.caps)
                spill_all_over_limits(engine)
        if settings.storage.sync != "manual":
            engine.store.catch_up()
        open_notes(engine)
        clock.follow(engine)
        sweep_bank(path)
        _observe(engine)
        mark(path, journal.get("bank")["id"])
        engine.record_head()
        undo.pop_all()
    return engine


def open_in_memory(
    config: Config,
    preset: str | None,
    embedder: Embedder | Mapping[str, object] | None,
    count_tokens: TokenCounter,
    overrides: dict[str, object],
) -> Engine:
    """:meth:`MemoryBank.ephemeral`."""
    if isinstance(embedder, Mapping):
        overrides["embedder"], embedder = embedder, None
    settings = load_settings(config, preset=preset, overrides=overrides)
    check_providers(settings)
    with ExitStack() as undo:
        journal = Journal(None)
        undo.callback(journal.close)
        chosen = prepare(journal, settings, embedder)
        settings = _at_work(settings)
        engine = Engine(None, journal, settings, chosen, count_tokens, None)
        clock.follow(engine)
        _observe(engine)
        undo.pop_all()
    return engine


def copy_of(
    folder: Path,
    tick: int | None,
    config: Config,
    preset: str | None,
    assignments: Iterable[str],
    embedder: Embedder | None,
    count_tokens: TokenCounter,
) -> Engine:
    """:meth:`MemoryBank.at`."""
    with ExitStack() as undo:
        journal = history.past(folder, tick)
        undo.callback(journal.close)
        identity = journal.get("bank")
        load = partial(load_settings, config, preset=preset, assignments=tuple(assignments))
        own = load()
        load = partial(load, base=_kept_settings(journal))
        guard = Guard(folder, identity, load(), own)
        settings = guard.without_files()
        _check_clock(journal, settings)
        chosen = prepare(journal, settings, embedder, guard.embedder())
        engine = Engine(None, journal, settings, chosen, count_tokens, None)
        engine.store.leave(folder, settings.store)  # a copy reads cold memories itself
        engine.guard = guard
        engine.settings_with = lambda texts: load(assignments=texts)
        undo.pop_all()
    return engine


def _observe(engine: Engine) -> None:
    """Let OpenTelemetry read the metrics, if ``telemetry.enabled`` is true."""
    if engine.settings.telemetry.enabled:
        from ..engine import telemetry  # it imports OpenTelemetry, which may not be installed

        telemetry.observe(engine)


def open_restored(
    path: Path, into: str | PathLike[str], config: Config, options: Mapping[str, Any]
) -> Engine:
    """:meth:`MemoryBank.restore`. Wrong settings are refused first."""
    folder = _path_of(into)
    load_settings(
        config,
        preset=options.get("preset"),
        assignments=options.get("assignments", ()),
        overrides={name: own for name, own in options.items() if name not in _NOT_SETTINGS},
    )
    lock = history.restore(path, folder)
    try:
        return open_folder(folder, config, lock, **options)
    except BaseException:
        lock.release()
        raise


def _at_work(settings: Settings, is_brief: bool = False) -> Settings:
    """The settings of a bank while it is open; it keeps the others."""
    if is_brief:
        temperature = replace(settings.temperature, compact_on_close=False)
        settings = replace(settings, temperature=temperature)
    if settings.store.provider == "none" or (is_brief and settings.storage.sync != "commit"):
        settings = replace(settings, storage=replace(settings.storage, sync="manual"))
    return settings


def _kept_settings(journal: Journal, clock_mode: str = "ticks") -> Mapping[str, Any]:
    """The settings that a bank keeps, with its ``clock.mode``, which older banks do not name.

    A wall clock moves an older bank if one did before, or if ``clock_mode`` is wall and the tick
    was never moved. A new bank keeps ``clock_mode``, unless other settings are given.
    """
    identity = journal.get("bank")
    settings: dict[str, Any] = identity["settings"] if identity else {}
    own = settings.get("clock", {}) if isinstance(settings, dict) else None
    if not isinstance(own, dict) or "mode" in own:  # loading them finds what is wrong
        return settings
    is_wall = journal.get("clock") or (
        clock_mode == "wall" and journal.tick == 0 and journal.last_tick() is None
    )
    return {**settings, "clock": {**own, "mode": "wall" if is_wall else "ticks"}}


def _check_clock(journal: Journal, settings: Settings) -> None:
    if settings.clock.mode == "wall" and journal.last_tick() is not None:
        raise ConfigError(
            "clock.mode: wall is not for the bank of a simulation, whose run moves its ticks",
            hint="leave clock.mode out, or set it to ticks",
        )


def _path_of(folder: str | PathLike[str]) -> Path:
    """The folder's absolute path: the program may change its directory later."""
    if not str(folder):
        raise InvalidInput("a bank needs a folder; got an empty path", hint="name a folder")
    return Path(folder).absolute()
