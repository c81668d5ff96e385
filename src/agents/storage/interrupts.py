"""A change of memory and journal is whole, whatever interrupts it.

A signal's handler runs between any two steps of a program, and may raise: Ctrl-C raises
KeyboardInterrupt. An error between the two halves of a change would leave one half, so signals wait
until the change is whole. An error may also come where nothing ends a block of changes: a
:class:`Block` is given up then. The search for garbage, which takes long in the middle of many new
records, waits in :class:`gc_paused`. A property that is computed :class:`once` leaves nothing
locked.
"""

import gc
import inspect
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from functools import partial
from importlib import import_module
from types import CodeType, FrameType
from typing import Any, Generic, Self, TypeVar, overload
from weakref import ref

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Item = TypeVar("_Item")
_T = TypeVar("_T")

_SIGNALS = tuple(
    int(getattr(signal, name))
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)
# The functions of the module signal make enums of their numbers, at ten times the cost of the call.
_plain = import_module("_signal")
_get: Callable[[int], Any] = _plain.getsignal
_set: Callable[[int, Any], Any] = _plain.signal
_whole: set[CodeType] = set()
_interruptible: set[CodeType] = set()


def whole(function: _Function) -> _Function:
    """While signals are held, a signal that comes during ``function`` waits."""
    _whole.add(function.__code__)
    return function


def interruptible(function: _Function) -> _Function:
    """A signal that comes during ``function`` does not wait, though a whole function called it."""
    _interruptible.add(function.__code__)
    return function


class _Held:
    """The handlers that ours replaces in the main thread, and the signals that wait."""

    def __init__(self) -> None:
        self.depth = 0
        self.handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self.waiting: list[int] = []

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Let the signal wait if a whole function runs, or call the handler that was there."""
        inner = frame
        while inner is not None:
            if inner.f_code in _interruptible:
                break
            if inner.f_code in _whole:
                self.waiting.append(number)
                return
            inner = inner.f_back
        self.tell(number, frame)

    @whole
    def replace(self) -> None:
        found = {number: own for number in _SIGNALS if callable(own := _get(number))}
        # An error may have left ours in place.
        self.handlers |= {number: own for number, own in found.items() if own != self.handle}
        try:
            for number in found:
                _set(number, self.handle)
        except BaseException:
            self.put_back()
            raise

    @whole
    def put_back(self) -> None:
        for number, handler in self.handlers.items():
            if _get(number) == self.handle:  # the program may have set its own
                _set(number, handler)

    def run(
        self,
        handle: Callable[[int, FrameType | None], object],
        waiting: list[int],
        frame: FrameType | None,
    ) -> None:
        """Handle all signals that waited, even if the handler of one raises."""
        if waiting:
            try:
                handle(waiting[0], frame)
            finally:
                self.run(handle, waiting[1:], frame)

    def tell(self, number: int, frame: FrameType | None) -> None:
        """Call the handler that was there."""
        self.handlers[number](number, frame)


_held = _Held()


def hold_signals() -> None:
    """From now on, a signal that comes during a :func:`whole` function waits.

    Each call has its :func:`let_signals_come`. Python runs handlers in the main thread alone, so
    in any other thread both do nothing.
    """
    if threading.current_thread() is threading.main_thread():
        if not _held.depth:
            _held.replace()
        _held.depth += 1


def let_signals_come() -> None:
    """Handle the signals that waited, if nothing is held any more.

    Otherwise they wait on if a whole function called the caller. The caller does this last: the
    errors of the handlers come out of this call.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    _held.depth = max(0, _held.depth - 1)
    if not _held.depth:
        _held.put_back()
    if _held.waiting:
        waiting, _held.waiting = _held.waiting, []
        here = inspect.currentframe()
        caller = here and here.f_back
        handle = _held.handle if _held.depth else _held.tell
        _held.run(handle, waiting, caller and caller.f_back)


whole(hold_signals)
whole(let_signals_come)


