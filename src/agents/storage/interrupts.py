"""What an interrupt must not leave behind: an open generator, a lock, a collector that is off.

Changes of a bank wait for no end either: the ledger has the signals that wait until a change is
whole, and the engine the blocks of changes that are over whatever happens.
"""

import gc
from collections.abc import Callable, Generator, Iterator
from typing import Any, Generic, Self, TypeVar, overload

_Item = TypeVar("_Item")
_T = TypeVar("_T")


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
