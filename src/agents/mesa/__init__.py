"""Memory for the agents of a Mesa model: see docs/howto/mesa.md."""

from .memories import Memories, MesaMemory
from .page import make_memory_component

__all__ = ["Memories", "MesaMemory", "make_memory_component"]
