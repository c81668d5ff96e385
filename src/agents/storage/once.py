"""A property that is computed once."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

_T = TypeVar("_T")


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
