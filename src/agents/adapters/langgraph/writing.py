"""Items are put, deleted and kept alive."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, final

from langgraph.store.base import PutOp, get_text_at_path

from ...errors import InvalidInput
from ...memory.metadata import value_text
from ...memory.records import Memory, Scalar, shown
from ...memory.tiers import Retention, Tier, TierLike, parse_tier
from ...storage.state.links import versions
from ..removing import remove
from .items import AT, INDEXED, PARTS, SINCE, TTL, Items, Namespace, Times

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
        for memory in {each.id: each for each in memories}.values():
            ttl = memory.metadata.get(TTL)
            if isinstance(ttl, int) and (memory.expires_tick or 0) < bank.tick + ttl:
                numbers = [each.sequence for each in (memory, *self._items.parts(memory))]
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
        own = {**options, "key": place.memory_key, "value": value}
        rows: list[_Row] = [(place.agent_id, first, tier, metadata, own)]
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
