"""A memory service for Google's ADK. Needs ``pip install 'tiermem[google-adk]'``.

``Runner(…, memory_service=TierMemoryService(bank))``
"""

import datetime
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from . import AgentMemory, AsyncMemoryBank, Hits, Memory, MemoryBank
from .adapting import (
    EitherMemory,
    Names,
    agent_id_of,
    bank_of,
    fitted,
    flat,
    given_metadata,
    in_mind,
    in_turn,
    needed,
    remove,
)
from .errors import MemoryNotFound

with needed("tiermem.google_adk", "google"):
    from google.adk.events import Event
    from google.adk.memory import BaseMemoryService
    from google.adk.memory.base_memory_service import SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions import Session
    from google.genai import types

__all__ = ["TierMemoryService"]

_ENTRY = "adk"
"""The name, in a memory's value, of what ADK knows of it."""
_DELETED = "adk:deleted"
"""The key of the memory that has the ids of events that :meth:`delete_memory` deleted."""


class TierMemoryService(BaseMemoryService):  # type: ignore[misc]
    """A bank as ADK's memory: of each user of each app, an agent ``app/user`` of the bank.

    The bank is a ``MemoryBank``, or an ``AsyncMemoryBank``, whose calls leave the event loop free.
    It is yours to close. A search finds the pinned and the hot memories of the user, and those that
    matter for the query, ``limit`` at most beside the hot ones.

    An event with text is a memory, once, however often its session is added. ADK gives events a
    random id and the time of the clock, which are kept: for a run that can be repeated, give them
    ids and times of your own.
    """

    def __init__(self, bank: MemoryBank | AsyncMemoryBank, *, limit: int = 10) -> None:
        self.bank = bank
        self.limit = limit

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the events of a session that are not stored yet, in one commit."""
        await self.add_events_to_memory(
            app_name=session.app_name,
            user_id=session.user_id,
            events=session.events,
            session_id=session.id,
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store events that are not stored yet, in one commit.

        ``custom_metadata`` is theirs, for filters; ``{"tier": "pinned"}`` says their tier.
        """
        agent, name = self._agent(app_name, user_id), _name(app_name, user_id)
        await in_turn(agent, _add_events, name, events, session_id, custom_metadata or {})

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories, in one commit; the metadata of one counts before ``custom_metadata``."""
        agent, name = self._agent(app_name, user_id), _name(app_name, user_id)
        await in_turn(agent, _add_entries, name, memories, custom_metadata or {})

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """What the user's agent should have in mind for a query: pinned ones, then the best."""
        hits: Hits = await in_turn(self._agent(app_name, user_id), in_mind, query, self.limit)
        return SearchMemoryResponse(memories=[_entry(hit.memory) for hit in hits])

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Delete a memory, by the id of its entry; its event is not stored again."""
        if memory_id:
            await in_turn(self._agent(app_name, user_id), _delete, memory_id)

    def _agent(self, app_name: str, user_id: str) -> EitherMemory:
        return self.bank.agent(agent_id_of(_name(app_name, user_id)))


def _name(app_name: str, user_id: str) -> str:
    """The text that the agent's id stands for: no two pairs have the same."""
    app = app_name.replace("%", "%25").replace("/", "%2F")
    return f"{app}/{user_id}"


def _add_events(
    memories: AgentMemory,
    name: str,
    events: Sequence[Event],
    session: str | None,
    given: Mapping[str, object],
) -> None:
    known = set(_deleted(memories)) | {_kept(memory).get("event") for memory in memories.all()}
    new = {event.id: event for event in events if event.id not in known and _text(event.content)}
    items = []
    for event in new.values():
        kept = {"event": event.id, "timestamp": _time(event.timestamp)}
        items.append(_item(memories, event.content, event.author, given, session, **kept))
    _store(memories, name, items)


def _add_entries(
    memories: AgentMemory, name: str, entries: Sequence[MemoryEntry], given: Mapping[str, object]
) -> None:
    items = []
    for entry in entries:
        own = {**given, **entry.custom_metadata}
        items.append(_item(memories, entry.content, entry.author, own, timestamp=entry.timestamp))
    _store(memories, name, items)


def _store(memories: AgentMemory, name: str, items: list[tuple[object, ...]]) -> None:
    if items:
        bank = bank_of(memories)
        with bank.transaction():
            Names(bank).keep(name)
            memories.add_many(items)


def _item(
    memories: AgentMemory,
    content: types.Content,
    author: str | None,
    given: Mapping[str, object],
    session: str | None = None,
    **kept: object,
) -> tuple[object, ...]:
    """What ``add_many`` takes for the content of an event or of an entry."""
    own = {name: value for name, value in given.items() if name != "tier"}
    options = {
        "kind": "message",
        "speaker": author or content.role,
        "session": session,
        "value": {_ENTRY: {**kept, "role": content.role, "metadata": own, "text": _text(content)}},
    }
    said = {name: value for name, value in options.items() if value is not None}
    return fitted(memories, _text(content)), given.get("tier"), flat(own), said


def _entry(memory: Memory) -> MemoryEntry:
    """The entry that a memory stands for; any memory is one, whoever stored it."""
    kept = _kept(memory)
    part = types.Part(text=kept.get("text", memory.content))
    author = memory.metadata.get("speaker")
    return MemoryEntry(
        id=memory.id,
        content=types.Content(role=kept.get("role"), parts=[part]),
        author=None if author is None else str(author),
        timestamp=kept.get("timestamp"),
        custom_metadata=kept.get("metadata", given_metadata(memory)),
    )


def _delete(memories: AgentMemory, memory_id: str) -> None:
    with suppress(MemoryNotFound), bank_of(memories).transaction():
        memory = memories.get(memory_id)
        event = _kept(memory).get("event")
        remove(memories, memory)
        if event is not None:
            gone = [*_deleted(memories), event]
            memories.add("deleted events", key=_DELETED, temperature="cold", value=gone)


def _deleted(memories: AgentMemory) -> list[str]:
    """The ids of events whose memories were deleted."""
    newest: Any = [memory.value for memory in memories.history(_DELETED)][-1:]
    return list(newest[0]) if newest else []


def _kept(memory: Memory) -> dict[str, Any]:
    """What ADK knows of a memory; nothing of one that other code stored."""
    value: Any = memory.value
    return value[_ENTRY] if isinstance(value, dict) and _ENTRY in value else {}


def _text(content: types.Content | None) -> str:
    parts = (content.parts if content else None) or []
    return " ".join(part.text for part in parts if part.text and part.text.strip())


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat()
