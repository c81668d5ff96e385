"""Filters: which memories a search may return."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from ..errors import InvalidInput
from .conditions import Condition, all_of, parse_condition
from .json_value import plain_scalar
from .kinds import check_kind, check_tags
from .records import Memory
from .requests import check_whole
from .temperature import Temperature, parse_temperature
from .tiers import Tier, parse_tier

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
    metadata: Condition | None = None

    def allows(self, memory: Memory) -> bool:
        """Whether a memory meets all conditions except ``min_score``."""
        return (
            (self.tiers is None or memory.tier in self.tiers)
            and (self.temperatures is None or memory.temperature in self.temperatures)
            and (self.kinds is None or memory.kind in self.kinds)
            and (self.tags is None or not self.tags.isdisjoint(memory.tags))
            and memory.created_tick >= self.since_tick
            and (self.metadata is None or self.metadata.matches(memory.metadata))
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
) -> Filter:
    """A filter from a caller's values: one value, or a list of which a memory needs one.

    ``filters`` is a mapping of conditions on metadata. ``session`` is one more of them.
    """
    if min_score is not None and not (
        isinstance(min_score, int | float)
        and not isinstance(min_score, bool)
        and 0 <= min_score <= 1
    ):
        raise InvalidInput(
            f"min_score is a number from 0 to 1, not {min_score!r:.40}", hint="use 0.3, or so"
        )
    words = None if tags is None else check_tags([tags] if isinstance(tags, str) else tags)
    if words == ():
        raise InvalidInput("a filter with an empty list lets nothing pass", hint="leave it out")
    conditions = [] if filters is None else [parse_condition(filters)]
    if session is not None:
        conditions.append(parse_condition(in_session(_check_session(session))))
    found = Filter(
        _any_of(tier, parse_tier),
        _any_of(temperature, parse_temperature),
        _any_of(kind, check_kind),
        None if words is None else frozenset(words),
        0 if since_tick is None else check_whole("since_tick", since_tick),
        0.0 if min_score is None else float(min_score),
        all_of(conditions),
    )
    return ANY if found == ANY else found  # searches compare by identity


def parse_filter_and_cold(
    include_cold: bool, *values: object, **named: object
) -> tuple[Filter, bool]:
    """A filter from a caller's values, and whether cold memories take part.

    Cold memories take part if they are asked for, or if the filter names cold.
    """
    if all(value is None for value in (*values, *named.values())):
        return ANY, include_cold
    only = parse_filter(*values, **named)
    if include_cold and only.temperatures is not None:
        only = only._replace(temperatures=only.temperatures | {Temperature.COLD})
    return only, include_cold or only.wants_cold


def in_session(session: object) -> dict[str, object]:
    """The condition that a memory is of a session: 7 and "7" name the same one."""
    named = [session]
    if isinstance(session, str) and _WHOLE.fullmatch(session):
        named += [int(session)]
    elif isinstance(session, int) and not isinstance(session, bool):
        named += [str(session)]
    return {"metadata.session": {"$in": named} if len(named) > 1 else session}


def _check_session(session: object) -> object:
    plain = plain_scalar(session)
    if isinstance(plain, str | int) and not isinstance(plain, bool):
        return plain
    raise InvalidInput(
        f"a session is a text or a whole number, not {session!r:.40}",
        hint="use the name that its memories were stored with",
    )


def _any_of(value: object, parse: Callable[[object], _Value]) -> frozenset[_Value] | None:
    if value is None:
        return None
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        if values := frozenset(map(parse, value)):
            return values
        raise InvalidInput("a filter with an empty list lets nothing pass", hint="leave it out")
    return frozenset([parse(value)])
