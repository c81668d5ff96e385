"""Running an operation by its name, with arguments that somebody else made up."""

import difflib
import functools
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from agents.agent_memory import AgentMemory
from agents.errors import InvalidInput, TierMemError
from agents.tools.operations import OPERATIONS, Operation

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

__all__ = ["Failure", "Outcome", "call", "run"]

logger = logging.getLogger(__name__)

_LONGEST = 1000
"""Characters of an error's message."""
_MOST_ITEMS = 1000
"""No argument takes a longer list."""


class Failure(NamedTuple):
    """Why an operation was not done, in words that a model or a person can act on."""

    type: str
    """The name of the error: InvalidInput, MemoryNotFound, TierFull, …"""
    message: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"error": {"type": self.type, "message": self.message}}


class Outcome(NamedTuple):
    """What came of an operation: a result, or a failure."""

    result: dict[str, Any] | None
    failure: Failure | None

    @property
    def is_error(self) -> bool:
        """Whether it was not done."""
        return self.failure is not None

    def to_dict(self) -> dict[str, Any]:
        """The result, or ``{"error": {"type": …, "message": …}}``."""
        return self.failure.to_dict() if self.failure is not None else self.result or {}


def call(memory: AgentMemory, name: str, arguments: object = None) -> Outcome:
    """Run an operation; every failure is an outcome that can be read, and never an exception.

    What goes wrong inside TierMem itself is logged, and told without its details.
    """
    try:
        return Outcome(run(memory, name, arguments), None)
    except TierMemError as error:
        return Outcome(None, Failure(type(error).__name__, _short(str(error))))
    except Exception:
        logger.exception("the operation %r failed", name)
        message = "something went wrong inside TierMem; the log says what"
        return Outcome(None, Failure("InternalError", message))


def run(memory: AgentMemory, name: object, arguments: object = None) -> dict[str, Any]:
    """Run an operation; what is wrong with the call is an :class:`InvalidInput`."""
    operation = find(name)
    return operation.run(memory, checked(operation, arguments))


def find(name: object) -> Operation:
    """The operation of this name."""
    operation = OPERATIONS.get(name) if isinstance(name, str) else None
    if operation is not None:
        return operation
    near = difflib.get_close_matches(name[:80], OPERATIONS, 1) if isinstance(name, str) else []
    hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(OPERATIONS)}"
    raise InvalidInput(f"there is no operation {_shown(name)}{hint}")


def checked(operation: Operation, arguments: object) -> dict[str, Any]:
    """Arguments that fit the operation's schema; null stands for what is not given."""
    given = {} if arguments is None else arguments
    if not isinstance(given, Mapping):
        raise InvalidInput(f"the arguments of {operation.name} are an object, not {_shown(given)}")
    optional = operation.arguments["properties"].keys() - set(
        operation.arguments.get("required", ())
    )
    kept = {key: value for key, value in given.items() if value is not None or key not in optional}
    for key, value in kept.items():
        if isinstance(value, list) and len(value) > _MOST_ITEMS:  # to look at each would take long
            raise InvalidInput(f"{operation.name}: {_shown(key)} has {len(value):,} entries")
    try:
        error = next(iter(_validator(operation.name).iter_errors(kept)), None)
    except (RecursionError, ValueError):  # what is wrong can't even be shown
        raise InvalidInput(
            f"{operation.name}: a value is nested too deeply, or a number is too long"
        ) from None
    if error is not None:
        place = ".".join(map(str, error.absolute_path))
        where = f"{operation.name}: {place} " if place else f"{operation.name}: "
        raise InvalidInput(_short(where + _said(error.message)))
    return kept


@functools.cache
def _validator(name: str) -> "Validator":
    from jsonschema import Draft202012Validator, validators

    # JSON has one sort of number; 3.0 is not meant as a count.
    types = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    strict = validators.extend(Draft202012Validator, type_checker=types)  # type: ignore[no-untyped-call]
    validator: Validator = strict(OPERATIONS[name].arguments)
    return validator


def _shown(value: object) -> str:
    """The beginning of a value; what sort it is, where it can't be shown."""
    try:
        return f"{value!r:.60}"
    except (RecursionError, ValueError):  # nested too deeply, or too long a number
        return type(value).__name__


def _said(message: str) -> str:
    """jsonschema's message, which may quote all of a long value."""
    return message if len(message) <= 300 else f"{message[:200]} … {message[-90:]}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
