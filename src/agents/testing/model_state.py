"""What the model's bank remembers, and how it is read."""

import contextlib
import copy
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from .laws import must
from .model_memories import (
    ACTIVE,
    COLD,
    CRITICAL,
    DELETED,
    HOT,
    PINNED,
    Kept,
    Key,
    Refused,
    Rules,
)
from .model_reading import embed

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

    def hot(self, agent: str) -> list[Kept]:
        return [memory for memory in self.of(agent) if memory.temperature == HOT]

    def pinned(self, agent: str) -> list[Kept]:
        own = [memory for memory in self.of(agent) if memory.tier == PINNED]
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
        must(len(found) < 2, "two are active under one key")
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
