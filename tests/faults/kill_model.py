"""What a bank should hold after a kill, in plain Python; it shares no code with the package."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

PINNED, CRITICAL = range(2)
_HEATS = ("hot", "warm", "cold")


class NotThere(Exception):
    """The agent has no such memory."""


class Full(Exception):
    """The tier takes no more."""


class IsPinned(Exception):
    """What is pinned stays."""


class NotActive(Exception):
    """What is archived has no temperature that changes."""


class Backwards(Exception):
    """The clock does not go back."""


@dataclass(frozen=True)
class Remembered:
    """A memory; its id is known by agent and sequence."""

    agent_id: str
    sequence: int
    content: str
    tier: int
    created_tick: int
    tier_tick: int
    metadata: dict[str, Any]
    kind: str = "fact"
    tags: tuple[str, ...] = ()
    temperature: str = "warm"
    retention: str = "active"
    access_count: int = 0
    last_access_tick: int | None = None
    entered: int = 0
    """When it entered its tier, as a number of events."""


@dataclass
class ModelBank:
    """The reference."""

    max_pinned: int
    max_critical: int
    reject: bool
    tick: int = 0
    memories: dict[str, list[Remembered]] = field(default_factory=dict)
    issued: dict[str, int] = field(default_factory=dict)
    entries: int = 0
    """How often a memory entered a tier."""

    # Going back

    def saved(self) -> tuple[Any, ...]:
        kept = {agent: list(own) for agent, own in self.memories.items()}
        return self.tick, kept, dict(self.issued), self.entries

    def restore(self, saved: tuple[Any, ...]) -> None:
        tick, kept, issued, self.entries = saved
        self.tick = tick
        self.memories = {agent: list(own) for agent, own in kept.items()}
        self.issued = dict(issued)

    # Changing

    def add(
        self,
        agent: str,
        content: str,
        tier: int,
        metadata: dict[str, Any] | None,
        more: dict[str, Any] | None = None,
    ) -> Remembered:
        self._make_room(agent, tier, newcomer=None)
        sequence = self.issued.get(agent, 0) + 1
        self.issued[agent] = sequence
        ordered = dict(sorted((metadata or {}).items()))
        more = dict(more or {})
        memory = Remembered(
            agent,
            sequence,
            content,
            tier,
            self.tick,
            self.tick,
            ordered,
            more.get("kind", "fact"),
            tuple(sorted(set(more.get("tags", ())))),
            "hot" if tier == PINNED else more.get("temperature", "warm"),
            entered=self._enter(),
        )
        self.memories.setdefault(agent, []).append(memory)
        return memory

    def add_many(self, items: Sequence[tuple[Any, ...]]) -> list[Remembered]:
        before = self.saved()
        try:
            return [self.add(*item) for item in items]
        except Full:
            self.restore(before)
            raise

    def get(self, agent: str, sequence: int, *, deleted: bool = False) -> Remembered:
        for memory in self.memories.get(agent, []):
            if memory.sequence == sequence and (deleted or memory.retention != "deleted"):
                return memory
        raise NotThere

    def set_tier(self, agent: str, sequence: int, tier: int) -> Remembered:
        memory = self.get(agent, sequence)
        if memory.tier == tier:
            return memory
        if memory.retention == "active" or tier == PINNED:  # an archived one takes no room
            self._make_room(agent, tier, newcomer=sequence)
        return self._move(self.get(agent, sequence), tier)

    def unpin(self, agent: str, sequence: int, tier: int) -> Remembered:
        memory = self.get(agent, sequence)
        return self.set_tier(agent, sequence, tier) if memory.tier == PINNED else memory

    def delete(self, agent: str, sequence: int) -> None:
        self._retain(self.get(agent, sequence), "deleted")

    def archive(self, agent: str, sequence: int) -> Remembered:
        return self._retain(self.get(agent, sequence), "archived")

    def bring_back(self, agent: str, sequence: int) -> Remembered:
        memory = self.get(agent, sequence, deleted=True)
        if memory.retention != "active":
            self._make_room(agent, memory.tier, newcomer=sequence)
        return self._retain(self.get(agent, sequence, deleted=True), "active")

    def forget(self, agent: str, sequence: int) -> None:
        memory = self.get(agent, sequence, deleted=True)
        if memory.tier == PINNED:
            raise IsPinned
        self.memories[agent].remove(memory)

    def promote(self, agent: str, sequence: int) -> None:
        memory = self.get(agent, sequence)
        if memory.retention != "active":
            raise NotActive
        if memory.temperature != "hot":
            used = self._used(memory)
            self._swap(memory, replace(used, temperature="hot"))

    def demote(self, agent: str, sequence: int, to: str) -> None:
        memory = self.get(agent, sequence)
        if memory.retention != "active":
            raise NotActive
        if memory.tier == PINNED:
            raise IsPinned
        if _HEATS.index(memory.temperature) < _HEATS.index(to):
            self._swap(memory, replace(memory, temperature=to))

    def advance(self, tick: int) -> None:
        if tick < self.tick:
            raise Backwards
        self.tick = tick

    def change_caps(self, max_pinned: int, max_critical: int, reject: bool) -> None:
        """Caps are other ones from now on; of a tier over its cap, the oldest moves, one by one."""
        self.max_pinned, self.max_critical, self.reject = max_pinned, max_critical, reject
        for agent in self.memories:
            for tier, cap in ((PINNED, max_pinned), (CRITICAL, max_critical)):
                while len(self.in_tier(agent, tier)) > cap:
                    self._push_down(_oldest(self.in_tier(agent, tier)), newcomer=None)

    # Reading

    def of(self, agent: str) -> list[Remembered]:
        """The active ones."""
        return [m for m in self.memories.get(agent, []) if m.retention == "active"]

    def in_tier(self, agent: str, tier: int) -> list[Remembered]:
        return [memory for memory in self.of(agent) if memory.tier == tier]

    def pinned(self, agent: str) -> list[Remembered]:
        return sorted(self.in_tier(agent, PINNED), key=lambda m: m.entered)

    def _cap(self, tier: int) -> int | None:
        return {PINNED: self.max_pinned, CRITICAL: self.max_critical}.get(tier)

    def _move(self, memory: Remembered, tier: int) -> Remembered:
        moved = replace(memory, tier=tier, tier_tick=self.tick, entered=self._enter())
        if tier == PINNED:
            moved = replace(moved, temperature="hot", retention="active")
        elif memory.tier == PINNED:
            moved = replace(moved, temperature="warm")
        return self._swap(memory, moved)

    def _enter(self) -> int:
        self.entries += 1
        return self.entries

    def _swap(self, memory: Remembered, new: Remembered) -> Remembered:
        own = self.memories[memory.agent_id]
        own[own.index(memory)] = new
        return new

    def _retain(self, memory: Remembered, retention: str) -> Remembered:
        if memory.retention == retention:
            return memory
        if memory.tier == PINNED:
            raise IsPinned
        return self._swap(memory, replace(memory, retention=retention))

    def _used(self, memory: Remembered) -> Remembered:
        return replace(memory, access_count=memory.access_count + 1, last_access_tick=self.tick)

    def _make_room(self, agent: str, tier: int, newcomer: int | None) -> None:
        cap = self._cap(tier)
        present = [m for m in self.in_tier(agent, tier) if m.sequence != newcomer]
        if cap is None or len(present) < cap:
            return
        if self.reject or cap == 0:
            raise Full
        self._push_down(_oldest(present), newcomer)

    def _push_down(self, falling: Remembered | None, newcomer: int | None) -> None:
        """Move it one tier down, and the oldest of that one too where it was full."""
        while falling is not None:
            target = falling.tier + 1
            while self._cap(target) == 0:
                target += 1
            present = [m for m in self.in_tier(falling.agent_id, target) if m.sequence != newcomer]
            cap = self._cap(target)
            full = cap is not None and len(present) >= cap
            self._move(falling, target)
            falling = _oldest(present) if full else None


def _oldest(memories: list[Remembered]) -> Remembered:
    return min(memories, key=lambda memory: memory.entered)
