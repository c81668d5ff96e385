"""An item of LangGraph as memories of an agent, and back.

A namespace is an agent: ``("users", "ann")`` is ``users.ann``. An item is the memory under its key,
with the item's value beside it. The memory's text is what a search compares. Where an item has
several texts, each text after the first is a memory of its own: a part of the item.
"""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, final

from langgraph.store.base import Item, SearchItem

from ...bank.memory_bank import MemoryBank
from ...engine.clock import Anchor, anchor_of
from ...errors import InvalidInput
from ...memory.records import Memory, Scalar, shown
from ...memory.requests import check_text
from ...storage.state.links import live_version
from ..names import DIRECTORY, Names, agent_id_of

Namespace = tuple[str, ...]
Now = Callable[[], datetime]
"""Gives the time."""

AT = "item_at"
"""Metadata: when this version was put; missing where the tick says it."""
SINCE = "item_since"
"""Metadata: when the first version was put, a date or a tick, where that is not when this was."""
PARTS = "item_parts"
"""Metadata: how many parts the item has."""
TTL = "item_ttl"
"""Metadata: for how many ticks the item lives after each read."""
INDEXED = "item_indexed"
"""Metadata: false if no search compares the item's text."""

_OWN = "lg:"
"""Keys that begin so are of this adapter: of items with odd keys, and of parts."""
_PART = re.compile(r"lg:[1-9][0-9]*:(.+)", re.DOTALL)
"""The key of a part has its number, and the key of the memory that stands for the item."""
_LONGEST_KEY = 200
_MINUTES = 1440
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@final
class Items:
    """Finds the memories that stand for items, and makes items of memories."""

    def __init__(self, bank: MemoryBank) -> None:
        self.bank = bank
        self.names = Names(bank)
        self._known: dict[str, Namespace] = {}

    # Namespaces

    def agent_of(self, namespace: Namespace) -> str:
        """The id of the agent that stands for a namespace."""
        return agent_id_of(".".join(namespace))

    def namespaces(self) -> dict[str, Namespace]:
        """The namespace of each agent."""
        return {each: self.namespace(each) for each in self.bank.agents() if each != DIRECTORY}

    def namespace(self, agent_id: str) -> Namespace:
        """The namespace that an agent stands for."""
        if agent_id not in self._known:
            try:
                self._known[agent_id] = tuple(self.names.text(agent_id).split("."))
            except ValueError:  # an id that stands for no text: other code made it
                return tuple(agent_id.split("."))
        return self._known[agent_id]

    # Keys

    def key_of(self, key: str) -> str:
        """The key of the memory that stands for an item with this key."""
        check_text(key, "key")
        if key.strip() and len(key) <= _LONGEST_KEY and not key.startswith(_OWN):
            return key
        return f"{_OWN}k:{agent_id_of(key)}"

    def part_key(self, memory_key: str, number: int) -> str:
        """The key of a part, from 1 on, of the item whose memory has this key."""
        return f"{_OWN}{number}:{memory_key}"

    def is_part(self, memory: Memory) -> bool:
        """Whether a memory is a part of an item, and not the item itself."""
        return _PART.fullmatch(memory.key or "") is not None

    def whole(self, memory: Memory) -> Memory | None:
        """The memory that stands for the item that a memory is a part of, or is itself.

        None for a memory that is not an item: a part of a note.
        """
        if memory.kind == "note":
            return None
        part = _PART.fullmatch(memory.key or "")
        return memory if part is None else self.live(memory.agent_id, part[1])

    def live(self, agent_id: str, memory_key: str) -> Memory | None:
        """The active memory under a key, or with the id that the key is."""
        return live_version(self.bank.engine.state, agent_id, memory_key)

    def parts(self, memory: Memory, after: int = 0) -> list[Memory]:
        """The parts of an item beyond the first ``after``, from its memory."""
        own = self.memory_key(memory)
        numbers = range(after + 1, _whole(memory.metadata.get(PARTS)) + 1)
        found = [self.live(memory.agent_id, self.part_key(own, number)) for number in numbers]
        return [each for each in found if each is not None]

    def memory_key(self, memory: Memory) -> str:
        """The key under which the next version of an item supersedes this memory."""
        return memory.key or memory.id

    # Items

    def item(self, memory: Memory, times: "Times") -> Item:
        """The item that a memory stands for."""
        return Item(**self._fields(memory, times))

    def found(self, memory: Memory, score: float | None, times: "Times") -> SearchItem:
        """The item that a search found, with its score."""
        return SearchItem(**self._fields(memory, times), score=score)

    def _fields(self, memory: Memory, times: "Times") -> dict[str, Any]:
        return {
            "namespace": self.namespace(memory.agent_id),
            "key": self._key(memory),
            "value": self.value(memory),
            "created_at": times.of(self.since(memory)),
            "updated_at": times.of(self.at(memory)),
        }

    def at(self, memory: Memory) -> Scalar:
        """When a version of an item was put: a date as text, or a tick."""
        return memory.metadata.get(AT, memory.created_tick)

    def since(self, memory: Memory) -> Scalar:
        """When the first version of an item was put: a date as text, or a tick."""
        return memory.metadata.get(SINCE, self.at(memory))

    def _key(self, memory: Memory) -> str:
        """The key of an item; other code may have used a key that looks like one of ours."""
        own = self.memory_key(memory)
        if own.startswith(f"{_OWN}k:"):
            text = self.names.known(own.removeprefix(f"{_OWN}k:"))
            if text is not None and self.key_of(text) == own:
                return text
        return own

    def value(self, memory: Memory) -> dict[str, Any]:
        """The value of an item; of a memory that something else stored, its text."""
        value = memory.value
        if isinstance(value, dict):
            return value
        return {"content": memory.content} | ({} if value is None else {"value": value})


