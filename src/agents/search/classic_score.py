"""The score that ``retrieval.score`` names, where it is another than the match with the query."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..config.settings import Settings
from ..memory.metadata import KeptMetadata
from ..memory.sources import given_importance
from ..rules.classics import Judged, Lives, by_age, forgetting, generative
from ..storage.columns.agent_columns import AgentColumns
from ..storage.record import Record

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]


class ClassicScore:
    """Scores memories by what became of them, and by how well they match."""

    def __init__(self, settings: Settings) -> None:
        self._rule = settings.retrieval.score
        self._weights = settings.retrieval.generative
        self._ticks_per_day = settings.clock.ticks_per_day
        self.by_tier = np.array(settings.retrieval.tier_importance, np.float64)

    def judge(self, relevance: Floats, lives: Lives, seen: Truths | None) -> Judged:
        """The scores of memories; the search sees those of ``seen``, or all."""
        if self._rule == "generative":
            return generative(relevance, lives, self._weights, self._ticks_per_day, seen)
        if self._rule == "forgetting":
            return forgetting(relevance, lives, self._ticks_per_day)
        return by_age(lives)

    def lives(self, block: AgentColumns, tick: int) -> Lives:
        """What became of an agent's resident memories until a tick."""
        used = np.maximum(block.column("last"), block.column("created"))
        return Lives(
            (tick - used).astype(np.float64),
            block.column("accesses").astype(np.float64),
            importances(block, self.by_tier),
            block.column("sequence").astype(np.float64),
        )


def importances(block: AgentColumns, by_tier: Floats) -> Floats:
    """The importance of each resident memory: what it was given, or else that of its tier."""
    result: Floats = by_tier[block.tiers]
    if not block.table.all_plain:
        _take_given(result, block.metadata())
    return result


def lives_of_shelved(records: Sequence[Record], by_tier: Floats, tick: int) -> Lives:
    """What became of memories that are not resident."""
    importance: Floats = by_tier[[record.tier for record in records]]
    _take_given(importance, [record.metadata for record in records])
    used = [max(record.last_access_tick, record.created_tick) for record in records]
    recalls = [record.access_count for record in records]
    numbers = [record.sequence for record in records]
    return Lives(
        tick - np.array(used, np.float64),
        np.array(recalls, np.float64),
        importance,
        np.array(numbers, np.float64),
    )


def _take_given(result: Floats, metadata: Sequence[KeptMetadata | None]) -> None:
    for place, own in enumerate(metadata):
        if own is not None and (given := given_importance(own)) is not None:
            result[place] = given
