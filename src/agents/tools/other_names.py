"""Arguments under the names that other clients give them."""

import re
from collections.abc import Container, Mapping
from typing import Any

from ..errors import InvalidInput
from ..memory.temperature import TEMPERATURE_NAMES
from .operation import Operation
from .operations import OPERATIONS

_CAPITAL = re.compile(r"(?<=[a-z0-9])[A-Z]")
_SAME = {
    "session_id": ("session",),
    "type": ("kind", "kinds"),
    "types": ("kinds", "kind"),
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


def operations_with(key: object, value: object) -> str:
    """A hint for an argument that an operation lacks: its name, and the operations that have it."""
    everywhere = {name for each in OPERATIONS.values() for name in each.arguments["properties"]}
    name = _name(key, value, everywhere)
    takers = [each.name for each in OPERATIONS.values() if name in each.arguments["properties"]]
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
