"""The facts of an agent's memories that rules decide by."""

from collections.abc import Sequence

import numpy as np

from ..memory.records import PLAIN
from ..memory.tiers import Temperature
from ..rules.compaction import Facts
from ..storage.columns.agent_columns import AgentColumns
from ..storage.record import ColdFact


def facts_of(block: AgentColumns, cold: Sequence[ColdFact], tick: int) -> tuple[Facts, list[int]]:
    """The facts of the resident memories and of these cold ones, and their sequence numbers."""
    sequences: list[int] = block.column("sequence").tolist()
    created, last = block.column("created"), block.column("last")
    accesses, kinds = block.column("accesses"), block.traits()
    tiers, temperatures = block.tiers, block.temperatures
    if cold:
        sequences += [each.sequence for each in cold]
        order = np.argsort(sequences, kind="stable")
        sequences = [sequences[place] for place in order.tolist()]
        created = np.append(created, [each.created_tick for each in cold])[order]
        last = np.append(last, [each.last_access_tick for each in cold])[order]
        accesses = np.append(accesses, [each.access_count for each in cold])[order]
        kinds = [*kinds, *(each.traits for each in cold)]
        kinds = [kinds[place] for place in order.tolist()]
        tiers = np.append(tiers, np.array([each.tier for each in cold], np.int8))[order]
        more = np.full(len(cold), Temperature.COLD, np.int8)
        temperatures = np.append(temperatures, more)[order]
    facts = Facts(
        tiers,
        temperatures,
        tick - created,
        tick - np.maximum(last, created),
        accesses,
        [each or PLAIN for each in kinds],
    )
    return facts, sequences
