"""What callers give, checked: texts, agents, numbers, searches, and filters of memories."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import ge, gt, le, lt
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from ..errors import InvalidAgentId, InvalidContent, InvalidInput
from .records import KINDS, Memory, Scalar, session_of, shown
from .tiers import Temperature, Tier, parse_temperature, parse_tier

_AGENT_ID = re.compile(r"[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,127}")
_MOST_QUERY = 1_000_000
_MOST = 2**62  # leaves room to add in 64 bits
_MOST_TAGS, _LONGEST_TAG = 32, 64
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


# Texts, ids and numbers


def check_text(text: object, what: str) -> str:
    """``text`` itself if every byte of it can be kept, or :class:`InvalidContent`."""
    if type(text) is str and text.isascii() and "\0" not in text:  # most texts are like this
        return text
    if not isinstance(text, str):
        raise InvalidContent(f"a {what} is text, not {type(text).__name__}")
    if type(text) is not str:  # the journal returns no subclass of str
        text = str.__str__(text)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidContent(
                f"a {what} can't hold the lone surrogate {text[error.start]!a} "
                f"(character {error.start})"
            ) from None
    if "\0" in text:
        raise InvalidContent(f"a {what} can't hold a NUL (character {text.index(chr(0))})")
    return text


def check_agent_id(agent_id: object) -> str:
    """``agent_id`` itself, or :class:`InvalidAgentId`.

    The alphabet has no character with a meaning for mem0's filters, a file system or a terminal:
    ``*`` would match every agent in mem0.
    """
    if isinstance(agent_id, str) and _AGENT_ID.fullmatch(agent_id):
        return str.__str__(agent_id)  # never a subclass of str
    shown = repr(agent_id) if len(repr(agent_id)) <= 160 else repr(agent_id)[:150] + "…"
    raise InvalidAgentId(
        f"{shown} is not an agent id",
        hint="use 1 to 128 of the characters A–Z a–z 0–9 . _ - @, not starting with a dot",
    )


def is_of_agent(owner: str) -> bool:
    """Whether what is stored under this id is an agent's.

    An id that begins with a dot is no agent's. What is stored under it counts with no agent.
    """
    return owner[:1] != "."


def check_content(content: object, max_bytes: int) -> str:
    """``content`` itself if a memory can have this text, or :class:`InvalidContent`."""
    text = check_text(content, "memory")
    if not text or text.isspace():
        raise InvalidContent("a memory needs some text; this one is blank")
    # A character is at most 4 bytes, so a short text fits without a look at its bytes.
    if len(text) * 4 > max_bytes:
        size = len(text.encode())
        if size > max_bytes:
            raise InvalidContent(
                f"a memory of {size:,} bytes is over memory.max_content_bytes ({max_bytes:,})"
            )
    return text


def check_query(query: object) -> str:
    """``query`` itself, blank or not, or :class:`InvalidContent`."""
    text = check_text(query, "query")
    if len(text) > _MOST_QUERY:
        raise InvalidContent(f"a query of {len(text):,} characters is over {_MOST_QUERY:,}")
    return text


def check_whole(name: str, value: object, least: int = 0, most: int = _MOST) -> int:
    """``value`` itself if it is a whole number from ``least`` to ``most``, or InvalidInput."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        if value <= most:
            return value
        raise InvalidInput(f"{name} {value!r:.40} is too large", hint=f"it may be {most} at most")
    raise InvalidInput(f"{name} {value!r:.40} is not a whole number from {least} on")


def check_kind(kind: object) -> str:
    """``kind`` itself, or :class:`InvalidInput`."""
    if isinstance(kind, str) and kind in KINDS:
        return str.__str__(kind)
    raise InvalidInput(
        f"{kind!r:.60} is not a kind of memory", hint=f"use one of {', '.join(KINDS)}"
    )


