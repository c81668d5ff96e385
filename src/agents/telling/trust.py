"""The trust of agents in tellers, which multiplies the scores of what these told."""

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..engine.engine import Engine
from ..errors import InvalidInput
from ..memory.records import Memory
from ..memory.requests import check_agent_id
from ..memory.sources import TRUST
from ..storage.columns.agent_columns import AgentColumns
from ..storage.columns.extras import NO_VALUES, Origins
from ..storage.state.state import State


def trust(bank: Engine, agent_id: str, teller: object, value: object) -> None:
    """:meth:`AgentSocial.trust`."""
    name = check_agent_id(teller)
    if name == agent_id:
        raise InvalidInput(f"{agent_id} can't tell {agent_id} anything", hint="name a teller")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(f"trust is a number from 0 to 1, not {value!r:.40}")
    with bank.changing():
        if trust_of(bank, agent_id, name) != value:
            held = None if value == 1 else float(value)
            bank.ledger.hold(agent_id, TRUST, name, held)


def trust_of(bank: Engine, agent_id: str, teller: object) -> float:
    """:meth:`AgentSocial.trust_of`."""
    holdings = bank.state.block(agent_id).holdings
    own = NO_VALUES if holdings is None else holdings.of(TRUST)
    return float(own.get(check_agent_id(teller), 1.0))


@final
class Trusting:
    """The trust of each agent in who told its memories, as factors of their scores."""

    def __init__(self, state: State) -> None:
        self._state = state

    def factors(self, block: AgentColumns) -> NDArray[np.float64] | None:
        """The factor of each resident memory of an agent; None if all are 1."""
        trusts = None if block.holdings is None else block.holdings.of(TRUST)
        if not trusts:
            return None
        told = origins_of(self._state, self._state.block(block.agent_id)).by_teller
        factors = np.ones(block.size)
        for teller, trust in trusts.items():
            if teller in told:
                factors[block.rows_of(told[teller])[0]] = trust
        return factors

    def of(self, memory: Memory) -> float:
        """The factor of one memory."""
        source, holdings = memory.source, self._state.block(memory.agent_id).holdings
        if source is None or holdings is None:
            return 1.0
        trust: float = holdings.of(TRUST).get(source.teller, 1.0)
        return trust


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
