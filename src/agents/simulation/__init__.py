"""Worlds, policies and the loop between them; runs that stop, resume, replay and branch.

A world of your own implements :class:`World`; the other values here are what its methods take and
give. :class:`Loop` runs a world on any bank, :class:`Run` runs one in a folder, and
:class:`SweepRecord` reads what many runs came to.
"""

from typing import TYPE_CHECKING

from ..errors import InvalidAction
from .protocols import (
    Action,
    Answer,
    Ask,
    Conversation,
    Insight,
    Observation,
    Outcome,
    Persona,
    Policy,
    Remark,
    Say,
    World,
    WorldRandom,
)

if TYPE_CHECKING:
    from .runs.run import Run
    from .small_world import Tick, Turn
    from .society import Place, Society
    from .sweeps.record import SweepRecord
    from .tick.loop import Loop

__all__ = [
    "Action",
    "Answer",
    "Ask",
    "Conversation",
    "Insight",
    "InvalidAction",
    "Loop",
    "Observation",
    "Outcome",
    "Persona",
    "Place",
    "Policy",
    "Remark",
    "Run",
    "Say",
    "Society",
    "SweepRecord",
    "Tick",
    "Turn",
    "World",
    "WorldRandom",
]


def __getattr__(name: str) -> object:
    """Import what needs NumPy, and what few need, at its first use."""
    if name == "Loop":
        from .tick.loop import Loop

        return Loop
    if name == "Run":
        from .runs.run import Run

        return Run
    if name == "SweepRecord":
        from .sweeps.record import SweepRecord

        return SweepRecord
    if name in ("Place", "Society"):
        from . import society

        return getattr(society, name)
    if name in ("Tick", "Turn"):
        from . import small_world

        return getattr(small_world, name)
    raise AttributeError(f"module 'tiermem.simulation' has no attribute {name!r}")
