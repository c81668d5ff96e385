"""Memory for Mesa-LLM's agents, and a record of what their language model said."""

from .recording import record
from .tier_memory import TierMemory

__all__ = ["TierMemory", "record"]
