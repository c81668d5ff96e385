"""New memories: stored, put in the place of a former version, or counted as a repetition.

What an LLM extracts from chat messages comes this way, too.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, final

from ..errors import InvalidInput
from ..memory.events import Start
from ..memory.records import KEY, NEVER, NO_METADATA, VALUE, Memory, session_of
from ..memory.requests import (
    PLAIN_OPTIONS,
    NewMemories,
    Options,
    check_all_new,
    check_content,
    check_metadata,
    value_text,
)
from ..memory.sources import own_metadata
from ..memory.tiers import Retention, Temperature, Tier
from ..rules.temperature import initial_temperature
from ..rules.words import normal_text
from ..storage.columns.table import Additions
from ..storage.embedding import Quantised
from ..storage.interrupts import gc_paused
from ..storage.mem0.models import Extractor, Message
from ..storage.mem0.store import payload
from ..storage.note import note_of
from ..storage.state.links import live_version, superseding
from ..storage.state.state import Accesses
from .engine import Engine
from .move import expire, set_tier, spill_over_limits
from .read import find


def add_many(bank: Engine, items: Iterable[tuple[object, ...]]) -> Sequence[Memory]:
    """Check and store new memories; :meth:`MemoryBank.add_many`."""
    with bank.using():
        most = bank.settings.memory.max_content_bytes
        shared = bank.state.table.shared_metadata
        new = check_all_new(items, most, shared)
        if new.metadata.count(None) < len(new.metadata):
            _check_evidence(bank, new)
        return add_new(bank, new)


def _check_evidence(bank: Engine, new: NewMemories) -> None:
    """Raise :class:`MemoryNotFound` if the evidence of a new memory is not the agent's."""
    for agent_id, options in zip(new.agents, new.options, strict=True):
        for memory_id in options.evidence:
            find(bank, agent_id, memory_id, deleted=True)


def add_new(bank: Engine, new: NewMemories, *, may_merge: bool = True) -> Sequence[Memory]:
    """Store memories that are checked, or what becomes of them: the result has one for each."""
    merges = may_merge and bank.settings.memory.merge_duplicates
    if not merges and not _has_key(new):
        return store(bank, new)
    with bank.changing():
        _expire(bank, dict.fromkeys(new.agents))
        vectors = bank.embedder.encode(new.contents)  # may wait for a server
        repetitions = Repetitions(bank) if merges else None
        return list(_stored(bank, new, vectors, repetitions))


def store(bank: Engine, new: NewMemories) -> Sequence[Memory]:
    """Store memories that are checked, whatever their keys, and beside equal ones."""
    additions = _additions(bank, new)
    with bank.changing():
        _expire(bank, dict.fromkeys(new.agents))
        vectors = bank.embedder.encode(new.contents)  # may wait for a server
        with gc_paused() if len(new.agents) > 1 else nullcontext():
            if not _pin_may_expire_midway(bank, additions):
                return _log(bank, additions, vectors)
            stored: list[Memory] = []
            for place, agent_id in enumerate(new.agents):
                part = slice(place, place + 1)
                _expire(bank, [agent_id])
                stored += _log(bank, additions.part(part), vectors[part])
            return stored


def _expire(bank: Engine, agents: Iterable[str]) -> None:
    """Delete the expired memories of these agents: they take no room from new ones."""
    for agent_id in bank.state.blocks.may_end(agents, bank.tick):
        expire(bank, agent_id)


def _log(bank: Engine, new: Additions, vectors: Quantised) -> Sequence[Memory]:
    return bank.ledger.add_many(new, vectors, bank.caps, partial(spill_over_limits, bank))


