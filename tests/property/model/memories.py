"""What the model's bank remembers: its rules, its memories, and how tiers stay within limits."""

import contextlib
import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Self

from tiermem.testing.small import embed

from .reading import cost, quantise, similarity

PINNED, CRITICAL, IMPORTANT, NORMAL, LOW = range(5)
HOT, WARM, COLD = range(3)
ACTIVE, ARCHIVED, DELETED = range(3)
TEMPERATURES = ("hot", "warm", "cold")
RETENTIONS = ("active", "archived", "deleted")
HALF_LIVES = {CRITICAL: 4, IMPORTANT: 3, NORMAL: 2, LOW: 1}
OFTEN, PROMOTE_AT, RECALLS, WINDOW, MOST_RECALLS = 3, 0.85, 2, 2, 16
LEAST = 0.2
"""What scores less is no use."""
MANY = 10**6

Key = tuple[str, int]
"""An agent and the sequence number of one of its memories."""


class Refused(Exception):
    """The bank refuses what it is asked for; the message says why."""


@dataclass(frozen=True)
class Rules:
    """What a bank is set to. Unless told, nothing but the caps of tiers is ever reached."""

    max_pinned: int = 2
    max_critical: int = 3
    reject: bool = False
    boosts: tuple[float, ...] = (1.0, 0.3, 0.15, 0.0, -0.1)
    multiplier: int = 3
    default_limit: int = 5
    context_tokens: int | None = None
    hot_tokens: int = MANY
    hot_facts: int = MANY
    session_tokens: int | None = None
    session_facts: int | None = None
    most_cold: int = MANY
    grace: int = MANY
    auto_spill: bool = True
    auto_prune: bool = False
    decays: bool = False
    initial: str = "warm"
    ttl_cold_below: int | None = None
    ttl_warm_below: int | None = None
    merges: bool = False

    def cap(self, tier: int) -> int | None:
        return {PINNED: self.max_pinned, CRITICAL: self.max_critical}.get(tier)

    def hot_limits(self, session: str | None) -> tuple[int, int]:
        """Tokens and memories that may be hot, of an agent or in one of its sessions."""
        own = (self.session_tokens, self.session_facts) if session is not None else (None, None)
        most = self.hot_tokens, self.hot_facts
        tokens, facts = (
            min(each, MANY if limit is None else limit)
            for each, limit in zip(most, own, strict=True)
        )
        return tokens, facts

    def first_temperature(self, tier: int, asked: str | None, ttl: int | None) -> int:
        if tier == PINNED:
            if asked not in (None, "hot") or ttl is not None:
                raise Refused("a pinned memory is hot for ever")
            return HOT
        if asked is not None:
            return TEMPERATURES.index(asked)
        for limit, temperature in ((self.ttl_cold_below, COLD), (self.ttl_warm_below, WARM)):
            if ttl is not None and limit is not None and ttl < limit:
                return temperature
        return TEMPERATURES.index(self.initial)


