"""Which calls of an async program go to a bank's thread now, and which wait."""

import asyncio
import functools
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar, copy_context
from typing import Any

from ..errors import BankError


class Call:
    """A call that waits for a bank's thread, or runs in it."""

    __slots__ = ("_context", "_work", "at_start", "done", "inside")

    def __init__(
        self,
        work: Callable[[], Any],
        inside: "Transaction | None",
        at_start: Callable[[], None] | None,
    ) -> None:
        self._work = work
        self._context = copy_context()
        self.inside = inside
        self.at_start = at_start
        self.done: Future[Any] = Future()

    def run(self) -> None:
        """Do the work, unless it was cancelled. The awaiting task gets the result or the error."""
        if not self.done.set_running_or_notify_cancel():
            return
        try:
            self.done.set_result(self._context.run(self._work))
        except StopIteration as error:  # a future can't hold it
            wrong = RuntimeError("a call of the bank raised StopIteration")
            wrong.__cause__ = error
            self.done.set_exception(wrong)
        except BaseException as error:  # noqa: BLE001  # the awaiting task raises it
            self.done.set_exception(error)


class Turns:
    """Which calls go to a bank's thread now, and which wait.

    The thread does one call after the other. A call goes to the thread at once, unless a
    transaction is open and the call comes from outside of it: then the call waits until the
    transaction ends. Of nested transactions, the innermost counts. All decisions are made in the
    event loop, so they need no lock.
    """

    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="tiermem-bank")
        self.of: object = None
        """The bank that the thread serves, once the bank is open."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open: list[Transaction] = []
        self._waiting: deque[Call] = deque()
        """Calls from outside the innermost transaction, oldest first."""
        self._may_others = False
        """Whether a transaction ended, so that waiting calls may start."""

    def put(
        self,
        work: Callable[[], Any],
        inside: "Transaction | None",
        at_start: Callable[[], None] | None = None,
    ) -> "asyncio.Future[Any]":
        """Do the work in its turn. The event loop calls ``at_start`` just before."""
        self._bind()
        self._refuse_another_view(inside)
        call = Call(work, inside, at_start)
        self._start_or_wait(call)
        while self._may_others:
            self._go_on()
        return asyncio.wrap_future(call.done)

    def begin(self, transaction: "Transaction") -> None:
        """Open a transaction: from now on, only calls from inside of it start."""
        transaction.is_open = True
        self._open.append(transaction)

    def end(self, transaction: "Transaction") -> None:
        """Close a transaction: calls that start from now on come after it."""
        transaction.is_open = False
        self._open.remove(transaction)
        self._may_others = True

    def _bind(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None and not self._loop.is_closed():
                raise BankError(
                    "this AsyncMemoryBank is used by another event loop",
                    hint="make one for each loop, AsyncMemoryBank(bank), over the same MemoryBank",
                )
            self.abandon_closed()
            self._loop = loop

    def abandon_closed(self) -> None:
        """Undo the transactions that a closed event loop left open, and drop its waiting calls."""
        if self._loop is None or not self._loop.is_closed():
            return
        self._waiting.clear()
        while self._open:
            transaction = self._open.pop()
            transaction.is_open = False
            self.thread.submit(transaction.undo)

    def _refuse_another_view(self, inside: "Transaction | None") -> None:
        while inside is not None:
            if inside.is_open and not inside.is_of(self) and inside.of is self.of is not None:
                raise BankError(
                    "inside the transaction of another AsyncMemoryBank over the same bank, this "
                    "call would wait for ever",
                    hint="use the one whose transaction it is",
                )
            inside = inside.outer

    def _start_or_wait(self, call: Call) -> None:
        innermost = self._open[-1] if self._open else None
        if still_open(call.inside, self) is not innermost:
            self._waiting.append(call)
            return
        if call.at_start is not None:
            call.at_start()
        try:
            self.thread.submit(call.run)
        except RuntimeError:  # the thread ended: the closed bank raises BankClosed
            call.run()

    def _go_on(self) -> None:
        """Start the waiting calls that may start, in order, until another transaction ends."""
        waiting, self._waiting = self._waiting, deque()
        self._may_others = False
        while waiting and not self._may_others:
            call = waiting.popleft()
            if not call.done.cancelled():
                self._start_or_wait(call)
        self._waiting += waiting


class _Abandoned(Exception):
    """Undoes a transaction whose event loop is closed."""


class Transaction:
    """A transaction, as the event loop sees it."""

    __slots__ = ("_context", "_ends", "_entered", "_turns", "is_open", "of", "outer")

    def __init__(self, turns: Turns, context: AbstractContextManager[None]) -> None:
        self.outer = still_open(INSIDE.get())
        self.is_open = False
        self.of = turns.of
        self._turns = turns
        self._context = context
        self._ends: list[Callable[..., object]] = []
        """Holds the end of the open transaction, and nothing else does: see :class:`Block`."""
        self._entered = False

    def is_of(self, turns: Turns) -> bool:
        return self._turns is turns

    async def begin(self) -> None:
        """Begin when no other transaction is open. The task's next calls are inside of it."""
        at_start = functools.partial(self._turns.begin, self)
        try:
            await self._turns.put(self._enter, self.outer, at_start)
        except BaseException:
            if self.is_open:  # the task was cancelled, or the bank is closed
                self._put_end(None)
            raise
        INSIDE.set(self)

    async def end(self, error: BaseException | None) -> None:
        """End the transaction, even if the task is cancelled."""
        INSIDE.set(self.outer)
        self._turns.abandon_closed()
        if self.is_open:
            await asyncio.shield(self._put_end(error))

    def _put_end(self, error: BaseException | None) -> "asyncio.Future[Any]":
        at_start = functools.partial(self._turns.end, self)
        return self._turns.put(functools.partial(self._exit, error), self, at_start)

    # In the thread, which holds the bank's lock while the transaction is open

    def undo(self) -> None:
        """Undo the transaction of a closed event loop."""
        with suppress(_Abandoned):
            self._exit(_Abandoned())

    def _enter(self) -> None:
        self._ends.append(self._context.__exit__)
        self._context.__enter__()
        self._entered = True

    def _exit(self, error: BaseException | None) -> None:
        if self._entered:
            trace = None if error is None else error.__traceback__
            self._ends.pop()(None if error is None else type(error), error, trace)


INSIDE: ContextVar[Transaction | None] = ContextVar("tiermem_transaction", default=None)
"""The transaction that the running task is inside of. A new task inherits it from its parent."""


def still_open(inside: Transaction | None, turns: Turns | None = None) -> Transaction | None:
    """The innermost open transaction among ``inside`` and those around it, of one bank or any."""
    while inside is not None and not (inside.is_open and (turns is None or inside.is_of(turns))):
        inside = inside.outer
    return inside
