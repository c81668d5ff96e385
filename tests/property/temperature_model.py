"""What temperature, retention and use should be, in plain Python.

Every memory is one record, in whatever temperature it is. Caps, expiry, use and searches are
worked out here anew. Which memories leave a hot that is too full is not: the machine checks that
what left was allowed to, and that the rest fits.
"""

import copy
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from model import CRITICAL, NORMAL, PINNED, embed, line, quantise, similarity

HOT, WARM, COLD = range(3)
ACTIVE, ARCHIVED, DELETED = range(3)
BOOSTS = (1.0, 0.3, 0.15, 0.0, -0.1)
MULTIPLIER = 3
MOST_RECALLS = 16

Key = tuple[str, int]


@dataclass
class Kept:
    """All there is of one memory."""

    agent_id: str
    sequence: int
    content: str
    tier: int
    created_tick: int
    tier_tick: int
    metadata: dict[str, Any]
    kind: str
    tags: tuple[str, ...]
    temperature: int
    expires: int | None
    retention: int = ACTIVE
    retained: int = 0
    count: int = 0
    last: int | None = None
    relevance: float = 0.5
    recalls: tuple[int, ...] = ()

    @property
    def age(self) -> tuple[int, int]:
        return self.tier_tick, self.sequence

    @property
    def cost(self) -> int:
        """A quarter of the characters of its line, line end included, rounded up."""
        return math.ceil((len(line(self.tier, self.content)) + 1) / 4)

    @property
    def idle_since(self) -> int:
        return self.created_tick if self.last is None else max(self.last, self.created_tick)

    @property
    def vector(self) -> bytes:
        return bytes(number & 255 for number in quantise(embed(self.content)))

    def fields(self) -> tuple[Any, ...]:
        """As :func:`fields_of` gives those of a bank's memory."""
        return (
            self.agent_id,
            self.sequence,
            self.content,
            self.tier,
            self.created_tick,
            self.tier_tick,
            self.metadata,
            self.kind,
            self.tags,
            self.temperature,
            self.retention,
            self.expires,
            self.count,
            self.last,
            self.relevance,
        )


class Only(NamedTuple):
    """What a search may give."""

    tiers: frozenset[int] | None = None
    temperatures: frozenset[int] = frozenset({HOT, WARM})
    kinds: frozenset[str] | None = None
    tags: frozenset[str] | None = None
    since: int = 0
    min_score: float = 0.0

    def allows(self, memory: Kept) -> bool:
        return (
            (self.tiers is None or memory.tier in self.tiers)
            and memory.temperature in self.temperatures
            and (self.kinds is None or memory.kind in self.kinds)
            and (self.tags is None or bool(self.tags & set(memory.tags)))
            and memory.created_tick >= self.since
        )


Scored = tuple[Kept, float]


