"""Sessions for the OpenAI Agents SDK. It imports no SDK: ``pip install 'tiermem[openai-agents]'``.

``Runner.run(agent, "Hello", session=TierSession(bank.agent("alice"), "monday"))``
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from . import AgentMemory, Memory
from .adapting import EitherMemory, bank_of, fitted, in_mind, in_turn, remove, render, shown
from .errors import InvalidInput

__all__ = ["TierSession"]

_ITEM = "openai"
"""The name, in a memory's value, of an item of a conversation."""


class TierSession:
    """A conversation of one agent of a bank, for ``Runner.run(…, session=…)``.

    ``memories`` is ``bank.agent("alice")`` of a ``MemoryBank``, or of an ``AsyncMemoryBank``, whose
    calls leave the event loop free. All conversations of the agent share its memories: give each
    user an agent. The bank is yours to close.

    Each item is a memory, a commit for each call. :meth:`instructions` tells a model what matters
    for the newest input, from every conversation. ``session_settings`` are the SDK's: their
    ``limit`` says how many of the newest items a model gets.
    """

    def __init__(
        self, memories: EitherMemory, session_id: str = "main", *, session_settings: Any = None
    ) -> None:
        self.memories = memories
        self.session_id = session_id
        self.session_settings = session_settings

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items of the conversation, oldest first; with a limit, the newest of them."""
        kept = await in_turn(self.memories, _kept, self.session_id, self._limit(limit))
        return [_item(memory) for memory in kept]

    async def add_items(self, items: list[Any]) -> None:
        """Store items at the end of the conversation, in one commit."""
        await in_turn(self.memories, _add, self.session_id, items)

    async def pop_item(self) -> Any:
        """Delete the newest item, and return it; None if there is none."""
        return await in_turn(self.memories, _pop, self.session_id)

    async def clear_session(self) -> None:
        """Delete the conversation; ``restore`` brings it back within ``retention.grace``."""
        await in_turn(self.memories, _clear, self.session_id)

    def instructions(
        self, text: str = "", *, limit: int = 5
    ) -> Callable[[Any, Any], Awaitable[str]]:
        """What ``Agent(instructions=…)`` takes: ``text``, and the memories that matter.

        These are the pinned and the hot ones, and those that matter for the newest input, ``limit``
        at most beside the hot ones, a line for each. What the model reads as an item of this
        conversation is not told again.
        """

        async def told(context: Any, agent: Any) -> str:
            query = "\n".join(_words(item) for item in context.turn_input if _asks(item))
            settings = (self.session_id, self._limit(None))
            lines = await in_turn(self.memories, _told, query, limit, *settings)
            return "\n\n".join(filter(None, [text, lines and f"Relevant memories:\n{lines}"]))

        return told

    def _limit(self, limit: int | None) -> int | None:
        given = self.session_settings if limit is None else {"limit": limit}
        most = given.get("limit") if isinstance(given, Mapping) else getattr(given, "limit", None)
        return None if most is None or most < 0 else int(most)


def _kept(memories: AgentMemory, session: str, limit: int | None) -> list[Memory]:
    """The memories of a conversation, oldest first; with a limit, the newest of them."""
    items = [each for each in memories.all(session=session) if _is_item(each)]
    return items if limit is None else items[max(0, len(items) - limit) :]


def _add(memories: AgentMemory, session: str, items: Sequence[Any]) -> None:
    memories.add_many([_new(memories, item) for item in items], session=session)


def _pop(memories: AgentMemory, session: str) -> Any:
    for memory in _kept(memories, session, 1):
        remove(memories, memory)
        return _item(memory)
    return None


def _clear(memories: AgentMemory, session: str) -> None:
    with bank_of(memories).transaction():
        for memory in _kept(memories, session, None):
            remove(memories, memory)


def _told(memories: AgentMemory, query: str, limit: int, session: str, window: int | None) -> str:
    read = {memory.id for memory in _kept(memories, session, window)}
    hits = in_mind(memories, query, limit + len(read))
    matter = [hit for hit in hits if hit.memory.id not in read]
    return render(type(hits)(matter[:limit])) if matter else ""


def _new(memories: AgentMemory, item: Any) -> tuple[object, ...]:
    """What ``add_many`` takes for an item: its words, and all of it beside them."""
    if not isinstance(item, Mapping):
        raise InvalidInput(f"an item of a conversation is a mapping; got {item!r:.80}")
    kind, role = item.get("type", "message"), item.get("role")
    options = {
        "kind": "action" if str(kind).endswith("_call") else "message",
        "speaker": str(role or kind),
        "value": {_ITEM: dict(item)},
    }
    return fitted(memories, _words(item)), None, {}, options


def _is_item(memory: Memory) -> bool:
    return isinstance(memory.value, dict) and _ITEM in memory.value


def _item(memory: Memory) -> Any:
    value: Any = memory.value
    return value[_ITEM]


def _asks(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("role") == "user"


def _words(item: Mapping[str, Any]) -> str:
    """The words by which an item is found."""
    content = item.get("content") or item.get("output")
    if isinstance(content, list):  # parts: texts, images, files
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        content = " ".join(str(part) for part in parts if part)
    if isinstance(content, str) and content.strip():
        return content
    named = [item.get("name"), item.get("arguments")]
    said = [each for each in named if each] or [item.get("type", "message")]
    return json.dumps(said, ensure_ascii=False, default=shown) if len(said) > 1 else str(said[0])
