"""A bank as the store of a LangGraph graph. Needs ``pip install 'tiermem[langgraph]'``.

>>> from tiermem import MemoryBank
>>> from tiermem.langgraph import TierMemStore
>>> store = TierMemStore(MemoryBank.ephemeral())
>>> store.put(("users", "ann"), "diet", {"text": "eats no meat"})
>>> store.search(("users",), query="what does she eat?")[0].value
{'text': 'eats no meat'}
"""

from ..packages import needed

with needed("tiermem.langgraph", "langgraph", "langchain_core"):
    from .embedder import LangChainEmbedder
    from .store import AsyncTierMemStore, TierMemStore

__all__ = ["AsyncTierMemStore", "LangChainEmbedder", "TierMemStore"]
