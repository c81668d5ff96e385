"""Reading memories, wherever they are: resident, cold, archived or deleted."""

from collections import deque

from ..errors import MemoryNotFound
from ..memory.records import Memory, sequence_of
from ..memory.requests import check_key
from ..memory.tiers import Retention, Temperature, Tier
from ..rules.temperature import faded_score
from ..storage.state.links import contradicted, superseded, superseding, versions
from .engine import Engine

_MOST_EVIDENCE = 1000
"""How many memories are looked at to find whether one piece of evidence holds."""


def find(bank: Engine, agent_id: str, memory_id: str, *, deleted: bool = False) -> Memory:
    """The agent's memory with this id, or :class:`MemoryNotFound`.

    With ``deleted``, a deleted or expired memory is found as well.
    """
    with bank.using():
        state = bank.state
        sequence = sequence_of(state.block(agent_id).prefix, memory_id)
        memory = None if sequence is None else state.memory(agent_id, sequence)
        if memory is None and sequence is not None:
            state.check_shelf(agent_id)
        is_gone = memory is not None and (
            memory.retention is Retention.DELETED or memory.is_expired(state.tick)
        )
    if memory is None or (is_gone and not deleted):
        hint = "" if isinstance(memory_id, str) else "an id is text, such as memory.id"
        if is_gone:
            word = "was deleted" if memory and memory.retention else "expired"
            hint = f"it {word}; restore it first, which makes it active again"
        raise MemoryNotFound(f"{agent_id} has no memory {memory_id!r:.80}", hint=hint)
    return memory


def nth(bank: Engine, agent_id: str, sequence: int) -> Memory | None:
    """An agent's ``sequence``-th memory; None if it was deleted, expired or never stored."""
    with bank.using():
        memory = bank.state.memory(agent_id, sequence)
        tick = bank.tick
    if memory is None or memory.retention is Retention.DELETED or memory.is_expired(tick):
        return None
    return memory


def flags(bank: Engine, memory: Memory) -> list[str]:
    """What speaks against an insight: :meth:`AgentMemory.links`."""
    with bank.using():
        reasons = [
            (memory_id, _why_shaken(bank, memory.agent_id, memory_id))
            for memory_id in memory.evidence
        ]
    return [f"evidence {memory_id} {why}" for memory_id, why in reasons if why]


def _why_shaken(bank: Engine, agent_id: str, memory_id: str) -> str:
    """Why a memory, or what it rests on, no longer holds; empty if it all does.

    Evidence of evidence is looked through from the near to the far, each memory once.
    """
    row, seen = deque([memory_id]), {memory_id}  # an imported memory may rest on itself
    while row:
        evidence_id = row.popleft()
        memory = _any(bank, agent_id, evidence_id)
        why = _why_lost(bank, memory)
        if why:
            return why if evidence_id == memory_id else f"rests on {evidence_id}, which {why}"
        for further in () if memory is None else memory.evidence:
            if further not in seen and len(seen) < _MOST_EVIDENCE:
                seen.add(further)
                row.append(further)
    return ""


def _any(bank: Engine, agent_id: str, memory_id: str) -> Memory | None:
    state = bank.state
    number = sequence_of(state.block(agent_id).prefix, memory_id)
    return None if number is None else state.memory(agent_id, number)


def _why_lost(bank: Engine, memory: Memory | None) -> str:
    """Why a memory no longer holds; empty if it does. An archived memory may hold."""
    if memory is None:
        return "is gone"
    if memory.retention is Retention.DELETED or memory.is_expired(bank.tick):
        return "was deleted"
    state = bank.state
    if memory.retention is Retention.ARCHIVED:
        later = superseding(state, memory)
        if later is not None:
            return f"was superseded by {later.id}"
    against = [other for other in contradicted(state, memory) if _stands(bank, other)]
    return f"is contradicted by {against[0].id}" if against else ""


def _stands(bank: Engine, memory: Memory) -> bool:
    """Whether a memory still speaks against another one."""
    if memory.retention is Retention.ACTIVE:
        return not memory.is_expired(bank.tick)
    state = bank.state
    return memory.retention is Retention.ARCHIVED and superseding(state, memory) is None


def decay_score(bank: Engine, memory: Memory) -> float:
    """How little a memory has faded, from 1 towards 0; 1 where nothing fades."""
    decay, ticks = bank.settings.decay, bank.settings.clock.ticks
    if not decay.enabled:
        return 1.0
    half_life = ticks((0, *decay.half_life)[memory.tier])
    used = max(memory.created_tick, memory.last_access_tick or 0)
    return faded_score(max(0, bank.tick - used), half_life, memory.access_count)


def active(
    bank: Engine, agent_id: str, tier: Tier | None, temperature: Temperature | None
) -> list[Memory]:
    """An agent's active memories, of one tier or temperature if given, oldest first."""
    with bank.using():
        state = bank.state
        block, tick = state.block(agent_id), state.tick
        memories: list[Memory] = []
        if temperature is not Temperature.COLD:
            memories = block.memories(range(block.size))
        if temperature in (None, Temperature.COLD):
            state.check_shelf(agent_id)
            cold = state.shelf.of_agent(agent_id, Retention.ACTIVE, Temperature.COLD)
            memories += [record.memory(agent_id, block.prefix) for record in cold]
            memories.sort(key=lambda memory: memory.sequence)
    return [
        memory
        for memory in memories
        if (tier is None or memory.tier is tier)
        and (temperature is None or memory.temperature is temperature)
        and not memory.is_expired(tick)
    ]


def count(bank: Engine, agent_id: str, tier: Tier | None) -> int:
    """The number of an agent's active memories, in all tiers or in one; no expired ones."""
    with bank.using():
        state = bank.state
        block = state.block(agent_id)
        state.check_shelf(agent_id)
        resident_count = block.size if tier is None else int((block.tiers == tier).sum())
        cold = sum(
            number
            for (_, retention, _, at), (number, _) in state.shelf.counts(agent_id).items()
            if retention == Retention.ACTIVE and tier in (None, at)
        )
        over = sum(tier in (None, memory.tier) for memory in state.expired(agent_id))
        return resident_count + cold - over


def hidden(bank: Engine, agent_id: str, retention: Retention) -> list[Memory]:
    """An agent's archived memories, or its deleted ones, newest first."""
    with bank.using():
        state = bank.state
        state.check_shelf(agent_id)
        prefix = state.block(agent_id).prefix
        records = state.shelf.of_agent(agent_id, retention)
        return [record.memory(agent_id, prefix) for record in reversed(records)]


def history(bank: Engine, agent_id: str, key: str) -> list[Memory]:
    """:meth:`AgentMemory.history`."""
    wanted = check_key(key)
    with bank.using():
        state = bank.state
        number = sequence_of(state.block(agent_id).prefix, wanted)
        memory = None if number is None else state.memory(agent_id, number)
        if memory is not None and memory.key is not None:
            wanted = memory.key
        memories = versions(state, agent_id, wanted)
        tick = state.tick
    kept = [memory for memory in memories if memory.retention is not Retention.DELETED]
    return [memory for memory in kept if not memory.is_expired(tick)]


def former(bank: Engine, agent_id: str, *, with_cold: bool) -> list[int]:
    """The memories of an agent that another one superseded; with the cold ones, if wanted."""
    state = bank.state
    cold = [each.sequence for each in state.shelf.cold(agent_id)] if with_cold else []
    return sorted([*superseded(state, agent_id), *cold])


def state_hash(bank: Engine) -> str:
    """:meth:`MemoryBank.state_hash`."""
    with bank.using():
        return bank.state.hash()