def _pin_may_expire_midway(bank: Engine, new: Additions) -> bool:
    """Whether storing one memory of a batch can make a memory expire before the next is stored.

    A pinned memory does not expire, even past its end. With five pins at most, one of them past
    its end, a batch of two pinned memories pushes that one out of the tier first. Then it is
    expired, and must not take up room when the second one is stored.
    """
    if len(new.agents) == 1 or Tier.PINNED not in new.tiers:
        return False
    blocks, tick = bank.state.blocks, bank.tick
    for agent_id in dict.fromkeys(new.agents):
        block = blocks.get(agent_id)
        if block is not None and (block.column("expires")[list(block.pinned)] <= tick).any():
            return True
    return False


# How a memory begins


def _additions(bank: Engine, new: NewMemories) -> Additions:
    """The events that add these memories, before the ledger numbers them."""
    tiers = list(map(int, new.tiers))
    return Additions(new.agents, (), tiers, new.contents, new.metadata, _starts(bank, new))


def _starts(bank: Engine, new: NewMemories) -> Sequence[Start | None]:
    """How each new memory begins; None for a warm fact, or a hot pinned one, without tags."""
    tiers, options, tick = new.tiers, new.options, bank.tick
    if options.count(PLAIN_OPTIONS) == len(options) and Tier.PINNED not in tiers:
        initial = bank.initial_temperature
        plain = None if initial is Temperature.WARM else Start(int(initial), "fact", (), None)
        return (plain,) * len(tiers)
    known: dict[tuple[Options, bool], Start | None] = {}
    starts = []
    for tier, asked in zip(tiers, options, strict=True):
        key = asked, tier is Tier.PINNED
        if key not in known:  # most of a tick's memories have the same few options
            known[key] = _start(bank, tier, asked, tick)
        starts.append(known[key])
    return starts


def _start(bank: Engine, tier: Tier, options: Options, tick: int) -> Start | None:
    kind, tags, asked, ttl, expires, *_ = options
    if expires is not None:
        ttl = expires - tick
        if ttl <= 0:
            raise InvalidInput(
                f"expires_tick {expires} is not after the current tick, {tick}",
                hint=f"name a tick from {tick + 1} on",
            )
    if ttl is not None and tier is Tier.PINNED:
        raise InvalidInput(
            "a pinned memory does not expire",
            hint="leave out its lifetime, or use another tier",
        )
    if ttl is not None and tick + ttl >= NEVER:
        raise InvalidInput(f"a lifetime of {ttl} ticks is too long", hint="leave it out")
    settings, ticks = bank.settings.temperature, bank.settings.clock.ticks
    warm_below, cold_below = settings.ttl_warm_below, settings.ttl_cold_below
    temperature = initial_temperature(
        tier,
        asked,
        ttl,
        bank.initial_temperature,
        None if warm_below is None else ticks(warm_below),
        None if cold_below is None else ticks(cold_below),
    )
    usual = Temperature.HOT if tier is Tier.PINNED else Temperature.WARM
    if temperature is usual and kind == "fact" and not tags and ttl is None and asked is None:
        return None
    return Start(int(temperature), kind, tags, None if ttl is None else tick + ttl)


# New versions and repetitions


def update(
    bank: Engine,
    memory: Memory,
    content: object,
    tier: Tier | None,
    metadata: object,
    value: object = None,
) -> Memory:
    """Store a new version of a memory, which has all of the former but what is given."""
    check_is_live(bank, memory)
    text = check_content(content, bank.settings.memory.max_content_bytes)
    values: object = own_metadata(memory.metadata) if metadata is None else metadata
    checked, key = check_metadata(values), memory.key or memory.id
    fixed = {KEY: key}
    if value is not None:
        fixed[VALUE] = value_text(value)
    elif VALUE in memory.metadata:
        fixed[VALUE] = str(memory.metadata[VALUE])
    if checked is not None and checked.get(KEY, key) != key:
        raise InvalidInput(f"an update keeps the key {key!r:.80}", hint="leave the key out")
    wanted = memory.tier if tier is None else tier
    is_pinned = Tier.PINNED in (wanted, memory.tier)
    options = Options(
        memory.kind,
        memory.tags,
        None if is_pinned else memory.temperature,
        None,
        None if is_pinned else memory.expires_tick,
    )
    new = NewMemories.of(
        [(memory.agent_id, text, wanted, check_metadata({**(checked or {}), **fixed}), options)]
    )
    return add_new(bank, new, may_merge=False)[0]


