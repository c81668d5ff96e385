"""The memory actions: what an agent may do to its own memory, in the words that it uses.

=================  =====================  ===================================================
name               arguments              what happens
=================  =====================  ===================================================
store_memory       content, tier          keep a text; the tier is normal unless given
set_memory_tier    memory_id, tier        move a memory to a tier
pin_memory         memory_id              move it to pinned
unpin_memory       memory_id              move it from pinned to normal
=================  =====================  ===================================================
"""

from collections.abc import Mapping
from typing import Any

from agents.agent_memory import AgentMemory
from agents.errors import InvalidAction
from agents.memory.tiers import Tier, parse_tier
from agents.simulation.protocols import NO_ARGUMENTS, Action

__all__ = ["MEMORY_ACTIONS", "NO_OP", "as_action", "change_memory", "memory_to_store"]

MEMORY_ACTIONS: Mapping[str, str] = {
    "store_memory": "keep a text: content, and optionally tier (pinned, critical, important, "
    "normal or low)",
    "set_memory_tier": "move a memory to a tier: memory_id, tier",
    "pin_memory": "keep a memory in view always: memory_id",
    "unpin_memory": "end that: memory_id",
}

NO_OP = "no_op"
"""Nothing is done, and that is recorded with its ``reason``: for a policy that found no answer."""

_LONGEST_NAME = 100

_REQUIRED = {
    "store_memory": ("content",),
    "set_memory_tier": ("memory_id", "tier"),
    "pin_memory": ("memory_id",),
    "unpin_memory": ("memory_id",),
}
_OPTIONAL = {"store_memory": ("tier",)}


def as_action(value: object) -> Action:
    """An action from what a policy, a script or an LLM gave; :class:`InvalidAction` if it is none.

    An :class:`Action`, or a mapping with ``name`` and, where there are any, ``arguments``.
    """
    name: Any
    arguments: Any
    if type(value) is Action and value.arguments is NO_ARGUMENTS and _is_plain(value.name):
        return value
    if isinstance(value, Action):
        name, arguments = value
    elif isinstance(value, Mapping) and value.keys() <= {"name", "arguments"}:
        name, arguments = value.get("name"), value.get("arguments") or {}
    else:
        raise InvalidAction(f"an action has a name and arguments; got {value!r:.80}")
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= _LONGEST_NAME:
        raise InvalidAction(
            f"an action's name is text of 1 to {_LONGEST_NAME} characters; got {name!r:.40}"
        )
    if not isinstance(arguments, Mapping) or not all(isinstance(key, str) for key in arguments):
        raise InvalidAction(f"{name}: arguments are a mapping by name; got {arguments!r:.80}")
    return Action(name, arguments)


def _is_plain(name: object) -> bool:
    return type(name) is str and name.isidentifier() and len(name) <= _LONGEST_NAME


def memory_to_store(action: Action) -> tuple[object, Tier]:
    """The content, unchecked, and the tier of a ``store_memory``."""
    arguments = _checked(action)
    return arguments["content"], parse_tier(arguments.get("tier", Tier.NORMAL))


def change_memory(memory: AgentMemory, action: Action) -> None:
    """Do one of the other three."""
    arguments = _checked(action)
    identifier = arguments["memory_id"]
    if action.name == "pin_memory":
        memory.pin(identifier)
    elif action.name == "unpin_memory":
        memory.unpin(identifier)
    else:
        memory.set_tier(identifier, arguments["tier"])


def _checked(action: Action) -> Mapping[str, Any]:
    name, arguments = action
    required = _REQUIRED[name]
    allowed = (*required, *_OPTIONAL.get(name, ()))
    wants = f"{name} takes {' and '.join(allowed)}"
    for argument in required:
        if argument not in arguments:
            raise InvalidAction(f"{argument} is missing; {wants}")
    for argument in arguments:
        if argument not in allowed:
            raise InvalidAction(f"there is no argument {argument!r:.40}; {wants}")
    return arguments
