"""Whether settings fit their schema, without the time that importing jsonschema takes.

A command starts faster by it. It knows the keywords of ``config/schema.yaml``; with a keyword that
it does not know, nothing fits, and jsonschema decides.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_Schema = Mapping[str, Any]
_MOST_COMPARED = 100


def fits(value: object, schema: _Schema, whole: _Schema | None = None) -> bool:
    """Whether a value is certainly valid; ``whole`` is the schema that references point into."""
    whole = schema if whole is None else whole
    return all(
        keyword in _SAY_NOTHING
        or (keyword in _KEYWORDS and _KEYWORDS[keyword](value, rule, schema, whole))
        for keyword, rule in schema.items()
    )


def _is(kind: str, value: object) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


_TYPES: dict[str, Any] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "null": type(None),
    "number": (int, float),
    "object": dict,
    "string": str,
}


def _type(value: object, rule: str | list[str], *_: _Schema) -> bool:
    return any(_is(kind, value) for kind in ([rule] if isinstance(rule, str) else rule))


def _enum(value: object, rule: list[object], *_: _Schema) -> bool:
    return any(value == each and type(value) is type(each) for each in rule)


def _reference(value: object, rule: str, _: _Schema, whole: _Schema) -> bool:
    found: Any = whole
    for part in rule.removeprefix("#/").split("/"):
        found = found[part]
    return fits(value, found, whole)


def _properties(value: object, rule: _Schema, _: _Schema, whole: _Schema) -> bool:
    return not isinstance(value, dict) or all(
        fits(value[name], below, whole) for name, below in rule.items() if name in value
    )


def _additional(value: object, rule: object, schema: _Schema, whole: _Schema) -> bool:
    if not isinstance(value, dict):
        return True
    others = [own for name, own in value.items() if name not in schema.get("properties", {})]
    if isinstance(rule, bool):
        return rule or not others
    return isinstance(rule, dict) and all(fits(each, rule, whole) for each in others)


def _if(value: object, rule: _Schema, schema: _Schema, whole: _Schema) -> bool:
    # A value that does not certainly fit the condition has to fit both branches.
    branches = ["then"] if fits(value, rule, whole) else ["then", "else"]
    return all(fits(value, schema.get(branch, {}), whole) for branch in branches)


def _among(kind: str, holds: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    """A keyword that concerns values of one type alone."""
    return lambda value, rule, *_: not _is(kind, value) or holds(value, rule)


def _items(value: object, rule: _Schema, _: _Schema, whole: _Schema) -> bool:
    return not isinstance(value, list) or all(fits(each, rule, whole) for each in value)


def _unique(values: Sequence[object], rule: bool) -> bool:
    return not rule or (
        len(values) <= _MOST_COMPARED
        and not any(each in values[:place] for place, each in enumerate(values))
    )


_SAY_NOTHING = {"$schema", "$defs", "title", "description", "then", "else"}
_KEYWORDS: dict[str, Callable[..., bool]] = {
    "$ref": _reference,
    "type": _type,
    "enum": _enum,
    "properties": _properties,
    "additionalProperties": _additional,
    "if": _if,
    "items": _items,
    "required": _among("object", lambda value, rule: all(name in value for name in rule)),
    "minimum": _among("number", lambda value, rule: value >= rule),
    "maximum": _among("number", lambda value, rule: value <= rule),
    "exclusiveMinimum": _among("number", lambda value, rule: value > rule),
    "minLength": _among("string", lambda value, rule: len(value) >= rule),
    "maxLength": _among("string", lambda value, rule: len(value) <= rule),
    "pattern": _among("string", lambda value, rule: re.search(rule, value) is not None),
    "minItems": _among("array", lambda value, rule: len(value) >= rule),
    "maxItems": _among("array", lambda value, rule: len(value) <= rule),
    "uniqueItems": _among("array", _unique),
}
