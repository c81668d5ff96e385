"""What a run does for a person by way of rooms above this one: found by name, at its first use.

Import contracts don't see these, and need not: nothing that makes a result uses them.
"""

from importlib import import_module
from typing import Any

_PACKAGE = __name__.rpartition(".simulation.")[0]
_WHERE = {
    "branch_with": ".simulation.effects.interventions",
    "effect": ".interfaces.notebook.going_on",
    "go_on": ".interfaces.notebook.going_on",
    "inspect": ".interfaces.notebook.inspecting",
    "say": ".interfaces.notebook.going_on",
}


def above(name: str) -> Any:
    """The function of this name."""
    return getattr(import_module(_WHERE[name], _PACKAGE), name)
