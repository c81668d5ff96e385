"""One agent's whole state as bytes, and back."""

import hashlib
import json

import numpy as np

from agents.errors import BankDamaged
from agents.memory.metadata import KeptMetadata, keep_metadata
from agents.storage.columns import AgentColumns
from agents.storage.journal_tables import SnapshotRow

__all__ = ["check", "pack", "unpack"]

_TYPES = (str, int, bytes, bytes, str, bytes, bytes)
"""One bit can make a text of bytes, which have the same hash."""


def pack(block: AgentColumns) -> SnapshotRow:
    """The state of ``block``; equal states give equal bytes."""
    numbers = block.numbers()
    row = SnapshotRow(
        agent=block.agent_id,
        next_sequence=block.next_sequence,
        columns=numbers.astype("<i8", copy=False).tobytes(),
        contents="\0".join(block.contents()).encode(),  # no text has a NUL
        metadata=_metadata(numbers[:, 0].tolist(), block.metadata()),
        vectors=block.vectors().tobytes(),
        digest=b"",
    )
    return row._replace(digest=_hash(row))


def check(row: SnapshotRow) -> None:
    """Raise :class:`BankDamaged` if the row is not what :func:`pack` made."""
    if tuple(map(type, row)) != _TYPES or _hash(row) != row.digest:
        raise BankDamaged(
            f"the snapshot of agent {row.agent} is not what was written. "
            "Restore the bank from a backup; nothing was changed"
        )


def unpack(row: SnapshotRow, seed: int, dims: int) -> AgentColumns:
    """The block that ``row`` was packed from."""
    check(row)
    block = AgentColumns(row.agent, seed, dims)
    numbers = np.frombuffer(row.columns, "<i8").reshape(-1, 4)
    block.load(
        numbers,
        row.contents.decode().split("\0") if row.contents else [],
        _metadata_of(row, numbers[:, 0].tolist()),
        np.frombuffer(row.vectors, np.int8).reshape(-1, dims),
        row.next_sequence,
    )
    return block


def _metadata(sequences: list[int], metadata: list[KeptMetadata | None]) -> str:
    """JSON: each metadata once, with the sequence numbers of the memories that have it."""
    groups: dict[str, list[int]] = {}
    for sequence, own in zip(sequences, metadata, strict=True):
        if own is not None:
            groups.setdefault(own.json, []).append(sequence)
    return f"[{','.join([f'[{text},{numbers}]' for text, numbers in groups.items()])}]"


def _metadata_of(row: SnapshotRow, sequences: list[int]) -> list[KeptMetadata | None]:
    kept: dict[int, KeptMetadata] = {}
    for metadata, numbers in json.loads(row.metadata):
        kept.update(dict.fromkeys(numbers, keep_metadata(metadata)))
    return [kept.get(sequence) for sequence in sequences] if kept else [None] * len(sequences)


def _hash(row: SnapshotRow) -> bytes:
    result = hashlib.sha256(f"{row.agent}\0{row.next_sequence}".encode())
    for part in row[2:6]:
        data = part.encode() if isinstance(part, str) else part
        result.update(f"\0{len(data)}\0".encode())
        result.update(data)
    return result.digest()
