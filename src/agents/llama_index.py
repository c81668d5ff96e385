"""Memory for LlamaIndex's agents. Needs ``pip install 'tiermem[llama-index]'``.

``Memory.from_defaults(memory_blocks=[TierMemoryBlock(bank.agent("alice"))])``
"""

from .adapters.llama_index import TierMemoryBlock as TierMemoryBlock

__all__ = ["TierMemoryBlock"]
