"""Memory for AutoGen's agents. Needs ``pip install 'tiermem[autogen]'``.

``AssistantAgent(…, memory=[TierMemory(bank.agent("alice"))])``
"""

import asyncio
import base64
import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, final

from pydantic import BaseModel, Field

from . import TIER_NAMES, AgentMemory, Hits, Memory, MemoryBank
from .adapting import (
    EitherMemory,
    bank_of,
    clear,
    fitted,
    flat,
    given_metadata,
    in_mind,
    in_turn,
    line,
    needed,
    render,
    shown,
)
from .errors import InvalidInput

with needed("tiermem.autogen", "autogen_core"):
    from autogen_core import CancellationToken, Component, Image
    from autogen_core.memory import Memory as AutoGenMemory
    from autogen_core.memory import (
        MemoryContent,
        MemoryMimeType,
        MemoryQueryResult,
        UpdateContextResult,
    )
    from autogen_core.model_context import ChatCompletionContext
    from autogen_core.models import SystemMessage

__all__ = ["TierMemory", "TierMemoryConfig"]

_SHOWN = ("score", "id", "tier")
"""What a result has in its metadata beside the metadata that was given."""
_TEXT = MemoryMimeType.TEXT.value


class TierMemoryConfig(BaseModel):
    """What :meth:`TierMemory.dump_component` writes."""

    agent_id: str
    folder: str | None = None
    """The folder of the bank; without it, the bank is in the process."""
    limit: int | None = 10
    contents: list[MemoryContent] = Field(default_factory=list)
    """The memories themselves, of a bank that has no folder."""


class TierMemory(AutoGenMemory, Component[TierMemoryConfig]):  # type: ignore[misc]
    """The memories of one agent of a bank, for ``AssistantAgent(memory=[…])``.

    ``memories`` is ``bank.agent("alice")`` of a ``MemoryBank``, or of an ``AsyncMemoryBank``, whose
    calls leave the event loop free. Without it, the memories are in a bank in this process. The
    bank is yours to close.

    Before each answer of a model, :meth:`update_context` adds one message: the pinned and the hot
    memories, and those that matter for the newest message, ``limit`` at most beside the hot ones.
    With ``limit=None``, it adds all memories, oldest first, as ``ListMemory`` does.

    ``metadata={"tier": "pinned"}`` of a content says its tier.
    """

    component_type = "memory"
    component_provider_override = "tiermem.autogen.TierMemory"
    component_config_schema = TierMemoryConfig

    def __init__(self, memories: EitherMemory | None = None, *, limit: int | None = 10) -> None:
        if memories is None:
            memories = MemoryBank.ephemeral().agent("agent")
        self.memories = memories
        self.limit = limit
        self.opened: Path | None = None
        """The folder of the bank that :meth:`load_component` opened."""

    async def add(
        self, content: MemoryContent, cancellation_token: CancellationToken | None = None
    ) -> None:
        """Store a content: text, JSON, bytes or an image, which comes back as it was given.

        Bytes and images are found by their metadata. What is not text, and what is longer than a
        memory's text, is kept beside the memory, up to 1 MiB.
        """
        _check(cancellation_token)
        await in_turn(self.memories, _add, content)

    async def query(
        self,
        query: str | MemoryContent = "",
        cancellation_token: CancellationToken | None = None,
        **options: Any,
    ) -> MemoryQueryResult:
        """The contents that matter for ``query``, best first; all of them without a limit.

        ``options`` are those of :meth:`AgentMemory.search`, such as ``min_score`` or ``filters``.
        The metadata of a result has ``id``, ``tier`` and, with a limit, ``score`` as well.
        """
        _check(cancellation_token)
        limit = options.pop("limit", self.limit)
        if limit is None:
            return _listed(await in_turn(self.memories, AgentMemory.all, **options))
        text = query if isinstance(query, str) else _text(query)
        return _ranked(await in_turn(self.memories, AgentMemory.search, text, limit, **options))

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Add what the agent should have in mind for the newest message, as a system message."""
        if self.limit is None:
            memories = await in_turn(self.memories, AgentMemory.all)
            told, results = "\n".join(map(line, memories)), _listed(memories)
        else:
            messages = await model_context.get_messages()
            query = _words(messages[-1].content) if messages else ""
            hits = await in_turn(self.memories, in_mind, query, self.limit)
            told, results = render(hits), _ranked(hits)
        if results.results:
            await model_context.add_message(SystemMessage(content=f"Relevant memories:\n{told}"))
        return UpdateContextResult(memories=results)

    async def clear(self) -> None:
        """Delete the agent's memories; ``restore`` brings one back within ``retention.grace``."""
        await in_turn(self.memories, clear)

    async def close(self) -> None:
        """Close the bank if :meth:`load_component` opened it and no other memory uses it."""
        folder, self.opened = self.opened, None
        if folder is not None:
            _LOADED.leave(folder)

    def _to_config(self) -> TierMemoryConfig:
        """The bank's folder and the agent; without a folder, the memories themselves."""
        memories = self.memories
        if not isinstance(memories, AgentMemory):
            raise InvalidInput(
                "a memory of an AsyncMemoryBank can't be dumped",
                hint="dump one that is made of MemoryBank.open(…).agent(…)",
            )
        folder = bank_of(memories).folder
        contents = _listed(memories.all()).results if folder is None else []
        return TierMemoryConfig(
            agent_id=memories.agent_id,
            folder=None if folder is None else str(folder),
            limit=self.limit,
            contents=contents,
        )

    @classmethod
    def _from_config(cls, config: TierMemoryConfig) -> Self:
        if config.folder is None:
            memories = MemoryBank.ephemeral().agent(config.agent_id)
            for content in config.contents:
                _add(memories, content)
            return cls(memories, limit=config.limit)
        folder = Path(config.folder).resolve()
        loaded = cls(_LOADED.enter(folder).agent(config.agent_id), limit=config.limit)
        loaded.opened = folder
        return loaded


