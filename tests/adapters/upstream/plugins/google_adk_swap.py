"""A plugin of pytest: TierMem's memory service takes the place of ADK's in memory."""

from typing import Any

import google.adk.memory
import google.adk.memory.in_memory_memory_service
from google.adk.events import Event

from tiermem import MemoryBank
from tiermem.google_adk import TierMemoryService


class InMemory(TierMemoryService):
    """Takes the arguments of ``InMemoryMemoryService``, and shows events as it does."""

    def __init__(self) -> None:
        super().__init__(MemoryBank.ephemeral())
        self._users: dict[tuple[str, str], set[str]] = {}

    async def add_events_to_memory(self, **given: Any) -> None:
        await super().add_events_to_memory(**given)
        sessions = self._users.setdefault((given["app_name"], given["user_id"]), set())
        sessions.add(given.get("session_id") or "")

    @property
    def _session_events(self) -> dict[Any, dict[str, list[Event]]]:
        """What the tests of the original look at, made of the bank."""
        events: dict[Any, dict[str, list[Event]]] = {}
        for user, sessions in self._users.items():
            key = google.adk.memory.in_memory_memory_service._user_key(*user)
            events[key] = {session: [] for session in sessions}
            for memory in self._agent(*user).all():
                if isinstance(memory.value, dict):
                    session = str(memory.metadata.get("session", ""))
                    event = Event(id=memory.value["adk"]["event"], author="user")
                    events[key][session].append(event)
        return events


google.adk.memory.InMemoryMemoryService = InMemory
google.adk.memory.in_memory_memory_service.InMemoryMemoryService = InMemory
