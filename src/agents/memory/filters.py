"""Filters: which memories a call is about, by what they are, and by conditions on their metadata.

``{"metadata.place": "bay", "metadata.day": {"$gte": 3}}`` is such a condition. It is checked
before it is used: an unknown operator or a value of a wrong type is an error that names the key.
Depth and size are bounded, because a condition may come from a stranger.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import ge, gt, le, lt
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from ..errors import InvalidInput
from .records import (
    Memory,
    Scalar,
    session_of,
    shown,
)
from .requests import check_kind, check_tags, check_whole, optional_session
from .tiers import Temperature, Tier, parse_temperature, parse_tier

_PREFIX = "metadata."
_DEEPEST = 8
_MOST_PARTS = 100
_MOST_VALUES = 1000
_ABSENT: Final = object()

_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = MappingProxyType(
    {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
)
_OPERATORS = ("$eq", "$ne", "$in", "$nin", *_ORDERS, "$exists")
_JOINTS = ("$and", "$or", "$not")
_FIELDS = ("tier", "temperature", "kind", "tags", "min_score", "since_tick")


class Condition(Protocol):
    """What the metadata of a memory must meet."""

    def matches(self, metadata: Mapping[str, Scalar], /) -> bool:
        """Whether the condition holds."""


class Comparison(NamedTuple):
    """Compares the value of one metadata key.

    ``$ne`` and ``$nin`` are true wherever ``$eq`` and ``$in`` are false, so also for a memory
    without the key. Values of different types are never equal, and neither comes before the other;
    whole and other numbers are of one type.
    """

    name: str
    operator: str
    value: Any

    def matches(self, metadata: Mapping[str, Scalar]) -> bool:
        """Whether the condition holds."""
        own = metadata.get(self.name, _ABSENT)
        if self.operator == "$exists":
            return (own is not _ABSENT) is self.value
        if self.operator in _ORDERS:
            kind, value = self.value
            mine, other = _typed(own)
            return mine == kind and _ORDERS[self.operator](other, value)
        return (_typed(own) in self.value) is (self.operator == "$in")


class Joint(NamedTuple):
    """Several conditions: all must hold, or one, or the only one must not."""

    operator: str
    parts: tuple[Condition, ...]

    def matches(self, metadata: Mapping[str, Scalar]) -> bool:
        """Whether the condition holds."""
        each = (part.matches(metadata) for part in self.parts)
        if self.operator == "$not":
            return not next(each)
        return all(each) if self.operator == "$and" else any(each)


def parse_condition(filters: object) -> Condition | None:
    """The condition that a caller's mapping says; None if it is empty."""
    if isinstance(filters, Mapping) and not filters:
        return None
    return _Reader().mapping(filters, "filters", 1)


def none_of(key: str, values: Iterable[str]) -> Condition:
    """The condition that the value of a metadata key is none of these."""
    return Comparison(key, "$nin", frozenset(map(_typed, values)))


class _Reader:
    """Reads a caller's mapping, and counts the comparisons in it."""

    def __init__(self) -> None:
        self._parts = 0

    def mapping(self, given: object, place: str, depth: int) -> Condition:
        """The condition that all entries of a mapping hold."""
        if not isinstance(given, Mapping) or not given:
            raise InvalidInput(
                f"{place} is a mapping such as {{'metadata.place': 'bay'}}, not {shown(given)}"
            )
        if depth > _DEEPEST:
            raise InvalidInput(f"filters are nested more than {_DEEPEST} deep", hint="simplify it")
        parts = [part for entry in given.items() for part in self._entry(*entry, depth)]
        return parts[0] if len(parts) == 1 else Joint("$and", tuple(parts))

    def _entry(self, name: object, value: object, depth: int) -> list[Condition]:
        if name == "$not":
            return [Joint("$not", (self.mapping(value, "$not", depth + 1),))]
        if isinstance(name, str) and name in _JOINTS:
            if not isinstance(value, Sequence) or isinstance(value, str | bytes) or not value:
                raise InvalidInput(f"{name} takes a list of filters, not {shown(value)}")
            self._count(len(value))
            return [Joint(name, tuple([self.mapping(each, name, depth + 1) for each in value]))]
        key = _key(name)
        tests = value if isinstance(value, Mapping) else {"$eq": value}
        if not tests:
            raise InvalidInput(
                f"filters: {shown(name)} has no condition", hint=f"use {', '.join(_OPERATORS)}"
            )
        self._count(len(tests))
        return [_comparison(key, operator, own) for operator, own in tests.items()]

    def _count(self, more: int) -> None:
        self._parts += more
        if self._parts > _MOST_PARTS:
            raise InvalidInput(f"filters have more than {_MOST_PARTS} conditions", hint="use $in")


def _key(name: object) -> str:
    if isinstance(name, str) and name.startswith(_PREFIX) and len(name) > len(_PREFIX):
        return name.removeprefix(_PREFIX)
    if isinstance(name, str) and name.startswith("$"):
        hint = f"use {', '.join(_JOINTS)}, or a key such as metadata.place"
        raise InvalidInput(f"filters have no {shown(name)}", hint=hint)
    hint = "use a key such as metadata.place"
    if isinstance(name, str) and name.isidentifier():
        hint = f"use metadata.{name:.60}"
    if name in _FIELDS:
        hint = f"{name} is an argument of its own"
    raise InvalidInput(f"filters are about metadata; {shown(name)} is not a key of it", hint=hint)


