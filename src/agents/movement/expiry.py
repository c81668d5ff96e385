"""What expired is deleted. Transactions are the caller's."""

from collections.abc import Iterable

import numpy as np

from ..memory.records import NEVER
from ..memory.retention import Retention
from ..memory.tiers import Tier
from ..storage.state.ledger import Ledger

__all__ = ["expire", "expire_of"]


def expire_of(ledger: Ledger, agents: Iterable[str]) -> None:
    """:func:`expire` for these agents."""
    blocks, tick = ledger.resident.blocks, ledger.resident.tick
    for agent_id in agents:
        block = blocks.get(agent_id)
        if block is not None and (block.next_expiry <= tick or block.critical_elsewhere):
            expire(ledger, agent_id)


def expire(ledger: Ledger, agent_id: str, *, everywhere: bool = False) -> None:
    """Delete what expired and takes a place that others could have, in hot or in a tier.

    With ``everywhere``, what is cold as well.
    """
    resident = ledger.resident
    if everywhere:
        for expired, _ in resident.shelf.due(resident.tick, -1, agent_id).values():
            ledger.retain(agent_id, expired, Retention.DELETED, "expire")
    block, tick = resident.blocks.get(agent_id), resident.tick
    if block is None or (block.next_expiry > tick and not block.critical_elsewhere):
        return
    elsewhere = [
        sequence for sequence, memory in block.critical_elsewhere.items() if memory.is_expired(tick)
    ]
    ledger.retain(agent_id, sorted(elsewhere), Retention.DELETED, "expire")
    if block.next_expiry > tick:
        return
    expires = np.where(block.tiers == Tier.PINNED, NEVER, block.column("expires"))
    rows = np.flatnonzero(expires <= tick).tolist()
    expired = [block.sequence(row) for row in rows]
    ledger.retain(block.agent_id, expired, Retention.DELETED, "expire")
    block.next_expiry = int(expires[expires > tick].min(initial=NEVER))
