"""How an agent's memories belong together: versions, heirs, contradictions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...memory.records import KEY, Memory, sequence_of
from ...memory.sources import CONTRADICTS, SUPERSEDED
from ...memory.tiers import Retention
from ..columns.extras import NO_VALUES
from .state import State


def heir(state: State, memory: Memory) -> Memory | None:
    """The memory that superseded this one, by a link or under its key."""
    number = _held(state, memory.agent_id, SUPERSEDED).get(str(memory.sequence))
    linked = None if number is None else state.memory(memory.agent_id, number)
    if linked is not None:
        return linked
    for version in versions(state, memory.agent_id, memory.key or memory.id):
        if version.sequence > memory.sequence:
            return version
    return None


def heirs(state: State, memory: Memory) -> Iterator[Memory]:
    """What superseded a memory: the heir, its heir, and so on."""
    following, last = heir(state, memory), None
    while following is not None and (last is None or following.sequence > last.sequence):
        yield following
        last, following = following, heir(state, following)


def superseding(state: State, memory: Memory) -> Memory | None:
    """The memory that stands in the place of this one: the last of its heirs."""
    return next(reversed(list(heirs(state, memory))), None)


def contradicted(state: State, memory: Memory) -> Sequence[Memory]:
    """The memories that contradict this one, oldest first."""
    numbers = _held(state, memory.agent_id, CONTRADICTS).get(str(memory.sequence), ())
    return state.memories(memory.agent_id, numbers)


def superseded(state: State, agent_id: str) -> list[int]:
    """The sequence numbers of an agent's archived memories that another memory superseded."""
    block, shelf = state.block(agent_id), state.shelf
    archived = shelf.of_agent(agent_id, Retention.ARCHIVED)
    newest: dict[str, int] = {}
    """The newest memory under each key."""
    for resident in block.memories(range(block.size)) if not state.table.all_plain else ():
        newest[resident.key or ""] = resident.sequence
    for record in (*archived, *shelf.of_agent(agent_id, Retention.ACTIVE)):
        key = None if record.metadata is None else record.metadata.get(KEY)
        if isinstance(key, str):
            newest[key] = max(newest.get(key, 0), record.sequence)
    linked = _held(state, agent_id, SUPERSEDED)
    return [
        memory.sequence
        for memory in (record.memory(agent_id, block.prefix) for record in archived)
        if str(memory.sequence) in linked
        or newest.get(memory.key or memory.id, 0) > memory.sequence
    ]


def _held(state: State, agent_id: str, topic: str) -> Mapping[str, Any]:
    holdings = state.block(agent_id).holdings
    return NO_VALUES if holdings is None else holdings.of(topic)


def versions(state: State, agent_id: str, key: str) -> list[Memory]:
    """All memories that an agent stored under a key, deleted ones too, oldest first.

    If the key is the id of a memory without a key, that memory is the first version.
    """
    state.check_shelf(agent_id)
    block = state.block(agent_id)
    memories: list[Memory] = []
    if not state.table.all_plain:
        own = enumerate(block.metadata())
        memories = block.memories([row for row, kept in own if kept and kept.get(KEY) == key])
    shelved = state.shelf.with_value(agent_id, KEY, key)
    memories += [record.memory(agent_id, block.prefix) for record in shelved]
    number = sequence_of(block.prefix, key)
    first = None if number is None else state.memory(agent_id, number)
    if first is not None and first.key is None:
        memories.append(first)
    return sorted(memories, key=lambda memory: memory.sequence)


def live_version(state: State, agent_id: str, key: str) -> Memory | None:
    """The active memory that an agent has under a key; there is one at most."""
    for memory in reversed(versions(state, agent_id, key)):
        if memory.retention is Retention.ACTIVE and not memory.is_expired(state.tick):
            return memory
    return None
