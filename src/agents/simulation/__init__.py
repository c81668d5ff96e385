"""Worlds, policies and the loop between them; runs that stop, resume, replay and branch.

What a world of your own needs is here: :class:`World` says which methods, and the rest is what they
take and give. :class:`Loop` runs one on any bank, :class:`Run` in a folder of its own.
"""

from agents.errors import InvalidAction
from agents.simulation.loop import Loop
from agents.simulation.protocols import Action, Observation, Outcome, Policy, Remark, World
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
