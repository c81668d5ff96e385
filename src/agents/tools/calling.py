"""Runs operations by name, with arguments that nobody has checked; makes schemas for models."""

import difflib
import functools
import logging
import re
from collections.abc import Container, Iterable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from ..bank.agent_memory import AgentMemory
from ..engine import clock
from ..errors import InvalidInput, TierMemError
from ..memory.tiers import NO_TIERS, TEMPERATURE_NAMES, TIER_VALUES
from ..memory.words import cut
from .operations import OPERATIONS, WHY_NOT, Operation, Permission, allows
from .shapes import MOST_SAID, Schema

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator


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


logger = logging.getLogger(__name__)

_MOST_ITEMS = 1000
"""The longest list that an argument takes."""


class Failure(NamedTuple):
    """Why an operation was not done. A model or a person can act on the message."""

    type: str
    """The name of the error: InvalidInput, MemoryNotFound, TierFull, …"""
    message: str

    def to_dict(self) -> dict[str, Any]:
        """``{"error": {"type": …, "message": …}}``."""
        return {"error": {"type": self.type, "message": self.message}}


class Outcome(NamedTuple):
    """The outcome of an operation: a result, or a failure."""

    result: dict[str, Any] | None
    failure: Failure | None

    @property
    def is_error(self) -> bool:
        """Whether the operation was not done."""
        return self.failure is not None

    def to_dict(self) -> dict[str, Any]:
        """The result, or ``{"error": {"type": …, "message": …}}``."""
        return self.failure.to_dict() if self.failure is not None else self.result or {}


def call(
    memory: AgentMemory,
    name: str,
    arguments: object = None,
    permission: Permission = "write",
) -> Outcome:
    """Run an operation. It never raises an exception: a failure is an outcome, too.

    With the permission ``read``, the operation may not change the memory, and the memories that it
    finds do not count as used. With ``tell``, it may also reach the memories of other agents, with
    ``advance`` move the bank's clock as well. The log has the details of an error inside TierMem
    itself; the outcome does not.
    """
    try:
        if not allows(permission, needed := find(name).permission):
            return Outcome(None, Failure("NotAllowed", f"{name} {WHY_NOT[needed]}"))
        clock.follow(memory.engine)
        with memory.engine.observing() if permission == "read" else nullcontext():
            return Outcome(run(memory, name, arguments), None)
    except TierMemError as error:
        return Outcome(None, Failure(type(error).__name__, cut(str(error), MOST_SAID)))
    except Exception:
        logger.exception("the operation %r failed", name)
        message = "something went wrong inside TierMem; the log says what"
        return Outcome(None, Failure("InternalError", message))


def run(memory: AgentMemory, name: object, arguments: object = None) -> dict[str, Any]:
    """Run an operation; a wrong name or argument is an :class:`InvalidInput`."""
    operation = find(name)
    return operation.run(memory, checked(operation, arguments))


def find(name: object) -> Operation:
    """The operation of this name, or :class:`InvalidInput`."""
    operation = OPERATIONS.get(name) if isinstance(name, str) else None
    if operation is not None:
        return operation
    raise InvalidInput(f"there is no operation {_shown(name)}", hint=_instead(name, OPERATIONS))


def checked(operation: Operation, arguments: object) -> dict[str, Any]:
    """The arguments, if they fit the schema; an optional argument that is null is left out."""
    given = {} if arguments is None else arguments
    if not isinstance(given, Mapping):
        raise InvalidInput(f"the arguments of {operation.name} are an object, not {_shown(given)}")
    known: dict[str, Schema] = operation.arguments["properties"]
    optional = known.keys() - set(operation.arguments.get("required", ()))
    own = renamed(operation, given)
    kept = {key: value for key, value in own.items() if value is not None or key not in optional}
    for key, value in kept.items():
        if key not in known:
            raise InvalidInput(
                f"{operation.name} takes no argument {_shown(key)}",
                hint=operations_with(key, value) or _instead(key, known),
            )
        if isinstance(value, list) and len(value) > _MOST_ITEMS:  # to check each takes long
            raise InvalidInput(f"{operation.name}: {_shown(key)} has {len(value):,} entries")
    try:
        error = next(iter(_validator(operation.name).iter_errors(kept)), None)
    except (RecursionError, ValueError):  # the validator can't print the value
        raise InvalidInput(
            f"{operation.name}: a value is nested too deeply, or a number is too long"
        ) from None
    if error is not None:
        error = _inner(error)
        place = ".".join(map(str, error.absolute_path))
        where = f"{operation.name}: {place} " if place else f"{operation.name}: "
        raise InvalidInput(cut(where + _said(error), MOST_SAID))
    # In JSON 3.0 is a whole number like 3; a model may write either.
    return {
        key: int(value) if type(value) is float and known[key].get("type") == "integer" else value
        for key, value in kept.items()
    }


def _instead(wrong: object, known: Iterable[str]) -> str:
    """A hint for an unknown name: the nearest known name, or all of them."""
    names = list(known)
    near = difflib.get_close_matches(wrong[:80], names, 1) if isinstance(wrong, str) else []
    if near:
        return f"did you mean {near[0]}?"
    return f"there are {', '.join(names)}" if names else "there are none"


@functools.cache
def _validator(name: str) -> "Validator":
    from jsonschema import Draft202012Validator

    return Draft202012Validator(OPERATIONS[name].arguments)


def _shown(value: object) -> str:
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


def _said(error: "ValidationError") -> str:
    """The validator's message; a long value in it is cut."""
    if error.validator == "maxLength":
        return f"has {len(str(error.instance)):,} characters, of at most {error.validator_value:,}"
    text = str(error.message)
    text = text if len(text) <= 300 else f"{text[:200]} … {text[-90:]}"
    allowed: Any = error.validator_value
    if error.validator == "enum" and TIER_VALUES.keys() >= set(allowed):
        text += f"; {NO_TIERS}"
        if error.instance in TEMPERATURE_NAMES.values():
            text += f"; {operations_with('temperature', error.instance)}"
    return text


def openai_schemas(names: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """For ``tools=`` of OpenAI's chat completions, and of services with the same API."""
    return [
        {
            "type": "function",
            "function": {
                "name": each.name,
                "description": each.description,
                "parameters": each.schema(),
            },
        }
        for each in _chosen(names)
    ]


def anthropic_schemas(names: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """For ``tools=`` of Anthropic's messages."""
    return [
        {
            "name": each.name,
            "description": each.description,
            "input_schema": each.schema(),
        }
        for each in _chosen(names)
    ]


def _chosen(names: Iterable[str] | None) -> list[Operation]:
    from .calling import find

    if names is not None:
        return [find(name) for name in names]
    return [each for each in OPERATIONS.values() if allows("write", each.permission)]
