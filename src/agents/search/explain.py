"""Why a search gave a memory, or did not.

What was given comes from the search itself; this module only finds the reasons.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..memory.records import Explanation, Hit, Memory, memory_id
from ..memory.sources import SUPERSEDED
from ..memory.tiers import Retention, Temperature, Tier
from ..rules.ranking import probabilities
from ..storage.columns.agent_columns import AgentColumns
from ..storage.state.state import State
from .request import SearchRequest
from .score import ReadQueries, Weigher, similarities

_DIGITS = 9
OVER_BUDGET, BELOW = "over the token budget", "below the cut"
_HIDDEN = ("over the limits of hot", "filtered", "expired", "cold", "archived")
"""The reasons of memories that the search did not rank."""


class Considered(NamedTuple):
    """What a search looked at before its cut."""

    near: list[Hit]
    """The candidates, best first; for a blank query, all that the search sees."""
    far: list[Hit]
    """The other memories that the search saw and scored."""
    block: AgentColumns
    """The memories among which the search looked."""
    wanted: int
    """How many candidates the search takes, without the memories that come first."""
    multiplier: int
    queries: ReadQueries | None
    """The query; None if it is blank."""
    hidden: NDArray[np.bool_] | None = None
    """The memories among these that the search does not see."""


def explained(
    request: SearchRequest,
    given: Iterable[Hit],
    unlimited: Iterable[Hit],
    seen: Considered,
    memories: Iterable[Memory],
    unscored: Callable[[Memory], Hit],
    tick: int,
    weigher: Weigher | None = None,
) -> list[Explanation]:
    """What became of each memory: the given ones in their order, then the rest.

    ``unlimited`` is what the search gives without a token budget, ``memories`` are all of the
    agent. ``unscored`` makes the hit of a memory that the search did not score.
    """
    memories = list(memories)
    heirs = _successors(memories, seen.block)
    parts, chances = _parts(seen.block, seen.queries, seen.hidden)
    rows: dict[int, Explanation] = {}
    trust_in = _full_trust if weigher is None else weigher.of
    note = "" if seen.queries is None else seen.queries.told(0)

    def tell(hits: Iterable[Hit], reason: Callable[[Memory], str]) -> None:
        for hit in hits:
            number, why = hit.memory.sequence, reason(hit.memory)
            if number not in rows:
                place = len(rows) + 1 if why in _GIVEN else None
                own, trust = parts.get(number), trust_in(hit.memory)
                rest: tuple[Any, ...] = ()
                reading = 0.0
                if own is not None:
                    score = hit.score if trust == 1.0 else own[3]
                    reading = own[4]
                    context = score - own[2]
                    if reading:  # sums of floats: a difference of nothing is not -1e-17
                        context = round(context - reading, _DIGITS) + 0.0
                    rest = (*own[:3], context, *own[5:])
                told = Explanation(*hit[:4], place, why, *rest)
                chance = chances.get(number)
                rows[number] = told._replace(
                    trust=trust,
                    match=hit.match,
                    relevance_probability=chance,
                    note=note,
                    reading=reading,
                )

    def hidden() -> Iterator[tuple[str, Hit]]:
        for memory in memories:
            if memory.sequence not in rows:
                own = parts.get(memory.sequence)
                hit = unscored(memory)
                if own is not None:
                    score = own[3] * trust_in(memory)
                    hit = hit._replace(score=score, boosted_score=score + hit.boost)
                yield _why_hidden(memory, request, tick, took_part=own is not None), hit

    is_in_context = request.hot is not None
    tell(given, lambda memory: _part(memory, is_in_context, request.pinned_first))
    tell(unlimited, lambda _: OVER_BUDGET)
    tell(seen.near, lambda _: BELOW)
    outside = f"outside the {seen.wanted * seen.multiplier} candidates"
    tell(seen.far, lambda _: outside)
    unseen = list(hidden())
    far = [hit for why, hit in unseen if not why]  # cold memories that the store did not name
    tell(far, lambda _: outside)
    for reason in _HIDDEN:
        hits = [hit for why, hit in unseen if why == reason]
        if reason == "archived":
            tell(hits, lambda memory: heirs.get(memory.sequence, "archived"))
        else:
            tell(hits, lambda _, why=reason: why)  # type: ignore[misc]
    return list(rows.values())


def _full_trust(_: Memory) -> float:
    return 1.0


def _successors(memories: Iterable[Memory], block: AgentColumns) -> dict[int, str]:
    """For each memory of which a later version is stored, what says so, by sequence number."""
    later: dict[str, Memory] = {}
    told = {}
    for memory in sorted(memories, key=lambda memory: -memory.sequence):
        key = memory.key or memory.id
        if key in later:
            told[memory.sequence] = f"superseded by {later[key].id}"
        later[key] = memory
    if block.holdings is not None:
        for former, heir in block.holdings.of(SUPERSEDED).items():
            told[int(former)] = f"superseded by {memory_id(block.prefix, heir)}"
    return told


def everything(state: State, agent_id: str) -> list[Memory]:
    """All memories of an agent that are not deleted, newest first."""
    block = state.block(agent_id)
    shelved = [
        *state.shelf.of_agent(agent_id, Retention.ACTIVE, Temperature.COLD),
        *state.shelf.of_agent(agent_id, Retention.ARCHIVED),
    ]
    memories = block.memories(range(block.size))
    memories += [each.memory(agent_id, block.prefix) for each in shelved]
    return sorted(memories, key=lambda memory: -memory.sequence)


_GIVEN = ("pinned", "hot", "chosen")


def _part(memory: Memory, is_in_context: bool, pinned_first: bool) -> str:
    """Why a memory was given. Only in a context do the hot memories come before the ranked ones."""
    if memory.tier is Tier.PINNED and pinned_first:
        return "pinned"
    return "hot" if is_in_context and memory.temperature is Temperature.HOT else "chosen"


def _why_hidden(memory: Memory, request: SearchRequest, tick: int, *, took_part: bool) -> str:
    """Why a search did not rank a memory; empty if it saw the memory."""
    if memory.retention is Retention.ARCHIVED:
        return "archived"
    if memory.is_expired(tick):
        return "expired"
    if not request.only.allows(memory):
        return "filtered"
    if memory.temperature is Temperature.COLD and not took_part:
        return "" if request.with_cold else "cold"
    if request.hot is not None and memory.temperature is Temperature.HOT:
        return "over the limits of hot"
    return "filtered"  # its score is below min_score


def _parts(
    block: AgentColumns, queries: ReadQueries | None, hidden: NDArray[np.bool_] | None
) -> tuple[Mapping[int, tuple[float, ...]], Mapping[int, float]]:
    """For each memory that took part: similarity, match of words, both together, the score, and
    what reading it closely did.

    With a classic score: recency and importance, too. And for each memory that the search sees, how
    likely it is part of the answer.
    """
    if queries is None or not block.size:
        return {}, {}
    parts = queries.parts(0, similarities(block.vectors(), queries.vectors[0]), hidden=hidden)
    words = np.zeros(block.size) if parts.keyword is None else parts.keyword
    reading = np.zeros(block.size) if parts.reading is None else parts.reading
    more = [] if parts.judged is None else [parts.judged.recency, parts.judged.importance]
    found = (parts.vector, words, parts.fused, parts.score, reading, *more)
    columns = [column.tolist() for column in found]
    numbers = block.column("sequence")
    seen = np.ones(block.size, bool) if hidden is None else ~hidden
    chances = dict(
        zip(numbers[seen].tolist(), probabilities(parts.score, seen)[seen].tolist(), strict=True)
    )
    return dict(zip(numbers.tolist(), zip(*columns, strict=True), strict=True)), chances
