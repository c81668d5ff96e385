"""Which values a filter lets pass, and which namespaces meet a condition."""

from collections.abc import Callable, Mapping, Sequence
from operator import ge, gt, le, lt
from types import MappingProxyType
from typing import Any

from langgraph.store.base import MatchCondition

from ...errors import InvalidInput
from ...memory.records import shown

Namespace = tuple[str, ...]

_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = MappingProxyType(
    {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
)
_OPERATORS = ("$eq", "$ne", *_ORDERS)


def check_filter(wanted: object) -> None:
    """Raise :class:`InvalidInput` if a filter is not a mapping, or has an unknown operator."""
    if wanted is None:
        return
    if not isinstance(wanted, Mapping):
        raise InvalidInput(f"a filter is a mapping such as {{'kind': 'note'}}, not {shown(wanted)}")
    for each in wanted.values():
        if not isinstance(each, Mapping):
            continue
        if not _has_operators(each):
            check_filter(each)
        elif unknown := [key for key in each if key not in _OPERATORS]:
            raise InvalidInput(
                f"a filter has no operator {shown(unknown[0])}",
                hint=f"use {', '.join(_OPERATORS)}",
            )


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether a value has all that a filter names.

    A key that the value lacks is a path if it has dots: ``user.name`` is ``name`` inside ``user``.
    """
    return all(_holds(_at(value, path), each) for path, each in (wanted or {}).items())


def _at(value: Mapping[str, Any], path: object) -> Any:
    """What the value has there; None if it has nothing."""
    if not isinstance(path, str):  # all keys of a value are texts
        return None
    if path in value:
        return value[path]
    first, dot, rest = path.partition(".")
    inside = value.get(first)
    return _at(inside, rest) if dot and isinstance(inside, dict) else None


def _has_operators(wanted: Mapping[Any, Any]) -> bool:
    return any(str(key).startswith("$") for key in wanted)


def _holds(own: Any, wanted: Any) -> bool:
    """Whether a value is what is wanted, or has it: objects may have more keys."""
    if isinstance(wanted, Mapping):
        if _has_operators(wanted):
            return all(_compares(own, operator, other) for operator, other in wanted.items())
        return isinstance(own, dict) and all(_holds(own.get(k), v) for k, v in wanted.items())
    if isinstance(wanted, list | tuple):
        same_size = isinstance(own, list) and len(own) == len(wanted)
        return same_size and all(map(_holds, own, wanted))
    return _is_same(own, wanted)


def _compares(own: Any, operator: str, other: Any) -> bool:
    """Values of different kinds are never equal, and neither comes before the other."""
    if operator in _ORDERS:
        kind = _kind(own)
        is_ordered = kind in ("number", "str") and kind == _kind(other)
        return is_ordered and _ORDERS[operator](own, other)
    return _is_same(own, other) is (operator == "$eq")


def _is_same(own: Any, other: Any) -> bool:
    if isinstance(other, Mapping):
        same_keys = isinstance(own, dict) and own.keys() == other.keys()
        return same_keys and all(_is_same(own[key], other[key]) for key in own)
    if isinstance(other, list | tuple):
        same_size = isinstance(own, list) and len(own) == len(other)
        return same_size and all(map(_is_same, own, other))
    return _kind(own) == _kind(other) and bool(own == other)


def _kind(value: object) -> str:
    return "number" if type(value) in (int, float) else type(value).__name__


def meets(namespace: Namespace, condition: MatchCondition) -> bool:
    """Whether a namespace begins or ends as the condition says; ``*`` stands for any label."""
    path: Sequence[str] = condition.path
    if condition.match_type not in ("prefix", "suffix"):
        raise InvalidInput(
            f"a namespace has no {shown(condition.match_type)}", hint="use prefix or suffix"
        )
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)]
    if condition.match_type == "suffix":
        part = namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", own) for own, wanted in zip(part, path, strict=True))
