"""What is searched for, and what a search sees of an agent's memories."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..memory.context import TokenCounter, cost
from ..memory.filters import ANY, Filter
from ..memory.records import NO_METADATA, PLAIN, Traits
from ..memory.tiers import Temperature, Tier
from ..rules.ranking import EXCLUDED, Floats, probabilities
from ..rules.temperature import HotLimits
from ..storage.columns.agent_columns import AgentColumns


class SearchRequest(NamedTuple):
    """Searches of agents in their own memories; a single search is a batch of one."""

    agents: Sequence[str]
    queries: Sequence[str]
    """The query of each agent; a blank query asks for the newest memories."""
    limit: int
    """How many memories a search gives; pinned memories come even beyond it."""
    budget: int | None = None
    """How many tokens a search gives."""
    only: Filter = ANY
    """Which memories may be found."""
    hot: HotLimits | None = None
    """With limits, the hot memories come after the pinned ones, and only warm ones are ranked.

    If ``only`` names a session, they are those of its memories."""
    with_cold: bool = False
    """Whether cold memories take part."""
    shelved: Sequence[int] | None = None
    """With ``with_cold``, the sequence numbers of the memories beyond the resident ones that take
    part, archived ones too; None: all cold memories take part."""
    exact: bool = False
    """Whether cold memories are searched in the journal alone, and not in mem0's store."""
    bare: bool = False
    """Whether rows will do, and no hits are made: of one agent alone, without cold memories and
    without a budget."""
    pinned_first: bool = True
    """Whether the pinned memories come first; if not, they are ranked like all memories."""


class Scope(NamedTuple):
    """The part of an agent's memories that a search sees, if it does not see all."""

    hidden: NDArray[np.bool_] | None
    """Which memories the search does not see."""
    front: list[int]
    """The rows of the memories that come first, whatever their score: pinned, then hot."""
    pinned: int
    """How many memories of ``front`` are pinned."""
    min_score: float = 0.0
    min_probability: float | None = None

    def leave_out(self, scores: Floats, evidence: Floats, chances: Floats | None) -> None:
        """Exclude what the search does not see, and what matches too little to be given."""
        if self.hidden is not None:
            scores[self.hidden] = EXCLUDED
        if self.min_score > 0.0:
            scores[evidence < self.min_score] = EXCLUDED
        if chances is not None and self.min_probability is not None:
            scores[chances < self.min_probability] = EXCLUDED

    def chances(self, scores: Floats) -> Floats | None:
        """How likely each memory is part of the answer, by all scores; None if nobody asks."""
        if self.min_probability is None:
            return None
        return probabilities(scores, None if self.hidden is None else ~self.hidden)


def pinned_in(block: AgentColumns, scope: Scope | None) -> int:
    """How many pinned memories come first."""
    return len(block.pinned) if scope is None else scope.pinned


def scope_of(
    block: AgentColumns, tick: int, only: Filter, hot: HotLimits | None, count: TokenCounter
) -> Scope | None:
    """What a search sees of an agent's memories; None if it sees all."""
    expiring = block.next_expiry <= tick
    with_hot = hot is not None and bool(block.hot)
    if only is ANY and not expiring and not with_hot:
        return None
    least = only.min_score, only.min_probability
    if not expiring and not with_hot and only._replace(min_score=0.0, min_probability=None) == ANY:
        return Scope(None, list(block.pinned), len(block.pinned), *least)
    hidden = np.zeros(block.size, bool)
    if expiring:
        hidden |= (block.column("expires") <= tick) & (block.tiers != Tier.PINNED)
    if only is not ANY:
        hidden |= ~_allowed(block, only)
    front = [row for row in block.pinned if not hidden[row]]
    pinned = len(front)
    if hot is not None and with_hot:
        front += _hot_rows(block, hot, front, hidden, count)
        hidden |= block.temperatures == Temperature.HOT
    return Scope(hidden, front, pinned, *least)


def _hot_rows(
    block: AgentColumns,
    limits: HotLimits,
    first: Sequence[int],
    hidden: NDArray[np.bool_],
    count: TokenCounter,
) -> list[int]:
    """The hot memories that are not pinned, most recently accessed first.

    With the pinned memories that come ``first``, they are within limits. A memory that doesn't fit
    is skipped, and a smaller one may still go in.
    """
    pinned = block.memories(first)
    tokens = limits.tokens - sum(cost(memory, count) for memory in pinned)
    facts = limits.facts - len(pinned)
    last, created = block.column("last"), block.column("created")
    hot = np.array(block.hot, np.intp)
    rows = sorted(
        hot[~hidden[hot]].tolist(),
        key=lambda row: (max(int(last[row]), int(created[row])), row),
        reverse=True,
    )
    chosen = []
    for row, memory in zip(rows, block.memories(rows), strict=True):
        needed = cost(memory, count)
        if facts > 0 and needed <= tokens:
            chosen.append(row)
            tokens -= needed
            facts -= 1
    return chosen


def _allowed(block: AgentColumns, only: Filter) -> NDArray[np.bool_]:
    """Which memories pass a filter, whatever their score."""
    allowed = np.ones(block.size, bool)
    if only.tiers is not None:
        allowed &= np.isin(block.tiers, list(only.tiers))
    if only.temperatures is not None:
        allowed &= np.isin(block.temperatures, list(only.temperatures))
    if only.since_tick:
        allowed &= block.column("created") >= only.since_tick
    if only.kinds is not None or only.tags is not None:
        allowed &= np.array([_is_of(kinds or PLAIN, only) for kinds in block.traits()], bool)
    if only.session is not None:
        allowed &= block.sessions().members(only.session)
    if only.metadata is not None:
        matches = only.metadata.matches
        allowed &= np.array([matches(own or NO_METADATA) for own in block.metadata()], bool)
    return allowed


def _is_of(kinds: Traits, only: Filter) -> bool:
    return (only.kinds is None or kinds.kind in only.kinds) and (
        only.tags is None or not only.tags.isdisjoint(kinds.tags)
    )
