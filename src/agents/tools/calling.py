"""Runs operations by name, with arguments that nobody has checked; makes schemas for models."""

import functools
import logging
from collections.abc import Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from ..bank.agent_memory import AgentMemory
from ..engine import clock
from ..errors import InvalidInput, TierMemError
from ..memory.words import cut
from .checking import Table, checked, instead, shown_short, validator_of
from .operations import WHY_NOT, Operation, Permission, allows
from .profiles import table_of
from .shapes import MOST_SAID

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

logger = logging.getLogger(__name__)


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

    The operations are ours, or those of the bank's profile.

    With the permission ``read``, the operation may not change the memory, and the memories that it
    finds do not count as used. With ``tell``, it may also reach the memories of other agents, with
    ``advance`` move the bank's clock as well. The log has the details of an error inside TierMem
    itself; the outcome does not.
    """
    try:
        needed = find(name, table_of(memory.engine.settings.profile)).permission
        if not allows(permission, needed):
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
    table = table_of(memory.engine.settings.profile)
    operation = find(name, table)
    validator = _validator(operation.profile, operation.name)
    return operation.run(memory, checked(operation, arguments, table, validator))


def find(name: object, table: Table) -> Operation:
    """The operation of this name, or :class:`InvalidInput`."""
    operation = table.get(name) if isinstance(name, str) else None
    if operation is not None:
        return operation
    raise InvalidInput(f"there is no operation {shown_short(name)}", hint=instead(name, table))


@functools.cache
def _validator(profile: str | None, name: str) -> "Validator":
    return validator_of(table_of(profile)[name].arguments)


def openai_schemas(
    names: Iterable[str] | None = None, *, profile: str | None = None
) -> list[dict[str, Any]]:
    """For ``tools=`` of OpenAI's chat completions, and of services with the same API.

    ``profile`` is that of the bank, if it has one: then they are the operations of the profile.
    """
    return [
        {
            "type": "function",
            "function": {
                "name": each.name,
                "description": each.description,
                "parameters": each.schema(),
            },
        }
        for each in _chosen(names, table_of(profile))
    ]


def anthropic_schemas(
    names: Iterable[str] | None = None, *, profile: str | None = None
) -> list[dict[str, Any]]:
    """For ``tools=`` of Anthropic's messages; ``profile`` as in :func:`openai_schemas`."""
    return [
        {
            "name": each.name,
            "description": each.description,
            "input_schema": each.schema(),
        }
        for each in _chosen(names, table_of(profile))
    ]


def _chosen(names: Iterable[str] | None, table: Table) -> list[Operation]:
    if names is not None:
        return [find(name, table) for name in names]
    return [each for each in table.values() if allows("write", each.permission)]
