"""Which memories a call of mem0's is about: filters and ids as searches of the bank's agents."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, final

from ..bank.memory_bank import MemoryBank
from ..memory.filters import Filter, parse_filter
from ..memory.records import Explanation, Hit, Memory, Metadata
from ..memory.tiers import Temperature, Tier
from ..search.request import SearchRequest
from ..storage.columns.agent_columns import Outline
from ..storage.state.state import Accesses
from .filters import COLD, Join, Traits, seen
from .payloads import CREATED, id_of, payload, whole
from .scopes import Part, Scopes


@final
class Finder:
    """Finds memories of a bank by mem0's ids and filters. The caller holds the bank's turn."""

    def __init__(self, bank: MemoryBank, scopes: Scopes) -> None:
        self._bank = bank
        self._scopes = scopes
        self._traits: dict[str, tuple[Sequence[Metadata | None], Traits]] = {}
        """By agent, the metadata of its memories, and what is known of them."""

    def all(self, ids: dict[str, str], wanted: Join, today: str | None) -> list[Memory]:
        """All memories with these ids that pass, oldest first."""
        passing = []
        for part in self._scopes.parts(ids):
            only, test = self._filter(part, wanted, 0.0, today)
            for agent in part.agents:
                passing += [
                    memory
                    for memory in self._bank.agent(agent).all()
                    if only.allows(memory) and (test is None or self._passes(memory, test))
                ]
        return sorted(passing, key=lambda memory: (_created(memory), id_of(memory)))

    def best(
        self,
        query: str,
        limit: int,
        ids: dict[str, str],
        wanted: Join,
        least: float,
        today: str | None,
    ) -> list[Hit]:
        """The memories with these ids that pass and match the query best; pinned ones first."""
        hits: list[Hit] = []
        parts = list(self._scopes.parts(ids)) if limit else []
        for part in parts:
            only, test = self._filter(part, wanted, least, today)
            if test is None and least:
                hits += self._hits(part.agents, query, limit, only)
            else:
                hits += self._tested(part.agents, query, limit, only, test)
        if len(parts) == 1 and len(parts[0].agents) == 1:  # in this order already
            return hits[:limit]
        return sorted(hits, key=_place)[:limit]

    def scored(
        self,
        query: str,
        limit: int,
        ids: dict[str, str],
        wanted: Join,
        least: float,
        today: str | None,
    ) -> list[tuple[Memory | Outline, float]]:
        """The memories of :meth:`best` with their scores.

        Those of one agent, where its columns decide, are read from the columns alone.
        """
        parts = list(self._scopes.parts(ids)) if limit and least else []
        if len(parts) == 1 and len(parts[0].agents) == 1 and not self._has_cold():
            (part,) = parts
            (agent,) = part.agents
            only, test = self._filter(part, wanted, least, today)
            if test is None:
                most = min(limit, self._most(agent))
                request = SearchRequest([agent], [query], most, None, only, bare=True)
                (rows,) = self._bank.engine.found(request).accesses
                if rows.rows is None:
                    return []
                block, numbers = self._bank.engine.state.block(agent), rows.sequences.tolist()
                outlines = block.outlines(rows.rows[:limit], numbers)
                return list(zip(outlines, rows.scores.tolist(), strict=False))
        hits = self.best(query, limit, ids, wanted, least, today)
        return [(hit.memory, hit.score) for hit in hits]

    def details(self, query: str, hits: Sequence[Hit], least: float) -> Iterator[dict[str, Any]]:
        """How each hit was scored, under mem0's names; the parts of a cold one are not known."""
        scores: dict[str, Explanation] = {}
        for agent in dict.fromkeys(hit.memory.agent_id for hit in hits):
            explanations = self._bank.agent(agent).explain(query, 0)
            scores |= {explained.memory.id: explained for explained in explanations}
        for hit in hits:
            score, is_cold = scores[hit.memory.id], hit.memory.temperature is Temperature.COLD
            yield {
                "semantic_score": None if is_cold else score.vector,
                "bm25_score": None if is_cold else score.keyword,
                "entity_boost": 0.0,
                "raw_score": hit.boosted_score,
                "max_possible_score": 1.0,
                "final_score": hit.score,
                "threshold": least,
                "tier_boost": hit.boost,
            }

    def _hits(self, agents: list[str], query: str, limit: int, only: Filter) -> Iterator[Hit]:
        queries, most = [query] * len(agents), min(limit, max(map(self._most, agents)))
        request = SearchRequest(agents, queries, most, None, only, with_cold=self._has_cold())
        for hits in self._bank.engine.find(request):
            yield from hits

    def _tested(
        self, agents: list[str], query: str, limit: int, only: Filter, test: Join | None
    ) -> list[Hit]:
        """The best hits that pass what the bank's search can't test; only they are used."""
        bank = self._bank.engine
        given = []
        with bank.observing():
            for agent in agents:
                hits = self._related(query, self._hits([agent], query, self._most(agent), only))
                passing = [hit for hit in hits if test is None or self._passes(hit.memory, test)]
                given.append(passing[:limit])
        used = [
            ([hit.memory.sequence for hit in hits], [hit.score for hit in hits]) for hits in given
        ]
        bank.used(agents, [Accesses.of(used)])
        return [hit for hits in given for hit in hits]

    def _related(self, query: str, hits: Iterable[Hit]) -> list[Hit]:
        """The hits without those whose cosine is below 0, which the bank scores 0.

        mem0's threshold of 0 leaves them out, where its store gives cosines. Pinned memories stay.
        """
        listed = list(hits)
        doubtful = [h.memory for h in listed if not h.score and h.memory.tier is not Tier.PINNED]
        cosines = self._bank.engine.search.cosines(query, doubtful)
        away = {memory.id for memory, cosine in zip(doubtful, cosines, strict=True) if cosine < 0}
        return [hit for hit in listed if hit.memory.id not in away]

    def _passes(self, memory: Memory, test: Join) -> bool:
        entries = payload(memory, self._scopes.owner(memory.agent_id))
        return test.holds({**entries, "memory": memory.content, "data": memory.content})

    def _filter(
        self, part: Part, wanted: Join, least: float, today: str | None
    ) -> tuple[Filter, Join | None]:
        """The bank's filter, and what is left to be tested: None if nothing is."""
        tiers, rest = wanted.tiers()
        traits = [COLD] if self._has_cold() else map(self._traits_of, part.agents)
        condition, left = seen(part.ids, rest, today, traits)
        only = parse_filter(min_score=least)
        if tiers is not None or condition is not None:
            only = only._replace(tiers=tiers, metadata=condition)
        return only, left

    def _traits_of(self, agent: str) -> Traits:
        """What an agent's resident memories have.

        The number of memories does not tell whether they changed: after an undone transaction,
        other memories may be as many. Comparing is fast: what did not change is the same object.
        """
        now: Sequence[Metadata | None] = self._bank.engine.state.block(agent).metadata()
        known = self._traits.get(agent)
        if known is None or known[0] != now:
            known = self._traits[agent] = now, Traits.of(now)
        return known[1]

    def _has_cold(self) -> bool:
        return self._bank.engine.state.cold > 0

    def _most(self, agent: str) -> int:
        """At least as many memories as an agent has."""
        return self._bank.engine.state.block(agent).next_sequence


def _created(memory: Memory) -> str:
    metadata = memory.metadata
    return str((metadata if CREATED in metadata else whole(metadata)).get(CREATED, ""))


def _place(hit: Hit) -> tuple[bool, float, float]:
    """Pinned memories first, then by score. The sort keeps the order of an agent's own hits."""
    if hit.memory.tier is Tier.PINNED:
        return False, 0.0, 0.0
    return True, -hit.boosted_score, -hit.score
