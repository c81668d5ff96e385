"""Memory for the agents of a Mesa model: see docs/howto/mesa.md."""

from .agent_memory import MesaMemory
from .memories import Memories
from .page import make_memory_component

__all__ = ["Memories", "MesaMemory", "make_memory_component"]
