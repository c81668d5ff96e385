"""The memories of all agents of one run, in one folder; and the groups of its agents."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from os import PathLike
from pathlib import Path
from typing import Any, Self, final

from ..config.settings import Settings
from ..engine import clock, move, read, upkeep, write
from ..engine.engine import Engine
from ..engine.status import Status
from ..errors import BankError, InvalidInput
from ..memory.context import TokenCounter, approximate_tokens, render
from ..memory.filters import parse_filter
from ..memory.records import Compaction, Hits, Memory, TimePassed
from ..memory.scopes import check_scope
from ..memory.sources import Chain
from ..memory.tiers import TierLike
from ..notes.index import Synced
from ..notes.opening import sync_notes
from ..notes.watching import NoteWatch, watch_notes
from ..storage import checkpoint
from ..storage.embedding import Embedder
from ..storage.files import OneWriter
from ..storage.store_sync import Progress
from ..telling import groups, tell
from ..telling.trust import Trusting
from ..version import __version__
from .agent_memory import AgentMemory
from .backup import backup
from .history import checkpoint_extra, reembed
from .opening import NOT_SETTINGS, Config, Opening, path_of


@final
class Group:
    """A group of agents with a board, made by :meth:`MemoryBank.group`.

    Members find what is on the board by ``search(..., include_groups=True)``. The board belongs to
    no agent: no other call of an agent reaches it, and agents only add to it.
    """

    __slots__ = ("engine", "name")

    def __init__(self, engine: Engine, name: str) -> None:
        self.name = name
        self.engine = engine
        """The open bank itself, for the code of this package; its form may change."""

    def __repr__(self) -> str:
        return f"<Group {self.name}: {len(self.members())} members>"

    def members(self) -> dict[str, int]:
        """The members, each with the tick in which it joined, in alphabetical order."""
        with self.engine.using():
            return groups.members(self.engine, groups.board_of(self.name))

    def join(self, agents: Iterable[str]) -> None:
        """Make agents members; they find all that is on the board, also what was there before."""
        if isinstance(agents, str):
            raise InvalidInput("join() takes a list of agents", hint="use join([name]) for one")
        groups.join(self.engine, self.name, agents)

    def leave(self, agent_id: str) -> None:
        """End a membership: from now on, the agent neither reads nor writes the board."""
        groups.leave(self.engine, self.name, agent_id)

    def post(self, agent_id: str, content: str, tier: TierLike | None = None) -> Memory:
        """Let a member write to the board. ``memory.speaker`` is the writer."""
        return groups.post(self.engine, self.name, agent_id, content, tier)

    def all(self) -> list[Memory]:
        """What is on the board, oldest first, whoever asks: a look from outside the simulation."""
        return read.active(self.engine, groups.board_of(self.name), None, None)

    def forget(self, memory_id: str) -> None:
        """Purge a memory of the board now: its text and its vector are gone, from the journal too.

        As with :meth:`AgentMemory.forget`, older checkpoints still have its text, and
        :meth:`MemoryBank.vacuum` clears the free space in the files as well. What members stored of
        it is their own.
        """
        with self.engine.using():
            memory = groups.find_on_board(self.engine, self.name, memory_id)
            move.forget(self.engine, memory.agent_id, memory)


@final
class MemoryBank(OneWriter):
    """The memories of all agents of one run.

    :meth:`open` makes a bank in a folder, :meth:`ephemeral` one in memory. Each call commits by
    itself: when the call returns, its changes are on disk. Inside ``with bank.transaction():`` the
    calls commit together or not at all. Several threads may use one bank; their calls take turns.
    After :meth:`close`, every call raises :class:`BankClosed`. After an error that could not be
    undone, every call but :meth:`close` raises :class:`BankBroken`.
    """

    __slots__ = ("__weakref__", "engine")

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        """The open bank itself, for the code of this package; its form may change."""
        if engine.settings.retrieval.trust:
            engine.search.weigh_by(Trusting(engine.state))

    # Opening and closing

    @classmethod
    def open(
        cls,
        folder: str | PathLike[str],
        config: Config = None,
        *,
        preset: str | None = None,
        assignments: Iterable[str] = (),
        create: bool = True,
        apply_caps: bool = True,
        embedder: Embedder | Mapping[str, object] | None = None,
        count_tokens: TokenCounter = approximate_tokens,
        **overrides: object,
    ) -> Self:
        """Open the bank in ``folder``. If there is none and ``create`` is true, make it.

        An existing bank keeps the settings that it was made with. Other settings go on top, in
        this order: the named ``preset``; ``config``, a YAML file or a mapping; ``assignments`` such
        as ``"memory.max_pinned=3"``; ``overrides`` such as ``memory={"max_pinned": 3}``. They hold
        until the bank is closed. The seed of an existing bank never changes, and its embedder only
        by :meth:`reembed`.

        ``embedder`` is an embedder of your own, or a mapping: the settings' section ``embedder``.
        With ``store=None``, a bank has no store of mem0's and needs neither mem0 nor Chroma.
        ``count_tokens`` counts the tokens of a text for all limits in tokens. Where a tier's cap
        is smaller than before, the tier's oldest memories move down; with ``apply_caps=False``,
        they stay. :class:`BankLocked` if another process has the bank open.
        """
        path_of(folder)  # an empty path is refused first
        opening = Opening(
            config,
            preset=preset,
            assignments=assignments,
            create=create,
            apply_caps=apply_caps,
            embedder=embedder,
            count_tokens=count_tokens,
            overrides=overrides,
        )
        return cls(opening.in_folder(folder))

    @classmethod
    def ephemeral(
        cls,
        config: Config = None,
        *,
        preset: str | None = None,
        embedder: Embedder | Mapping[str, object] | None = None,
        count_tokens: TokenCounter = approximate_tokens,
        **overrides: object,
    ) -> Self:
        """Make a bank in memory. When it is closed, its memories are gone.

        The arguments are those of :meth:`open`. Only :meth:`sync` writes mem0's store.
        """
        opening = Opening(
            config,
            preset=preset,
            embedder=embedder,
            count_tokens=count_tokens,
            overrides=overrides,
        )
        return cls(opening.in_memory())

    def close(self, *, sync: bool = True) -> None:
        """Bring mem0's store up to date and close the bank. A second call does nothing.

        With ``sync=False``, or where ``storage.sync`` is manual, mem0's store is left as it is.
        The next opening brings it up to date, unless ``storage.sync`` is manual. A store that
        does not answer, has no room or is on a server that is away is a warning in the log, and is
        brought up to date then too. A store that is damaged or another bank's, or that lacks a
        package, is an error; the bank is closed all the same, and nothing is lost.
        """
        with self.engine.turn:
            if not self.engine.is_open:
                return
            ledger = self.engine.ledger
            if ledger.in_transaction and not ledger.is_broken:
                raise BankError(
                    "a bank can't be closed inside a transaction", hint="leave it first"
                )
            with ExitStack() as last:  # the bank is closed even if the compaction or the sync fails
                last.callback(self.engine.release)
                if ledger.is_broken:  # nothing is written from it
                    return
                wanted = self.settings.temperature.compact_on_close
                if wanted and not ledger.journal.attachments.exist():  # a run would be another one
                    self.compact()
                if (
                    sync
                    and self.engine.folder is not None
                    and self.settings.storage.sync != "manual"
                ):
                    self.engine.store.catch_up_at_last()

    def __enter__(self) -> Self:
        with self.engine.using():
            return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        where = self.engine.folder or "in memory"
        if not self.engine.is_open:
            return f"<MemoryBank {where}: closed>"
        if self.engine.ledger.is_broken:
            return f"<MemoryBank {where}: broken>"
        count = sum(self.engine.state.tier_counts().values())
        return f"<MemoryBank {where}: {count} memories, tick {self.engine.tick}>"

    # Agents, time and settings

    @property
    def settings(self) -> Settings:
        """The settings that the bank was opened with."""
        return self.engine.settings

    @property
    def folder(self) -> Path | None:
        """The bank's folder; None for a bank in memory and for a copy."""
        return self.engine.folder

    @property
    def tick(self) -> int:
        """The current tick. New memories have it as ``created_tick``."""
        self.engine.check_whole()
        return self.engine.tick

    def agents(self) -> list[str]:
        """The ids of all agents that ever stored a memory, in alphabetical order."""
        return upkeep.agents(self.engine)

    def agent(
        self, agent_id: str, *, project: str | None = None, environment: str | None = None
    ) -> AgentMemory:
        """One agent's view of its own memories. An agent exists from its first memory on.

        A ``project`` or an ``environment`` is a part of its id. Nothing of an agent of the same
        name in another one is found here, and neither reaches the other by telling or groups.
        """
        scope = check_scope(project, environment)
        return AgentMemory(self.engine, scope.agent_id(agent_id))

    def group(
        self,
        name: str,
        members: Iterable[str] = (),
        *,
        project: str | None = None,
        environment: str | None = None,
    ) -> Group:
        """A group of agents with a shared board. ``members`` join it, and make it if it is new.

        In a ``project`` or an ``environment``, ``name`` and ``members`` are names there.
        """
        scope = check_scope(project, environment)
        group = Group(self.engine, groups.board_of(scope.agent_id(name))[1:])
        group.join(members if isinstance(members, str) else map(scope.agent_id, members))
        with self.engine.using():
            if not groups.exists(self.engine, group.name):
                raise InvalidInput(f"there is no group {name}", hint="give its members")
        return group

    def groups(self) -> list[str]:
        """The names of all groups, in alphabetical order."""
        with self.engine.using():
            return groups.groups(self.engine)

    def chain(self, memory: Memory) -> Chain:
        """The way of a memory back to its origin, from teller to teller.

        Where a memory on the way was deleted or forgotten, the chain ends, and says so.
        """
        return tell.chain(self.engine, memory)

    def advance(self, tick: int) -> None:
        """Set the clock to ``tick``; :class:`InvalidInput` for a tick before the current one.

        Where ``clock.mode`` is wall, the wall clock moves the tick on from there.
        """
        clock.advance(self.engine, tick)

    def pass_time(self, tick: int) -> TimePassed:
        """Set the clock to ``tick``, sweep and compact as the settings say, all in one commit.

        :class:`BankError` for the bank of a simulation, whose run moves its ticks.
        """
        return clock.pass_time(self.engine, tick)

    def follow_clock(self) -> None:
        """Where ``clock.mode`` is wall, let the time pass up to now, as :meth:`pass_time` does.

        Opening the bank, servers and ``tools.call`` do it; a program that keeps a bank open calls
        it now and then. Inside a transaction, no time passes; nor for a wall clock that was set
        back, until it has caught up. If the disk refuses, the tick stays, and the log says why.
        """
        clock.follow(self.engine)

    def state_hash(self) -> str:
        """A hash over all memories of all agents, the tick and the seed.

        Equal states have equal hashes, whatever the process, the machine or the order of agents.
        """
        return read.state_hash(self.engine)

    # Transactions

    def transaction(self) -> AbstractContextManager[None]:
        """Commit all changes made inside together; an error that leaves the block undoes them all.

        Transactions may be nested: an error undoes the changes of the inner one alone. Other
        threads wait until the outermost transaction ends.
        """
        return self.engine.changing()

    def commit(self) -> None:
        """Commit the pending changes; inside a transaction, its changes so far."""
        with self.engine.using():
            self.engine.ledger.commit()
            self.engine.after_commit()

    # Checkpoints

    def checkpoint(
        self,
        path: str | PathLike[str],
        extra: Mapping[str, object] | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        """Write the whole state to one portable file, from which :meth:`restore` makes a bank.

        The file appears when all of it is on disk, and replaces an older file of that name.
        ``extra`` holds JSON values of your own. Where ``storage.sync`` is checkpoint, mem0's store
        is brought up to date afterwards; if that fails, :meth:`status` says so, and the next
        :meth:`sync` goes on. :class:`BankError` inside a transaction.
        """
        with self.engine.using():
            if self.engine.ledger.in_transaction:
                raise BankError("a checkpoint can't be made inside a transaction", hint="leave it")
            self.engine.ledger.commit()
            checkpoint.write(Path(path), self.engine.ledger, __version__, extra or {})
            if self.engine.folder is not None and self.settings.storage.sync == "checkpoint":
                self.engine.store.keep_up(progress)

    checkpoint_extra = staticmethod(checkpoint_extra)
    backup = staticmethod(backup)
    reembed = staticmethod(reembed)

    @classmethod
    def restore(
        cls,
        path: str | PathLike[str],
        into: str | PathLike[str],
        config: Config = None,
        **options: Any,
    ) -> Self:
        """Make or reset the bank in the folder ``into`` to the state of a checkpoint, and open it.

        A bank that exists in ``into`` goes back to the checkpoint's state, if the checkpoint was
        made of it. Any other bank stays as it is, and :class:`BankError` is raised. The next sync,
        or closing the bank, makes mem0's store equal to the restored state. ``options`` are those
        of :meth:`open`.
        """
        given = {name: options.pop(name) for name in NOT_SETTINGS & options.keys()}
        return cls(Opening(config, **given, overrides=options).restored(Path(path), into))

    @classmethod
    def at(
        cls,
        folder: str | PathLike[str],
        tick: int | None = None,
        config: Config = None,
        *,
        preset: str | None = None,
        assignments: Iterable[str] = (),
        embedder: Embedder | None = None,
        count_tokens: TokenCounter = approximate_tokens,
    ) -> Self:
        """Open a copy of the bank in ``folder``, as it was after ``tick`` or as it is now.

        The copy is in memory. Changes to it are gone when it is closed. Another process may have
        the bank itself open and go on writing. ``preset``, ``config`` and ``assignments`` go on top
        of the settings that the bank was made with.
        """
        opening = Opening(
            config,
            preset=preset,
            assignments=assignments,
            embedder=embedder,
            count_tokens=count_tokens,
        )
        return cls(opening.as_copy(Path(folder), tick))

    # Notes

    def sync_notes(self) -> dict[str, Synced]:
        """Index the notes of all agents that changed on disk; the result by agent id."""
        with self.engine.using():
            return sync_notes(self.engine)

    def watch_notes(self, debounce: float | None = None) -> NoteWatch:
        """Start a thread that indexes notes when their files change.

        ``with bank.watch_notes():`` stops the thread at the end of the block. Otherwise
        :meth:`NoteWatch.stop` or :meth:`close` stops it. A change is indexed ``debounce`` seconds
        later, by default ``notes.watch_debounce``, together with the changes that came meanwhile.
        A note that can't be indexed is logged as a warning. ``notes.extra_paths`` are not watched:
        their changes are indexed with the next change or search. Needs
        ``pip install 'tiermem[notes]'``.
        """
        return watch_notes(self.engine, debounce)

    # Movement

    def compact(self, agent_id: str | None = None, *, dry_run: bool = False) -> Compaction:
        """Apply ``temperature.rules`` to all agents and boards, or to one agent, in one commit.

        A second compaction in the same tick moves nothing. A ``dry_run`` changes nothing: its
        result lists the moves, each with its rule.
        """
        return upkeep.compact(self.engine, agent_id, dry_run=dry_run)

    def prune(self, agent_id: str | None = None, *, dry_run: bool = False) -> list[str]:
        """Archive cold memories beyond ``temperature.max_cold_items``; their ids.

        Each agent and each board has that limit. A ``dry_run`` changes nothing and returns the
        same ids.
        """
        return upkeep.prune(self.engine, agent_id, dry_run=dry_run)

    def sweep(self, *, every: int = 1) -> None:
        """Do what is due by the clock, in one commit.

        Expired memories are deleted. Memories that were deleted ``retention.grace`` ago are
        purged. With ``decay.enabled``, unused memories move to a lower temperature, those of each
        agent once in ``every`` ticks. A simulation calls it in each tick with the setting
        ``decay.every``; a program that calls :meth:`advance` calls it now and then.
        """
        upkeep.sweep(self.engine, every)

    # Looking

    def status(self, agent_id: str | None = None) -> Status:
        """How full the bank is, or one agent's part of it, with suggestions of what to do."""
        return groups.status(self.engine, agent_id)

    def metrics(self) -> dict[str, float]:
        """Counters of what was committed since the bank was opened, by the metric's name."""
        return upkeep.metrics(self.engine)

    # mem0's store

    def sync(self, progress: Progress | None = None) -> int:
        """Bring mem0's store up to date; the number of memories written or deleted there."""
        return upkeep.sync(self.engine, progress)

    def repair_store(self, progress: Progress | None = None) -> list[str]:
        """Rebuild mem0's store from the journal; the steps that were done, as lines of text."""
        return upkeep.repair_store(self.engine, progress)

    def vacuum(self, progress: Progress | None = None) -> list[str]:
        """Write the journal's file anew, and the files of mem0's store if it is local.

        Purged memories are gone from both before. A vacuum removes them from the free space in the
        files, and deletes stores that a repair set aside, and long names of adapters that nothing
        has any more. The result names files that may still hold purged texts, and why; it is empty
        when none does. A vacuum that is killed is begun again by the next :meth:`sync`.
        """
        return upkeep.vacuum(self.engine, progress)

    def mem0_config(self) -> dict[str, Any]:
        """The ``vector_store`` config of a plain ``mem0.Memory`` that opens this bank's store.

        The store is brought up to date first, unless ``storage.sync`` is manual.
        """
        with self.engine.using():
            if self.engine.may_sync():
                self.sync()
            return self.engine.store.config()

    # Storing and searching for many agents at once

    def add_many(self, items: Iterable[tuple[object, ...]]) -> Sequence[Memory]:
        """Store memories: tuples ``(agent_id, content, tier, metadata, options)``.

        The last three may be left out. ``options`` is a mapping of ``kind``, ``tags``,
        ``temperature``, ``ttl``, ``expires_tick``, ``session``, ``speaker``, ``key``
        and ``value``, which mean what they mean in :meth:`AgentMemory.add`.

        All are stored in one commit, with the same result as one by one. If one is refused, none
        is stored. The records of the result are made when they are first read.
        """
        return write.add_many(self.engine, items)

    def search_many(
        self,
        requests: Iterable[tuple[str, str]],
        limit: int | None = None,
        *,
        context_tokens: int | None = None,
    ) -> list[Hits]:
        """:meth:`AgentMemory.search` for many ``(agent_id, query)`` pairs, in one go."""
        return self.engine.search_many(requests, limit, context_tokens)

    def context_many(
        self,
        requests: Iterable[tuple[str, str]],
        limit: int | None = None,
        *,
        context_tokens: int | None = None,
        session: str | int | None = None,
    ) -> list[Hits]:
        """The hits that :meth:`relevant_many` renders: pinned, then hot, then found memories.

        With a ``session``, they are those of its memories alone, up to the limits of a session.
        """
        only = parse_filter(session=session)
        hot = self.engine.limits_in(only.session)
        return self.engine.search_many(requests, limit, context_tokens, hot=hot, only=only)

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