def check_tags(tags: object) -> tuple[str, ...]:
    """The tags in alphabetical order, each once; or :class:`InvalidInput`."""
    if isinstance(tags, str | bytes | Mapping) or not isinstance(tags, Iterable):
        raise InvalidInput(f"tags are a list of texts; got {tags!r:.60}")
    found = set()
    for tag in tags:
        try:
            text = check_text(tag, "tag")
        except InvalidContent as error:
            raise InvalidInput(error.why, hint=error.hint) from None
        if not text.strip() or text != text.strip() or len(text) > _LONGEST_TAG or "," in text:
            raise InvalidInput(
                f"{text!r:.80} is not a tag",
                hint=f"use 1 to {_LONGEST_TAG} characters without commas and without blanks around",
            )
        found.add(text)
    if len(found) > _MOST_TAGS:
        raise InvalidInput(
            f"a memory has at most {_MOST_TAGS} tags; got {len(found)}", hint="leave some out"
        )
    return tuple(sorted(found))


def plain_scalar(value: Any) -> Any:
    """The plain value of a NumPy number, truth value or text; any other value as it is."""
    import numpy as np  # whoever has such a value has imported it

    if not isinstance(value, np.generic) or isinstance(value, np.datetime64 | np.timedelta64):
        return value
    plain = value.item()
    return plain if type(plain) in (str, bool, int, float) else value


# Searches


def check_iterable(items: Iterable[object]) -> Iterable[object]:
    """``items`` itself if it is a batch; a text or a mapping is :class:`InvalidInput`."""
    if isinstance(items, Iterable) and not isinstance(items, str | bytes | Mapping):
        return items
    raise InvalidInput(f"a batch is a list of tuples; got {items!r:.80}")


def check_searches(requests: Iterable[object]) -> tuple[list[str], list[str]]:
    """Agents and queries from pairs."""
    agents, queries = list[str](), list[str]()
    for request in check_iterable(requests):
        if not isinstance(request, tuple | list) or len(request) != 2:
            raise InvalidInput(f"a search is a pair (agent_id, query); got {request!r:.80}")
        agents.append(check_agent_id(request[0]))
        queries.append(check_query(request[1]))
    return agents, queries


# Filters: which memories a call is about, by what they are, and by conditions on their metadata.
#
# ``{"metadata.place": "bay", "metadata.day": {"$gte": 3}}`` is such a condition. It is checked
# before it is used: an unknown operator or a value of a wrong type is an error that names the key.
# Depth and size are bounded, because a condition may come from a stranger.


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
    session: str | None = None
    """The memory is part of the session with this name."""

    def allows(self, memory: Memory) -> bool:
        """Whether a memory meets all conditions except ``min_score``."""
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
) -> Filter:
    """A filter from a caller's values: one value, or a list of which a memory needs one.

    ``filters`` is a mapping of conditions on metadata; ``session`` names a session.
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
    found = Filter(
        _any_of(tier, parse_tier),
        _any_of(temperature, parse_temperature),
        _any_of(kind, check_kind),
        None if words is None else frozenset(words),
        0 if since_tick is None else check_whole("since_tick", since_tick),
        0.0 if min_score is None else float(min_score),
        None if filters is None else parse_condition(filters),
        optional_session(session),
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


def check_session(session: object) -> str:
    """The name of a session, or :class:`InvalidInput`; 7 and "7" name the same one."""
    plain = plain_scalar(session)
    if isinstance(plain, str | int) and not isinstance(plain, bool):
        try:
            return check_text(plain if isinstance(plain, str) else str(plain), "session")
        except InvalidContent as error:
            raise InvalidInput(error.why, hint=error.hint) from None
        except ValueError:  # Python writes no number with thousands of digits
            raise InvalidInput("a session is no number of thousands of digits") from None
    raise InvalidInput(
        f"a session is a text or a whole number, not {session!r:.40}",
        hint="use the name that its memories were stored with",
    )


def optional_session(session: object) -> str | None:
    """The name of a session; None where none is given."""
    return None if session is None else check_session(session)


def _any_of(value: object, parse: Callable[[object], _Value]) -> frozenset[_Value] | None:
    if value is None:
        return None
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        if values := frozenset(map(parse, value)):
            return values
        raise InvalidInput("a filter with an empty list lets nothing pass", hint="leave it out")
    return frozenset([parse(value)])
