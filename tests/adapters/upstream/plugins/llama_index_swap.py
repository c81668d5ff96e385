"""A plugin of pytest: TierMem's block is in each ``Memory``, and is each ``VectorMemoryBlock``."""

from __future__ import annotations

import uuid
from typing import Any

import llama_index.core.memory.memory
import llama_index.core.memory.memory_blocks.vector

from tiermem import MemoryBank
from tiermem.llama_index import TierMemoryBlock


class InVector(TierMemoryBlock):
    """Takes the arguments of ``VectorMemoryBlock``; the bank embeds, and has no nodes."""

    vector_store: Any = None

    def __init__(self, vector_store: Any, similarity_top_k: int = 2, **options: Any) -> None:
        fields = {"vector_store": vector_store, "limit": similarity_top_k}
        window = options.get("retrieval_context_window", 5)
        agent = MemoryBank.ephemeral().agent("alice")
        super().__init__(agent, retrieval_context_window=window, **fields)


def with_ours(init: Any) -> Any:
    """A ``Memory`` with one more block."""

    def made(self: Any, **fields: Any) -> None:
        ours = TierMemoryBlock(MemoryBank.ephemeral().agent("alice"), name=f"tier-{uuid.uuid4()}")
        fields["memory_blocks"] = [*fields.get("memory_blocks", []), ours]
        init(self, **fields)

    return made


llama_index.core.memory.memory_blocks.vector.VectorMemoryBlock = InVector
memory = llama_index.core.memory.memory.Memory
memory.__init__ = with_ours(memory.__init__)
