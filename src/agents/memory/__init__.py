"""What a memory is: plain values, and the checks of what callers give.

Nothing here reads a file, a clock or a random source. agent_ecology2 has its classes of memory in a
module of this name: for theirs, this one is the door to ``tiermem.agent_ecology``.
"""

from importlib import import_module
from typing import Any

_ECOLOGY = (
    "AgentMemory",
    "ArtifactMemory",
    "MemoryTier",
    "TIER_NAMES",
    "TIER_VALUES",
    "get_memory",
)


def __getattr__(name: str) -> Any:
    """A name of ``tiermem.agent_ecology``, which is imported on its first use."""
    if name in _ECOLOGY:
        return getattr(import_module("..agent_ecology", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
