"""A memory that is not resident: cold, archived or deleted."""

import functools
import json
from types import MappingProxyType
from typing import NamedTuple

from ..memory.ids import memory_id
from ..memory.kinds import PLAIN, Traits, traits
from ..memory.metadata import KeptMetadata
from ..memory.records import NEVER, NO_METADATA, UNUSED, Memory
from ..memory.retention import Retention
from ..memory.temperature import Temperature
from ..memory.tiers import Tier

__all__ = ["MOST_RECALLS", "ColdFact", "Shelved", "Stored", "traits_of"]

MOST_RECALLS = 16
"""How many are kept of the ticks in which a memory was recalled."""


class Shelved(NamedTuple):
    """All there is of one memory, to the bit."""

    sequence: int
    tier: int
    temperature: int
    retention: int
    retained_tick: int
    """When it was archived or deleted."""
    created_tick: int
    tier_tick: int
    expires_tick: int
    access_count: int
    last_access_tick: int
    relevance: float
    recalls: tuple[int, ...]
    """The ticks in which it was last recalled."""
    traits: Traits | None
    metadata: KeptMetadata | None
    content: str
    vector: bytes

    @property
    def is_resident(self) -> bool:
        """Whether it belongs into the columns, where searches see it."""
        return self.retention == Retention.ACTIVE and self.temperature != Temperature.COLD

    def memory(self, agent_id: str, prefix: str) -> Memory:
        """As callers see it."""
        kind, tags, _ = self.traits or PLAIN
        return Memory(
            memory_id(prefix, self.sequence),
            agent_id,
            self.content,
            Tier(self.tier),
            self.created_tick,
            self.tier_tick,
            self.sequence,
            NO_METADATA if self.metadata is None else MappingProxyType(self.metadata),
            kind,
            tags,
            Temperature(self.temperature),
            Retention(self.retention),
            None if self.expires_tick == NEVER else self.expires_tick,
            self.access_count,
            None if self.last_access_tick == UNUSED else self.last_access_tick,
            self.relevance,
        )


class Stored(NamedTuple):
    """A memory on the shelf, with the hash over it."""

    record: Shelved
    digest: bytes


class ColdFact(NamedTuple):
    """A cold memory, as far as rules look at it."""

    sequence: int
    tier: int
    created_tick: int
    access_count: int
    last_access_tick: int
    relevance: float
    recalls: int
    traits: Traits | None


@functools.lru_cache(maxsize=4096)
def traits_of(text: str) -> Traits:
    """Kind and tags of their JSON text."""
    kind, tags = json.loads(text)
    return traits(kind, tuple(tags))