@dataclass
class TemperatureModel:
    """The reference."""

    max_pinned: int
    max_critical: int
    tick: int = 0
    memories: dict[Key, Kept] = field(default_factory=dict)
    issued: dict[str, int] = field(default_factory=dict)

    def saved(self) -> "TemperatureModel":
        memories = {key: copy.copy(memory) for key, memory in self.memories.items()}
        return TemperatureModel(
            self.max_pinned, self.max_critical, self.tick, memories, dict(self.issued)
        )

    # Reading

    def of(self, agent: str, retention: int = ACTIVE) -> list[Kept]:
        """An agent's memories, oldest first."""
        own = [m for m in self.memories.values() if m.agent_id == agent]
        return sorted((m for m in own if m.retention == retention), key=lambda m: m.sequence)

    def hot(self, agent: str) -> list[Kept]:
        return [memory for memory in self.of(agent) if memory.temperature == HOT]

    def is_seen(self, memory: Kept) -> bool:
        """Whether it has not expired; pinned ones don't."""
        return memory.tier == PINNED or memory.expires is None or memory.expires > self.tick

    def pinned(self, agent: str, only: Only = Only()) -> list[Kept]:  # noqa: B008 (it is frozen)
        found = [m for m in self.of(agent) if m.tier == PINNED and only.allows(m)]
        return sorted(found, key=lambda memory: memory.age)

    def search(self, agent: str, query: str, limit: int, only: Only) -> list[Scored]:
        """Brute force over all memories: pinned, then the best of the nearest candidates."""
        blank = not query.strip()
        score = 0.0 if blank else None
        front = [(m, self._score(query, m, score)) for m in self.pinned(agent, only)]
        rest = [
            (memory, self._score(query, memory, score))
            for memory in self.of(agent)
            if memory.tier != PINNED and self.is_seen(memory) and only.allows(memory)
        ]
        return front + self._best(rest, max(0, limit - len(front)), blank, only.min_score)

    def context(self, agent: str, query: str, limit: int, tokens: int, facts: int) -> list[Scored]:
        """Pinned, hot within its limits by last use, then the best of the warm."""
        blank = not query.strip()
        score = 0.0 if blank else None
        front = self.pinned(agent)
        wanted = max(0, limit - len(front))
        tokens -= sum(memory.cost for memory in front)
        facts -= len(front)
        others = [m for m in self.of(agent) if m.tier != PINNED and self.is_seen(m)]
        hot = [memory for memory in others if memory.temperature == HOT]
        for memory in sorted(hot, key=lambda m: (m.idle_since, m.sequence), reverse=True):
            if facts > 0 and memory.cost <= tokens:
                front.append(memory)
                tokens, facts = tokens - memory.cost, facts - 1
        warm = [(m, self._score(query, m, score)) for m in others if m.temperature == WARM]
        first = [(memory, self._score(query, memory, score)) for memory in front]
        return first + self._best(warm, wanted, blank, 0.0)

    def _best(self, rest: list[Scored], wanted: int, blank: bool, least: float) -> list[Scored]:
        if blank:
            return sorted(rest, key=lambda f: (f[0].tier, -f[0].sequence))[:wanted]
        rest = [found for found in rest if found[1] >= least]
        rest.sort(key=lambda found: (-found[1], -found[0].sequence))
        near = rest[: wanted * MULTIPLIER]
        near.sort(key=lambda f: (-(f[1] + BOOSTS[f[0].tier]), -f[1], -f[0].sequence))
        return near[:wanted]

    def _score(self, query: str, memory: Kept, fixed: float | None) -> float:
        return similarity(embed(query), embed(memory.content)) if fixed is None else fixed

    # Changing

    def add(self, memory: Kept) -> Kept:
        """``memory`` has no sequence number yet."""
        self.make_room(memory.agent_id, memory.tier, newcomer=None)
        sequence = self.issued.get(memory.agent_id, 0) + 1
        self.issued[memory.agent_id] = memory.sequence = sequence
        self.memories[memory.agent_id, sequence] = memory
        return memory

    def set_tier(self, memory: Kept, tier: int) -> None:
        if memory.tier == tier:
            return
        if tier == PINNED or memory.retention == ACTIVE:
            self.make_room(memory.agent_id, tier, memory.sequence)
        self._enter(memory, tier)

    def make_room(self, agent: str, tier: int, newcomer: int | None) -> None:
        cap = self._cap(tier)
        present = self._in_tier(agent, tier, newcomer)
        if cap is None or len(present) < cap:
            return
        falling: Kept | None = min(present, key=lambda memory: memory.age)
        while falling is not None:
            below = falling.tier + 1
            present = self._in_tier(agent, below, newcomer)
            cap = self._cap(below)
            self._enter(falling, below)
            full = cap is not None and len(present) >= cap
            falling = min(present, key=lambda memory: memory.age) if full else None

    def _in_tier(self, agent: str, tier: int, without: int | None) -> list[Kept]:
        return [m for m in self.of(agent) if m.tier == tier and m.sequence != without]

    def _cap(self, tier: int) -> int | None:
        return {PINNED: self.max_pinned, CRITICAL: self.max_critical}.get(tier)

    def _enter(self, memory: Kept, tier: int) -> None:
        if tier == PINNED:
            memory.temperature, memory.retention = HOT, ACTIVE
        elif memory.tier == PINNED:
            memory.temperature = WARM
        memory.tier, memory.tier_tick = tier, self.tick

    def retain(self, memory: Kept, retention: int) -> None:
        if retention == ACTIVE and not self.is_seen(memory):
            memory.expires = None  # who brings it back wants to have it
        if memory.retention != retention:
            if retention == ACTIVE:
                self.make_room(memory.agent_id, memory.tier, memory.sequence)
            memory.retention, memory.retained = retention, self.tick

    def purge(self, key: Key) -> None:
        self.memories.pop(key, None)

    def use(self, found: list[Scored], *, recalled: bool = False) -> None:
        """A search gave these."""
        for memory, score in found:
            memory.count += 1
            memory.last = self.tick
            memory.relevance = (memory.relevance + score) / 2
            if recalled:
                memory.recalls = (*memory.recalls, self.tick)[-MOST_RECALLS:]

    def sweep(self, grace: int) -> list[Key]:
        """What expired is deleted; what was deleted long ago is given back, and gone."""
        for memory in self.memories.values():
            if memory.retention == ACTIVE and not self.is_seen(memory):
                memory.retention, memory.retained = DELETED, self.tick
        gone = [
            key
            for key, memory in self.memories.items()
            if memory.retention == DELETED and memory.retained <= self.tick - grace
        ]
        for key in gone:
            self.purge(key)
        return gone


def is_completed(memory: Kept) -> bool:
    """Whether the default rules move it to cold."""
    tags = set(memory.tags)
    done = memory.kind == "decision" or "task" in tags
    return memory.tier != PINNED and done and not tags & {"blocker", "open"}


def has_faded(memory: Kept, tick: int, half_lives: dict[int, int]) -> bool:
    """Whether its decay score is below 0.5 for a hot one, below 0.25 for a warm one."""
    half_life = half_lives.get(memory.tier, 0) * (2 if memory.count else 1)
    halvings = 1 if memory.temperature == HOT else 2
    idle = tick - memory.idle_since
    return half_life > 0 and memory.temperature != COLD and idle > halvings * half_life


def fields_of(memory: Any) -> tuple[Any, ...]:
    """The fields of a bank's memory, but for its id."""
    return (
        memory.agent_id,
        memory.sequence,
        memory.content,
        int(memory.tier),
        memory.created_tick,
        memory.tier_tick,
        dict(memory.metadata),
        memory.kind,
        memory.tags,
        int(memory.temperature),
        int(memory.retention),
        memory.expires_tick,
        memory.access_count,
        memory.last_access_tick,
        memory.relevance,
    )


def lines_of(found: list[Scored]) -> str:
    lines = [line(memory.tier, memory.content) for memory, _ in found]
    return "\n".join(lines) or "(No relevant memories)"


__all__ = [
    "ACTIVE",
    "ARCHIVED",
    "COLD",
    "DELETED",
    "HOT",
    "NORMAL",
    "WARM",
    "Kept",
    "Key",
    "Only",
    "Scored",
    "TemperatureModel",
    "fields_of",
    "has_faded",
    "is_completed",
    "lines_of",
]
