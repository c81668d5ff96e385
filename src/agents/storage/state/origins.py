"""Finds the copies of a memory that an agent was told."""

from collections.abc import Sequence

from ..resident.agent_columns import AgentColumns
from ..resident.origins import Origins
from .state import State


def copies_of(state: State, agent_id: str, origin_id: str) -> Sequence[int]:
    """The sequence numbers of an agent's copies of an origin, oldest first; some may be purged."""
    return origins_of(state, state.block(agent_id)).get(origin_id, ())


def origins_of(state: State, block: AgentColumns) -> Origins:
    """What an agent was told, by origin and teller.

    Each memory is looked at once, by the first call after it was stored.
    """
    origins = block.origins
    if origins is None:
        origins = Origins()
    if origins.upto < block.next_sequence:
        block.origins = None  # after an error in between, a memory would be there twice
        new = range(origins.upto, block.next_sequence)
        rows, others = block.rows_of(new)
        for row in rows:
            origins.know(block.sequence(row), block.table.metadata[block.start + row])
        for stored in state.shelf.many(block.agent_id, others) if others else ():
            origins.know(stored.record.sequence, stored.record.metadata)
        origins.upto = block.next_sequence
        block.origins = origins
    return origins
