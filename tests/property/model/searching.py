"""How the model searches one agent's memories: brute force, a sort, a cut, and a token budget."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from .memories import COLD, HOT, PINNED, WARM, Kept, Rules
from .reading import line, similarity


@dataclass(frozen=True)
class Found:
    """A search's hit, and for an explanation what became of it."""

    memory: Kept
    score: float
    boost: float
    boosted_score: float
    rank: int | None = None
    reason: str = ""


class Only(NamedTuple):
    """What a search may give."""

    tiers: frozenset[int] | None = None
    temperatures: frozenset[int] = frozenset({HOT, WARM})
    kinds: frozenset[str] | None = None
    tags: frozenset[str] | None = None
    since: int = 0
    min_score: float = 0.0
    session: str | None = None

    def allows(self, memory: Kept) -> bool:
        return (
            (self.tiers is None or memory.tier in self.tiers)
            and memory.temperature in self.temperatures
            and (self.kinds is None or memory.kind in self.kinds)
            and (self.tags is None or bool(self.tags & set(memory.tags)))
            and memory.created_tick >= self.since
            and self.session in (None, memory.session)
        )


USUAL = Only()
EVERYTHING = Only(temperatures=frozenset({HOT, WARM, COLD}))

Searched = tuple[list[Found], list[Kept]]
"""The hits, and the pinned memories that the token budget left out."""


@dataclass(frozen=True)
class AgentSearch:
    """Searches what one agent sees, and changes nothing: to count the use is not its affair."""

    rules: Rules
    embed: Callable[[str], Sequence[float]]
    pinned: list[Kept]
    """The oldest pin first."""
    others: list[Kept]
    session: str | None = None
    """The session that is alone in front."""

    def explain(
        self, query: str, limit: int | None, tokens: int | None, only: Only = USUAL
    ) -> list[Found]:
        """Pinned, then the best of the nearest candidates, then all that was dropped."""
        pinned = self._found([m for m in self.pinned if only.allows(m)], query)
        others = [m for m in self.others if only.allows(m)]
        wanted = self._wanted(limit, len(pinned))
        chosen, below, outside = self._best(others, query, wanted, only.min_score)
        kept, dropped = fit(pinned, chosen, self._budget(tokens))
        reach = f"outside the {wanted * self.rules.multiplier} candidates"
        return [
            *(
                replace(f, rank=rank, reason="pinned" if f.memory.tier == PINNED else "chosen")
                for rank, f in enumerate(kept, 1)
            ),
            *(replace(f, reason="over the token budget") for f in dropped),
            *(replace(f, reason="below the cut") for f in below),
            *(replace(f, reason=reach) for f in outside),
        ]

    def find(
        self, query: str, limit: int | None, tokens: int | None, only: Only = USUAL
    ) -> Searched:
        rows = self.explain(query, limit, tokens, only)
        hits = [replace(row, rank=None, reason="") for row in rows if row.rank is not None]
        return hits, _left_out([m for m in self.pinned if only.allows(m)], hits)

    def context(self, query: str, limit: int | None, tokens: int | None) -> Searched:
        """Pinned, then hot within its limits, last used first, then the best of the warm."""
        warm = [memory for memory in self.others if memory.temperature == WARM]
        chosen, _, _ = self._best(warm, query, self._wanted(limit, len(self.pinned)))
        rest = self._found(self.front()[len(self.pinned) :], query) + chosen
        kept, _ = fit(self._found(self.pinned, query), rest, self._budget(tokens))
        return kept, _left_out(self.pinned, kept)

    def front(self) -> list[Kept]:
        """The pinned ones, then the hot ones, last used first, as far as they are within limits."""
        front = list(self.pinned)
        hot = [memory for memory in self.others if memory.temperature == HOT]
        most, facts = self.rules.hot_limits(self.session)
        tokens = most - sum(memory.cost for memory in front)
        for memory in sorted(hot, key=lambda m: (m.idle_since, m.sequence), reverse=True):
            if len(front) < facts and memory.cost <= tokens:
                front.append(memory)
                tokens -= memory.cost
        return front

    def _found(self, memories: Sequence[Kept], query: str) -> list[Found]:
        found = []
        for memory in memories:
            boost, score = self.rules.boosts[memory.tier], 0.0
            if query.strip():
                score = similarity(self.embed(query), self.embed(memory.content))
            found.append(Found(copy.copy(memory), score, boost, score + boost))
        return found

    def _best(
        self, memories: Sequence[Kept], query: str, wanted: int, least: float = 0.0
    ) -> tuple[list[Found], list[Found], list[Found]]:
        """The best, those below the cut, and those that are not candidates."""
        rest = self._found(memories, query)
        if not query.strip():
            rest.sort(key=lambda f: (f.memory.tier, -f.memory.sequence))
            return rest[:wanted], rest[wanted:], []
        rest = [found for found in rest if found.score >= least]
        rest.sort(key=lambda f: (-f.score, -f.memory.sequence))
        reach = wanted * self.rules.multiplier
        near = sorted(rest[:reach], key=lambda f: (-f.boosted_score, -f.score, -f.memory.sequence))
        return near[:wanted], near[wanted:], rest[reach:]

    def _wanted(self, limit: int | None, pinned: int) -> int:
        return max(0, (self.rules.default_limit if limit is None else limit) - pinned)

    def _budget(self, tokens: int | None) -> int | None:
        return self.rules.context_tokens if tokens is None else tokens


def _left_out(pinned: Sequence[Kept], hits: Sequence[Found]) -> list[Kept]:
    shown = {hit.memory.sequence for hit in hits}
    return [copy.copy(memory) for memory in pinned if memory.sequence not in shown]


def fit(
    pinned: list[Found], rest: list[Found], budget: int | None
) -> tuple[list[Found], list[Found]]:
    """What a token budget lets pass, the newest pins before the oldest, and what it does not."""
    if budget is None:
        return pinned + rest, []
    kept = list(pinned)
    while sum(found.memory.cost for found in kept) > budget:
        kept.pop(0)
    dropped = pinned[: len(pinned) - len(kept)]
    for found in rest:
        fits = sum(each.memory.cost for each in [*kept, found]) <= budget
        (kept if fits else dropped).append(found)
    return kept, dropped


def rendered(memories: Sequence[Kept], left_out: int = 0) -> str:
    """The lines of a prompt."""
    lines = [line(memory.tier, memory.content) for memory in memories]
    if left_out:
        noun = "memory" if left_out == 1 else "memories"
        lines.append(f"({left_out} older pinned {noun} left out: over the token budget)")
    return "\n".join(lines) or "(No relevant memories)"
