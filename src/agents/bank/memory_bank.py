"""The memories of all agents of one run, in one folder."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

from ..config.load import load_settings
from ..config.settings import Settings
from ..engine import upkeep
from ..engine.open_bank import OpenBank
from ..engine.status import Status
from ..errors import BankError, InvalidInput
from ..memory.checks import check_agent_id, check_whole
from ..memory.context import TokenCounter, approximate_tokens, render
from ..memory.records import Hits, Memory
from ..memory.results import Compaction
from ..notes.index import Synced
from ..notes.opening import open_notes, sync_notes
from ..notes.watching import NoteWatch, watch_notes
from ..storage.checkpoint import file as checkpoint
from ..storage.embedding.embedders import Embedder
from ..storage.identity import prepare
from ..storage.journal.journal import Journal
from ..storage.lock import lock_folder
from ..storage.mem0.store import check_providers
from ..storage.resident.fingerprint import fingerprint
from ..storage.sqlite import as_it_was
from ..storage.store_sync import Progress
from ..version import __version__
from . import history
from .agent_memory import AgentMemory
from .tick_log import TickLog

__all__ = ["MemoryBank"]


@final
class MemoryBank:
    """The memories of all agents of one run.

    Made by :meth:`open` or :meth:`ephemeral`. Every call commits by itself: when it returns, what
    it changed is on disk. Inside ``with bank.transaction():`` calls commit together or not at all.
    Calls from several threads take turns.
    """

    __slots__ = ("__weakref__", "parts")

    def __init__(self, parts: OpenBank) -> None:
        self.parts = parts
        """The open bank itself, for the rooms of this package; its form may change."""

    # Opening and closing

    @classmethod
    def open(
        cls,
        folder: str | PathLike[str],
        config: str | PathLike[str] | Mapping[str, object] | Settings | None = None,
        *,
        preset: str | None = None,
        assignments: Iterable[str] = (),
        create: bool = True,
        apply_caps: bool = True,
        embedder: Embedder | Mapping[str, object] | None = None,
        count_tokens: TokenCounter = approximate_tokens,
        **overrides: object,
    ) -> Self:
        """Open the bank in ``folder``; make it, if there is none and ``create`` is true.

        An existing bank has the settings that it was made with. On top go the ``preset`` of a
        name, then ``config``, a YAML file or a mapping, then ``assignments`` like
        ``"memory.max_pinned=3"``, then ``overrides`` like ``memory={"max_pinned": 3}``; they hold
        until the bank is closed.
        ``embedder`` is such a section, or an embedder of your own.
        An existing bank keeps its seed and its embedder. Where the caps are smaller than before,
        the oldest memories of a tier over its cap move down, unless ``apply_caps`` is false.
        """
        if not str(folder):
            raise InvalidInput("a bank needs a folder; got an empty path", hint="name a folder")
        path = Path(folder).absolute()  # the program may change its directory later
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
        load()  # finds most mistakes before anything is written
        lock = lock_folder(path)
        with ExitStack() as undo:
            undo.callback(lock.release)
            undo.callback(as_it_was(path / "journal.db"))  # a bank that never opened is none
            journal = Journal(path / "journal.db")
            undo.callback(journal.close)
            identity = journal.get("bank")
            settings = load(base=identity and identity["settings"])
            check_providers(settings)
            chosen = prepare(journal, settings, embedder)
            parts = OpenBank(path, journal, settings, chosen, count_tokens, lock)
            undo.callback(parts.store.close)
            if settings.storage.sync != "manual":
                parts.store.check()  # find out now, not when closing, that mem0's store is broken
            if apply_caps:
                with parts.changing():
                    parts.ledger.relieve(parts.caps)
                    for agent in upkeep.agents(parts):
                        parts.movement.relieve_hot(agent, ())
            if settings.storage.sync != "manual":
                parts.store.catch_up()
            open_notes(parts)
            parts.observed()
            undo.pop_all()
        return cls(parts)

    @classmethod
    def ephemeral(
        cls,
        config: str | PathLike[str] | Mapping[str, object] | Settings | None = None,
        *,
        preset: str | None = None,
        embedder: Embedder | Mapping[str, object] | None = None,
        count_tokens: TokenCounter = approximate_tokens,
        **overrides: object,
    ) -> Self:
        """A bank in memory, gone when closed; mem0's store is written only by :meth:`sync`."""
        if isinstance(embedder, Mapping):
            overrides["embedder"], embedder = embedder, None
        settings = load_settings(config, preset=preset, overrides=overrides)
        check_providers(settings)
        with ExitStack() as undo:
            journal = Journal(None)
            undo.callback(journal.close)
            chosen = prepare(journal, settings, embedder)
            parts = OpenBank(None, journal, settings, chosen, count_tokens, None)
            parts.observed()
            undo.pop_all()
        return cls(parts)

    def close(self, *, sync: bool = True) -> None:
        """Bring mem0's store up to date, unless ``storage.sync`` is manual, and close the bank.

        Without ``sync``, the store is brought up to date when the bank is opened again.
        """
        with self.parts.turn:
            if not self.parts.is_open:
                return
            if self.parts.ledger.in_transaction:
                raise BankError(
                    "a bank can't be closed inside a transaction", hint="leave it first"
                )
            with ExitStack() as last:  # whatever fails, the rest is still closed
                last.callback(self.parts.release)
                if self.settings.temperature.compact_on_close:
                    self.compact()
                if (
                    sync
                    and self.parts.folder is not None
                    and self.settings.storage.sync != "manual"
                ):
                    self.sync()

    def __enter__(self) -> Self:
        with self.parts.using():
            return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where = self.parts.folder or "in memory"
        if not self.parts.is_open:
            return f"<MemoryBank {where}: closed>"
        resident = self.parts.ledger.resident
        count = len(resident) + resident.cold
        return f"<MemoryBank {where}: {count} memories, tick {resident.tick}>"

    # Agents, time and settings

    @property
    def settings(self) -> Settings:
        """What the bank was opened with."""
        return self.parts.settings

    @property
    def folder(self) -> Path | None:
        """Where the bank is; None for one in memory."""
        return self.parts.folder

    @property
    def tick(self) -> int:
        """The current tick; a new memory is created in it."""
        return self.parts.tick

    def agents(self) -> list[str]:
        """The ids of all agents that ever stored a memory, in order."""
        return upkeep.agents(self.parts)

    def agent(self, agent_id: str) -> AgentMemory:
        """One agent's view. An agent exists from its first memory on."""
        return AgentMemory(self.parts, check_agent_id(agent_id))

    def advance(self, tick: int) -> None:
        """Move the clock to ``tick``, which may not lie in the past."""
        check_whole("tick", tick)
        with self.parts.changing():
            if tick < self.tick:
                raise InvalidInput(
                    f"the bank is at tick {self.tick} and can't go back to {tick}",
                    hint="MemoryBank.at() looks at an earlier tick",
                )
            if tick > self.tick:
                self.parts.ledger.advance(tick)

    def state_hash(self) -> str:
        """A hash over everything the agents remember, the tick and the seed.

        Equal for equal states, in whatever process, machine or order of agents they came about.
        """
        with self.parts.using():
            resident = self.parts.ledger.resident
            result = hashlib.sha256(f"{resident.seed} {resident.dims} {resident.tick}".encode())
            for agent, block in sorted(resident.blocks.items()):
                result.update(b"\0%s\0%d\0" % (agent.encode(), block.next_sequence))
                result.update(fingerprint(block))
            return result.hexdigest()

    # Transactions

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all changes made inside together; if an error comes out, none of them."""
        with self.parts.changing():
            yield

    def commit(self) -> None:
        """Commit what is pending: inside a transaction, its changes so far."""
        with self.parts.using():
            self.parts.ledger.commit()
            self.parts.after_commit()

    @property
    def ticks(self) -> TickLog:
        """What a simulation keeps of each tick, beside the memories."""
        return TickLog(self.parts)

    # Checkpoints

    def checkpoint(
        self,
        path: str | PathLike[str],
        extra: Mapping[str, object] | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        """Write the whole state to one portable file, from which :meth:`restore` makes a bank.

        The file appears when all of it is on disk, in place of an older one of that name.
        ``extra`` holds JSON values of your own. Where ``storage.sync`` is checkpoint, mem0's store
        is brought up to date afterwards.
        """
        with self.parts.using():
            if self.parts.ledger.in_transaction:
                raise BankError(
                    "a checkpoint can't be made inside a transaction", hint="leave it first"
                )
            self.parts.ledger.commit()
            checkpoint.write(Path(path), self.parts.ledger, __version__, extra or {})
            if self.parts.folder is not None and self.settings.storage.sync == "checkpoint":
                self.sync(progress)

    @classmethod
    def restore(
        cls,
        path: str | PathLike[str],
        into: str | PathLike[str],
        config: str | PathLike[str] | Mapping[str, object] | Settings | None = None,
        **options: Any,
    ) -> Self:
        """Open, in the folder ``into``, a bank with the state of a checkpoint.

        A bank that is there goes back to that state, if it is the one that the checkpoint was made
        of; another is left alone, with a :class:`BankError`. mem0's store is set right by the next
        sync, or when the bank is closed: what came after is gone from it, changed tiers are back.
        ``options`` are those of :meth:`open`.
        """
        if not str(into):
            raise InvalidInput("a bank needs a folder; got an empty path", hint="name a folder")
        names = ("create", "apply_caps", "embedder", "count_tokens", "assignments", "preset")
        changed = {name: value for name, value in options.items() if name not in names}
        # Mistakes are found before the bank that is there goes back.
        load_settings(
            config,
            preset=options.get("preset"),
            assignments=options.get("assignments", ()),
            overrides=changed,
        )
        history.restore(Path(path), Path(into).absolute())
        return cls.open(into, config, **options)

    @classmethod
    def at(
        cls,
        folder: str | PathLike[str],
        tick: int | None = None,
        config: str | PathLike[str] | Mapping[str, object] | Settings | None = None,
        *,
        preset: str | None = None,
        assignments: Iterable[str] = (),
        embedder: Embedder | None = None,
        count_tokens: TokenCounter = approximate_tokens,
    ) -> Self:
        """The bank in ``folder`` as it was after ``tick``, or as it is: a copy, to look at.

        Whoever has the bank open may go on writing to it. What is changed in the copy is gone when
        it is closed. ``preset``, ``config`` and ``assignments`` go on top of the settings that the
        bank was made with.
        """
        journal = history.past(Path(folder), tick)
        try:
            journal.set(store=None)  # a copy has none, and finds in the journal what is cold
            base = journal.get("bank")["settings"]
            settings = load_settings(config, preset=preset, assignments=assignments, base=base)
            chosen = prepare(journal, settings, embedder)
            return cls(OpenBank(None, journal, settings, chosen, count_tokens, None))
        except BaseException:
            journal.close()
            raise

    # Notes

    def sync_notes(self) -> dict[str, Synced]:
        """Index what changed in the agents' notes on disk; what became of them, by agent."""
        with self.parts.using():
            return sync_notes(self.parts)

    def watch_notes(self, debounce: float = 1.5) -> NoteWatch:
        """Index notes when their files change, in a thread, until stopped or closed.

        ``with bank.watch_notes():`` ends it with the block; else call :meth:`NoteWatch.stop`. A
        change is indexed ``debounce`` seconds later, together with what came meanwhile. What can't
        be indexed is logged as a warning. Changes of ``notes.extra_paths`` are not watched for, but
        indexed with the next change or search. Needs ``pip install 'tiermem[notes]'``.
        """
        return watch_notes(self.parts, debounce)

    # Movement

    def compact(self, agent_id: str | None = None, *, dry_run: bool = False) -> Compaction:
        """Apply ``temperature.rules`` to the memories of all agents, or of one, in one commit.

        A second time moves nothing. With ``dry_run``, it says what would move, and by which rule.
        """
        return upkeep.compact(self.parts, agent_id, dry_run=dry_run)

    def prune(self, agent_id: str | None = None, *, dry_run: bool = False) -> list[str]:
        """Archive what agents have cold beyond ``temperature.max_cold_items``; the ids."""
        return upkeep.prune(self.parts, agent_id, dry_run=dry_run)

    def sweep(self, *, every: int = 1) -> None:
        """Let time do its work: what expired is deleted, what was deleted long ago is purged, and
        with ``decay.enabled``, what nobody used moves to a lower temperature.

        A simulation does it in each tick, and lets the memories of each agent fade once in
        ``every`` ticks, the setting ``decay.every``. Where time passes otherwise, call it now and
        then.
        """
        upkeep.sweep(self.parts, every)

    # Looking

    def status(self, agent_id: str | None = None) -> Status:
        """How full the bank is, or one agent's part of it, and what is worth doing about it."""
        return upkeep.status(self.parts, agent_id)

    def metrics(self) -> dict[str, float]:
        """What happened since the bank was opened, as far as it is committed, by its name."""
        return upkeep.metrics(self.parts)

    # mem0's store

    def sync(self, progress: Progress | None = None) -> int:
        """Write to mem0's store what it lacks; the number of memories written or deleted."""
        return upkeep.sync(self.parts, progress)

    def repair_store(self, progress: Progress | None = None) -> list[str]:
        """Rebuild mem0's store from the journal; says what was done, line by line."""
        return upkeep.repair_store(self.parts, progress)

    def vacuum(self, progress: Progress | None = None) -> None:
        """Write the journal anew, and mem0's store where it is local.

        What was purged is gone from them before; after this, it is gone from the free space in
        their files as well. The store is built in a process of its own: Chroma writes to unused
        parts of its files whatever lay in the memory of the process.
        """
        upkeep.vacuum(self.parts, progress)

    def mem0_config(self) -> dict[str, Any]:
        """The ``vector_store`` config for a plain ``mem0.Memory`` on this bank's store."""
        return self.parts.store.config()

    # Storing and searching for many agents at once

    def add_many(self, items: Iterable[tuple[object, ...]]) -> Sequence[Memory]:
        """Store tuples ``(agent_id, content, tier, metadata, options)``, the last three optional.

        ``options`` is a mapping of ``kind``, ``tags``, ``temperature``, ``ttl``, ``expires_tick``,
        ``session`` and ``speaker``, as :meth:`AgentMemory.add` takes them.

        One commit, and the result of adding them one by one; if one is refused, none is stored.
        What comes back is made when somebody looks at it.
        """
        return self.parts.add_many(items)

    def search_many(
        self,
        requests: Iterable[tuple[str, str]],
        limit: int | None = None,
        *,
        context_tokens: int | None = None,
    ) -> list[Hits]:
        """:meth:`AgentMemory.search` for many ``(agent_id, query)`` pairs, in one go."""
        return self.parts.search_many(requests, limit, context_tokens)

    def context_many(
        self,
        requests: Iterable[tuple[str, str]],
        limit: int | None = None,
        *,
        context_tokens: int | None = None,
    ) -> list[Hits]:
        """What :meth:`relevant_many` shows, as hits: pinned, then hot, then what is found."""
        hot = self.parts.movement.limits
        return self.parts.search_many(requests, limit, context_tokens, hot=hot)

    def relevant_many(
        self,
        requests: Iterable[tuple[str, str]],
        limit: int | None = None,
        *,
        context_tokens: int | None = None,
    ) -> list[str]:
        """:meth:`AgentMemory.get_relevant_memories` for many pairs, in one go."""
        found = self.context_many(requests, limit, context_tokens=context_tokens)
        return [render(hits) for hits in found]
