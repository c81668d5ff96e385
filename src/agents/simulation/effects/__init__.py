"""Causal experiments: what did a memory do?

>>> from tiermem.simulation.effects import effect
>>> found = effect("runs/market", at=60, forget="agent_00:Never accept an offer")

A branch in which nothing changes must be the run itself; then a branch in which one thing changes
shows what that thing did. See docs/architecture/effects.md.
"""

from .experiment import effect, expected_cost
from .results import Effect, Ranked
from .which import which, which_cost

__all__ = ["Effect", "Ranked", "effect", "expected_cost", "which", "which_cost"]
