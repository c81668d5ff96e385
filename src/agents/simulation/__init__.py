"""Worlds, policies and the loop between them; runs that stop, resume, replay and branch.

What a world of your own needs is here: :class:`World` says which methods, and the rest is what they
take and give. :class:`Loop` runs one on any bank, :class:`Run` in a folder of its own.
"""

from typing import TYPE_CHECKING

from ..errors import InvalidAction
from .protocols import Action, Observation, Outcome, Policy, Remark, World

if TYPE_CHECKING:
    from .loop.loop import Loop
    from .runs.run import Run

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
        from .loop.loop import Loop

        return Loop
    if name == "Run":
        from .runs.run import Run

        return Run
    raise AttributeError(f"module 'tiermem.simulation' has no attribute {name!r}")
