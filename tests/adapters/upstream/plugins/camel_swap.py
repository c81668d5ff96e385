"""A plugin of pytest: TierMem's memory takes the place of two of CAMEL's memories."""

from __future__ import annotations

from typing import Any

import camel.memories
import camel.utils.token_counting

from tiermem.camel import TierMemory


class InHistory(TierMemory):
    """Takes the arguments of ``ChatHistoryMemory``; the bank stores."""

    def __init__(
        self,
        context_creator: Any,
        storage: Any = None,
        window_size: int | None = None,
        agent_id: str | None = None,
    ) -> None:
        super().__init__(context_creator, window_size=window_size, agent_id=agent_id)


class InVector(TierMemory):
    """Takes the arguments of ``VectorDBMemory``: its conversation is the newest message."""

    def __init__(
        self,
        context_creator: Any,
        storage: Any = None,
        retrieve_limit: int = 3,
        agent_id: str | None = None,
    ) -> None:
        options = {"window_size": 1, "retrieve_limit": retrieve_limit, "agent_id": agent_id}
        super().__init__(context_creator, **options)


class Words:
    """Counts words: the original downloads a table of tokens."""

    def __init__(self, model: Any) -> None:
        """A model has no words of its own."""

    def count_tokens_from_messages(self, messages: list[dict[str, Any]]) -> int:
        return sum(len(str(message["content"]).split()) for message in messages)


camel.memories.ChatHistoryMemory = InHistory
camel.memories.VectorDBMemory = InVector
camel.utils.token_counting.OpenAITokenCounter = Words
