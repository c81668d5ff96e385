"""mem0's filters: checked, tested on a payload, and translated to the bank's where they can be."""

import json
from collections.abc import Callable, Iterable, Mapping
from operator import ge, gt, le, lt
from typing import Any, Final, NamedTuple

from ..errors import InvalidInput
from ..memory.filters import Condition, parse_condition
from ..memory.records import VALUE, Metadata
from ..memory.requests import plain_scalar
from ..memory.tiers import TIER_NAMES, Tier
from .payloads import EXPIRES, kept_name, tier_of, whole
from .scopes import IDS, checked_id

_ABSENT: Final = object()
_ORDERS: Final = {"gt": gt, "gte": ge, "lt": lt, "lte": le}
_TEXTS: Final = ("contains", "icontains")
_OPERATORS: Final = ("eq", "ne", "in", "nin", *_ORDERS, *_TEXTS)
_JOINS: Final = {each: each for each in ("AND", "OR", "NOT")} | {
    "$and": "AND",
    "$or": "OR",
    "$not": "NOT",
}
"""What joins conditions, for mem0 and for its stores."""
_ONLY_HERE: Final = frozenset({*IDS, "tier", "data", "memory", "hash", "id", "updated_at"})
"""What the bank's metadata does not have under one name for all memories."""
_DEEPEST: Final = 64


class Test(NamedTuple):
    """Compares one entry of a payload. A missing entry is equal to nothing."""

    name: str
    operator: str
    value: Any

    def holds(self, payload: Mapping[str, Any]) -> bool:
        """Whether a memory with this payload passes."""
        kept, value = payload.get(self.name, _ABSENT), self.value
        if self.name == "tier":
            kept, value = _tier_name(kept), _tier_name(value)
        if self.operator in _ORDERS:
            alike = _kind(kept) == _kind(value) and _kind(kept) in ("number", "str")
            return alike and bool(_ORDERS[self.operator](kept, value))
        if self.operator in _TEXTS:
            return _contains(kept, value, folded=self.operator == "icontains")
        values = value if self.operator in ("in", "nin") else [value]
        is_one = any(_same(kept, one) for one in values)
        return is_one is (self.operator in ("eq", "in"))

    def names(self) -> set[str]:
        """The names that it asks for."""
        return {self.name}

    def translated(self) -> dict[str, Any] | None:
        """The bank's filter that says the same; None if there is none."""
        values = self.value if self.operator in ("in", "nin") else [self.value]
        if self.name in _ONLY_HERE or self.operator in _TEXTS:
            return None
        if any(_kind(each) == "other" for each in values):
            return None
        if self.operator in _ORDERS and _kind(self.value) not in ("number", "str"):
            return None
        value = list(values) if self.operator in ("in", "nin") else self.value
        return {f"metadata.{kept_name(self.name)}": {f"${self.operator}": value}}

    def tiers_named(self) -> frozenset[Tier] | None:
        """The tiers that it asks for; None if the tier of a memory does not decide it.

        A normal memory may have a ``tier`` of the caller's own, which is not normal.
        """
        if self.name != "tier" or self.operator not in ("eq", "in"):
            return None
        named = [tier_of(each) for each in (self.value if self.operator == "in" else [self.value])]
        if None in named or Tier.NORMAL in named:
            return None
        return frozenset(each for each in named if each is not None)


