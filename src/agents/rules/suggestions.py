"""What the status of a bank suggests: what to do, for which memories, and by which numbers."""

import itertools
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..memory.records import NEW_RELEVANCE
from ..memory.tiers import TIER_NAMES, Tier
from .spill import ANY_NUMBER, HotFact, HotLimits, choose_spill

Numbers = NDArray[np.int64]
Rows = NDArray[np.intp]

What = Literal["sync", "spill", "prune", "recall", "unpin", "duplicates", "stale", "boost"]

MOST_IDS = 10
"""A suggestion names at most this many memories; its reason says how many there are."""
_LEAST_ACCESSED = 10
"""From fewer retrieved memories, nobody can tell how far similarities lie apart."""
_MOST_SIMILARITY = 1.0
"""Similarities lie between 0 and 1, so no two are further apart."""


class Suggestion(NamedTuple):
    """Something that is worth doing."""

    what: What
    agent_id: str
    """Empty for ``sync``, which is about the whole bank."""
    reason: str
    """A sentence with the numbers behind it, and what to do."""
    ids: tuple[str, ...]
    """The memories that the suggestion is about, at most ten."""


class Crowd(NamedTuple):
    """The resident memories of many agents as columns: agent by agent, and oldest first."""

    owners: Rows
    """The agent of each memory, by its place in a list."""
    created: Numbers
    entered: Numbers
    """When each memory entered its tier."""
    accesses: Numbers
    last: Numbers
    """When a search last gave each memory; -1 for never."""
    tiers: Numbers
    scores: NDArray[np.float64]
    """The running mean of the scores of each memory's uses, 0.5 at first."""


def share(part: float, whole: int) -> float:
    """How much of a limit is used; 1 if anything is there and the limit is 0."""
    return round(part / whole, 6) if whole else float(part > 0)


# Hot


def spill_sequences(hot: Sequence[HotFact], limits: HotLimits, above: float) -> list[int]:
    """The memories that leave until at most the share ``above`` of each limit is used."""
    least = HotLimits(int(limits.tokens * above), int(limits.facts * above))
    return choose_spill(hot, least)


def spill(
    agent_id: str,
    hot: Sequence[HotFact],
    limits: HotLimits,
    leaving: int,
    ids: Sequence[str],
    *,
    auto_spill: bool,
) -> Suggestion:
    """Hot is nearly full, or more than full: ``leaving`` memories could go."""
    tokens = sum(fact.tokens for fact in hot)
    most = "" if limits.facts == ANY_NUMBER else f" of {limits.facts:,}"
    used = f"hot holds {tokens:,} of {limits.tokens:,} tokens and {len(hot):,}{most} memories"
    if tokens > limits.tokens or len(hot) > limits.facts:
        used += ", more than its limits"
        if not auto_spill:
            used += "; temperature.auto_spill is off, so nothing leaves by itself"
    if leaving:
        advice = f"spill {leaving:,}, and the least relevant go"
    else:
        advice = "all of it is pinned, so unpin some or raise temperature.hot_max_tokens"
    return Suggestion("spill", agent_id, f"{used}: {advice}", tuple(ids))


# Cold


def prune(agent_id: str, cold: int, most: int, excess: int, ids: Sequence[str]) -> Suggestion:
    """There are more cold memories than there may be, and ``excess`` of them can be archived."""
    advice = f"to prune would archive the {excess:,} that were used least"
    if not excess:
        advice = "all are critical, which pruning leaves alone; raise temperature.max_cold_items"
    reason = f"{cold:,} cold memories, {cold - most:,} more than temperature.max_cold_items"
    return Suggestion("prune", agent_id, f"{reason} ({most:,}): {advice}", tuple(ids[:MOST_IDS]))


def recall(agent_id: str, recalls: Sequence[int], ids: Sequence[str]) -> Suggestion:
    """Cold memories were recalled repeatedly; ``recalls`` says how often, most often first."""
    reason = (
        f"{_memories(len(recalls), 'cold')} recalled repeatedly, up to {max(recalls)} times: "
        f"promote {'it' if len(recalls) == 1 else 'them'}, and the agent has "
        f"{'it' if len(recalls) == 1 else 'them'} in front of it"
    )
    return Suggestion("recall", agent_id, reason, tuple(ids[:MOST_IDS]))


