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

__all__ = ["INSIDE", "Transaction", "Turns"]


class Call:
    """Something to be done in a bank's thread."""

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
        """Do it, unless it was cancelled; whoever waits for it gets the result or the error."""
        if not self.done.set_running_or_notify_cancel():
            return
        try:
            self.done.set_result(self._context.run(self._work))
        except StopIteration as error:  # no coroutine can raise it, and its caller would wait
            wrong = RuntimeError("a call of the bank raised StopIteration")
            wrong.__cause__ = error
            self.done.set_exception(wrong)
        except BaseException as error:  # noqa: BLE001  # it is raised where the call is awaited
            self.done.set_exception(error)


class Turns:
    """Which calls go to a bank's thread now, and which wait.

    The thread does what it is given, one by one. A call is given to it at once, unless a
    transaction is open and the call comes from outside of it: then it waits until that ends. Of
    transactions inside each other, the innermost counts. This is decided in the event loop alone,
    so it needs no lock.
    """

    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="tiermem-bank")
        self.of: object = None
        """The bank whose thread it is, once that is known."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open: list[Transaction] = []
        self._waiting: deque[Call] = deque()
        """Calls from outside the innermost transaction, in the order in which they came."""
        self._may_others = False
        """Whether a transaction ended, so that some of these may go on."""

    def put(
        self,
        work: Callable[[], Any],
        inside: "Transaction | None",
        at_start: Callable[[], None] | None = None,
    ) -> "asyncio.Future[Any]":
        """Have something done in turn; ``at_start`` is called in the event loop before."""
        self._bind()
        self._refuse_another_view(inside)
        call = Call(work, inside, at_start)
        self._start_or_wait(call)
        while self._may_others:
            self._go_on()
        return asyncio.wrap_future(call.done)

    def begin(self, transaction: "Transaction") -> None:
        """From now on, only calls from inside of it are started."""
        transaction.is_open = True
        self._open.append(transaction)

    def end(self, transaction: "Transaction") -> None:
        """What is started from now on comes after it."""
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
        """Undo what a loop that is closed left open, and drop what waited for it."""
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
        except RuntimeError:  # the thread ended with the bank, which says itself that it is closed
            call.run()

    def _go_on(self) -> None:
        """Start what may be started now, in order, up to the end of another transaction."""
        waiting, self._waiting = self._waiting, deque()
        self._may_others = False
        while waiting and not self._may_others:
            call = waiting.popleft()
            if not call.done.cancelled():
                self._start_or_wait(call)
        self._waiting += waiting


class _Abandoned(Exception):
    """Nobody is there any more who could end the transaction."""


class Transaction:
    """A transaction, as the event loop sees it."""

    __slots__ = ("_context", "_entered", "_turns", "is_open", "of", "outer")

    def __init__(self, turns: Turns, context: AbstractContextManager[None]) -> None:
        self.outer = still_open(INSIDE.get())
        self.is_open = False
        self.of = turns.of
        self._turns = turns
        self._context = context
        self._entered = False

    def is_of(self, turns: Turns) -> bool:
        return self._turns is turns

    async def begin(self) -> None:
        """Wait until no other is open, and begin. What the task does next is inside of it."""
        at_start = functools.partial(self._turns.begin, self)
        try:
            await self._turns.put(self._enter, self.outer, at_start)
        except BaseException:
            if self.is_open:  # it was cancelled, or the bank is closed
                self._put_end(None)
            raise
        INSIDE.set(self)

    async def end(self, error: BaseException | None) -> None:
        """End it; cancelled or not, for it must not stay open."""
        INSIDE.set(self.outer)
        self._turns.abandon_closed()
        if self.is_open:
            await asyncio.shield(self._put_end(error))

    def _put_end(self, error: BaseException | None) -> "asyncio.Future[Any]":
        at_start = functools.partial(self._turns.end, self)
        return self._turns.put(functools.partial(self._exit, error), self, at_start)

    # In the thread, which owns the bank's lock in between

    def undo(self) -> None:
        """End it without whoever began it."""
        with suppress(_Abandoned):
            self._exit(_Abandoned())

    def _enter(self) -> None:
        self._context.__enter__()
        self._entered = True

    def _exit(self, error: BaseException | None) -> None:
        if self._entered:
            trace = None if error is None else error.__traceback__
            self._context.__exit__(None if error is None else type(error), error, trace)


INSIDE: ContextVar[Transaction | None] = ContextVar("tiermem_transaction", default=None)
"""The transaction that the running task is inside of. Tasks take it over from who starts them."""


def still_open(inside: Transaction | None, turns: Turns | None = None) -> Transaction | None:
    """The innermost that is open, of one bank or of any, of a transaction and those around it."""
    while inside is not None and not (inside.is_open and (turns is None or inside.is_of(turns))):
        inside = inside.outer
    return inside