def _comparison(key: str, operator: object, value: object) -> Comparison:
    place = f"filters: {shown(_PREFIX + key)}"
    if operator not in _OPERATORS:
        raise InvalidInput(
            f"{place} has no operator {shown(operator)}", hint=f"use {', '.join(_OPERATORS)}"
        )
    name = str(operator)
    if name == "$exists":
        if type(value) is not bool:
            raise InvalidInput(f"{place}: $exists is true or false, not {shown(value)}")
        return Comparison(key, name, value)
    if name in _ORDERS:
        if type(value) is not str and (type(value) is bool or not _is_number(value)):
            raise InvalidInput(f"{place}: {name} takes a number or a text, not {shown(value)}")
        return Comparison(key, name, _typed(value))
    values: Sequence[object] = [value]
    if name in ("$in", "$nin"):
        if not isinstance(value, list | tuple | set | frozenset) or len(value) > _MOST_VALUES:
            raise InvalidInput(
                f"{place}: {name} takes a list of up to {_MOST_VALUES} values, not {shown(value)}"
            )
        values = list(value)
    for each in values:
        if not (each is None or type(each) in (str, bool) or _is_number(each)):
            raise InvalidInput(
                f"{place}: a value is text, a finite number, true, false or null, not {shown(each)}"
            )
    asked = "$in" if name in ("$eq", "$in") else "$nin"
    return Comparison(key, asked, frozenset(map(_typed, values)))


def _is_number(value: object) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _typed(value: object) -> tuple[str, object]:
    """The value with its type, so that 1, 1.0 and True are not all equal."""
    if type(value) in (int, float):
        return "number", value
    return type(value).__name__, value


# Filters

_Value = TypeVar("_Value")
_WHOLE = re.compile("0|-?[1-9][0-9]{0,17}")


class Filter(NamedTuple):
    """The conditions that a memory must meet. None and 0 are no condition."""

    tiers: frozenset[Tier] | None = None
    temperatures: frozenset[Temperature] | None = None
    kinds: frozenset[str] | None = None
    tags: frozenset[str] | None = None
    """The memory has one of these tags."""
    since_tick: int = 0
    """The memory was created in this tick or later."""
    min_score: float = 0.0
    """The memory's score, similarity or share of the query's words is at least this: the hit has
    the largest of them as ``match``. Pinned memories need none of them."""
    min_probability: float | None = None
    """The memory answers the query with at least this probability: the hit has it as
    ``relevance_probability``. Pinned memories need none. 0 leaves nothing out."""
    metadata: Condition | None = None
    session: str | None = None
    """The memory is part of the session with this name."""

    def allows(self, memory: Memory) -> bool:
        """Whether a memory meets all conditions but ``min_score`` and ``min_probability``."""
        return (
            (self.tiers is None or memory.tier in self.tiers)
            and (self.temperatures is None or memory.temperature in self.temperatures)
            and (self.kinds is None or memory.kind in self.kinds)
            and (self.tags is None or not self.tags.isdisjoint(memory.tags))
            and memory.created_tick >= self.since_tick
            and (self.metadata is None or self.metadata.matches(memory.metadata))
            and (self.session is None or session_of(memory.metadata) == self.session)
        )

    @property
    def wants_cold(self) -> bool:
        """Whether the filter names cold memories."""
        return self.temperatures is not None and Temperature.COLD in self.temperatures


ANY = Filter()


def parse_filter(
    tier: object = None,
    temperature: object = None,
    kind: object = None,
    tags: object = None,
    min_score: object = None,
    since_tick: object = None,
    filters: object = None,
    session: object = None,
    min_probability: object = None,
) -> Filter:
    """A filter from a caller's values: one value, or a list of which a memory needs one.

    ``filters`` is a mapping of conditions on metadata; ``session`` names a session.
    """
    least, likely = _share("min_score", min_score), _share("min_probability", min_probability)
    words = None if tags is None else check_tags([tags] if isinstance(tags, str) else tags)
    if words == ():
        raise InvalidInput("a filter with an empty list lets nothing pass", hint="leave it out")
    found = Filter(
        _any_of(tier, parse_tier),
        _any_of(temperature, parse_temperature),
        _any_of(kind, check_kind),
        None if words is None else frozenset(words),
        0 if since_tick is None else check_whole("since_tick", since_tick),
        least or 0.0,
        likely,
        None if filters is None else parse_condition(filters),
        optional_session(session),
    )
    return ANY if found == ANY else found  # searches compare by identity


def _share(name: str, value: object) -> float | None:
    """A number from 0 to 1 that a caller gave, or None."""
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise InvalidInput(f"{name} is a number from 0 to 1, not {value!r:.40}", hint="use 0.3, or so")


def in_session(session: object) -> dict[str, object]:
    """The condition that a memory is of a session: 7 and "7" name the same one."""
    named = [session]
    if isinstance(session, str) and _WHOLE.fullmatch(session):
        named += [int(session)]
    elif isinstance(session, int) and not isinstance(session, bool):
        named += [str(session)]
    return {"metadata.session": {"$in": named} if len(named) > 1 else session}


def _any_of(value: object, parse: Callable[[object], _Value]) -> frozenset[_Value] | None:
    if value is None:
        return None
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        if values := frozenset(map(parse, value)):
            return values
        raise InvalidInput("a filter with an empty list lets nothing pass", hint="leave it out")
    return frozenset([parse(value)])