# Tiers


def unpin_rows(crowd: Crowd, agents: int, tick: int, after: int, below: float) -> Rows:
    """The memories that were pinned for ``after`` ticks and not relevant.

    The mean score of their uses is below ``below``; or no search gave them in that time, but it
    gave other memories.
    """
    used_at = np.full(agents, -1, np.int64)
    starts = _starts(crowd.owners)
    used_at[crowd.owners[starts]] = np.maximum.reduceat(crowd.last, starts) if len(starts) else -1
    rows: Rows = np.flatnonzero((crowd.tiers == Tier.PINNED) & (tick - crowd.entered >= after))
    last = crowd.last[rows]
    passed_over = (tick - last >= after) & (used_at[crowd.owners[rows]] > tick - after)
    return rows[(crowd.scores[rows] < below) | passed_over]


def unpin(agent_id: str, scores: NDArray[np.float64], after: int, ids: Sequence[str]) -> Suggestion:
    """Pinned memories take room in every context for nothing."""
    reason = (
        f"{_memories(len(scores), 'pinned')} not relevant to any search for {after:,} ticks or "
        f"more (lowest mean score {scores.min():.2f}): unpin to make room in every context"
    )
    return Suggestion("unpin", agent_id, reason, tuple(ids))


def stale_rows(crowd: Crowd, tick: int, after: int) -> Rows:
    """The critical memories that nobody retrieved, added or raised for ``after`` ticks."""
    touched = np.maximum(np.maximum(crowd.last, crowd.created), crowd.entered)
    rows: Rows = np.flatnonzero((crowd.tiers == Tier.CRITICAL) & (tick - touched >= after))
    return rows


def stale(agent_id: str, number: int, longest: int, ids: Sequence[str]) -> Suggestion:
    """Critical memories that nobody asks for."""
    reason = (
        f"{_memories(number, 'critical')} not retrieved for up to {longest:,} ticks: check that "
        f"{'it is' if number == 1 else 'they are'} still true, or choose a lower tier"
    )
    return Suggestion("stale", agent_id, reason, tuple(ids))


# Ranking


class Dominance(NamedTuple):
    """Two tiers between which similarity decides nothing."""

    owner: int
    """The agent for which it is clearest."""
    others: int
    """How many other agents there are for which it is so."""
    upper: Tier
    lower: Tier
    gap: float
    """How far the boosts of the tiers lie apart."""
    spread: float | None
    """How far the similarities seen lie apart; None if the gap exceeds any similarity."""


def dominances(crowd: Crowd, agents: int, boosts: Sequence[float]) -> list[Dominance]:
    """The pairs of tiers that decide the ranking alone. Boosts are the bank's, so each comes once.

    Two tiers are compared if an agent has memories in both, and in none with a boost in between;
    pinned is left out. The mean scores of retrieved memories tell what similarities searches saw.
    """
    own = crowd.tiers != Tier.PINNED
    counts = np.bincount(crowd.owners[own] * 5 + crowd.tiers[own], minlength=agents * 5)
    has = counts.reshape(agents, 5) > 0
    spreads = _spreads(crowd, agents)
    kinds: Numbers = has @ (1 << np.arange(5))  # agents that use the same tiers are alike
    found: dict[tuple[Tier, Tier], Dominance] = {}
    for kind in sorted(set(kinds.tolist())):
        used = [tier for tier in Tier if kind >> tier & 1]
        gap, upper, lower = _widest(sorted(used, key=lambda tier: -boosts[tier]), boosts)
        alike = np.flatnonzero((kinds == kind) & ((gap > _MOST_SIMILARITY) | (gap > spreads)))
        if not len(alike):
            continue
        owner = int(alike[np.argmin(spreads[alike])])
        spread = None if gap > _MOST_SIMILARITY else float(spreads[owner])
        here = Dominance(owner, len(alike) - 1, upper, lower, gap, spread)
        there = found.get((upper, lower))
        if there is not None:
            clearer = min(here, there, key=lambda each: (each.spread or 0.0, each.owner))
            here = clearer._replace(others=here.others + there.others + 1)
        found[upper, lower] = here
    return list(found.values())


