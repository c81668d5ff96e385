"""What an operation of an agent on its memory is: the form of a row of the table of operations."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Literal, NamedTuple, get_args

from ..bank.agent_memory import AgentMemory
from .shapes import Schema

Permission = Literal["read", "write", "tell", "advance"]
"""What a caller may do; each permission includes those before it."""


WHY_NOT: dict[Permission, str] = {
    "read": "reads the memory",
    "write": "changes the memory",
    "tell": "reaches the memories of other agents",
    "advance": "moves the clock of all agents",
}
"""What an operation does that a caller may not do, by the permission that it needs."""


def allows(given: Permission, needed: Permission | None) -> bool:
    """Whether a caller with the permission ``given`` may do what needs the other one."""
    order = get_args(Permission)
    return needed is None or order.index(given) >= order.index(needed)


class Route(NamedTuple):
    """The HTTP route of an operation. A name in braces in the path is an argument."""

    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    status: int = 200


class Operation(NamedTuple):
    """An operation of an agent on its memory."""

    name: str
    description: str
    """Models choose an operation by it; people read it in the reference."""
    arguments: Schema
    result: Schema
    permission: Permission
    """The permission that a token needs."""
    run: Callable[[AgentMemory, dict[str, Any]], dict[str, Any]]
    """Takes arguments that were checked."""
    example: dict[str, Any]
    """Arguments that make sense; an id in them is made up."""
    route: Route
    destroys: bool = False
    """Whether the operation may purge a memory."""

    def schema(self) -> Schema:
        """The arguments with the example, for a model."""
        return {**deepcopy(self.arguments), "examples": [deepcopy(self.example)]}