@final
class Times:
    """What a bank's ticks are in minutes and as dates."""

    def __init__(self, bank: MemoryBank, now: Now | None) -> None:
        clock = bank.settings.clock
        self._bank = bank
        self._now = now
        self._rate = clock.ticks_per_day
        self._is_wall = clock.mode == "wall"
        self._anchor = anchor_of(bank.engine) if self._is_wall else None

    def ticks(self, minutes: object) -> int:
        """A lifetime in ticks, never less than these minutes.

        A wall clock is somewhere inside a tick, so that tick does not count.
        """
        if isinstance(minutes, int | float) and math.isfinite(minutes) and minutes > 0:
            return max(1, math.ceil(minutes * self._rate / _MINUTES)) + self._is_wall
        raise InvalidInput(
            f"a ttl is a number of minutes above 0, not {shown(minutes)}", hint="leave it out"
        )

    def now(self) -> dict[str, Scalar]:
        """The metadata of what is put now: its date, unless the tick says it.

        A run reads no clock, so that the same seed gives the same journal.
        """
        if self._now is None or self._bank.engine.journal.last_tick() is not None:
            return {}
        return {AT: self._now().astimezone(UTC).isoformat()}

    def of(self, moment: object) -> datetime:
        """A date that was kept as text, or when a tick began.

        That is by the wall clock, or with tick 0 at the beginning of 1970.
        """
        if isinstance(moment, str):
            try:
                return datetime.fromisoformat(moment)
            except ValueError:  # other code wrote it
                moment = 0
        tick = _whole(moment)
        anchor = self._anchor or Anchor(0, 0, self._rate)
        start = _EPOCH + timedelta(milliseconds=anchor.ms)
        return start + timedelta(days=1) * (tick - anchor.tick) / anchor.ticks_per_day


def _whole(value: object) -> int:
    """A number that the adapter wrote; other code may have put anything there."""
    return value if isinstance(value, int) else 0