def first(items: Iterator[_Item]) -> _Item | None:
    """The first item of a generator, which is closed here; None if there is none.

    Python would close it when nobody has it any more. It prints an interrupt that comes then,
    with a traceback, and forgets it.
    """
    try:
        return next(items, None)
    finally:
        if isinstance(items, Generator):
            items.close()


class _Ending:
    """``__exit__`` of a :class:`Block`."""

    def __get__(self, block: "Block | None", owner: "type[Block]") -> Callable[..., None]:
        if block is None:  # an ExitStack asks the class, and holds the block itself
            return owner.leave
        end = partial(owner.leave, block)
        if block.opened() is None:  # else somebody else holds it
            block.end = ref(end)
        return end


class Block:
    """A block that is over when its ``with`` statement is, even if ``__exit__`` never began.

    An error may come at the very call of ``__exit__``: another thread can raise one here. Nothing
    then ends the block. An object can notice that it dies, but the traceback of the error keeps the
    frame of ``__exit__``, and that frame keeps its object, for as long as the program keeps the
    error; a notebook keeps the last one. So a ``with`` statement gets no method to call, but an
    ``end`` that no frame has: it dies when the statement is left. It holds what notices that.

    A subclass has ``__enter__``, which calls :meth:`open`, and :meth:`leave`. Both call
    :meth:`close` while signals wait: Python prints an interrupt that comes in ``__del__``, with a
    traceback, and forgets it.
    """

    end: Callable[[], object] = staticmethod(lambda: None)
    """Gives the end that a statement holds, or None."""
    opened: Callable[[], "Opened | None"] = staticmethod(lambda: None)
    """Gives what :meth:`open` was told, until the block is closed or nothing will end it."""
    __exit__ = _Ending()

    def open(self, opened: "Opened") -> None:
        """Begin ``opened``, which is given up when nothing will end the block any more."""
        opened.outer = self.opened()
        self._holder().__dict__["holds"] = opened
        self.opened = ref(opened)
        opened.begin(self.opened)

    def close(self) -> None:
        """Give up what was opened last."""
        opened = self.opened()
        if opened is not None:
            if opened.is_open:
                opened.give_up()
            outer, self._holder().__dict__["holds"] = opened.outer, opened.outer
            self.opened = Block.opened if outer is None else ref(outer)

    def leave(self, kind: type[BaseException] | None, *error: Any) -> None:
        """Do what ``__exit__`` does, and :meth:`close`."""
        raise NotImplementedError

    def _holder(self) -> object:
        end = self.end()
        return self if end is None else end


class Opened:
    """What a :class:`Block` has opened, and gives up once, at its death if not before."""

    outer: "Opened | None" = None
    """What the same block had opened before."""
    is_open = False

    def begin(self, itself: Callable[[], object]) -> None:
        """Begin it, and :attr:`is_open`; ``itself`` gives this, and None when it is dead."""
        raise NotImplementedError

    def give_up(self) -> None:
        """Give it up, and end :attr:`is_open`."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Give it up because nothing holds it any more."""
        raise NotImplementedError

    def __del__(self) -> None:
        if self.is_open:
            self.abandon()


# No search for garbage


class gc_paused:  # noqa: N801  # a context manager with the name of a function
    """Inside, Python does not look for garbage.

    The collector would look after every 700 new records, and each time at all earlier records,
    which can't be garbage yet. The collector belongs to the whole process, so it must be on
    whenever a user's code runs: only our own batches run inside.
    """

    __slots__ = ("_was",)

    def __enter__(self) -> None:
        self._was = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was:
            gc.enable()


class once(Generic[_T]):  # noqa: N801  # used as a decorator
    """``functools.cached_property`` without a lock.

    On Python 3.11, that has one lock for all objects of a class. An error at the instant when the
    lock was taken leaves it locked, and another thread then waits for ever.
    """

    def __init__(self, make: Callable[[Any], _T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> _T: ...

    def __get__(self, instance: Any, owner: type | None = None) -> _T | Self:
        """What the method gives; the object then has it as an attribute."""
        if instance is None:
            return self
        made = instance.__dict__[self._name] = self._make(instance)
        return made
