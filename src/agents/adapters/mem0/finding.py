"""Which memories a call of mem0's is about: filters and ids as searches of the bank's agents."""

from collections.abc import Iterator, Sequence
from typing import Any, final

from ...bank.memory_bank import MemoryBank
from ...memory.filters import Filter, parse_filter
from ...memory.records import Explanation, Hit, Memory
from ...memory.tiers import Tier
from ...search.request import SearchRequest
from ...storage.state.accesses import Accesses
from .filters import Join
from .payloads import EXPIRES, id_of, kept_name, payload
from .scopes import Part, Scopes

__all__ = ["Finder"]


@final
class Finder:
    """Finds memories of a bank by mem0's ids and filters. The caller holds the bank's turn."""

    def __init__(self, bank: MemoryBank, scopes: Scopes) -> None:
        self._bank = bank
        self._scopes = scopes
        self._dated: dict[str, tuple[int, int, bool]] = {}
        """By agent, the number of memories ever and now, and whether one has a last day."""

    def all(self, ids: dict[str, str], wanted: Join, today: str | None) -> list[Memory]:
        """All memories with these ids that pass, oldest first."""
        found = []
        for part in self._scopes.parts(ids):
            only, test = self._filter(part, wanted, 0.0, today)
            for agent in part.agents:
                own = [each for each in self._bank.agent(agent).all() if only.allows(each)]
                found += own if test is None else [each for each in own if self._passes(each, test)]
        created = kept_name("created_at")
        return sorted(found, key=lambda each: (str(each.metadata.get(created, "")), id_of(each)))

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
        found: list[Hit] = []
        for part in self._scopes.parts(ids) if limit else ():
            only, test = self._filter(part, wanted, least, today)
            if test is None:
                found += self._hits(part.agents, query, limit, only)
            else:
                found += self._tested(part.agents, query, limit, only, test)
        return sorted(found, key=_place)[:limit]

    def details(self, query: str, hits: Sequence[Hit], least: float) -> Iterator[dict[str, Any]]:
        """How each hit was scored, under mem0's names."""
        scores: dict[str, Explanation] = {}
        for agent in dict.fromkeys(hit.memory.agent_id for hit in hits):
            scores |= {each.memory.id: each for each in self._bank.agent(agent).explain(query, 0)}
        for hit in hits:
            own = scores[hit.memory.id]
            yield {
                "semantic_score": own.vector,
                "bm25_score": own.keyword,
                "entity_boost": 0.0,
                "raw_score": hit.boosted_score,
                "max_possible_score": 1.0,
                "final_score": hit.score,
                "threshold": least,
                "tier_boost": hit.boost,
            }

    def _hits(self, agents: list[str], query: str, limit: int, only: Filter) -> Iterator[Hit]:
        request = SearchRequest(agents, [query] * len(agents), limit, None, only)
        for hits in self._bank.parts.find(request):
            yield from hits

    def _tested(
        self, agents: list[str], query: str, limit: int, only: Filter, test: Join
    ) -> list[Hit]:
        """The best hits that pass a test which the bank's search can't make; only they are used."""
        bank = self._bank.parts
        found = []
        with bank.observing():
            for agent in agents:
                most = bank.ledger.resident.block(agent).size
                hits = self._hits([agent], query, most, only)
                found.append([hit for hit in hits if self._passes(hit.memory, test)][:limit])
        used = [
            ([hit.memory.sequence for hit in hits], [hit.score for hit in hits]) for hits in found
        ]
        bank.ledger.used(agents, [Accesses.of([each]) for each in used])
        bank.ledger.save_searches()
        return [hit for hits in found for hit in hits]

    def _passes(self, memory: Memory, test: Join) -> bool:
        own = payload(memory, self._scopes.owner(memory.agent_id))
        return test.holds({**own, "memory": memory.content, "data": memory.content})

    def _filter(
        self, part: Part, wanted: Join, least: float, today: str | None
    ) -> tuple[Filter, Join | None]:
        """The bank's filter, and what is left to be tested: None if nothing is."""
        tiers, rest = wanted.tiers()
        native = rest.translated()
        conditions: list[dict[str, Any]] = [
            {f"metadata.{kept_name(name)}": value} for name, value in part.ids.items()
        ]
        if native:
            conditions.append(native)
        if today is not None and any(map(self._has_dates, part.agents)):
            conditions.append({"$not": {f"metadata.{EXPIRES}": {"$lt": today}}})
        filters = {"$and": conditions} if conditions else None
        only = parse_filter(min_score=least, filters=filters)
        if tiers is not None:
            only = only._replace(tiers=tiers)
        return only, rest if native is None else None

    def _has_dates(self, agent: str) -> bool:
        """Whether a memory of an agent has a last day. A memory's metadata never changes."""
        block = self._bank.parts.ledger.resident.block(agent)
        known = self._dated.get(agent)
        if known is None or known[:2] != (block.next_sequence, block.size):
            found = any(own is not None and EXPIRES in own for own in block.metadata())
            known = self._dated[agent] = (block.next_sequence, block.size, found)
        return known[2]


def _place(hit: Hit) -> tuple[bool, float, float]:
    """Pinned memories first, then by score. The sort keeps the order of an agent's own hits."""
    if hit.memory.tier is Tier.PINNED:
        return False, 0.0, 0.0
    return True, -hit.boosted_score, -hit.score
