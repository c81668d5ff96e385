"""Ways to make an open bank: in a folder, in memory, or as a copy of an earlier state."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, final

from ..config.load import load_settings
from ..config.settings import Settings
from ..engine import clock
from ..engine.engine import Engine
from ..engine.move import spill_all_over_limits
from ..errors import ConfigError, InvalidInput
from ..memory.context import TokenCounter, approximate_tokens
from ..notes.opening import open_notes
from ..storage.beside_journal import lost_journal
from ..storage.embedding import Embedder
from ..storage.files import BankLock, lock_folder, sweep_bank
from ..storage.journal.journal import Journal
from ..storage.mem0.store import check_installed, check_providers
from ..storage.sqlite import as_it_was
from ..storage.trust import Guard, prepare
from ..storage.upgrading import upgrade
from . import history

Config = str | PathLike[str] | Mapping[str, object] | Settings | None
"""Settings: the path of a YAML file, a mapping, or settings that are loaded already."""

NOT_SETTINGS = {"create", "apply_caps", "embedder", "count_tokens", "assignments", "preset"}
"""The arguments of :class:`Opening` that are no settings, for whoever passes both on."""


@final
class Opening:
    """What a caller says of a bank: settings in layers, the embedder, and what the bank is for.

    Wrong settings are refused at once, before anything is written. ``clock_mode`` counts where
    neither the settings nor the bank say which one. A bank that ``is_brief`` is open for one
    command: closing it compacts nothing, and mem0's store is left alone unless ``storage.sync`` is
    commit.
    """

    def __init__(
        self,
        config: Config = None,
        *,
        preset: str | None = None,
        assignments: Iterable[str] = (),
        create: bool = True,
        apply_caps: bool = True,
        embedder: Embedder | Mapping[str, object] | None = None,
        count_tokens: TokenCounter = approximate_tokens,
        clock_mode: str = "ticks",
        is_brief: bool = False,
        overrides: Mapping[str, object] | None = None,
    ) -> None:
        if isinstance(assignments, str):
            raise InvalidInput("assignments is a list of texts such as 'memory.max_pinned=3'")
        if isinstance(embedder, Mapping):
            overrides, embedder = {**(overrides or {}), "embedder": embedder}, None
        self._load = partial(
            load_settings,
            config,
            preset=preset,
            assignments=tuple(assignments),
            overrides=overrides,
        )
        self._given: Settings | ConfigError
        try:
            self._given = self._load()
        except ConfigError as error:  # the bank may have a profile, whose settings these are
            self._given = error
        self._create, self._apply_caps = create, apply_caps
        self._embedder, self._count_tokens = embedder, count_tokens
        self._clock_mode, self._is_brief = clock_mode, is_brief

    def in_folder(self, folder: str | PathLike[str], lock: BankLock | None = None) -> Engine:
        """:meth:`MemoryBank.open`. If opening fails, the folder is as it was before.

        ``lock`` is the folder's lock, if the caller holds it.
        """
        path = path_of(folder)
        is_new = not (path / "journal.db").is_file()
        if is_new:
            self._settings_given(None)
        if is_new and not self._create:
            raise history.no_bank(folder)
        lock = lock or lock_folder(path)
        with ExitStack() as undo:
            undo.callback(lock.release)
            if lost := lost_journal(path):
                raise lost
            upgrade(path / "journal.db")
            undo.callback(as_it_was(path / "journal.db"))
            journal = Journal(path / "journal.db")
            undo.callback(journal.leave)
            engine = self._engine(journal, path, lock)
            undo.callback(engine.store.close)
            syncs = engine.settings.storage.sync != "manual"
            if syncs:
                engine.store.check()  # a broken store is reported now, not when the bank is closed
            if self._apply_caps:
                with engine.changing():
                    engine.ledger.demote_over_caps(engine.caps)
                    spill_all_over_limits(engine)
            if syncs:
                engine.store.catch_up()
            open_notes(engine)
            if engine.settings.clock.mode == "wall":
                clock.follow(engine)
            sweep_bank(path)
            _observe(engine)
            engine.record_head()
            undo.pop_all()
        return engine

    def in_memory(self) -> Engine:
        """:meth:`MemoryBank.ephemeral`."""
        with ExitStack() as undo:
            journal = Journal(None)
            undo.callback(journal.close)
            engine = self._engine(journal, None, None)
            if engine.settings.clock.mode == "wall":
                clock.follow(engine)
            _observe(engine)
            undo.pop_all()
        return engine

    def as_copy(self, folder: Path, tick: int | None) -> Engine:
        """:meth:`MemoryBank.at`."""
        with ExitStack() as undo:
            journal = history.past(folder, tick)
            undo.callback(journal.close)
            engine = self._engine(journal, folder, None)
            engine.store.leave(folder, engine.settings.store)  # a copy reads cold memories itself
            undo.pop_all()
        return engine

    def restored(self, path: Path, into: str | PathLike[str]) -> Engine:
        """:meth:`MemoryBank.restore`."""
        self._settings_given(None)
        folder = path_of(into)
        lock = history.restore(path, folder)
        try:
            return self.in_folder(folder, lock)
        except BaseException:
            lock.release()
            raise

    def _settings_given(self, identity: Mapping[str, Any] | None) -> Settings:
        """What the caller said above the defaults, or the error of it.

        ``identity`` is that of a bank, whose profile may know settings that nobody else knows.
        """
        if isinstance(self._given, Settings):
            return self._given
        kept = identity["settings"] if identity else {}
        name = kept.get("profile") if isinstance(kept, dict) else None
        if name is None:
            raise self._given
        return self._load(base={"profile": name})

    def _engine(self, journal: Journal, folder: Path | None, lock: BankLock | None) -> Engine:
        """The bank of a journal, with its kept settings below the given ones.

        Without a lock, the bank is in memory; a ``folder`` is then that of the bank it copies.
        """
        load, guard, refused = self._load, None, None
        identity: dict[str, Any] | None = None
        is_copy = folder is not None and lock is None
        if folder is not None:
            identity = journal.get("bank")
        given = settings = self._settings_given(identity)
        if folder is not None:
            load = partial(load, base=_kept_settings(journal, identity, self._clock_mode))
            settings = load()
            _check_clock(journal, settings)
            guard = Guard(folder, identity, settings, given)
            refused = guard.embedder()
        if is_copy and guard is not None:
            settings = at_work = guard.without_files()
        else:
            check_providers(settings)
            at_work = _at_work(settings, self._is_brief)
        if guard is not None and not is_copy:
            guard.check_files()
            check_installed(at_work)
        identity, embedder = prepare(journal, identity, settings, self._embedder, refused)
        place = None if lock is None else folder
        engine = Engine(place, journal, identity, at_work, embedder, self._count_tokens, lock)
        if guard is not None:
            engine.guard = guard
            engine.settings_with = lambda texts: load(assignments=texts)
        return engine


def _observe(engine: Engine) -> None:
    """Let OpenTelemetry read the metrics, if ``telemetry.enabled`` is true."""
    if engine.settings.telemetry.enabled:
        from ..engine import telemetry  # it imports OpenTelemetry, which may not be installed

        telemetry.observe(engine)


def _at_work(settings: Settings, is_brief: bool = False) -> Settings:
    """The settings of a bank while it is open; it keeps the others."""
    if is_brief:
        temperature = replace(settings.temperature, compact_on_close=False)
        settings = replace(settings, temperature=temperature)
    if settings.store.provider == "none" or (is_brief and settings.storage.sync != "commit"):
        settings = replace(settings, storage=replace(settings.storage, sync="manual"))
    return settings


def _kept_settings(
    journal: Journal, identity: Mapping[str, Any] | None, clock_mode: str
) -> Mapping[str, Any]:
    """The settings that a bank keeps, with its ``clock.mode``, which older banks do not name.

    A wall clock moves an older bank if one did before, or if ``clock_mode`` is wall and the tick
    was never moved. A new bank keeps ``clock_mode``, unless other settings are given.
    """
    settings: dict[str, Any] = identity["settings"] if identity else {}
    own = settings.get("clock", {}) if isinstance(settings, dict) else None
    if not isinstance(own, dict) or "mode" in own:  # loading them finds what is wrong
        return settings
    is_wall = journal.get("clock") or (
        clock_mode == "wall" and journal.tick == 0 and not journal.attachments.exist()
    )
    return {**settings, "clock": {**own, "mode": "wall" if is_wall else "ticks"}}


def _check_clock(journal: Journal, settings: Settings) -> None:
    if settings.clock.mode == "wall" and journal.attachments.exist():
        raise ConfigError(
            "clock.mode: wall is not for the bank of a simulation, whose run moves its ticks",
            hint="leave clock.mode out, or set it to ticks",
        )


def path_of(folder: str | PathLike[str]) -> Path:
    """The folder's absolute path: the program may change its directory later."""
    if not str(folder):
        raise InvalidInput("a bank needs a folder; got an empty path", hint="name a folder")
    return Path(folder).absolute()