def _has_key(new: NewMemories) -> bool:
    """Whether a memory has a key: most memories have none."""
    return any(metadata is not None and KEY in metadata for metadata in new.metadata)


def _key_of(new: NewMemories) -> str | None:
    """The key of the only new memory; None if it has none."""
    (metadata,) = new.metadata
    return None if metadata is None or KEY not in metadata else str(metadata[KEY])


def _stored(
    bank: Engine, new: NewMemories, vectors: Quantised, repetitions: "Repetitions | None"
) -> Iterator[Memory]:
    for place in range(len(new.agents)):
        one = NewMemories._make([column[place : place + 1] for column in new])
        yield _stored_one(bank, one, vectors[place : place + 1], repetitions)


def _stored_one(
    bank: Engine, new: NewMemories, vector: Quantised, repetitions: "Repetitions | None"
) -> Memory:
    """Store one memory, in the place of the former version if there is one."""
    ledger, agent_id, (options,) = bank.ledger, new.agents[0], new.options
    _expire(bank, [agent_id])
    former, key = None, _key_of(new)
    if key is not None:
        former = live_version(ledger.state, agent_id, key)
    if former is not None and options.keeps_tier:
        new = new._replace(tiers=(former.tier,))
    if repetitions is not None and (same := repetitions.of(new, former)) is not None:
        return _repeated(bank, same, new.tiers[0])
    additions = _additions(bank, new)
    turn = (0, 0)
    if former is not None:
        turn = ledger.state.block(agent_id).tier_order.of(former.sequence)
        retire(bank, former)
    (memory,) = _log(bank, additions, vector)
    if former is not None:
        ledger.succeed(memory, former, turn)
    memory = ledger.state.memory(agent_id, memory.sequence) or memory
    if repetitions is not None:
        repetitions.know(memory)
    return memory


def retire(bank: Engine, former: Memory) -> None:
    """Archive a memory that is superseded, pinned or not."""
    agent_id, number = former.agent_id, former.sequence
    _check_is_no_chunk(bank, former)
    if former.tier is Tier.PINNED:
        bank.ledger.change_tier(agent_id, number, Tier.NORMAL, demoted=False)
    bank.ledger.retain(agent_id, [number], Retention.ARCHIVED, "supersede")


def _repeated(bank: Engine, memory: Memory, tier: Tier) -> Memory:
    """Count a repetition of a memory as a use of it; of two tiers, the higher one wins."""
    agent_id, number = memory.agent_id, memory.sequence
    bank.ledger.used([agent_id], [Accesses.of([([number], [1.0])])], "repeat")
    if tier < memory.tier:
        set_tier(bank, agent_id, memory, tier)
    return bank.state.memory(agent_id, number) or memory


