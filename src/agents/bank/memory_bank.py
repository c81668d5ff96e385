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
from ..engine.upkeep import Upkeep
from ..errors import BankError, InvalidInput
from ..memory.context import TokenCounter, approximate_tokens, render
from ..memory.filters import ANY
from ..memory.records import Hits, Memory, check_agent_id, check_whole
from ..memory.requests import NewBatch, check_all_new
from ..notes.agent_notes import Synced
from ..notes.opening import open_notes, sync_notes
from ..notes.watching import NoteWatch, watch_notes
from ..storage.checkpoint import file as checkpoint
from ..storage.embedding.embedders import Embedder
from ..storage.gc_pause import gc_paused
from ..storage.identity import prepare
from ..storage.journal.journal import Journal
from ..storage.lock import lock_folder
from ..storage.mem0.store import check_providers
from ..storage.sqlite import as_it_was
from ..storage.store_sync import Progress
from ..version import __version__
from . import history
from .agent_memory import AgentMemory
from .tick_log import TickLog

__all__ = ["MemoryBank"]


@final
class MemoryBank(Upkeep):
    """The memories of all agents of one run.

    Made by :meth:`open` or :meth:`ephemeral`. Every call commits by itself: when it returns, what
    it changed is on disk. Inside ``with bank.transaction():`` calls commit together or not at all.
    Calls from several threads take turns.
    """

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
            bank = cls(path, journal, settings, chosen, count_tokens, lock)
            undo.callback(bank._store.close)
            if settings.storage.sync != "manual":
                bank._store.check()  # find out now, not when closing, that mem0's store is broken
            if apply_caps:
                with bank._changing():
                    bank._ledger.relieve(bank._caps)
                    for agent in bank.agents():
                        bank._movement.relieve_hot(agent, ())
            if settings.storage.sync != "manual":
                bank._store.catch_up()
            open_notes(bank)
            bank._observe()
            undo.pop_all()
        return bank

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
            bank = cls(None, journal, settings, chosen, count_tokens, None)
            bank._observe()
            undo.pop_all()
        return bank

    def close(self, *, sync: bool = True) -> None:
        """Bring mem0's store up to date, unless ``storage.sync`` is manual, and close the bank.

        Without ``sync``, the store is brought up to date when the bank is opened again.
        """
        with self._turn:
            if not self._is_open:
                return
            if self._ledger.in_transaction:
                raise BankError(
                    "a bank can't be closed inside a transaction", hint="leave it first"
                )
            with ExitStack() as last:  # whatever fails, the rest is still closed
                last.callback(self._release)
                if self.settings.temperature.compact_on_close:
                    self.compact()
                if sync and self._folder is not None and self.settings.storage.sync != "manual":
                    self.sync()

    def __enter__(self) -> Self:
        with self._using():
            return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where = self._folder or "in memory"
        if not self._is_open:
            return f"<MemoryBank {where}: closed>"
        resident = self._ledger.resident
        count = len(resident) + resident.cold
        return f"<MemoryBank {where}: {count} memories, tick {resident.tick}>"

    # Agents and time

    def agent(self, agent_id: str) -> AgentMemory:
        """One agent's view. An agent exists from its first memory on."""
        return AgentMemory(self, check_agent_id(agent_id))

    def advance(self, tick: int) -> None:
        """Move the clock to ``tick``, which may not lie in the past."""
        check_whole("tick", tick)
        with self._changing():
            if tick < self.tick:
                raise InvalidInput(
                    f"the bank is at tick {self.tick} and can't go back to {tick}",
                    hint="MemoryBank.at() looks at an earlier tick",
                )
            if tick > self.tick:
                self._ledger.advance(tick)

    def state_hash(self) -> str:
        """A hash over everything the agents remember, the tick and the seed.

        Equal for equal states, in whatever process, machine or order of agents they came about.
        """
        with self._using():
            resident = self._ledger.resident
            result = hashlib.sha256(f"{resident.seed} {resident.dims} {resident.tick}".encode())
            for agent, block in sorted(resident.blocks.items()):
                result.update(b"\0%s\0%d\0" % (agent.encode(), block.next_sequence))
                result.update(block.fingerprint())
            return result.hexdigest()

    # Transactions

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all changes made inside together; if an error comes out, none of them."""
        with self._changing():
            yield

    def commit(self) -> None:
        """Commit what is pending: inside a transaction, its changes so far."""
        with self._using():
            self._ledger.commit()
            self._after_commit()

    @property
    def ticks(self) -> TickLog:
        """What a simulation keeps of each tick, beside the memories."""
        return TickLog(self)

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
        with self._using():
            if self._ledger.in_transaction:
                raise BankError(
                    "a checkpoint can't be made inside a transaction", hint="leave it first"
                )
            self._ledger.commit()
            checkpoint.write(Path(path), self._ledger, __version__, extra or {})
            if self._folder is not None and self.settings.storage.sync == "checkpoint":
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
            return cls(None, journal, settings, chosen, count_tokens, None)
        except BaseException:
            journal.close()
            raise

    # Notes

    def sync_notes(self) -> dict[str, Synced]:
        """Index what changed in the agents' notes on disk; what became of them, by agent."""
        with self._using():
            return sync_notes(self)

    def watch_notes(self, debounce: float = 1.5) -> NoteWatch:
        """Index notes when their files change, in a thread, until stopped or closed.

        ``with bank.watch_notes():`` ends it with the block; else call :meth:`NoteWatch.stop`. A
        change is indexed ``debounce`` seconds later, together with what came meanwhile. What can't
        be indexed is logged as a warning. Changes of ``notes.extra_paths`` are not watched for, but
        indexed with the next change or search. Needs ``pip install 'tiermem[notes]'``.
        """
        return watch_notes(self, debounce)

    # Storing and searching for many agents at once

    def add_many(self, items: Iterable[tuple[object, ...]]) -> Sequence[Memory]:
        """Store tuples ``(agent_id, content, tier, metadata, options)``, the last three optional.

        ``options`` is a mapping of ``kind``, ``tags``, ``temperature``, ``ttl``, ``expires_tick``,
        ``session`` and ``speaker``, as :meth:`AgentMemory.add` takes them.

        One commit, and the result of adding them one by one; if one is refused, none is stored.
        What comes back is made when somebody looks at it.
        """
        with gc_paused(), self._using():
            most = self.settings.memory.max_content_bytes
            return self._add_new(check_all_new(items, most))

    def _add_new(self, new: NewBatch) -> Sequence[Memory]:
        """Store what was checked."""
        movement = self._movement
        starts = movement.starts(new.tiers, new.options, self.tick)
        with self._changing():
            movement.expire_of(dict.fromkeys(new.agents))
            vectors = self._embedder.encode(new.contents)
            return self._ledger.add_many(new, starts, vectors, self._caps, movement.relieve_hot)

    def search_many(
        self,
        requests: Iterable[tuple[str, str]],
        limit: int | None = None,
        *,
        context_tokens: int | None = None,
    ) -> list[Hits]:
        """:meth:`AgentMemory.search` for many ``(agent_id, query)`` pairs, in one go."""
        return self._search_many(requests, limit, context_tokens, ANY, None)

    def context_many(
        self,
        requests: Iterable[tuple[str, str]],
        limit: int | None = None,
        *,
        context_tokens: int | None = None,
    ) -> list[Hits]:
        """What :meth:`relevant_many` shows, as hits: pinned, then hot, then what is found."""
        return self._search_many(requests, limit, context_tokens, ANY, self._movement.limits)

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

    def _observe(self) -> None:
        """Let OpenTelemetry read the metrics, where the settings want it."""
        if self.settings.telemetry.enabled:
            from ..engine import telemetry  # it imports OpenTelemetry, which may not be installed

            telemetry.observe(self)
