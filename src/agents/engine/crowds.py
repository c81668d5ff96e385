"""The columns of many agents as one: a call for each agent would cost more than what it reads."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..rules.suggestions import Crowd
from ..storage.resident.agent_columns import AgentColumns
from ..storage.resident.table import WIDTH

__all__ = ["crowd_of"]


def crowd_of(blocks: Sequence[AgentColumns]) -> Crowd:
    """The memories of all these agents, agent by agent."""
    owners = np.repeat(np.arange(len(blocks)), [block.size for block in blocks])
    table = np.concatenate(
        [np.empty((0, WIDTH), np.int64), *[b._figures[: b.size] for b in blocks]]
    )
    _, created, entered, _, accesses, last = table.T
    tiers: NDArray[np.int8] = np.concatenate(
        [np.empty(0, np.int8), *[block.tiers for block in blocks]]
    )
    relevance = np.frombuffer(b"".join([b._relevance[: b.size] for b in blocks]), np.float64)
    return Crowd(owners, created, entered, accesses, last, tiers.astype(np.int64), relevance)
