"""One agent's whole state as bytes, and back."""

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from agents.errors import BankDamaged
from agents.memory.records import NO_METADATA, Memory, Metadata, Scalar, memory_id
from agents.memory.tiers import Tier
from agents.storage.columns import AgentColumns
from agents.storage.journal import SnapshotRow

__all__ = ["digest", "pack", "unpack"]

_TIERS = tuple(Tier)


def pack(block: AgentColumns) -> SnapshotRow:
    """The state of ``block``; equal states give equal bytes."""
    records = block.records
    numbers = np.array(
        [(m.sequence, m.tier, m.created_tick, m.tier_tick) for m in records], "<i8"
    ).reshape(len(records), 4)
    metadata = {
        str(row): dict(m.metadata) for row, m in enumerate(records) if m.metadata is not NO_METADATA
    }
    row = SnapshotRow(
        agent=block.agent_id,
        next_sequence=block.next_sequence,
        columns=numbers.tobytes(),
        contents=_json([m.content for m in records]),
        metadata=_json(metadata),
        vectors=block.quantised().tobytes(),
        digest=b"",
    )
    return row._replace(digest=_hash(row))


def digest(block: AgentColumns) -> bytes:
    """A hash over the state of ``block``, kept until it changes."""
    if block.digest is None:
        block.digest = pack(block).digest
    return block.digest


def unpack(row: SnapshotRow, seed: int, dims: int) -> AgentColumns:
    """The block that ``row`` was packed from."""
    if _hash(row) != row.digest:
        raise BankDamaged(
            f"the snapshot of agent {row.agent} is not what was written. "
            "Restore the bank from a backup or a checkpoint; nothing was changed"
        )
    block = AgentColumns(row.agent, seed, dims)
    numbers = np.frombuffer(row.columns, "<i8").reshape(-1, 4)
    contents: list[str] = json.loads(row.contents)
    metadata: Mapping[str, dict[str, Scalar]] = json.loads(row.metadata)
    prefix, agent_id = block.prefix, row.agent
    ticks: dict[int, int] = {}  # one object per tick, not one per memory
    records = [
        Memory(
            memory_id(prefix, sequence),
            agent_id,
            content,
            _TIERS[tier],
            ticks.setdefault(created, created),
            ticks.setdefault(entered, entered),
            sequence,
            NO_METADATA,
        )
        for (sequence, tier, created, entered), content in zip(
            numbers.tolist(), contents, strict=True
        )
    ]
    for key, entry in metadata.items():
        index = int(key)
        records[index] = _with_metadata(records[index], MappingProxyType(entry))
    vectors = np.frombuffer(row.vectors, np.int8).reshape(len(records), dims)
    block.load(records, vectors, row.next_sequence)
    block.digest = row.digest
    return block


def _with_metadata(memory: Memory, metadata: Metadata) -> Memory:
    return Memory(
        memory.id,
        memory.agent_id,
        memory.content,
        memory.tier,
        memory.created_tick,
        memory.tier_tick,
        memory.sequence,
        metadata,
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _hash(row: SnapshotRow) -> bytes:
    result = hashlib.sha256(f"{row.agent}\0{row.next_sequence}".encode())
    for part in row[2:6]:
        data = part.encode() if isinstance(part, str) else part
        result.update(f"\0{len(data)}\0".encode())
        result.update(data)
    return result.digest()
