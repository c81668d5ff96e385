"""Why a search chose a memory, or dropped it."""

import numpy as np

from ..memory.context import TokenCounter, fit
from ..memory.records import Explanation, Hit
from ..memory.tiers import Tier
from ..storage.resident.agent_columns import AgentColumns
from .hybrid_score import HybridScore
from .ranker import Ranker, similarities
from .scope import Scope, pinned_in

__all__ = ["explain"]


def explain(
    ranker: Ranker,
    block: AgentColumns,
    scope: Scope | None,
    asked: HybridScore | None,
    limit: int,
    budget: int | None,
    count_tokens: TokenCounter,
) -> list[Explanation]:
    """What a search makes of each memory that it sees: the result, then the rest."""
    wanted = min(max(0, limit - pinned_in(block, scope)), block.size)
    parts: list[tuple[float, float, float]] | None = None
    if asked is None or not block.size:
        pinned, candidates = ranker.newest(block, len(block), scope)
        outside: list[Hit] = []
    else:
        pinned, candidates, outside = ranker.all_similar(block, asked, limit, scope)
        own = asked.parts(0, similarities(block.vectors(), asked.vectors[0]))
        words = np.zeros(block.size) if own.keyword is None else own.keyword
        columns = (own.vector.tolist(), words.tolist(), own.fused.tolist())
        parts = list(zip(*columns, strict=True))

    def explained(hit: Hit, place: int | None, reason: str) -> Explanation:
        row = block.row_of(hit.memory.sequence)
        if parts is None or row is None:
            return Explanation(*hit, place, reason)
        return Explanation(*hit, place, reason, *parts[row], hit.score - parts[row][2])

    kept, _, _ = fit(pinned, candidates[:wanted], budget, count_tokens)
    shown = {hit.memory.sequence for hit in kept}
    rows = [
        explained(hit, place, "pinned" if hit.memory.tier is Tier.PINNED else "chosen")
        for place, hit in enumerate(kept, start=1)
    ]
    rows += [
        explained(hit, None, "over the token budget")
        for hit in (*pinned, *candidates[:wanted])
        if hit.memory.sequence not in shown
    ]
    rows += [explained(hit, None, "below the cut") for hit in candidates[wanted:]]
    reason = f"outside the {wanted * ranker.multiplier} candidates"
    rows += [explained(hit, None, reason) for hit in outside]
    return rows
