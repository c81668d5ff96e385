"""Memory for LangGraph: a bank as the store of a graph. Needs ``pip install 'tiermem[langgraph]'``.

>>> from tiermem import MemoryBank
>>> from tiermem.langgraph import TierMemStore
>>> store = TierMemStore(MemoryBank.ephemeral())
>>> store.put(("users", "ann"), "diet", {"text": "eats no meat"})
>>> store.search(("users",), query="what does she eat?")[0].value
{'text': 'eats no meat'}
"""

from .adapters.langgraph import AsyncTierMemStore as AsyncTierMemStore
from .adapters.langgraph import LangChainEmbedder as LangChainEmbedder
from .adapters.langgraph import TierMemStore as TierMemStore
