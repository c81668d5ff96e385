"""The versions of a memory: the live one, and all of them as rows of mem0's history."""

from collections.abc import Mapping
from typing import Any

from ...engine.engine import Engine
from ...memory.records import Memory, sequence_of
from ...memory.tiers import Retention
from ...storage.state.links import live_version, versions
from .payloads import id_of, payload
from .scopes import Owner


def live(bank: Engine, agent_id: str, memory_id: str) -> Memory | None:
    """The active version of a memory, by the id of any of its versions; None if there is none."""
    state = bank.state
    memory = _by_id(bank, agent_id, memory_id)
    if memory is not None and memory.retention is Retention.ACTIVE:  # nothing superseded it
        return None if memory.is_expired(state.tick) else memory
    return live_version(state, agent_id, _key(memory, memory_id))


def rows_of(bank: Engine, agent_id: str, memory_id: str) -> list[dict[str, Any]]:
    """A row for each version of a memory, oldest first, and one if the last was deleted."""
    key = _key(_by_id(bank, agent_id, memory_id), memory_id)
    rows: list[dict[str, Any]] = []
    before: str | None = None
    for version in versions(bank.state, agent_id, key):
        rows.append(_row(version, "UPDATE" if rows else "ADD", before, version.content))
        before = version.content
        if version.retention is Retention.DELETED:
            rows.append(_row(version, "DELETE", before, None))
    return rows


def _by_id(bank: Engine, agent_id: str, memory_id: str) -> Memory | None:
    state = bank.state
    number = sequence_of(state.block(agent_id).prefix, memory_id)
    return None if number is None else state.memory(agent_id, number)


def _key(memory: Memory | None, memory_id: str) -> str:
    """The key of all versions but maybe the first; a purged memory's id is still theirs."""
    return memory_id if memory is None else memory.key or memory.id


def _row(memory: Memory, event: str, old: str | None, new: str | None) -> dict[str, Any]:
    own: Mapping[str, Any] = payload(memory, Owner("user_id", ""))
    return {
        "id": memory.id if event != "DELETE" else f"{memory.id}-deleted",
        "memory_id": id_of(memory),
        "old_memory": old,
        "new_memory": new,
        "event": event,
        "created_at": own["created_at"],
        "updated_at": own["updated_at"],
        "is_deleted": event == "DELETE",
        "actor_id": own.get("actor_id"),
        "role": own.get("role"),
    }
