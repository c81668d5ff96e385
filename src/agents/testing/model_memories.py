"""What the model's bank is made of: its rules and its memories."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .model_reading import cost, embed, quantise, similarity

PINNED, CRITICAL, IMPORTANT, NORMAL, LOW = range(5)
HOT, WARM, COLD = range(3)
ACTIVE, ARCHIVED, DELETED = range(3)
TEMPERATURES = ("hot", "warm", "cold")
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
