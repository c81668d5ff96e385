"""Arguments under the names of a profile become ours: names, values, defaults."""

import functools
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from ..config.profiles import Argument, Renamed, profile
from ..engine import clock
from ..engine.engine import Engine
from ..errors import InvalidInput
from ..memory.requests import check_whole
from ..memory.scopes import scope_of


class _Agent(Protocol):
    @property
    def engine(self) -> Engine: ...
    @property
    def agent_id(self) -> str: ...


_MINUTES_PER_DAY = 1440


def _ticks(agent: _Agent, name: str, minutes: Any) -> int:
    """Minutes as ticks; what is not a whole number of ticks is rounded up."""
    ticks_per_day = agent.engine.settings.clock.ticks_per_day
    return -(-check_whole(name, minutes, least=1) * ticks_per_day // _MINUTES_PER_DAY)


def _until(agent: _Agent, name: str, date: Any) -> int:
    """How many ticks it is to a date, which is to come; a part of a tick counts as one."""
    bank = agent.engine
    try:
        tick = clock.tick_of_date(bank, date)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"{name} {date!r:.60} is not a date", hint="write it like 2026-05-12T14:22:00Z"
        ) from None
    if tick <= bank.tick:
        raise InvalidInput(
            f"{name} {date} is over: it is {clock.date_of(bank, bank.tick)}",
            hint="give a later date",
        )
    return tick - bank.tick


def _in_scope(part: str) -> Callable[[_Agent, str, Any], Any]:
    """A project or an environment, which says nothing new of an agent in it.

    For an agent in another one it is an error, and for an agent in none a word like any other.
    """

    def checked(agent: _Agent, name: str, value: Any) -> Any:
        own = getattr(scope_of(agent.agent_id), part)
        if own and value != own:
            raise InvalidInput(
                f"{name} is {own} here, not {value!r:.80}",
                hint=f"leave it out, or use a token of that {part}",
            )
        return None if own else value

    return checked


def _whole(agent: _Agent, name: str, value: Any, most: int = 2**53) -> Any:
    is_number = isinstance(value, int | float) and math.isfinite(value)
    return min(max(1, int(value)), most) if is_number else value


def _share(agent: _Agent, name: str, value: Any) -> Any:
    return min(max(0.0, value), 1.0) if isinstance(value, int | float) else value


def _group(agent: _Agent, name: str, value: Any) -> bool:
    return not {"group", "channel"}.isdisjoint(str(value).lower().split(":"))


CONVERTERS: Mapping[str, Callable[[_Agent, str, Any], Any]] = MappingProxyType(
    {
        "whole": _whole,
        "limit": functools.partial(_whole, most=1000),
        "share": _share,
        "group": _group,
        "minutes": _ticks,
        "until": _until,
        "project": _in_scope("project"),
        "environment": _in_scope("environment"),
    }
)
"""How the value of a document's argument, which has this name, becomes one of ours.

Of a number, ``whole`` is the whole part, at least 1; a ``limit`` is at most 1,000, too; a ``share``
is from 0 to 1. ``group`` is whether the key of a session names a group or a channel, such as
``agent:main:discord:group:7``.
"""


def converted(agent: _Agent, argument: Argument, value: Any) -> Any:
    """The value of a document's argument as ours; a list entry by entry; None for nothing."""
    if isinstance(value, list | tuple):
        return [converted(agent, argument, each) for each in value]
    if isinstance(value, str):
        value = argument.values.get(value, value)
    if argument.convert is None or value is None:
        return value
    return CONVERTERS[argument.convert](agent, argument.name, value)


def put(ours: dict[str, Any], argument: Argument, value: Any) -> None:
    """Add a value to our arguments: as one of them, or as a key of one that is a mapping."""
    place, _, key = argument.ours.partition(".")
    section = (ours.get(place) or {}) if key else ours
    if not isinstance(section, Mapping):
        raise InvalidInput(f"{place} is a mapping, not {section!r:.60}")
    if (name := key or place) in section:
        raise InvalidInput(
            f"{argument.name} and another argument mean the same", hint=f"each is {name}; give one"
        )
    if not key:
        ours[place] = value
    elif value is not None:
        ours[place] = {**section, key: value}


def with_defaults(operation: Renamed, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, and the defaults of the rest."""
    defaults = {each.name: each.default for each in operation.arguments}
    return {**{name: each for name, each in defaults.items() if each is not None}, **given}


def doing(profile_name: str, does: str) -> Renamed | None:
    """The profile's operation that does ours; the first of several."""
    operations = profile(profile_name).operations.values()
    return next((each for each in operations if each.does == does), None)


def under_our_names(
    agent: _Agent,
    operation: Renamed,
    kwargs: Mapping[str, Any],
    given: tuple[str, ...],
    known: tuple[str, ...] | None,
) -> dict[str, Any]:
    """Arguments of a call that does an operation, under our names.

    ``given`` are those that were given by position, ``known`` the names that the call takes; None
    if it takes all.
    """
    ours = dict(kwargs)
    for argument in operation.arguments:
        is_same = argument.name == argument.ours
        place = argument.ours.partition(".")[0]
        if known is not None and place not in known:
            continue
        if argument.name in kwargs and not is_same:
            value = kwargs[argument.name]
            is_ours = bool(argument.values) if known is None else argument.name in known
            if is_ours and not _is_theirs(argument, value):
                continue  # the name is ours as well, and so is the value
            if argument.ours in kwargs or place in given:
                raise InvalidInput(
                    f"{argument.name} and {argument.ours} mean the same",
                    hint=f"give {argument.name}",
                )
            del ours[argument.name]
            put(ours, argument, converted(agent, argument, value))
        elif argument.default is not None and place not in (*kwargs, *given):
            put(ours, argument, converted(agent, argument, argument.default))
    return ours


def _is_theirs(argument: Argument, value: object) -> bool:
    """Whether a value, or each of several, is one that the profile has a value of ours for."""
    values = value if isinstance(value, list | tuple) else [value]
    return all(isinstance(each, str) and each in argument.values for each in values)
