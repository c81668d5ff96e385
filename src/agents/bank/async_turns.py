"""Which calls of an async program go to a bank's thread now, and which wait.

A transaction has a lock, and so has the bank. A call holds the lock of the transaction that its task
is inside of, or the bank's; a transaction holds the lock around it for as long as it is open. So
calls from outside wait for its end, and its own calls do not.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar, copy_context
from typing import Any

from ..errors import BankError


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
        self._bind()
        self._refuse_another_view(inside)
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

    def _bind(self) -> None:
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

    def _refuse_another_view(self, inside: "Transaction | None") -> None:
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
        self.turns._bind()
        self.turns._refuse_another_view(self.outer)
        self._around = (still_open(self.outer, self.turns) or self.turns).lock
        await self._around.acquire()
        self.turns.open.append(self)
        try:
            await self.turns.begun(self._enter)
        except BaseException:
            await self._end(None)
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
