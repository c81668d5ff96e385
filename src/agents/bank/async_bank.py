"""The bank for async programs: the methods of the bank as coroutines, over the same code."""

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from contextvars import ContextVar, copy_context
from os import PathLike
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, final

from ..config.settings import Settings
from ..errors import BankError, TierMemError
from ..memory.records import Reembedding
from ..notes.agent_notes import AgentNotes
from ..notes.watching import NoteWatch
from ..storage.embedding import Embedder
from ..storage.store_sync import Progress
from .agent_memory import AgentMemory
from .agent_session import AgentSession
from .agent_social import AgentSocial
from .backup import Backup
from .memory_bank import Group, MemoryBank

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
Sync = TypeVar("Sync")
Sync_co = TypeVar("Sync_co", covariant=True)


# Whose turn it is


class Turns:
    """Does the calls of a bank in one thread, in turn. All decisions are made in the event loop."""

    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="tiermem-bank")
        self.of: object = None
        """The bank that the thread serves, once the bank is open."""
        self.lock = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.open: list[Transaction] = []

    async def put(self, work: Callable[[], Any], inside: "Transaction | None") -> Any:
        """Do the work in its turn. Once it has begun, it runs to its end, cancelled or not."""
        self.bind()
        self.refuse_another_view(inside)
        lock = (still_open(inside, self) or self).lock
        await lock.acquire()
        if lock is not (still_open(inside, self) or self).lock:  # its transaction has ended
            lock.release()
            return await self.put(work, inside)
        return await self.begun(work, lock)

    async def begun(self, work: Callable[[], Any], lock: asyncio.Lock | None = None) -> Any:
        """Do the work now; then release the lock, even if nobody waits for the result any more."""
        context = copy_context()
        try:
            done = asyncio.wrap_future(self.thread.submit(context.run, _whole, work))
        except RuntimeError:  # the thread ended: the closed bank raises BankClosed
            done = asyncio.get_running_loop().create_future()
            done.set_result(_whole(work))
        if lock is not None:
            done.add_done_callback(lambda _: lock.release())
        result, error = await asyncio.shield(done)
        if error is not None:
            raise error
        return result

    def bind(self) -> None:
        """Belong to the running event loop; a loop that was closed before is forgotten."""
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        if self._loop is not None and not self._loop.is_closed():
            raise BankError(
                "this AsyncMemoryBank is used by another event loop",
                hint="make one for each loop, AsyncMemoryBank(bank), over the same MemoryBank",
            )
        self.abandon_closed()
        self._loop, self.lock = loop, asyncio.Lock()

    def abandon_closed(self) -> None:
        """Undo the transactions that a closed event loop left open."""
        if self._loop is not None and self._loop.is_closed():
            while self.open:
                self.thread.submit(self.open.pop().undo)

    def refuse_another_view(self, inside: "Transaction | None") -> None:
        """Refuse a call inside the transaction of a different view of the same bank."""
        while inside is not None:
            if inside.is_open and inside.turns is not self and inside.of is self.of is not None:
                raise BankError(
                    "inside the transaction of another AsyncMemoryBank over the same bank, this "
                    "call would wait for ever",
                    hint="use the one whose transaction it is",
                )
            inside = inside.outer


