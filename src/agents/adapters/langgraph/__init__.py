"""A bank as the store of LangGraph: namespaces are agents, items are memories with a key."""

from ...packages import needed

with needed("tiermem.langgraph", "langgraph", "langchain_core"):
    from .async_store import AsyncTierMemStore
    from .embedder import LangChainEmbedder
    from .store import TierMemStore

__all__ = ["AsyncTierMemStore", "LangChainEmbedder", "TierMemStore"]
