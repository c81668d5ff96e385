"""What is searched for."""

from collections.abc import Sequence
from typing import NamedTuple

from ..memory.filters import ANY, Filter
from ..rules.spill import HotLimits


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
    """With limits, the hot memories come after the pinned ones, and only warm ones are ranked."""
    with_cold: bool = False
    """Whether cold memories take part."""
    shelved: Sequence[int] | None = None
    """With ``with_cold``, the sequence numbers of the memories beyond the resident ones that take
    part, archived ones too; None: all cold memories take part."""
    exact: bool = False
    """Whether cold memories are searched in the journal alone, and not in mem0's store."""
    pinned_first: bool = True
    """Whether the pinned memories come first; if not, they are ranked like all memories."""
