"""Memory for Concordia's entities: see docs/howto/concordia.md."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .memory_bank import FORMATIVE, AssociativeMemoryBank, SentenceEmbedder

if TYPE_CHECKING:
    from .simulation import FormativeMemories, Simulation

__all__ = [
    "FORMATIVE",
    "AssociativeMemoryBank",
    "FormativeMemories",
    "SentenceEmbedder",
    "Simulation",
]


def __getattr__(name: str) -> Any:
    """Import what subclasses Concordia's own classes on its first use."""
    if name in ("FormativeMemories", "Simulation"):
        return getattr(import_module(".simulation", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
