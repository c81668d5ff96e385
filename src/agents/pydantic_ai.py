"""Memory for Pydantic AI's agents. Needs ``pip install 'tiermem[pydantic-ai]'``.

``Agent(…, capabilities=[TierMemory(bank.agent("alice"))])``
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import AgentMemory
from .adapting import EitherMemory, fitted, in_mind, in_turn, needed, render

with needed("tiermem.pydantic_ai", "pydantic_ai"):
    from pydantic_ai import AgentRunResult, RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
    from pydantic_ai.models import ModelRequestContext
    from pydantic_core import to_json

__all__ = ["TierMemory"]


@dataclass
class TierMemory(AbstractCapability[Any]):  # type: ignore[misc]
    """The memories of one agent of a bank, for ``Agent(capabilities=[…])``.

    ``memories`` is ``bank.agent("alice")`` of a ``MemoryBank``, or of an ``AsyncMemoryBank``, whose
    calls leave the event loop free. The bank is yours to close.

    A model reads, before the user's prompt, the pinned and the hot memories, and those that matter
    for the prompt: ``limit`` at most beside the hot ones. They are no part of the run's messages,
    and are asked for once in a run. A run that ends leaves two memories, in one commit: the user's
    prompt and the output. ``stores=False`` leaves it to you to say what is remembered.
    """

    memories: EitherMemory
    limit: int = 5
    stores: bool = True
    _told: str = ""
    """What a model reads in this run."""

    async def for_run(self, ctx: RunContext[Any]) -> "TierMemory":
        """The capability for one run: runs at the same time share none of what they read."""
        told = await in_turn(self.memories, _matters, _words(ctx.prompt), self.limit)
        return replace(self, _told=told)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Tell what matters, in this request alone."""
        if self._told:
            request_context.messages = _with(self._told, request_context.messages)
        return request_context

    async def after_run(
        self, ctx: RunContext[Any], *, result: AgentRunResult[Any]
    ) -> AgentRunResult[Any]:
        """Store what was asked and what came out."""
        if self.stores:
            said = [("user", _words(ctx.prompt)), ("assistant", _output(result))]
            await in_turn(self.memories, _store, said)
        return result


def _matters(memories: AgentMemory, query: str, limit: int) -> str:
    hits = in_mind(memories, query, limit)
    return f"Relevant memories:\n{render(hits)}" if hits else ""


def _with(told: str, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The messages, and what matters before the user's newest words."""
    for place in reversed(range(len(messages))):
        message = messages[place]
        if isinstance(message, ModelRequest):
            for number, part in enumerate(message.parts):
                if isinstance(part, UserPromptPart):
                    parts: list[Any] = [*message.parts]
                    parts.insert(number, UserPromptPart(told, timestamp=part.timestamp))
                    return [
                        *messages[:place],
                        replace(message, parts=parts),
                        *messages[place + 1 :],
                    ]
    return list(messages)


def _store(memories: AgentMemory, said: Sequence[tuple[str, str]]) -> None:
    items: list[tuple[object, ...]] = [
        (fitted(memories, text), None, {}, {"kind": "message", "speaker": speaker})
        for speaker, text in said
        if text.strip()
    ]
    memories.add_many(items)


def _words(prompt: Any) -> str:
    """The text of a prompt; images and other parts have none."""
    if prompt is None or isinstance(prompt, str):
        return prompt or ""
    parts = [part if isinstance(part, str) else getattr(part, "content", "") for part in prompt]
    return " ".join(part for part in parts if isinstance(part, str) and part)


def _output(result: AgentRunResult[Any]) -> str:
    """What came out; an output that is no text as JSON."""
    if isinstance(result.output, str):
        return result.output
    return to_json(result.output).decode()
