"""The trust of an agent in its tellers, as a factor of the scores of what they told."""

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..memory.records import Memory
from ..memory.sources import TRUST
from ..storage.columns.agent_columns import AgentColumns
from ..storage.state.links import origins_of
from ..storage.state.state import State


@final
class Trusting:
    """Reads what each agent holds of other agents."""

    def __init__(self, resident: State) -> None:
        self._resident = resident

    def factors(self, block: AgentColumns) -> NDArray[np.float64] | None:
        """The factor of each resident memory of an agent; None if all are 1."""
        trusts = None if block.holdings is None else block.holdings.of(TRUST)
        if not trusts:
            return None
        told = origins_of(self._resident, block).by_teller
        factors = np.ones(block.size)
        for teller, trust in trusts.items():
            if teller in told:
                factors[block.rows_of(told[teller])[0]] = trust
        return factors

    def table(self, blocks: Sequence[AgentColumns], width: int) -> NDArray[np.float64] | None:
        """The factors of each agent's memories as a row of this width; None if all are 1."""
        found = list(map(self.factors, blocks))
        if all(own is None for own in found):
            return None
        factors = np.ones((len(blocks), width))
        for row, own in zip(factors, found, strict=True):
            if own is not None:
                row[: len(own)] = own
        return factors

    def of(self, memory: Memory) -> float:
        """The factor of one memory."""
        source, holdings = memory.source, self._resident.block(memory.agent_id).holdings
        if source is None or holdings is None:
            return 1.0
        trust: float = holdings.of(TRUST).get(source.teller, 1.0)
        return trust