def _whole(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """The result or the error: a future can't hold a StopIteration."""
    try:
        return work(), None
    except StopIteration as error:
        wrong = RuntimeError("a call of the bank raised StopIteration")
        wrong.__cause__ = error
        return None, wrong
    except BaseException as error:  # noqa: BLE001  # the awaiting task raises it
        return None, error


class _Abandoned(Exception):
    """Undoes a transaction whose event loop is closed."""


class Transaction:
    """A transaction, as the event loop sees it."""

    def __init__(self, turns: Turns, context: AbstractContextManager[None]) -> None:
        self.outer = still_open(INSIDE.get())
        self.turns = turns
        self.of = turns.of
        self.lock = asyncio.Lock()
        """Held by the call inside that runs."""
        self._around = (still_open(self.outer, turns) or turns).lock
        self._context = context
        self._ends: list[Callable[..., object]] = []
        """Holds the end of the open transaction, and nothing else does: see :class:`Block`."""

    @property
    def is_open(self) -> bool:
        """Whether calls may come inside of it."""
        return self in self.turns.open

    async def begin(self) -> None:
        """Begin when no other transaction is open. The task's next calls are inside of it."""
        self.turns.bind()
        self.turns.refuse_another_view(self.outer)
        self._around = (still_open(self.outer, self.turns) or self.turns).lock
        await self._around.acquire()
        self.turns.open.append(self)
        try:
            await self.turns.begun(self._enter)
        except BaseException:  # the task was cancelled, perhaps twice, or the bank is closed
            await asyncio.shield(asyncio.ensure_future(self._end(None)))
            raise
        INSIDE.set(self)

    async def end(self, error: BaseException | None) -> None:
        """End the transaction, even if the task is cancelled."""
        INSIDE.set(self.outer)
        self.turns.abandon_closed()
        if self.is_open:
            await asyncio.shield(asyncio.ensure_future(self._end(error)))

    async def _end(self, error: BaseException | None) -> None:
        await self.lock.acquire()  # after the calls inside that have begun
        try:
            await self.turns.begun(lambda: self._exit(error))
        finally:
            if self.is_open:
                self.turns.open.remove(self)
                self._around.release()
            self.lock.release()

    # In the thread, which holds the bank's lock while the transaction is open

    def undo(self) -> None:
        """Undo the transaction of a closed event loop."""
        with suppress(_Abandoned):
            self._exit(_Abandoned())

    def _enter(self) -> None:
        self._ends.append(self._context.__exit__)
        try:
            self._context.__enter__()
        except BaseException:
            self._ends.clear()
            raise

    def _exit(self, error: BaseException | None) -> None:
        if self._ends:
            trace = None if error is None else error.__traceback__
            self._ends.pop()(None if error is None else type(error), error, trace)


INSIDE: ContextVar[Transaction | None] = ContextVar("tiermem_transaction", default=None)
"""The transaction that the running task is inside of. A new task inherits it from its parent."""


def still_open(inside: Transaction | None, turns: Turns | None = None) -> Transaction | None:
    """The innermost open transaction among ``inside`` and those around it, of one bank or any."""
    while inside is not None and not (inside.is_open and turns in (None, inside.turns)):
        inside = inside.outer
    return inside


# Coroutines that are made from the bank's methods


class _View(Generic[Sync_co]):
    """An object of a bank, for async callers."""

    __slots__ = ("_of", "_turns")

    def __init__(self, of: Sync_co, turns: Turns) -> None:
        self._of, self._turns = of, turns

    async def run(
        self, function: Callable[Concatenate[Sync_co, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call ``function`` in the bank's thread, with the viewed object before the arguments.

        The call is one operation: nothing else happens to the bank meanwhile. For example,
        ``await alice.run(tools.call, name, arguments)`` runs a tool that a language model chose.
        """
        work = functools.partial(function, self._of, *args, **kwargs)
        result: T = await self._turns.put(work, INSIDE.get())
        return result


def _awaited(
    method: Callable[Concatenate[Sync, P], T],
) -> Callable[Concatenate[_View[Sync], P], Coroutine[Any, Any, T]]:
    """The method as a coroutine, with the same arguments, result and documentation."""

    @functools.wraps(method)
    async def awaited(self: _View[Sync], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.run(method, *args, **kwargs)

    return awaited


@final
class Opening(Coroutine[Any, Any, "AsyncMemoryBank"]):
    """A bank that is being opened: ``bank = await …``, or ``async with … as bank:``."""

    __slots__ = ("_bank", "_opened")

    def __init__(self, opened: Coroutine[Any, Any, "AsyncMemoryBank"]) -> None:
        self._opened = opened

    def __await__(self) -> Generator[Any, Any, "AsyncMemoryBank"]:
        return self._opened.__await__()

    def send(self, value: Any) -> Any:
        """Go on, as a task lets a coroutine go on."""
        return self._opened.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an error inside, as a task does."""
        return self._opened.throw(*error)

    def close(self) -> None:
        """End without a result, as a task does."""
        self._opened.close()

    async def __aenter__(self) -> "AsyncMemoryBank":
        self._bank = await self
        return self._bank

    async def __aexit__(self, *error: object) -> None:
        await self._bank.__aexit__(*error)


def _opening(make: Callable[P, MemoryBank]) -> "classmethod[AsyncMemoryBank, P, Opening]":
    """A class method that opens a bank in a thread, and closes it again if it is cancelled."""

    def opening(cls: "type[AsyncMemoryBank]", /, *args: P.args, **kwargs: P.kwargs) -> Opening:
        return Opening(opened(cls, *args, **kwargs))

    async def opened(
        cls: "type[AsyncMemoryBank]", /, *args: P.args, **kwargs: P.kwargs
    ) -> "AsyncMemoryBank":
        turns = Turns()
        made: list[MemoryBank] = []

        def close() -> None:
            for bank in made:
                bank.close(sync=False)

        try:
            await turns.put(lambda: made.append(make(*args, **kwargs)), None)
        except BaseException:
            turns.thread.submit(close)
            turns.thread.shutdown(wait=False)
            raise
        return cls(made[0], turns)

    return classmethod(functools.wraps(getattr(make, "__func__", make))(opening))


# What programs use


@final
class AsyncAgentNotes(_View[AgentNotes]):
    """The methods of :class:`AgentNotes` as coroutines. Made by :attr:`AsyncAgentMemory.notes`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<AsyncAgentNotes {self.agent_id}>"

    @property
    def agent_id(self) -> str:
        """The agent's id."""
        return self._of.agent_id

    paths = _awaited(AgentNotes.paths)
    read = _awaited(AgentNotes.read)
    lines = _awaited(AgentNotes.lines)
    citation = _awaited(AgentNotes.citation)
    place = _awaited(AgentNotes.place)
    daily_path = _awaited(AgentNotes.daily_path)
    append = _awaited(AgentNotes.append)
    write = _awaited(AgentNotes.write)
    edit = _awaited(AgentNotes.edit)
    sync = _awaited(AgentNotes.sync)


@final
class AsyncAgentSocial(_View[AgentSocial]):
    """The methods of :class:`AgentSocial` as coroutines: :attr:`AsyncAgentMemory.social`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<AsyncAgentSocial {self.agent_id}>"

    @property
    def agent_id(self) -> str:
        """The agent's id."""
        return self._of.agent_id

    tell = _awaited(AgentSocial.tell)
    broadcast = _awaited(AgentSocial.broadcast)
    heard = _awaited(AgentSocial.heard)
    retract = _awaited(AgentSocial.retract)
    trust = _awaited(AgentSocial.trust)
    trust_of = _awaited(AgentSocial.trust_of)
    post = _awaited(AgentSocial.post)
    leave = _awaited(AgentSocial.leave)
    groups = _awaited(AgentSocial.groups)


@final
class AsyncGroup(_View[Group]):
    """The methods of :class:`Group` as coroutines. Made by :meth:`AsyncMemoryBank.group`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<AsyncGroup {self.name}>"

    @property
    def name(self) -> str:
        """The group's name."""
        return self._of.name

    members = _awaited(Group.members)
    join = _awaited(Group.join)
    leave = _awaited(Group.leave)
    post = _awaited(Group.post)
    all = _awaited(Group.all)
    forget = _awaited(Group.forget)


@final
class AsyncAgentSession(_View[AgentSession]):
    """The methods of :class:`AgentSession`, made by :meth:`AsyncAgentMemory.session`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Async{repr(self._of)[1:]}"

    @property
    def name(self) -> str:
        """The session's name."""
        return self._of.name

    add = _awaited(AgentSession.add)
    add_many = _awaited(AgentSession.add_many)
    add_messages = _awaited(AgentSession.add_messages)
    search = _awaited(AgentSession.search)
    recall = _awaited(AgentSession.recall)
    get_relevant_memories = _awaited(AgentSession.get_relevant_memories)
    explain = _awaited(AgentSession.explain)
    all = _awaited(AgentSession.all)
    spill = _awaited(AgentSession.spill)
    status = _awaited(AgentSession.status)
    clear = _awaited(AgentSession.clear)
    end = _awaited(AgentSession.end)


@final
class AsyncAgentMemory(_View[AgentMemory]):
    """One agent's memories: the methods of :class:`AgentMemory` as coroutines.

    Made by :meth:`AsyncMemoryBank.agent`.
    """

    __slots__ = ()

    def __repr__(self) -> str:  # a count of the memories would have to wait for its turn
        return f"<AsyncAgentMemory {self.agent_id}>"

    @property
    def agent_id(self) -> str:
        """The agent's id."""
        return self._of.agent_id

    @property
    def notes(self) -> AsyncAgentNotes:
        """The agent's Markdown notes."""
        return AsyncAgentNotes(self._of.notes, self._turns)

    @property
    def social(self) -> AsyncAgentSocial:
        """What the agent tells others, hears from them and believes, and its groups."""
        return AsyncAgentSocial(self._of.social, self._turns)

    def session(self, name: str | int) -> AsyncAgentSession:
        """:meth:`AgentMemory.session`: the memories of one session."""
        return AsyncAgentSession(self._of.session(name), self._turns)

    call = _awaited(AgentMemory.call)
    add = _awaited(AgentMemory.add)
    add_many = _awaited(AgentMemory.add_many)
    add_messages = _awaited(AgentMemory.add_messages)
    record_action = _awaited(AgentMemory.record_action)
    record_observation = _awaited(AgentMemory.record_observation)
    update = _awaited(AgentMemory.update)
    set_tier = _awaited(AgentMemory.set_tier)
    pin = _awaited(AgentMemory.pin)
    unpin = _awaited(AgentMemory.unpin)
    link = _awaited(AgentMemory.link)
    links = _awaited(AgentMemory.links)
    memory_search = _awaited(AgentMemory.memory_search)
    spill = _awaited(AgentMemory.spill)
    decay_score = _awaited(AgentMemory.decay_score)
    recall = _awaited(AgentMemory.recall)
    compact = _awaited(AgentMemory.compact)
    status = _awaited(AgentMemory.status)
    delete = _awaited(AgentMemory.delete)
    forget = _awaited(AgentMemory.forget)
    get = _awaited(AgentMemory.get)
    all = _awaited(AgentMemory.all)
    count = _awaited(AgentMemory.count)
    history = _awaited(AgentMemory.history)
    get_pinned_memories = _awaited(AgentMemory.get_pinned_memories)
    search = _awaited(AgentMemory.search)
    get_relevant_memories = _awaited(AgentMemory.get_relevant_memories)
    explain = _awaited(AgentMemory.explain)


@final
class AsyncNoteWatch(_View[NoteWatch]):
    """Indexes notes when their files change. Made by :meth:`AsyncMemoryBank.watch_notes`."""

    __slots__ = ()

    stop = _awaited(NoteWatch.stop)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()


@final
class AsyncMemoryBank(_View[MemoryBank]):
    """A :class:`MemoryBank` for asyncio: its methods as coroutines that leave the event loop free.

    ``async with AsyncMemoryBank.open(…) as bank:`` and ``await AsyncMemoryBank.open(…)`` open a
    bank; ``ephemeral``, ``restore`` and ``at`` work the same way. ``AsyncMemoryBank(bank)`` is a
    view of a bank that is open. One thread does the work, call after call, in the order in which
    the calls are awaited; tasks start in the order in which they were made. The errors are those of
    :class:`MemoryBank`.

    A call that is cancelled, or times out, while it waits for its turn is never begun. A call that
    has begun runs to its end even if it is cancelled, and the next call comes after it. No call is
    ever half done.

    A view belongs to one event loop of asyncio; trio is not supported. While a transaction is open,
    other threads may use the :class:`MemoryBank` itself, and wait. The event loop's own thread must
    not: it would wait for itself.
    """

    __slots__ = ()

    def __init__(self, bank: MemoryBank, turns: Turns | None = None) -> None:
        """A view of an open bank; only the class methods that open a bank give ``turns``."""
        super().__init__(bank, Turns() if turns is None else turns)
        self._turns.of = bank

    # Opening and closing

    open = _opening(MemoryBank.open)
    ephemeral = _opening(MemoryBank.ephemeral)
    restore = _opening(MemoryBank.restore)
    at = _opening(MemoryBank.at)

    @staticmethod
    async def checkpoint_extra(path: str | PathLike[str]) -> dict[str, Any]:
        """:meth:`MemoryBank.checkpoint_extra`."""
        return await asyncio.to_thread(MemoryBank.checkpoint_extra, path)

    @staticmethod
    async def backup(
        folder: str | PathLike[str],
        to: str | PathLike[str],
        *,
        progress: Progress | None = None,
    ) -> Backup:
        """:meth:`MemoryBank.backup`. If it is cancelled, it still runs to its end."""
        return await asyncio.to_thread(MemoryBank.backup, folder, to, progress=progress)

    @staticmethod
    async def reembed(
        folder: str | PathLike[str],
        embedder: Embedder | Mapping[str, object] | str,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Reembedding:
        """:meth:`MemoryBank.reembed`. If it is cancelled, it still runs to its end."""
        return await asyncio.to_thread(
            MemoryBank.reembed, folder, embedder, dry_run=dry_run, progress=progress
        )

    async def close(self, *, sync: bool = True) -> None:
        """:meth:`MemoryBank.close`, after all earlier calls; then the bank's thread ends.

        Later calls raise :class:`BankClosed`.
        """
        await self.run(self._close, sync)

    def _close(self, bank: MemoryBank, sync: bool) -> None:
        try:
            bank.close(sync=sync)
        finally:
            if not bank.engine.is_open:
                self._turns.thread.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        await self.run(MemoryBank.__enter__)
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.shield(self._closed())  # even if this is cancelled

    async def _closed(self) -> None:
        work = functools.partial(self._close, self._of, True)
        try:
            await self._turns.put(work, INSIDE.get())
        except asyncio.CancelledError:  # the event loop ends: the thread closes the bank alone
            with suppress(RuntimeError):  # the thread has ended: the bank is closed
                self._turns.thread.submit(work)
            raise

    def __repr__(self) -> str:
        where = self._of.folder or "in memory"
        return f"<AsyncMemoryBank {where}{'' if self._of.engine.is_open else ': closed'}>"

    # Agents, time and settings, which need no turn

    def agent(
        self, agent_id: str, *, project: str | None = None, environment: str | None = None
    ) -> AsyncAgentMemory:
        """:meth:`MemoryBank.agent`."""
        memory = self._of.agent(agent_id, project=project, environment=environment)
        return AsyncAgentMemory(memory, self._turns)

    @property
    def tick(self) -> int:
        """The current tick. New memories have it as ``created_tick``."""
        return self._of.tick

    @property
    def folder(self) -> Path | None:
        """The bank's folder; None for a bank in memory and for a copy."""
        return self._of.folder

    @property
    def settings(self) -> Settings:
        """The settings that the bank was opened with."""
        return self._of.settings

    # Transactions

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Commit all changes made inside together; an error that leaves the block undoes them all.

        The transaction takes in the calls of this task, and of tasks that are started inside, while
        it is open: ``asyncio.gather``, a ``TaskGroup`` and ``asyncio.wait_for`` work as expected.
        The calls of all other tasks wait until it ends, so keep it short. Inside, do not wait for a
        task that was started outside and uses the bank: each would wait for the other.

        Transactions may be nested: an error undoes the inner one alone. A cancellation inside
        undoes the transaction like any error; a cancellation during the commit does not.
        """
        own = Transaction(self._turns, self._of.transaction())
        await own.begin()
        try:
            yield
        except BaseException as error:
            await own.end(error)
            raise
        await own.end(None)

    # The rest

    advance = _awaited(MemoryBank.advance)
    pass_time = _awaited(MemoryBank.pass_time)
    follow_clock = _awaited(MemoryBank.follow_clock)
    state_hash = _awaited(MemoryBank.state_hash)
    commit = _awaited(MemoryBank.commit)
    checkpoint = _awaited(MemoryBank.checkpoint)
    sync_notes = _awaited(MemoryBank.sync_notes)
    add_many = _awaited(MemoryBank.add_many)
    search_many = _awaited(MemoryBank.search_many)
    context_many = _awaited(MemoryBank.context_many)
    relevant_many = _awaited(MemoryBank.relevant_many)
    agents = _awaited(MemoryBank.agents)
    chain = _awaited(MemoryBank.chain)
    groups = _awaited(MemoryBank.groups)
    compact = _awaited(MemoryBank.compact)
    prune = _awaited(MemoryBank.prune)
    sweep = _awaited(MemoryBank.sweep)
    vacuum = _awaited(MemoryBank.vacuum)
    status = _awaited(MemoryBank.status)
    metrics = _awaited(MemoryBank.metrics)
    sync = _awaited(MemoryBank.sync)
    repair_store = _awaited(MemoryBank.repair_store)
    mem0_config = _awaited(MemoryBank.mem0_config)

    async def group(
        self,
        name: str,
        members: Iterable[str] = (),
        *,
        project: str | None = None,
        environment: str | None = None,
    ) -> AsyncGroup:
        """:meth:`MemoryBank.group`."""
        where = {"project": project, "environment": environment}
        return AsyncGroup(await self.run(MemoryBank.group, name, members, **where), self._turns)

    async def watch_notes(self, debounce: float | None = None) -> AsyncNoteWatch:
        """:meth:`MemoryBank.watch_notes`: ``async with await bank.watch_notes():``."""
        return AsyncNoteWatch(await self.run(MemoryBank.watch_notes, debounce), self._turns)


# The bank's time

_LONGEST_PAUSE, _SHORTEST_PAUSE = 60.0, 1.0
"""Seconds between two looks at the wall clock."""
_SECONDS_PER_DAY = 86_400


async def keep_time(bank: AsyncMemoryBank) -> None:
    """Follow the wall clock until cancelled; for a bank whose ticks calls move, do nothing."""
    clock = bank.settings.clock
    pause = min(_LONGEST_PAUSE, max(_SHORTEST_PAUSE, _SECONDS_PER_DAY / clock.ticks_per_day))
    while clock.mode == "wall":
        await asyncio.sleep(pause)
        try:
            await bank.follow_clock()
        except TierMemError as error:  # each operation will say so, too
            logger.error("the clock stands still: %s", error)