def _widest(tiers: Sequence[Tier], boosts: Sequence[float]) -> tuple[float, Tier, Tier]:
    pairs = itertools.pairwise(tiers)
    gaps = [(round(boosts[upper] - boosts[lower], 9), upper, lower) for upper, lower in pairs]
    return max(gaps, key=lambda each: each[0], default=(0.0, Tier.NORMAL, Tier.NORMAL))


def _spreads(crowd: Crowd, agents: int) -> NDArray[np.float64]:
    """How far the similarities that searches saw lie apart, by agent; infinite if too few."""
    rows = np.flatnonzero((crowd.accesses > 0) & (crowd.tiers != Tier.PINNED))
    owners = crowd.owners[rows]
    # Relevance began at a half, and each retrieval halves that part: the rest are the scores.
    start = 0.5 ** np.minimum(crowd.accesses[rows], 60)
    scores = np.clip((crowd.scores[rows] - NEW_RELEVANCE * start) / (1.0 - start), 0.0, 1.0)
    spreads = np.full(agents, np.inf)
    starts = _starts(owners)
    if len(starts):
        apart = np.maximum.reduceat(scores, starts) - np.minimum.reduceat(scores, starts)
        spreads[owners[starts]] = apart
    spreads[np.bincount(owners, minlength=agents) < _LEAST_ACCESSED] = np.inf
    return spreads


def _starts(owners: Rows) -> Rows:
    """Where the rows of each agent that has some begin."""
    starts: Rows = np.flatnonzero(np.diff(owners, prepend=-1))
    return starts


def boost(agent_id: str, found: Dominance, ids: Sequence[str]) -> Suggestion:
    """Tiers decide the ranking alone; ``ids`` are memories of the upper tier."""
    upper, lower = TIER_NAMES[found.upper], TIER_NAMES[found.lower]
    if found.spread is None:
        why = "and similarities never lie more than 1 apart"
    else:
        why = f"and the similarities of what was retrieved lie only {found.spread:.2f} apart"
    noun = "agent" if found.others == 1 else "agents"
    also = f" (so it is for {found.others:,} other {noun})" if found.others else ""
    reason = (
        f"{upper} is boosted by {found.gap:.2f} more than {lower}, {why}, so any {upper} memory "
        f"comes before every {lower} one{also}: bring memory.tier_boosts closer together"
    )
    return Suggestion("boost", agent_id, reason, tuple(ids))


# Duplicates


def groups_of(near: NDArray[np.bool_]) -> list[list[int]]:
    """Groups of near-identical memories, by which is near to which; the largest group first.

    A memory joins the group of the oldest memory that it is near to. Only the part of ``near``
    below the diagonal counts.
    """
    below = np.tril(near, -1)
    joined = np.flatnonzero(below.any(axis=1))
    groups: dict[int, list[int]] = {}
    leaders: dict[int, int] = {}
    for row, first in zip(joined.tolist(), below[joined].argmax(axis=1).tolist(), strict=True):
        leader = leaders[row] = leaders.get(first, first)
        groups.setdefault(leader, [leader]).append(row)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0]))


def duplicates(
    agent_id: str, number: int, at: float, groups: int, looked_at: int, ids: Sequence[str]
) -> Suggestion:
    """``number`` memories say the same; they are one of ``groups`` groups."""
    among = "" if groups == 1 else f", one of {groups:,} such groups among the newest {looked_at:,}"
    reason = (
        f"{number:,} memories are near-identical (similarity {at:g} or more){among}: keep one and "
        f"delete the other{'' if number == 2 else 's'}"
    )
    return Suggestion("duplicates", agent_id, reason, tuple(ids[:MOST_IDS]))


def _memories(number: int, which: str) -> str:
    noun = "memory was" if number == 1 else "memories were"
    return f"{number:,} {which} {noun}"