@final
class _Loaded:
    """The banks that configs name: the memories of a team share one."""

    def __init__(self) -> None:
        self._banks: dict[Path, MemoryBank] = {}
        self._users: Counter[Path] = Counter()

    def enter(self, folder: Path) -> MemoryBank:
        if folder not in self._banks:
            self._banks[folder] = MemoryBank.open(folder, create=False)
        self._users[folder] += 1
        return self._banks[folder]

    def leave(self, folder: Path) -> None:
        self._users[folder] -= 1
        if not self._users[folder]:
            self._banks.pop(folder).close()


_LOADED = _Loaded()


def _check(token: CancellationToken | None) -> None:
    if token is not None and token.is_cancelled():
        raise asyncio.CancelledError


# Contents and memories


def _add(memories: AgentMemory, content: MemoryContent) -> None:
    said, tier = _metadata(content), (content.metadata or {}).get("tier")
    text, metadata, mime = fitted(memories, _text(content)), flat(said), _mime(content)
    is_plain = content.content == text and mime == _TEXT and metadata == said
    beside = {"mime_type": mime, "metadata": said, **_kept(content.content)}
    memories.add(text, tier, metadata, value=None if is_plain else beside)


def _ranked(hits: Hits) -> MemoryQueryResult:
    return MemoryQueryResult(results=[_content(hit.memory, score=hit.score) for hit in hits])


def _listed(memories: list[Memory]) -> MemoryQueryResult:
    return MemoryQueryResult(results=list(map(_content, memories)))


def _content(memory: Memory, **score: float) -> MemoryContent:
    """The content that a memory stands for; any memory is one, whoever stored it."""
    result = {"id": memory.id, "tier": TIER_NAMES[memory.tier], **score}
    beside = memory.value
    if not isinstance(beside, dict) or "mime_type" not in beside:
        metadata = {**given_metadata(memory), **result}
        return MemoryContent(
            content=memory.content, mime_type=MemoryMimeType.TEXT, metadata=metadata
        )
    mime = beside["mime_type"]
    with suppress(ValueError):  # a type of the caller's own
        mime = MemoryMimeType(mime)
    return MemoryContent(
        content=_given(beside), mime_type=mime, metadata={**beside["metadata"], **result}
    )


def _kept(content: Any) -> dict[str, Any]:
    """A content as JSON."""
    if isinstance(content, Image):
        return {"image": content.to_base64()}
    if isinstance(content, bytes):
        return {"base64": base64.b64encode(content).decode()}
    return {"content": content}


def _given(kept: dict[str, Any]) -> Any:
    """The content of what :func:`_kept` made of it."""
    if "image" in kept:
        return Image.from_base64(kept["image"])
    return base64.b64decode(kept["base64"]) if "base64" in kept else kept["content"]


def _metadata(content: MemoryContent) -> dict[str, Any]:
    """The caller's own metadata, of a content that may be a result."""
    metadata = content.metadata or {}
    return {name: value for name, value in metadata.items() if name not in _SHOWN}


def _mime(content: MemoryContent) -> str:
    kind = content.mime_type
    return kind.value if isinstance(kind, MemoryMimeType) else str(kind)


def _text(content: MemoryContent) -> str:
    """The words by which a content is found."""
    about = content.content
    if isinstance(about, bytes | Image):
        about = _metadata(content)
    return _words(about) or _mime(content)


def _words(about: Any) -> str:
    """The words of a content, or of a message's content."""
    if isinstance(about, dict):
        return json.dumps(about, ensure_ascii=False, default=shown) if about else ""
    if isinstance(about, list):  # the parts of a message: texts, images, calls and their results
        return " ".join(filter(None, map(_words, about)))
    return about if isinstance(about, str) else _words(getattr(about, "content", ""))
