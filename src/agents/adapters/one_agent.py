"""What the adapters share that are given one agent's memories."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Concatenate, ParamSpec, TypeVar

from ..bank.agent_memory import AgentMemory
from ..bank.async_bank import AsyncAgentMemory
from ..errors import InvalidMetadata
from ..memory.metadata import check_metadata
from ..memory.records import KEY, VALUE, Hits, Memory, Scalar
from ..memory.sources import EVIDENCE, SOURCE
from .removing import remove

P = ParamSpec("P")
T = TypeVar("T")
EitherMemory = AgentMemory | AsyncAgentMemory
"""``bank.agent("alice")``, of a ``MemoryBank`` or of an ``AsyncMemoryBank``."""
_OWN = frozenset({EVIDENCE, KEY, SOURCE, VALUE})
"""What the bank itself keeps among a memory's metadata."""


async def in_turn(
    memories: EitherMemory,
    function: Callable[Concatenate[AgentMemory, P], T],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Call ``function`` with the memories: here, or in the thread of an ``AsyncMemoryBank``."""
    if isinstance(memories, AsyncAgentMemory):
        return await memories.run(function, *args, **kwargs)
    return function(memories, *args, **kwargs)


def in_mind(memories: AgentMemory, query: str, limit: int) -> Hits:
    """What the agent should have in mind: the memories of ``get_relevant_memories``."""
    engine = memories.engine
    request = [(memories.agent_id, query)]
    return engine.search_many(request, limit, hot=engine.hot_limits)[0]


def clear(memories: AgentMemory) -> None:
    """Delete all memories of the agent, pinned ones too, but for its notes, in one commit."""
    with memories.engine.changing():
        for memory in memories.all():
            if memory.kind != "note":
                remove(memories, memory)


def fitted(memories: AgentMemory, text: str) -> str:
    """The beginning of a text that a memory can have as its content."""
    most = memories.engine.settings.memory.max_content_bytes
    return text.encode()[:most].decode(errors="ignore")


def flat(metadata: Mapping[str, object]) -> dict[str, Scalar]:
    """The entries that can be metadata of a memory, for filters."""
    kept: dict[str, Scalar] = {}
    for name, value in metadata.items():
        if name not in _OWN:
            with suppress(InvalidMetadata):
                kept.update(check_metadata({name: value}) or {})
    return kept


def given_metadata(memory: Memory) -> dict[str, Scalar]:
    """The metadata that a caller gave a memory."""
    return {name: each for name, each in memory.metadata.items() if name not in _OWN}
