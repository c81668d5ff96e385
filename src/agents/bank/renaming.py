"""Arguments under the names of a profile become ours: names, values, defaults."""

import functools
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from ..config.profiles import Argument, Renamed, profile
from ..engine.engine import Engine
from ..errors import InvalidInput

P = ParamSpec("P")
T = TypeVar("T")


CONVERTERS: Mapping[str, Callable[[Engine, Any], Any]] = MappingProxyType({})
"""How the value of a document's argument becomes one of ours, by name."""


def converted(bank: Engine, argument: Argument, value: Any) -> Any:
    """The value of a document's argument as ours; a list entry by entry."""
    if isinstance(value, list | tuple):
        return [converted(bank, argument, each) for each in value]
    if isinstance(value, str):
        value = argument.values.get(value, value)
    return value if argument.convert is None else CONVERTERS[argument.convert](bank, value)


def with_defaults(operation: Renamed, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, and the defaults of the rest."""
    defaults = {each.name: each.default for each in operation.arguments}
    return {**{name: each for name, each in defaults.items() if each is not None}, **given}


class _Agent(Protocol):
    @property
    def engine(self) -> Engine: ...


Agent = TypeVar("Agent", bound=_Agent)
_Method = Callable[Concatenate[Agent, P], T]


def named_by_profile(does: str) -> Callable[[_Method[Agent, P, T]], _Method[Agent, P, T]]:
    """Let a method take the names and defaults that the bank's profile has for an operation.

    Of the arguments of the profile's operation that ``does`` this one of ours, the method takes
    those that have another name or other values here, and has their defaults.
    """

    def decorated(method: _Method[Agent, P, T]) -> _Method[Agent, P, T]:
        names = tuple(inspect.signature(method).parameters)[1:]

        @functools.wraps(method)
        def called(self: Agent, /, *args: P.args, **kwargs: P.kwargs) -> T:
            name = self.engine.settings.profile
            if name is not None and (operation := _doing(name, does)) is not None:
                given = names[: len(args)]
                kwargs = _ours(self.engine, operation, kwargs, given, names)  # type: ignore[assignment]
            return method(self, *args, **kwargs)

        return called

    return decorated


def _doing(profile_name: str, does: str) -> Renamed | None:
    """The profile's operation that does ours; the first of several."""
    operations = profile(profile_name).operations.values()
    return next((each for each in operations if each.does == does), None)


def _ours(
    bank: Engine,
    operation: Renamed,
    kwargs: Mapping[str, Any],
    given: tuple[str, ...],
    known: tuple[str, ...],
) -> dict[str, Any]:
    """The keyword arguments of a method under our names; ``given`` are those by position."""
    ours = dict(kwargs)
    for argument in operation.arguments:
        is_same = argument.name == argument.ours
        if argument.ours not in known:
            continue
        if argument.name in kwargs and not is_same:
            value = kwargs[argument.name]
            if argument.name in known and not _is_theirs(argument, value):
                continue  # the name is ours as well, and so is the value
            if argument.ours in kwargs or argument.ours in given:
                raise InvalidInput(
                    f"{argument.name} and {argument.ours} mean the same",
                    hint=f"give {argument.name}",
                )
            del ours[argument.name]
            ours[argument.ours] = converted(bank, argument, value)
        elif argument.default is not None and argument.ours not in (*kwargs, *given):
            ours[argument.ours] = converted(bank, argument, argument.default)
    return ours


def _is_theirs(argument: Argument, value: object) -> bool:
    """Whether a value, or each of several, is one that the profile has a value of ours for."""
    values = value if isinstance(value, list | tuple) else [value]
    return all(isinstance(each, str) and each in argument.values for each in values)
