"""Memory for AutoGen's agents. Needs ``pip install 'tiermem[autogen]'``.

``AssistantAgent(…, memory=[TierMemory(bank.agent("alice"))])``
"""

from .adapters.autogen import TierMemory as TierMemory
from .adapters.autogen import TierMemoryConfig as TierMemoryConfig

__all__ = ["TierMemory", "TierMemoryConfig"]
