"""What tests of export and import share: a file to import, and what a bank holds."""

from pathlib import Path
from typing import Any

from agents import Memory, MemoryBank, Retention

GOOD = b'{"content": "good", "agent_id": "a"}\n'
"""A row that can be kept."""


def said(memory: Memory) -> tuple[Any, ...]:
    """All of a memory that a row keeps."""
    lifetime = None if memory.expires_tick is None else memory.expires_tick - memory.created_tick
    return (
        memory.agent_id,
        memory.content,
        memory.tier,
        memory.kind,
        memory.tags,
        dict(memory.metadata),
        memory.temperature,
        memory.retention,
        lifetime,
    )


def contents(folder: Path, *, archived: bool = False) -> list[tuple[Any, ...]]:
    found: list[Memory] = []
    with MemoryBank.at(folder) as bank:
        for name in bank.agents():
            agent = bank.agent(name)
            found += [memory for memory in agent.all() if memory.kind != "note"]
            found += agent.all(retention=Retention.ARCHIVED) if archived else []
    return sorted(map(said, found), key=repr)


def write(text: str | bytes, name: str = "in.jsonl") -> Path:
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return Path(name)
