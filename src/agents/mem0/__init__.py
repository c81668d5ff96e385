"""The calls of ``mem0.Memory`` and ``mem0.AsyncMemory``, over a bank."""

from .memory import AsyncMemory as AsyncMemory
from .memory import Memory as Memory

__all__ = ["AsyncMemory", "Memory"]
