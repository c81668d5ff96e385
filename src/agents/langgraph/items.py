"""An item of LangGraph as memories of an agent, and back.

A namespace is an agent: ``("users", "ann")`` is ``users.ann``. An item is the memory under its key,
with the item's value beside it. The memory's text is what a search compares. Where an item has
several texts, each text after the first is a memory of its own: a part of the item.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, final

from langgraph.store.base import Item, PutOp, SearchItem, get_text_at_path

from ..adapting import DIRECTORY, Names, agent_id_of, remove
from ..bank.memory_bank import MemoryBank
from ..engine.clock import Anchor, anchor_of
from ..errors import InvalidInput
from ..memory.records import Memory, Scalar, shown
from ..memory.requests import check_text, value_text
from ..memory.tiers import Retention, Tier, TierLike, parse_tier
from ..storage.state.links import live_version, versions

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
        return {agent: self.namespace(agent) for agent in self.bank.agents() if agent != DIRECTORY}

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
        key = self.memory_key(memory)
        numbers = range(after + 1, _whole(memory.metadata.get(PARTS)) + 1)
        parts = [self.live(memory.agent_id, self.part_key(key, number)) for number in numbers]
        return [part for part in parts if part is not None]

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
        key = self.memory_key(memory)
        if key.startswith(f"{_OWN}k:"):
            text = self.names.known(key.removeprefix(f"{_OWN}k:"))
            if text is not None and self.key_of(text) == key:
                return text
        return key

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
        if self._now is None or self._bank.engine.journal.attachments.exist():
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


# Items are put, deleted and kept alive


TierOf = Callable[[Namespace, str, Mapping[str, Any]], TierLike | None]
"""The tier of an item, from its namespace, key and value; None to keep the tier that it has."""
_Row = tuple[str, str, Tier | None, dict[str, Scalar], dict[str, object]]


class _New(NamedTuple):
    """What a put makes of an item."""

    value: dict[str, Any]
    texts: list[str]
    tier: Tier | None
    ttl: int | None


class _Place(NamedTuple):
    """Where an item is."""

    agent_id: str
    memory_key: str
    former: Memory | None
    """The memory that stands for the item now; None if there is no item."""


@final
class Writing:
    """Changes items. The caller holds the transaction."""

    def __init__(self, items: Items, fields: Sequence[str], tier: TierOf | None) -> None:
        self._items = items
        self._fields = fields
        self._tier = tier

    def put(self, ops: Iterable[PutOp], times: Times) -> None:
        """Put and delete items; of several operations on one item, the last one counts.

        All operations are checked, also those that do not count.
        """
        last = {(tuple(op.namespace), op.key): (op, self._new(op, times)) for op in ops}
        rows: list[_Row] = []
        now = times.now()
        for op, new in last.values():
            place = self._place(op)
            if new is None:
                self._delete(place)
                continue
            rows += self._rows(op.key, new, place, now)
            self._items.names.keep(".".join(op.namespace), op.key)
        self._items.bank.add_many(rows)

    def embed(self, ops: Iterable[PutOp]) -> None:
        """Embed the texts of items ahead of time: an embedder may be slow, and a ttl short."""
        texts: list[str] = []
        for op in ops:
            value = dict(op.value or {})
            value_text(value)  # an error names what is not JSON
            texts += self._texts(op, value)
        self._items.bank.engine.embedder.encode(texts)

    def keep_alive(self, memories: Iterable[Memory]) -> None:
        """Let the lifetimes of these items begin anew."""
        bank = self._items.bank
        for memory in {one.id: one for one in memories}.values():
            ttl = memory.metadata.get(TTL)
            if isinstance(ttl, int) and (memory.expires_tick or 0) < bank.tick + ttl:
                numbers = [one.sequence for one in (memory, *self._items.parts(memory))]
                bank.engine.ledger.last(memory.agent_id, numbers, bank.tick + ttl)

    def _place(self, op: PutOp) -> _Place:
        agent, key = self._items.agent_of(op.namespace), self._items.key_of(op.key)
        return _Place(agent, key, self._items.live(agent, key))

    def _delete(self, place: _Place) -> None:
        """Delete an item, pinned or not, with its parts and all of its former versions."""
        state, agent = (
            self._items.bank.engine.state,
            self._items.bank.agent(place.agent_id),
        )
        keys = [place.memory_key]
        if place.former is not None:
            keys += [each.key or "" for each in self._items.parts(place.former)]
        for memory in [each for key in keys for each in versions(state, place.agent_id, key)]:
            if memory.retention is not Retention.DELETED and not memory.is_expired(state.tick):
                remove(agent, memory)

    def _new(self, op: PutOp, times: Times) -> _New | None:
        """What a put makes of an item, or an error that names what is wrong; None to delete."""
        if op.value is None:
            return None
        value = dict(op.value)
        value_text(value)  # an error names what is not JSON
        tier = self._tier(tuple(op.namespace), op.key, value) if self._tier else None
        ttl = None if op.ttl is None else times.ticks(op.ttl)
        return _New(value, self._texts(op, value), None if tier is None else parse_tier(tier), ttl)

    def _rows(
        self, item_key: str, new: _New, place: _Place, now: Mapping[str, Scalar]
    ) -> list[_Row]:
        """The new memories of an item; parts that it has no longer are deleted."""
        value, texts, tier, ttl = new
        options: dict[str, object] = {}
        metadata: dict[str, Scalar] = {**now}
        former = place.former
        if former is not None:
            since = self._items.since(former)
            metadata |= {SINCE: since} if since != now.get(AT, self._items.bank.tick) else {}
            for part in self._items.parts(former, max(0, len(texts) - 1)):
                remove(self._items.bank.agent(place.agent_id), part)
        if not texts:
            metadata[INDEXED] = False
        if len(texts) > 1:
            metadata[PARTS] = len(texts) - 1
        if ttl is not None and not _is_pinned(tier, former):
            metadata[TTL] = options["ttl"] = ttl
        first = texts[0] if texts else self._fitted(item_key) if item_key.strip() else "item"
        more = {**options, "key": place.memory_key, "value": value}
        rows: list[_Row] = [(place.agent_id, first, tier, metadata, more)]
        if tier is Tier.PINNED:
            tier = Tier.IMPORTANT  # the item itself has the place among the pinned
        for number, text in enumerate(texts[1:], 1):
            key = self._items.part_key(place.memory_key, number)
            rows.append((place.agent_id, text, tier, {}, {**options, "key": key}))
        return rows

    def _texts(self, op: PutOp, value: dict[str, Any]) -> list[str]:
        """The different texts that searches compare; none if the item is not indexed."""
        if op.index is False:
            return []
        fields = self._fields if op.index is None else op.index
        if not are_fields(fields):
            raise InvalidInput(f"index is False or a list of fields, not {shown(op.index)}")
        texts = [text for field in fields for text in get_text_at_path(value, field)]
        return list(dict.fromkeys(text for text in map(self._fitted, texts) if text.strip()))

    def _fitted(self, text: str) -> str:
        """The beginning of a text that a memory can have; the item's value has all of it."""
        most = self._items.bank.settings.memory.max_content_bytes
        return text.encode()[:most].decode(errors="ignore")


def are_fields(fields: object) -> bool:
    """Whether these are paths of texts in a value: a list, as a text alone would be its letters."""
    return isinstance(fields, list | tuple) and all(isinstance(each, str) for each in fields)


def _is_pinned(tier: Tier | None, former: Memory | None) -> bool:
    if tier is not None:
        return tier is Tier.PINNED
    return former is not None and former.tier is Tier.PINNED