class Join(NamedTuple):
    """Several filters: all of them hold, or one, or none."""

    operator: str
    parts: "tuple[Wanted, ...]"

    def holds(self, payload: Mapping[str, Any]) -> bool:
        """Whether a memory with this payload passes."""
        outcomes = (part.holds(payload) for part in self.parts)
        if self.operator == "OR":
            return any(outcomes)
        return all(outcomes) if self.operator == "AND" else not any(outcomes)

    def names(self) -> set[str]:
        """The names that it asks for."""
        return {name for part in self.parts for name in part.names()}

    def translated(self) -> dict[str, Any] | None:
        """The bank's filter that says the same; None if there is none."""
        parts = [part.translated() for part in self.parts]
        if None in parts or (self.operator == "NOT" and {} in parts):
            return None
        if self.operator == "AND":
            parts = [part for part in parts if part]
        if not parts or {} in parts:  # all memories pass
            return {}
        # A join of one filter is that filter: the bank's filters may not be nested deeply.
        joined = {"$and" if self.operator == "AND" else "$or": parts}
        translation = joined if len(parts) > 1 else parts[0]
        return {"$not": translation} if self.operator == "NOT" else translation

    def tiers(self) -> "tuple[frozenset[Tier] | None, Join]":
        """The tiers that a memory must have one of, and the rest; None if any tier will do."""
        tiers: frozenset[Tier] | None = None
        rest: list[Wanted] = []
        for part in self.parts:
            named = part.tiers_named() if isinstance(part, Test) else None
            if named is None:
                rest.append(part)
            else:
                tiers = named if tiers is None else tiers & named
        return tiers, Join(self.operator, tuple(rest))


Wanted = Test | Join


def read_filters(filters: Any) -> tuple[dict[str, str], Join]:
    """The ids that filters name, and the rest of the filters. Errors are ``ValueError``, as mem0's.

    >>> read_filters({"user_id": "ann", "day": {"gte": 3}})
    ({'user_id': 'ann'}, Join(operator='AND', parts=(Test(name='day', operator='gte', value=3),)))
    """
    if filters is not None and not isinstance(filters, Mapping):
        raise InvalidInput(f"filters is a mapping, not {type(filters).__name__}")
    rest = dict(filters or {})
    checked = {name: checked_id(rest.pop(name), name) for name in IDS if name in rest}
    ids = {name: value for name, value in checked.items() if value is not None}
    if not ids:
        raise InvalidInput(
            "filters must contain at least one of: user_id, agent_id, run_id. "
            "Example: filters={'user_id': 'u1'}"
        )
    return ids, _read(rest)


def _read(filters: Mapping[str, Any], depth: int = 0) -> Join:
    if depth > _DEEPEST:
        raise InvalidInput(f"filters are nested more than {_DEEPEST} deep", hint="simplify them")
    parts: list[Wanted] = []
    for name, wanted in filters.items():
        value = _plain(wanted)
        if name in _JOINS:
            parts.append(_read_joined(name, value, depth + 1))
            continue
        _check_name(name, value)
        if isinstance(value, Mapping):
            parts += [_read_test(name, operator, compared) for operator, compared in value.items()]
        elif isinstance(value, list):
            parts.append(Test(name, "in", value))
        elif value != "*":
            parts.append(Test(name, "eq", value))
    return Join("AND", tuple(parts))


def _read_joined(name: str, value: Any, depth: int) -> Join:
    if not isinstance(value, list):
        raise InvalidInput(f"{name} operator requires a list of conditions")
    if not value and _JOINS[name] != "AND":
        raise InvalidInput(f"{name} operator requires a non-empty list of conditions")
    if not all(isinstance(each, Mapping) for each in value):
        raise InvalidInput(f"{name} operator requires a list of conditions")
    return Join(_JOINS[name], tuple([_read(each, depth) for each in value]))


def _check_name(name: Any, value: Any) -> None:
    """Raise :class:`InvalidInput` for what is not a name of metadata, but was meant as a join."""
    if not isinstance(name, str):
        raise InvalidInput(f"the keys of filters are text, not {name!r:.80}")
    has_conditions = isinstance(value, list) and any(isinstance(each, Mapping) for each in value)
    if name.startswith("$") or has_conditions:
        raise InvalidInput(
            f"filters have no operator {name!r:.80}", hint="AND, OR and NOT join conditions"
        )


def _read_test(name: str, operator: str, value: Any) -> Test:
    if operator not in _OPERATORS:
        raise InvalidInput(f"Unsupported metadata filter operator: {operator}")
    if operator in ("in", "nin") and not isinstance(value, list | tuple | set | frozenset):
        raise InvalidInput(f"the operator {operator} of {name!r:.80} requires a list")
    return Test(name, operator, _plain(value))


