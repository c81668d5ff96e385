"""The calls of ``mem0.Memory`` and ``mem0.AsyncMemory``, over a bank."""

from .adapters.mem0.async_memory import AsyncMemory as AsyncMemory
from .adapters.mem0.memory import Memory as Memory

__all__ = ["AsyncMemory", "Memory"]
