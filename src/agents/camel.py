"""Memory for CAMEL's agents. Needs ``pip install 'tiermem[camel]'``.

``ChatAgent(…, memory=TierMemory(context_creator, bank.agent("alice")))``
"""

from .adapters.camel import TierMemory as TierMemory

__all__ = ["TierMemory"]