def _plain(value: Any) -> Any:
    """The value, or each value of a list, without the scalars of NumPy."""
    return list(map(plain_scalar, value)) if isinstance(value, list) else plain_scalar(value)


def _tier_name(value: Any) -> Any:
    """The name of a tier, for each way of writing it; a memory without one is normal."""
    if isinstance(value, list | tuple | set | frozenset):
        return [_tier_name(each) for each in value]
    tier = tier_of("normal" if value is _ABSENT else value)
    return value if tier is None else TIER_NAMES[tier]


def _contains(kept: Any, value: Any, *, folded: bool) -> bool:
    fold: Callable[[Any], Any] = _folded if folded else lambda element: element
    if isinstance(kept, str):
        return isinstance(value, str) and fold(value) in fold(kept)
    return isinstance(kept, list) and any(_same(fold(element), fold(value)) for element in kept)


def _folded(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value


def _kind(value: Any) -> str:
    """The type that counts in a comparison: whole and other numbers are of one type."""
    if type(value) in (int, float):
        return "number"
    return type(value).__name__ if value is None or type(value) in (str, bool) else "other"


def _same(one: Any, other: Any) -> bool:
    return _kind(one) == _kind(other) and bool(one == other)


# Conditions on all that a bank keeps of a payload: flat metadata, and what is beside it


class Traits(NamedTuple):
    """What memories may have."""

    has_dates: bool
    """Whether one may have a last day."""
    has_values: bool
    """Whether something may be kept beside the metadata of one."""

    @classmethod
    def of(cls, metadata: Iterable[Metadata | None]) -> "Traits":
        """The traits of memories with this metadata."""
        values = False
        for entries in metadata:
            if entries is not None:
                beside = entries.get(VALUE)
                values = values or beside is not None
                if EXPIRES in entries or (isinstance(beside, str) and EXPIRES in beside):
                    return cls(True, True)  # the rest may have anything
        return cls(False, values)


COLD: Final = Traits(True, True)
"""What cold memories may have: they would have to be read to know more."""


class Seen(NamedTuple):
    """A condition on metadata and on what is kept beside it. What is expired does not meet it."""

    condition: Condition | None
    today: str | None
    names: tuple[str, ...]
    """The names that it asks for, as JSON has them."""

    def matches(self, metadata: Metadata, /) -> bool:
        """Whether the condition holds."""
        entries, beside = metadata, metadata.get(VALUE)
        if isinstance(beside, str) and any(name in beside for name in self.names):
            everything = whole(metadata).items()
            entries = {
                name: value for name, value in everything if not isinstance(value, dict | list)
            }
        if self.today is not None:
            last = entries.get(EXPIRES)
            if isinstance(last, str) and last < self.today:
                return False
        return self.condition is None or self.condition.matches(entries)


def seen(
    ids: dict[str, str], wanted: Join, today: str | None, traits: Iterable[Traits]
) -> tuple[Condition | None, Join | None]:
    """The bank's condition, and what is left to be tested: None if nothing is."""
    condition, left = _condition(ids, wanted)
    known = list(traits)
    if not any(one.has_dates for one in known):
        today = None
    has_values = condition is not None and any(one.has_values for one in known)
    if today is None and not has_values:
        return condition, left
    names = [EXPIRES, *map(kept_name, {*ids, *wanted.names()})]
    quoted = tuple([json.dumps(name, ensure_ascii=False) for name in names])
    return Seen(condition, today, quoted), left


def _condition(ids: dict[str, str], wanted: Join) -> tuple[Condition | None, Join | None]:
    of_ids: dict[str, Any] = {f"metadata.{kept_name(name)}": ids[name] for name in ids}
    native = wanted.translated()
    if native is not None:
        try:
            return parse_condition(
                {"$and": [of_ids, native]} if of_ids and native else of_ids or native
            ), None
        except InvalidInput:  # it is longer or deeper than the bank's conditions may be
            pass
    return parse_condition(of_ids), wanted
