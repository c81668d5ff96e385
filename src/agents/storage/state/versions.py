"""The versions of what an agent stored under a key: the live one, and those that it superseded."""

from ...memory.records import KEY, Memory, sequence_of
from ...memory.tiers import Retention
from .state import State


def versions(state: State, agent_id: str, key: str) -> list[Memory]:
    """All memories that an agent stored under a key, deleted ones too, oldest first.

    If the key is the id of a memory without a key, that memory is the first version.
    """
    state.check_shelf(agent_id)
    block = state.block(agent_id)
    found: list[Memory] = []
    if not state.table.all_plain:
        own = enumerate(block.metadata())
        found = block.memories([row for row, kept in own if kept and kept.get(KEY) == key])
    shelved = state.shelf.with_value(agent_id, KEY, key)
    found += [each.memory(agent_id, block.prefix) for each in shelved]
    number = sequence_of(block.prefix, key)
    first = None if number is None else state.memory(agent_id, number)
    if first is not None and first.key is None:
        found.append(first)
    return sorted(found, key=lambda memory: memory.sequence)


def live_version(state: State, agent_id: str, key: str) -> Memory | None:
    """The active memory that an agent has under a key; there is one at most."""
    for memory in reversed(versions(state, agent_id, key)):
        if memory.retention is Retention.ACTIVE and not memory.is_expired(state.tick):
            return memory
    return None
