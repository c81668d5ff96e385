"""Checks arguments that nobody has checked: their names, and their values by JSON Schema."""

import difflib
import re
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInput
from ..memory.tiers import NO_TIERS, TEMPERATURE_NAMES, TIER_VALUES
from ..memory.words import cut
from .operations import Operation
from .shapes import MOST_SAID, Schema

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

Table = Mapping[str, Operation]
"""Operations by name: ours, or those of a profile."""

_CAPITAL = re.compile(r"(?<=[a-z0-9])[A-Z]")
_SAME = {
    "session_id": ("session",),
    "type": ("kind", "kinds"),
    "types": ("kinds", "kind"),
    "text": ("content",),
    "content": ("text",),
    "k": ("limit", "max_results"),
    "limit": ("max_results",),
    "max_results": ("limit",),
}
"""The names that an argument may have here, best first, for names in small letters."""
_TEMPERATURES = frozenset(TEMPERATURE_NAMES.values())


def renamed(operation: Operation, given: Mapping[Any, Any]) -> dict[Any, Any]:
    """The arguments under their own names. Names that nobody knows stay as they are."""
    own: dict[Any, Any] = {}
    first: dict[Any, Any] = {}
    for key, value in given.items():
        name = _name(key, value, operation.arguments["properties"])
        if name in own:
            raise InvalidInput(
                f"{operation.name}: {first[name]} and {key} mean the same", hint=f"give {name}"
            )
        own[name], first[name] = value, key
    return own


def operations_with(key: object, value: object, table: Table) -> str:
    """A hint for an argument that an operation lacks: its name, and the operations that have it."""
    everywhere = {name for each in table.values() for name in each.arguments["properties"]}
    name = _name(key, value, everywhere)
    takers = [each.name for each in table.values() if name in each.arguments["properties"]]
    return f"{name} is an argument of {', '.join(takers)}" if takers else ""


def _name(key: Any, value: object, known: Container[str]) -> Any:
    """The name of an argument here: camelCase and a few other names are understood."""
    if not isinstance(key, str):
        return key
    if key == "tier" and "temperature" in known and _is_temperature(value):
        return "temperature"
    if key in known:
        return key
    plain = _CAPITAL.sub(lambda capital: f"_{capital[0].lower()}", key)
    return next((name for name in (plain, *_SAME.get(plain, ())) if name in known), key)


def _is_temperature(value: object) -> bool:
    """Whether a value is hot, warm or cold, or a list of these, which are not tiers."""
    values = value if isinstance(value, list) else [value]
    return bool(values) and all(isinstance(each, str) and each in _TEMPERATURES for each in values)


_MOST_ITEMS = 1000
"""The longest list that an argument takes."""


def checked(
    operation: Operation, arguments: object, table: Table, validator: "Validator"
) -> dict[str, Any]:
    """The arguments, if they fit the schema; an optional argument that is null is left out.

    ``validator`` is that of the operation's arguments. Hints name operations of the ``table``.
    """
    given = {} if arguments is None else arguments
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"the arguments of {operation.name} are an object, not {shown_short(given)}"
        )
    known: dict[str, Schema] = operation.arguments["properties"]
    optional = known.keys() - set(operation.arguments.get("required", ()))
    own = renamed(operation, given)
    kept = {key: value for key, value in own.items() if value is not None or key not in optional}
    for key, value in kept.items():
        if key not in known:
            raise InvalidInput(
                f"{operation.name} takes no argument {shown_short(key)}",
                hint=operations_with(key, value, table) or instead(key, known),
            )
        if isinstance(value, list) and len(value) > _MOST_ITEMS:  # to check each takes long
            raise InvalidInput(f"{operation.name}: {shown_short(key)} has {len(value):,} entries")
    return fitting(operation.name, kept, table, validator)


def fitting(
    name: str, values: Mapping[str, Any], table: Table, validator: "Validator"
) -> dict[str, Any]:
    """The values, if they fit the validator's schema, or :class:`InvalidInput`.

    ``name`` is that of the operation whose arguments they are.
    """
    try:
        error = next(iter(validator.iter_errors(values)), None)
    except (RecursionError, ValueError):  # the validator can't print the value
        raise InvalidInput(
            f"{name}: a value is nested too deeply, or a number is too long"
        ) from None
    if error is not None:
        error = _inner(error)
        place = ".".join(map(str, error.absolute_path))
        where = f"{name}: {place} " if place else f"{name}: "
        raise InvalidInput(cut(where + _said(error, table), MOST_SAID))
    schema: Any = validator.schema
    known: dict[str, Schema] = schema["properties"]
    # In JSON 3.0 is a whole number like 3; a model may write either.
    return {
        key: int(value) if type(value) is float and known[key].get("type") == "integer" else value
        for key, value in values.items()
    }


def validator_of(schema: Schema) -> "Validator":
    """A validator of a schema; to import jsonschema takes longer than most calls."""
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema)


def instead(wrong: object, known: Iterable[str]) -> str:
    """A hint for an unknown name: the nearest known name, or all of them."""
    names = list(known)
    near = difflib.get_close_matches(wrong[:80], names, 1) if isinstance(wrong, str) else []
    if near:
        return f"did you mean {near[0]}?"
    return f"there are {', '.join(names)}" if names else "there are none"


def shown_short(value: object) -> str:
    """The beginning of a value, or its type, if Python can't print it."""
    try:
        return f"{value!r:.60}"
    except (RecursionError, ValueError):  # nested too deeply, or too long a number
        return type(value).__name__


def _inner(error: "ValidationError") -> "ValidationError":
    """What is wrong with a value that may be one or a list: the error of the form that it has."""
    inner = error.context or []
    others = {each.schema_path[0] for each in inner if each.validator == "type" and not each.path}
    told = (each for each in inner if each.validator != "type")
    return min(told, key=lambda each: each.schema_path[0] in others, default=error)


def _said(error: "ValidationError", table: Table) -> str:
    """The validator's message; a long value in it is cut."""
    if error.validator == "maxLength":
        return f"has {len(str(error.instance)):,} characters, of at most {error.validator_value:,}"
    text = str(error.message)
    text = text if len(text) <= 300 else f"{text[:200]} … {text[-90:]}"
    allowed: Any = error.validator_value
    if error.validator == "enum" and TIER_VALUES.keys() >= set(allowed):
        text += f"; {NO_TIERS}"
        if error.instance in TEMPERATURE_NAMES.values():
            text += f"; {operations_with('temperature', error.instance, table)}"
    return text
