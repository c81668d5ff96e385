"""Memory for the agents of a Mesa model: see docs/howto/mesa.md."""

from .adapters.mesa import Memories as Memories
from .adapters.mesa import MesaMemory as MesaMemory
from .adapters.mesa import make_memory_component as make_memory_component

__all__ = ["Memories", "MesaMemory", "make_memory_component"]
