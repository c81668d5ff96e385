"""Tiered, reproducible memory for agents in multi-agent simulations.

>>> from tiermem import MemoryBank
>>> with MemoryBank.ephemeral() as bank:
...     alice = bank.agent("alice")
...     _ = alice.add("NEVER transfer to agent_X (scammer)", tier="pinned")
...     _ = alice.add("Agent_Y mentioned they like trading", tier="low")
...     print(alice.get_relevant_memories("who can I trade with?"))
- [pinned] NEVER transfer to agent_X (scammer)
- [low] Agent_Y mentioned they like trading
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if __name__ == "agents":  # imported by the folder's name: tiermem becomes the module
    import tiermem.agents

    sys.modules["agents"] = tiermem

from .errors import (
    BankBroken,
    BankClosed,
    BankDamaged,
    BankError,
    BankLocked,
    BankNotFound,
    BankTooNew,
    BankTooOld,
    CheckpointDamaged,
    CheckpointError,
    CommitFailed,
    CommitUnknown,
    ConfigError,
    Diverged,
    EmbedderError,
    ExtractionError,
    InvalidAction,
    InvalidAgentId,
    InvalidContent,
    InvalidInput,
    InvalidMetadata,
    InvalidTemperature,
    InvalidTier,
    MemoryNotFound,
    MemoryPinned,
    NoteRefused,
    RunError,
    SimulationError,
    StoreDamaged,
    StoreError,
    StoreMismatch,
    TickNotKept,
    TierFull,
    TierMemError,
    TrustError,
    Untrusted,
)
from .memory.records import Explanation, Hit, Hits, Memory
from .memory.sources import Source
from .memory.tiers import TIER_NAMES, TIER_VALUES, Retention, Temperature, Tier
from .version import __version__

if TYPE_CHECKING:
    from . import analysis as analysis
    from . import simulation as simulation
    from . import tools as tools
    from .bank.agent_memory import AgentMemory
    from .bank.async_bank import AsyncMemoryBank
    from .bank.memory_bank import MemoryBank
    from .simulation.runs.simulate import experiment, simulate
    from .simulation.runs.trust import trust
    from .simulation.small_world import world

__all__ = [
    "TIER_NAMES",
    "TIER_VALUES",
    "AgentMemory",
    "AsyncMemoryBank",
    "BankBroken",
    "BankClosed",
    "BankDamaged",
    "BankError",
    "BankLocked",
    "BankNotFound",
    "BankTooNew",
    "BankTooOld",
    "CheckpointDamaged",
    "CheckpointError",
    "CommitFailed",
    "CommitUnknown",
    "ConfigError",
    "Diverged",
    "EmbedderError",
    "Explanation",
    "ExtractionError",
    "Hit",
    "Hits",
    "InvalidAction",
    "InvalidAgentId",
    "InvalidContent",
    "InvalidInput",
    "InvalidMetadata",
    "InvalidTemperature",
    "InvalidTier",
    "Memory",
    "MemoryBank",
    "MemoryNotFound",
    "MemoryPinned",
    "NoteRefused",
    "Retention",
    "RunError",
    "SimulationError",
    "Source",
    "StoreDamaged",
    "StoreError",
    "StoreMismatch",
    "Temperature",
    "TickNotKept",
    "Tier",
    "TierFull",
    "TierMemError",
    "TrustError",
    "Untrusted",
    "__version__",
    "experiment",
    "simulate",
    "trust",
    "world",
]


_LATER = {
    "MemoryBank": ".bank.memory_bank",
    "AgentMemory": ".bank.agent_memory",
    "AsyncMemoryBank": ".bank.async_bank",
    "experiment": ".simulation.runs.simulate",
    "simulate": ".simulation.runs.simulate",
    "trust": ".simulation.runs.trust",
    "world": ".simulation.small_world",
}


def __getattr__(name: str) -> object:
    """Import a class of the bank, and NumPy with it, or a subpackage, on its first use."""
    if name in _LATER:
        return getattr(import_module(_LATER[name], __name__), name)
    if name in ("analysis", "simulation", "tools"):
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module 'tiermem' has no attribute {name!r}")
