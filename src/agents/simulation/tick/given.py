"""What searches gave the agents of a tick: the hits, and their numbers as columns for the log."""

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...bank.memory_bank import MemoryBank
from ...memory.records import Hits
from ...memory.requests import check_searches
from ...search.request import SearchRequest
from ...storage.state.state import Accesses

_MEMORY, _SCORE = itemgetter(0), itemgetter(1)
_TIER, _SEQUENCE, _TEMPERATURE = itemgetter(3), itemgetter(6), itemgetter(10)


class Given(NamedTuple):
    """The memories that searches gave, search after search, as hits and as columns."""

    hits: list[Hits]
    sequences: NDArray[np.int64]
    scores: NDArray[np.float64]
    tiers: NDArray[np.int8]
    temperatures: NDArray[np.int8]


def given(bank: MemoryBank, requests: Iterable[tuple[str, str]]) -> Given:
    """What :meth:`MemoryBank.context_many` gives for these pairs of an agent and a query."""
    engine = bank.engine
    with engine.using():
        agents, queries = check_searches(requests)
        limits = engine.limits_of(None, None)
        found = engine.found(SearchRequest(agents, queries, *limits, hot=engine.hot_limits))
        columns = _in_order(found.accesses, len(agents))
        if columns is None:
            return given_hits(found.hits)
        sequences, scores, rows = columns
        table = engine.state.table
        return Given(
            found.hits, sequences, scores, table.tiers.take(rows), table.temperatures.take(rows)
        )


def _in_order(
    accesses: Sequence[Accesses], searches: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[Any]] | None:
    """The columns of all searches in their order; None where the searches left no columns."""
    members = list(chain.from_iterable(each.members for each in accesses))
    rows = [each.rows for each in accesses if each.rows is not None]
    if len(members) < searches or len(rows) < len(accesses) or not accesses:
        return None
    counts = np.concatenate([each.counts for each in accesses])
    order = np.argsort(members)
    starts = (counts.cumsum() - counts)[order]
    counts = counts[order]
    places = np.arange(counts.sum()) + (starts - (counts.cumsum() - counts)).repeat(counts)
    return (
        np.concatenate([each.sequences for each in accesses])[places],
        np.concatenate([each.scores for each in accesses])[places],
        np.concatenate(rows)[places],
    )


def given_hits(found: list[Hits]) -> Given:
    """The same hits with their columns, one hit at a time."""
    hits = list(chain.from_iterable(found))
    memories = list(map(_MEMORY, hits))
    return Given(
        found,
        np.array(list(map(_SEQUENCE, memories)), np.int64),
        np.array(list(map(_SCORE, hits)), np.float64),
        np.array(list(map(_TIER, memories)), np.int8),
        np.array(list(map(_TEMPERATURE, memories)), np.int8),
    )
