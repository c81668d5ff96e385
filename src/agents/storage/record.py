"""A memory that is not resident: cold, archived or deleted."""

import functools
import json
import struct
from collections.abc import Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import NamedTuple

from ..memory.records import NEVER, NO_METADATA, PLAIN, UNUSED, Memory, Traits, memory_id, traits
from ..memory.requests import KeptMetadata
from ..memory.tiers import Retention, Temperature, Tier
from ..rules.ranking import relevance

_HEAD = struct.Struct("<10qdq")
"""The numbers that a :class:`Record` begins with, and how many bytes its text has."""
MOST_RECALLS = 16
"""How many of the ticks in which a memory was recalled are kept."""


class Record(NamedTuple):
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
    use_record: float
    """What its uses came to: :mod:`tiermem.rules.ranking`."""
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
            relevance(self.use_record, self.access_count),
        )


class RecordRow(NamedTuple):
    """A memory on the shelf, with the hash over it."""

    record: Record
    digest: bytes


class ColdFact(NamedTuple):
    """A cold memory, as far as rules look at it."""

    sequence: int
    tier: int
    created_tick: int
    access_count: int
    last_access_tick: int
    use_record: float
    recalls: int
    traits: Traits | None


class SessionFact(NamedTuple):
    """A memory of a session that is not resident, as far as counting looks at it."""

    sequence: int
    retention: int
    temperature: int
    tier: int
    tokens: int
    session: str


@functools.lru_cache(maxsize=4096)
def traits_of(text: str) -> Traits:
    """Kind and tags from their JSON text."""
    kind, tags = json.loads(text)
    return traits(kind, tuple(tags))


def digests_of(agent_id: str, records: Sequence[Record]) -> list[bytes]:
    """The hash over all there is of each of these memories of one agent."""
    owner, join, pack = agent_id.encode(), b"".join, _HEAD.pack
    digests = []
    for record in records:
        recalls, traits, metadata, content, vector = record[11:]
        text = content.encode()
        parts = (
            pack(*record[:11], len(text)), owner, text, vector,
            b"" if metadata is None else metadata.json.encode(),
            b"" if traits is None else traits.json.encode(),
            repr(recalls).encode() if recalls else b"",
        )  # fmt: skip
        digests.append(sha256(join(parts)).digest())
    return digests