@dataclass
class Kept:
    """All there is of one memory but its id, which agent and sequence stand for."""

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
    expires_tick: int | None
    retention: int = ACTIVE
    retained: int = 0
    access_count: int = 0
    last_access_tick: int | None = None
    mean: float = 0.5
    """The running mean of the scores of its uses, and 2 for each use that promoting granted."""
    recalls: tuple[int, ...] = ()
    entered: int = 0
    """When it entered its tier, as a number of events."""
    alias: str | None = None
    """Its id, if it has no key and was updated: then the id is the key of its later versions."""
    tellers: tuple[str, ...] = ()
    """Who told it to an agent that had it."""

    @property
    def key(self) -> Key:
        return self.agent_id, self.sequence

    @property
    def session(self) -> str | None:
        """The name of its session."""
        named = self.metadata.get("session")
        return None if named is None else str(named)

    @property
    def subject(self) -> str | None:
        """The key under which it is stored."""
        return self.metadata.get("memory_key", self.alias)

    @property
    def normal_text(self) -> str:
        return " ".join(self.content.casefold().split())

    @property
    def missing(self) -> Fraction:
        """How much it lacks to be entirely relevant; exact, however often it was used."""
        uses = self.access_count + int(self.mean // 2)
        return Fraction(0.75 - min(self.mean % 2, 1.0) / 2) / (1 << uses)

    @property
    def relevance(self) -> float:
        return 1.0 - float(self.missing)

    @property
    def is_promoted(self) -> bool:
        return self.mean >= 2

    @property
    def cost(self) -> int:
        return cost(self.tier, self.content)

    @property
    def idle_since(self) -> int:
        return max(self.created_tick, self.last_access_tick or 0)

    @property
    def vector(self) -> bytes:
        return bytes(number & 255 for number in quantise(embed(self.content)))

    @property
    def is_completed(self) -> bool:
        """Whether the default rules move it to cold."""
        done = self.kind == "decision" or "task" in self.tags
        return self.tier != PINNED and done and not {"blocker", "open"} & set(self.tags)

    def has_faded(self, tick: int) -> bool:
        """Whether its score is below 0.5 where it is hot, below 0.25 where it is warm."""
        half_life = HALF_LIVES.get(self.tier, 0) * (1 + len(f"{self.access_count:b}".lstrip("0")))
        halvings = 1 if self.temperature == HOT else 2
        idle = tick - self.idle_since
        return half_life > 0 and self.temperature != COLD and idle > halvings * half_life

    def deserves_to_be_hot(self, tick: int, query: str, score: float) -> bool:
        """Whether a recall promotes it: it is similar, or was recalled often of late."""
        recent = [each for each in self.recalls if each >= tick - WINDOW]
        return self.likeness(query) >= PROMOTE_AT or (score >= LEAST and len(recent) >= RECALLS)

    def likeness(self, query: str) -> float:
        """The similarity of both vectors, or of words where one has none."""
        one, other = embed(query), embed(self.content)
        if any(one) and any(other):
            return round(similarity(one, other), 9)
        words, own = set(query.casefold().split()), set(self.content.casefold().split())
        return round(2 * len(words & own) / max(1, len(words) + len(own)), 9)

    def use(self, tick: int, score: float, *, recalled: bool = False) -> None:
        """A search gave it to the agent."""
        self.access_count += 1
        self.last_access_tick = tick
        self.mean = (self.mean + score) / 2 + self.mean // 2 + score // 2
        if recalled:
            self.recalls = (*self.recalls, tick)[-MOST_RECALLS:]


BOARD = "."
"""A board has the name of its group behind this."""


@dataclass
class ModelState:
    """Memories, the tick, and how many memories each agent ever had."""

    rules: Rules = field(default_factory=Rules)
    embed: Callable[[str], Sequence[float]] = embed
    tick: int = 0
    memories: dict[Key, Kept] = field(default_factory=dict)
    issued: dict[str, int] = field(default_factory=dict)
    anchor: tuple[int, int] = (0, 0)
    """The tick from which a wall clock counts days, and the day it showed then."""
    links: dict[Key, int] = field(default_factory=dict)
    """By a memory, the number of its agent's memory that superseded it without its key."""
    groups: dict[str, dict[str, int]] = field(default_factory=dict)
    """The members of each group, with the tick in which they joined."""
    entries: int = 0
    """How often a memory entered a tier."""

    def saved(self) -> Self:
        memories = {key: copy.copy(memory) for key, memory in self.memories.items()}
        groups = {name: dict(members) for name, members in self.groups.items()}
        return replace(
            self, memories=memories, issued=dict(self.issued), links=dict(self.links), groups=groups
        )

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        before = self.saved()
        try:
            yield
        except Refused:
            self.memories, self.issued = before.memories, before.issued
            self.links, self.groups = before.links, before.groups
            raise

    # Reading

    def agents(self) -> list[str]:
        """All agents, in alphabetical order. What else has memories is the board of a group."""
        return sorted(each for each in self.issued if each[0] != BOARD)

    def every(self, agent: str) -> list[Kept]:
        """An agent's memories, hidden ones too, oldest first."""
        return [self.memories[key] for key in sorted(self.memories) if key[0] == agent]

    def of(self, agent: str, retention: int = ACTIVE) -> list[Kept]:
        return [memory for memory in self.every(agent) if memory.retention == retention]

    def seen(self, agent: str) -> list[Kept]:
        """The active ones that have not expired."""
        return [memory for memory in self.of(agent) if not self.is_expired(memory)]

    def hot(self, agent: str, session: str | None = None) -> list[Kept]:
        hot = [memory for memory in self.of(agent) if memory.temperature == HOT]
        return [memory for memory in hot if session in (None, memory.session)]

    def pinned(self, agent: str, session: str | None = None) -> list[Kept]:
        own = [memory for memory in self.hot(agent, session) if memory.tier == PINNED]
        return sorted(own, key=lambda memory: memory.entered)

    def is_expired(self, memory: Kept) -> bool:
        expires = memory.expires_tick
        return memory.tier != PINNED and expires is not None and expires <= self.tick

    def get(self, agent: str, sequence: int, *, gone: bool = False) -> Kept:
        """A memory; one that was deleted or expired only on request."""
        memory = self.memories.get((agent, sequence))
        if memory is None:
            raise Refused("no such memory")
        is_active = memory.retention == ACTIVE
        if not gone and (memory.retention == DELETED or (is_active and self.is_expired(memory))):
            raise Refused("gone, but can be restored")
        return memory

    def versions(self, agent: str, key: str) -> list[Kept]:
        """What is stored under a key, deleted and expired ones too, oldest first."""
        return [memory for memory in self.every(agent) if memory.subject == key]

    def live(self, agent: str, key: str) -> Kept | None:
        found = [m for m in self.seen(agent) if m.subject == key]
        assert len(found) < 2, "two are active under one key"
        return found[0] if found else None

    def heir(self, memory: Kept) -> Kept | None:
        """What superseded a memory: by a link, or as the next version under its key."""
        linked = self.memories.get((memory.agent_id, self.links.get(memory.key, 0)))
        if linked is not None or memory.subject is None:
            return linked
        versions = self.versions(memory.agent_id, memory.subject)
        return next((each for each in versions if each.sequence > memory.sequence), None)

    def superseding(self, memory: Kept) -> Kept | None:
        """The last of its heirs."""
        return next(reversed(self.heirs(memory)), None)

    def heirs(self, memory: Kept) -> list[Kept]:
        """The heir, its heir, and so on."""
        heirs: list[Kept] = []
        found = self.heir(memory)
        while found is not None and (not heirs or found.sequence > heirs[-1].sequence):
            heirs.append(found)
            found = self.heir(found)
        return heirs

    def _active(self, agent: str, sequence: int) -> Kept:
        memory = self.get(agent, sequence)
        if memory.retention != ACTIVE:
            raise Refused("not active")
        return memory

    def _hide(self, memory: Kept, retention: int) -> Kept:
        if memory.tier == PINNED:
            raise Refused("pinned")
        if memory.retention != retention:
            memory.retention, memory.retained = retention, self.tick
        return memory

    def _expire(self, agents: Collection[str], *, everywhere: bool = False) -> None:
        """Delete what expired and takes a place in hot or in a tier, or wherever it is."""
        for memory in self.memories.values():
            if memory.agent_id in agents and memory.retention == ACTIVE:
                takes_a_place = memory.temperature != COLD or memory.tier == CRITICAL
                if self.is_expired(memory) and (everywhere or takes_a_place):
                    memory.retention, memory.retained = DELETED, self.tick


class ModelLimits(ModelState):
    """Room in a tier or in hot: who has to leave it, and where to."""

    def _in_tier(self, agent: str, tier: int, without: int | None) -> list[Kept]:
        return [m for m in self.of(agent) if m.tier == tier and m.sequence != without]

    def _make_room(self, agent: str, tier: int, newcomer: int | None) -> None:
        cap = self.rules.cap(tier)
        present = self._in_tier(agent, tier, newcomer)
        if cap is None or len(present) < cap:
            return
        if self.rules.reject or cap == 0:
            raise Refused("full")
        self._push_down(present, newcomer)

    def _push_down(self, present: list[Kept], newcomer: int | None) -> None:
        """Move the oldest one tier down, and the oldest of that tier too where it was full."""
        while present:
            falling = min(present, key=lambda memory: memory.entered)
            target = falling.tier + 1
            while self.rules.cap(target) == 0:
                target += 1
            cap = self.rules.cap(target)
            below = self._in_tier(falling.agent_id, target, newcomer)
            self._enter(falling, target)
            present = below if cap is not None and len(below) >= cap else []

    def _enter(self, memory: Kept, tier: int) -> None:
        if tier == PINNED:
            memory.temperature, memory.retention = HOT, ACTIVE
        elif memory.tier == PINNED:
            memory.temperature = WARM
        memory.tier, memory.tier_tick = tier, self.tick
        self._enters(memory)

    def _enters(self, memory: Kept) -> None:
        self.entries = memory.entered = self.entries + 1

    def fits(self, memory: Kept, *scopes: str | None) -> bool:
        """Whether hot could hold it beside what is pinned: in its session, and of the agent.

        ``scopes`` are some of these: a session, or None for all that is the agent's.
        """
        for session in scopes or (memory.session, None):
            own = self.pinned(memory.agent_id, session)
            pinned = [each for each in own if each is not memory]
            tokens, facts = self.rules.hot_limits(session)
            room = tokens - sum(each.cost for each in pinned)
            if memory.cost > room or len(pinned) >= facts:
                return False
        return True

    def _relieve_hot(self, agent: str, newcomers: Collection[int]) -> None:
        """Newcomers that hot can never hold leave it, then the least relevant while it is over.

        First in each session, then of all.
        """
        if not self.rules.auto_spill:
            return
        sessions = sorted({m.session for m in self.hot(agent) if m.session is not None})
        for session in (*sessions, None):
            new = [m for m in self._least_relevant(agent, session) if m.sequence in newcomers]
            self._leave_hot((m for m in new if not self.fits(m, session)), session)
            self._leave_hot(self._over(agent, session, newcomers), session, newcomers)

    def _over(self, agent: str, session: str | None, newcomers: Collection[int] = ()) -> list[Kept]:
        """What leaves hot until it is within its limits: the newcomers last.

        But the most relevant one stays even longer, if it was promoted.
        """
        hot, leaving = self.hot(agent, session), []
        order = self._least_relevant(agent, session)
        staying = [memory for memory in order[-1:] if memory.is_promoted]
        order.sort(key=lambda m: (m in staying, m.sequence in newcomers))
        tokens, facts = self.rules.hot_limits(session)
        number, size = len(hot), sum(m.cost for m in hot)
        for memory in order:
            if number > facts or size > tokens:
                leaving.append(memory)
                number, size = number - 1, size - memory.cost
        return leaving

    def _least_relevant(self, agent: str, session: str | None) -> list[Kept]:
        hot = [memory for memory in self.hot(agent, session) if memory.tier != PINNED]
        return sorted(hot, key=lambda m: (-m.missing, m.created_tick, m.sequence))

    def _leave_hot(
        self, memories: Iterable[Kept], session: str | None, newcomers: Collection[int] = ()
    ) -> dict[int, int]:
        """Warm if it was used often, or was never hot in earnest; else cold."""
        moved = {}
        for memory in list(memories):
            is_new = memory.sequence in newcomers
            stays_near = memory.access_count >= OFTEN or is_new or not self.fits(memory, session)
            memory.temperature = moved[memory.sequence] = WARM if stays_near else COLD
        return moved
