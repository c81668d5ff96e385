"""How the model's agents tell each other memories, take them back, and share boards."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from .model import PlainModel
from .model_memories import (
    ACTIVE,
    ARCHIVED,
    COLD,
    DELETED,
    IMPORTANT,
    LEAST,
    MANY,
    NORMAL,
    PINNED,
    WARM,
    Kept,
    Key,
    Refused,
)
from .model_search import Found, Searched, fit
from .model_state import BOARD

IdOf = Callable[[Key], str]
"""The id of a memory. The model knows none; what was told names its source by ids."""
_OF_THE_TELLER = ("session", "speaker", "told_note")


class ModelBank(PlainModel):
    """The reference."""

    # Telling

    def tell(self, agent: str, sequence: int, listener: str, id_of: IdOf) -> bool:
        """Whether the listener stored a copy. Otherwise it has one, which becomes warm."""
        memory = self.get(agent, sequence)
        if memory.retention != ACTIVE and self.superseding(memory) is not None:
            raise Refused("superseded")
        return self._tell(memory, listener, id_of)[1]

    def _tell(self, memory: Kept, listener: str, id_of: IdOf) -> tuple[Kept, bool]:
        teller, identifier = memory.agent_id, id_of(memory.key)
        *_, origin_agent, origin, hands = _source(memory) or [teller, identifier, 0]
        known = self._of_origin(listener, origin, memory.content, id_of)
        if known is None:
            kept = {
                name: value
                for name, value in memory.metadata.items()
                if name not in _OF_THE_TELLER and not name.startswith("memory_")
            }
            source = [teller, self.tick, identifier, origin_agent, origin, hands + 1]
            text = json.dumps(source, ensure_ascii=False, separators=(",", ":"))
            kept |= {"speaker": teller, "memory_source": text}
            options: dict[str, Any] = {"kind": memory.kind, "tags": memory.tags}
            if memory.expires_tick is not None and memory.expires_tick > self.tick:
                options["ttl"] = memory.expires_tick - self.tick
            before, tier = self.issued.get(listener, 0), max(memory.tier, IMPORTANT)
            (stored,) = self.add_many([(listener, memory.content, tier, kept, options)])
            known = self.memories[stored.key]
            if stored.sequence > before:
                return known, True
        return self._count(known, teller), False

    def _count(self, known: Kept, teller: str) -> Kept:
        known.tellers = (*known.tellers, teller)
        if known.temperature == COLD and known.retention == ACTIVE:
            known.temperature = WARM
        return known

    def _of_origin(self, agent: str, origin: str, content: str, id_of: IdOf) -> Kept | None:
        """The agent's memory that is the origin, or the oldest copy of it, with this text."""
        found = []
        for memory in self.every(agent):
            source, is_own = _source(memory), id_of(memory.key) == origin
            is_meant = is_own or (source is not None and source[4] == origin)
            if is_meant and memory.content == content and self._is_there(memory):
                found.append((not is_own, memory.sequence))
        return self.memories[agent, min(found)[1]] if found else None

    def _is_there(self, memory: Kept) -> bool:
        """What is archived does not expire."""
        is_over = memory.retention == ACTIVE and self.is_expired(memory)
        return memory.retention != DELETED and not is_over

    def retract(
        self, agent: str, sequence: int, text: str | None, id_of: IdOf
    ) -> list[tuple[str, bool]]:
        """Who was told the correction, and whether it was new there."""
        memory, told = self.get(agent, sequence), []
        with self._all_or_nothing():
            waiting = [(memory.key, copy.copy(self._correction(memory, text, id_of)))]
            earlier = self._said_before(memory, waiting[0][1], id_of)
            reached = {memory.key}
            while waiting:
                former, correction = waiting.pop(0)
                copies = [each for each in self._copies(former, id_of) if each.key not in reached]
                reached.update(each.key for each in copies)
                for one in copies:
                    there = [
                        each
                        for each in self._copies(former, id_of)
                        if each.agent_id == one.agent_id and self._is_there(each)
                    ]
                    if not there:
                        continue
                    memory, is_new = self._told_instead(correction, one.agent_id, earlier, id_of)
                    self._corrected(there[0], memory)
                    for each in self._earlier(former[0], one.agent_id, earlier):
                        if each.sequence < memory.sequence:
                            self._corrected(each, memory)
                    told.append((one.agent_id, is_new))
                    waiting.append((one.key, copy.copy(memory)))
        return told

    def _correction(self, memory: Kept, text: str | None, id_of: IdOf) -> Kept:
        agent, after = memory.agent_id, self.superseding(memory)
        former = after or memory
        if text is None:
            if after is not None and after.retention == ACTIVE and self._is_there(after):
                return after
            text = f"Retracted: {memory.content}"
        if former.retention != ACTIVE:
            (correction,) = self.add_many([(agent, text, NORMAL, None)])
            self._put_after(former, correction)
            return correction
        if former.subject is None:
            former.alias = id_of(former.key)
        options = {"key": former.subject, "kind": memory.kind, "tags": memory.tags}
        return self.add_many([(agent, text, None, None, options)])[0]

    def _said_before(self, memory: Kept, correction: Kept, id_of: IdOf) -> list[str]:
        """The origins of what superseded a memory before its correction did."""
        heirs = [each for each in self.heirs(memory) if each.sequence < correction.sequence]
        origins = dict.fromkeys(self._origin(each, id_of) for each in heirs)
        origins.pop(self._origin(memory, id_of), None)
        return list(origins)

    def _origin(self, memory: Kept, id_of: IdOf) -> str:
        source = _source(memory)
        return id_of(memory.key) if source is None else source[4]

    def _told_instead(
        self, memory: Kept, listener: str, earlier: list[str], id_of: IdOf
    ) -> tuple[Kept, bool]:
        """Tell a correction; if an earlier one with this text stands, count that."""
        origin = self._origin(memory, id_of)
        if self._of_origin(listener, origin, memory.content, id_of) is None:
            for each in self._earlier(memory.agent_id, listener, earlier):
                if each.content == memory.content and self.heir(each) is None:
                    return self._count(each, memory.agent_id), False
        return self._tell(memory, listener, id_of)

    def _earlier(self, teller: str, listener: str, origins: list[str]) -> list[Kept]:
        """What a listener has of the teller's earlier corrections."""
        found = []
        for origin in origins:
            for memory in self.every(listener):
                source = _source(memory)
                if source is None or source[4] != origin or not self._is_there(memory):
                    continue
                if source[0] == teller or teller in memory.tellers:
                    found.append(memory)
        return found

    def _copies(self, former: Key, id_of: IdOf) -> Iterator[Kept]:
        """What agents were told of a memory, also if they had it, agent after agent."""
        *_, origin, _ = _source(self.memories[former]) or [id_of(former), 0]
        for agent in self.agents():
            for memory in self.every(agent):
                source = _source(memory)
                if agent == former[0] or source is None or source[4] != origin:
                    continue
                if source[2] == id_of(former) or former[0] in memory.tellers:
                    yield memory

    def _corrected(self, former: Kept, memory: Kept) -> None:
        if former.tier == PINNED or former.key == memory.key:
            return
        if former.retention == ACTIVE:
            former.retention, former.retained = ARCHIVED, self.tick
            self.links[former.key] = memory.sequence
        else:
            self._put_after(former, memory)

    def _put_after(self, former: Kept, memory: Kept) -> None:
        """Let a memory supersede an archived one that nothing superseded."""
        if former.key != memory.key and self.heir(former) is None:
            self.links[former.key] = memory.sequence

    # Groups

    def join(self, group: str, agent: str) -> None:
        self.groups.setdefault(group, {}).setdefault(agent, self.tick)

    def leave(self, group: str, agent: str) -> None:
        del self._members(group, agent)[agent]

    def post(self, group: str, agent: str, content: str, tier: int) -> Kept:
        if tier < IMPORTANT:
            raise Refused("a board has no caps")
        self._members(group, agent)
        board = BOARD + group
        with self._all_or_nothing():
            self._expire({board})
            return copy.copy(self._add(self._new(board, content, tier, {"speaker": agent})))

    def _members(self, group: str, agent: str) -> dict[str, int]:
        members = self.groups.get(group, {})
        if agent not in members:
            raise Refused("no member")
        return members

    def groups_of(self, agent: str) -> list[str]:
        return sorted(group for group, members in self.groups.items() if agent in members)

    def search_groups(
        self, agent: str, query: str, limit: int | None, tokens: int | None
    ) -> Searched:
        """The agent's pinned memories, then the best of its own and of its groups' boards."""
        most = self.rules.default_limit if limit is None else limit
        places = [agent, *(BOARD + group for group in self.groups_of(agent))]
        found = [
            hit for place in places for hit in self.searching(place).find(query, most, MANY)[0]
        ]
        first = [hit for hit in found if hit.memory.tier == PINNED]
        rest = [hit for hit in found if hit.memory.tier != PINNED]
        rest.sort(key=_by_score if query.strip() else _by_tier)
        budget = self.rules.context_tokens if tokens is None else tokens
        kept, _ = fit(first, rest[: max(0, most - len(first))], budget)
        for hit in kept if query.strip() else ():
            if hit.score >= LEAST:
                self.memories[hit.memory.key].use(self.tick, hit.score)
        left_out = [hit.memory for hit in first if hit not in kept]
        return kept, left_out


def _source(memory: Kept) -> list[Any] | None:
    text = memory.metadata.get("memory_source")
    return None if text is None else json.loads(text)


def _by_score(hit: Found) -> tuple[Any, ...]:
    memory = hit.memory
    ranks = -hit.boosted_score, -hit.score, -memory.created_tick
    return (*ranks, memory.agent_id, -memory.sequence)


def _by_tier(hit: Found) -> tuple[Any, ...]:
    memory = hit.memory
    return memory.tier, -memory.created_tick, memory.agent_id, -memory.sequence
