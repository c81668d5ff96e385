"""Memory for LlamaIndex's agents. Needs ``pip install 'tiermem[llama-index]'``.

``Memory.from_defaults(memory_blocks=[TierMemoryBlock(bank.agent("alice"))])``
"""

from collections.abc import Sequence
from typing import Any

from . import AgentMemory
from .adapting import (
    EitherMemory,
    Scalar,
    count_tokens,
    fitted,
    flat,
    in_mind,
    in_turn,
    needed,
    render,
)

with needed("tiermem.llama_index", "llama_index"):
    from llama_index.core.base.llms.types import ChatMessage, TextBlock
    from llama_index.core.bridge.pydantic import Field
    from llama_index.core.memory import BaseMemoryBlock

__all__ = ["TierMemoryBlock"]

_SESSION, _TIER = "session_id", "tier"
"""What a message may say in its ``additional_kwargs``."""


class TierMemoryBlock(BaseMemoryBlock[str]):  # type: ignore[misc]
    """The memories of one agent of a bank, for ``Memory.from_defaults(memory_blocks=[…])``.

    ``memories`` is ``bank.agent("alice")`` of a ``MemoryBank``, or of an ``AsyncMemoryBank``, whose
    calls leave the event loop free. All sessions of the agent share its memories: give each user
    an agent. The bank is yours to close.

    Messages that leave the chat history become memories, a commit for each call. A prompt gets the
    pinned and the hot memories, and those that matter for the newest message, or for the newest
    ``retrieval_context_window`` of them: ``limit`` at most beside the hot ones, a line for each.
    Where the prompt is too long, the last lines are cut, and pinned memories at the very end.

    ``ChatMessage(…, additional_kwargs={"tier": "pinned"})`` says a message's tier.
    """

    name: str = Field(default="TierMemory", description="The name of the memory block.")
    memories: Any = Field(description="An agent's memories, of a bank.", exclude=True)
    limit: int = Field(default=10, description="How many memories a prompt gets.")
    retrieval_context_window: int = Field(
        default=1, description="How many of the newest messages are what a search is about."
    )

    def __init__(self, memories: EitherMemory, **fields: Any) -> None:
        super().__init__(memories=memories, **fields)

    async def _aget(self, messages: list[ChatMessage] | None = None, **_: Any) -> str:
        newest = (messages or [])[-max(1, self.retrieval_context_window) :]
        query = " ".join(filter(None, map(_text, newest)))
        hits = await in_turn(self.memories, in_mind, query, self.limit)
        return render(hits) if hits else ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await in_turn(self.memories, _store, messages)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """The content without as many of its last lines as have these tokens; None if none stay."""
        return await in_turn(self.memories, _cut, content, tokens_to_truncate)


def _store(memories: AgentMemory, messages: Sequence[ChatMessage]) -> None:
    said = [(message, text) for message in messages if (text := _text(message)).strip()]
    memories.add_many([_item(memories, message, text) for message, text in said])


def _item(memories: AgentMemory, message: ChatMessage, text: str) -> tuple[object, ...]:
    """What ``add_many`` takes for a message; what is longer than a memory is kept beside it."""
    said = message.additional_kwargs
    metadata: dict[str, Scalar] = flat(
        {name: value for name, value in said.items() if name not in (_SESSION, _TIER)}
    )
    options: dict[str, object] = {"kind": "message", "speaker": message.role.value}
    if said.get(_SESSION) is not None:
        options["session"] = said[_SESSION]
    content = fitted(memories, text)
    if content != text:
        options["value"] = {"text": text}
    return content, said.get(_TIER), metadata, options


def _cut(memories: AgentMemory, content: str, tokens: int) -> str | None:
    lines = content.splitlines()
    while lines and tokens > 0:
        tokens -= count_tokens(memories, lines.pop() + "\n")
    return "\n".join(lines) or None


def _text(message: ChatMessage) -> str:
    return " ".join(block.text for block in message.blocks if isinstance(block, TextBlock))