@final
class Repetitions:
    """Finds the memory that a new memory repeats. It knows the texts of the agents of a batch."""

    def __init__(self, bank: Engine) -> None:
        self._bank = bank
        self._known: dict[str, dict[str, list[int]]] = {}
        """By agent and normal text the sequence numbers of active memories, oldest first."""

    def of(self, new: NewMemories, former: Memory | None) -> Memory | None:
        """The oldest memory with the same text, key, value and session that lives as long."""
        agent_id, (content,), (options,) = new.agents[0], new.contents, new.options
        if options.kind == "note":  # its file has the text
            return None
        text, has_key = normal_text(content), _key_of(new) is not None
        if has_key:
            same = former is not None and normal_text(former.content) == text
            alike = [former] if former is not None and same else []
        else:
            numbers = self._texts(agent_id).get(text, ())
            alike = self._bank.state.memories(agent_id, numbers)
        metadata = new.metadata[0] or NO_METADATA
        value, session = metadata.get(VALUE), session_of(metadata)
        for memory in alike:
            is_same = memory.metadata.get(VALUE) == value and session_of(memory.metadata) == session
            if is_same and self._may_stand_for(memory, options, has_key):
                return memory
        return None

    def know(self, memory: Memory) -> None:
        """A memory was stored."""
        texts = self._texts(memory.agent_id).setdefault(normal_text(memory.content), [])
        if memory.sequence not in texts:
            texts.append(memory.sequence)

    def _texts(self, agent_id: str) -> dict[str, list[int]]:
        if agent_id not in self._known:
            state = self._bank.state
            state.check_shelf(agent_id)
            block = state.block(agent_id)
            numbers = block.column("sequence").tolist()
            texts = state.shelf.texts(agent_id) | dict(zip(numbers, block.contents(), strict=True))
            known = self._known[agent_id] = {}
            for number in sorted(texts):
                known.setdefault(normal_text(texts[number]), []).append(number)
        return self._known[agent_id]

    def _may_stand_for(self, memory: Memory, options: Options, has_key: bool) -> bool:
        tick = self._bank.tick
        end = options.expires_tick if options.ttl is None else tick + options.ttl
        return (
            memory.retention is Retention.ACTIVE
            and not memory.is_expired(tick)
            and memory.kind != "note"
            and (has_key or memory.key is None)
            and _outlives(memory.expires_tick, end)
        )


def _outlives(end: int | None, other: int | None) -> bool:
    """Whether a memory that expires in the tick ``end`` lives as long as one with ``other``.

    None stands for a memory that never expires.
    """
    return end is None or (other is not None and end >= other)


def check_is_live(bank: Engine, memory: Memory) -> None:
    """Raise :class:`InvalidInput` unless a new version can take the place of the memory."""
    if memory.retention is not Retention.ACTIVE:
        now = superseding(bank.state, memory)
        raise InvalidInput(
            f"memory {memory.id} is archived",
            hint="restore it first, which makes it active again"
            if now is None
            else f"it was superseded: update {now.id}",
        )
    _check_is_no_chunk(bank, memory)


def _check_is_no_chunk(bank: Engine, memory: Memory) -> None:
    path = note_of(memory, bank.state.block(memory.agent_id).notes)
    if path is not None:
        raise InvalidInput(
            f"memory {memory.id} can't be superseded: it is a part of the note {path}",
            hint="edit the note",
        )


# Facts from chat messages: mem0's extraction, with the configured LLM


def extract(
    bank: Engine,
    agent_id: str,
    messages: Sequence[Message],
    *,
    prompt: str | None = None,
    procedural: bool = False,
) -> list[str]:
    """The facts that the LLM finds and the agent does not know yet; :meth:`Extractor.extract`.

    Other threads use the bank while the LLM answers, unless the caller has a transaction open.
    They wait while the extraction searches the bank or embeds a text.
    """
    with bank.using():
        extractor = bank.extractor
        if bank.guard is not None and (refused := bank.guard.llm()):
            raise refused
    if extractor is None:  # it imports mem0 and makes a client: others need not wait for that
        extractor = bank.extractor = _extractor(bank)
    return extractor.extract(agent_id, messages, prompt=prompt, procedural=procedural)


def _extractor(bank: Engine) -> Extractor:
    """An extractor for the bank. It uses the bank in any thread, so each use takes a turn."""

    def encode(texts: Sequence[str]) -> list[list[float]]:
        with bank.using():
            return bank.embedder.units(texts)

    def nearest(agent_id: str, query: str, limit: int) -> list[tuple[str, dict[str, Any]]]:
        (hits,) = bank.search_many([(agent_id, query)], limit)
        return [(hit.memory.id, payload(hit.memory)) for hit in hits]

    return Extractor(bank.settings.llm, encode, nearest)
