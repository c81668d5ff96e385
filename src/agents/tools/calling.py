"""Running an operation by its name, with arguments that somebody else made up."""

import difflib
import functools
import logging
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from ..bank.agent_memory import AgentMemory
from ..errors import InvalidInput, TierMemError
from .operations import OPERATIONS, Operation
from .shapes import MOST_SAID, Schema

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

__all__ = ["Failure", "Outcome", "call", "run"]

logger = logging.getLogger(__name__)

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


def call(
    memory: AgentMemory, name: str, arguments: object = None, *, observing: bool = False
) -> Outcome:
    """Run an operation; every failure is an outcome that can be read, and never an exception.

    While ``observing``, what is found does not count as used. What goes wrong inside TierMem itself
    is logged, and told without its details.
    """
    try:
        with memory.parts.observing() if observing else nullcontext():
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
    raise InvalidInput(f"there is no operation {_shown(name)}", hint=_instead(name, OPERATIONS))


def checked(operation: Operation, arguments: object) -> dict[str, Any]:
    """Arguments that fit the operation's schema; null stands for what is not given."""
    given = {} if arguments is None else arguments
    if not isinstance(given, Mapping):
        raise InvalidInput(f"the arguments of {operation.name} are an object, not {_shown(given)}")
    known: dict[str, Schema] = operation.arguments["properties"]
    optional = known.keys() - set(operation.arguments.get("required", ()))
    kept = {key: value for key, value in given.items() if value is not None or key not in optional}
    for key, value in kept.items():
        if key not in known:
            raise InvalidInput(
                f"{operation.name} takes no argument {_shown(key)}", hint=_instead(key, known)
            )
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
        raise InvalidInput(_short(where + _said(error)))
    # In JSON 3.0 is a whole number like 3; a model may write either.
    return {
        key: int(value) if type(value) is float and known[key].get("type") == "integer" else value
        for key, value in kept.items()
    }


def _instead(wrong: object, known: Iterable[str]) -> str:
    """What may have been meant by a name that is none of the known ones."""
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
    """The beginning of a value; what sort it is, where it can't be shown."""
    try:
        return f"{value!r:.60}"
    except (RecursionError, ValueError):  # nested too deeply, or too long a number
        return type(value).__name__


def _said(error: "ValidationError") -> str:
    """What is wrong with a value, which is not quoted whole if it is long."""
    if error.validator == "maxLength":
        return f"has {len(str(error.instance)):,} characters, of at most {error.validator_value:,}"
    text = str(error.message)
    return text if len(text) <= 300 else f"{text[:200]} … {text[-90:]}"


def _short(text: str) -> str:
    return text if len(text) <= MOST_SAID else text[: MOST_SAID - 1] + "…"
