"""Which of the memories that leave the columns together are packed."""

from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from ...memory.records import NEVER
from ...memory.temperature import Temperature
from ...memory.tiers import Tier
from ..resident.agent_columns import AgentColumns
from ..shelf.pack import WIDEST, Pack

__all__ = ["pack_up"]


def pack_up(
    block: AgentColumns,
    rows: Sequence[int],
    those_not: Callable[[str, Sequence[int]], Collection[int]],
) -> tuple[list[Pack], list[int]]:
    """Memories become cold and leave in packs, as far as they can; the rows of the others then.

    ``those_not`` says of an agent's sequence numbers which must not.
    """
    if len(rows) < Pack.FEWEST:
        return [], list(rows)
    rows = sorted(rows)
    leaving = block.leaving(rows, int(Temperature.COLD))
    sequences = leaving.numbers[:, 0].tolist()
    long = [
        sequence
        for sequence, content, own in zip(
            sequences, leaving.contents, leaving.metadata, strict=True
        )
        if len(content) > Pack.LONGEST or (own is not None and len(own.json) > Pack.LONGEST)
    ]
    but = those_not(block.agent_id, sequences)
    packed, rest = _chunks(leaving.numbers, {*but, *long, *block.recalls})
    packs = [Pack.of(block.agent_id, leaving.only(part)) for part in packed]
    if packs:
        block.drop([rows[place] for part in packed for place in part.tolist()])
    return packs, block.rows_of(leaving.numbers[rest, 0].tolist())[0]


def _chunks(
    numbers: NDArray[np.int64], but: Collection[int]
) -> tuple[list[NDArray[np.intp]], NDArray[np.intp]]:
    """Which of these memories are packed together, and which are not; by place.

    ``but`` are the sequence numbers of some that can't be.
    """
    is_plain = (numbers[:, 1] > int(Tier.CRITICAL)) & (numbers[:, 7] == NEVER)
    if but:
        is_plain &= ~np.isin(numbers[:, 0], np.fromiter(but, np.int64, len(but)))
    places = np.flatnonzero(is_plain)
    if len(places) < Pack.FEWEST:
        return [], np.arange(len(numbers))
    packed = [
        part
        for part in np.array_split(places, -(-len(places) // Pack.MOST))
        if numbers[part[-1], 0] - numbers[part[0], 0] < WIDEST
    ]
    rest = np.ones(len(numbers), bool)
    rest[np.concatenate([*packed, np.empty(0, np.intp)])] = False
    return packed, np.flatnonzero(rest)
