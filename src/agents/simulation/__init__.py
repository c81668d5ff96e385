"""Worlds, policies and the loop between them; runs that stop, resume, replay and branch.

What a world of your own needs is here: :class:`World` says which methods, and the rest is what they
take and give. :class:`Loop` runs one on any bank, :class:`Run` in a folder of its own.
"""

from typing import TYPE_CHECKING

from agents.errors import InvalidAction
from agents.simulation.protocols import Action, Observation, Outcome, Policy, Remark, World

if TYPE_CHECKING:
    from agents.simulation.loop import Loop
    from agents.simulation.run import Run

__all__ = [
    "Action",
    "InvalidAction",
    "Loop",
    "Observation",
    "Outcome",
    "Policy",
    "Remark",
    "Run",
    "World",
]


def __getattr__(name: str) -> object:
    """Bring in what needs a bank, and NumPy with it, when it is first asked for."""
    if name == "Loop":
        from agents.simulation.loop import Loop

        return Loop
    if name == "Run":
        from agents.simulation.run import Run

        return Run
    raise AttributeError(f"module 'agents.simulation' has no attribute {name!r}")
