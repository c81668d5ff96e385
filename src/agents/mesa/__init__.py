"""Memory for the agents of a Mesa model: see docs/howto/mesa.md."""

from ..simulation.runs.model_memory import ModelMemory
from .memories import Memories
from .page import make_memory_component

__all__ = ["Memories", "ModelMemory", "make_memory_component"]
