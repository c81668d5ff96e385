"""A bank as the store of LangGraph: namespaces are agents, items are memories with a key."""

try:
    from .async_store import AsyncTierMemStore
    from .embedder import LangChainEmbedder
    from .store import TierMemStore
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] not in ("langgraph", "langchain_core"):
        raise
    raise ImportError(
        "tiermem.langgraph needs LangGraph, which is not installed; "
        "install it with: pip install 'tiermem[langgraph]'"
    ) from missing

__all__ = ["AsyncTierMemStore", "LangChainEmbedder", "TierMemStore"]
