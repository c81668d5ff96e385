"""What a bank should do, in plain Python: lists, sorting and exact arithmetic, nothing clever.

The tests compare a real bank with this one. It shares no code with the package; where both say the
same, two people would have to have made the same mistake.
"""

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .memories import (
    ACTIVE,
    ARCHIVED,
    BOARD,
    COLD,
    CRITICAL,
    DELETED,
    HOT,
    IMPORTANT,
    LEAST,
    MANY,
    NORMAL,
    PINNED,
    TEMPERATURES,
    WARM,
    Kept,
    Key,
    ModelLimits,
    Refused,
    Rules,
)
from .searching import USUAL, AgentSearch, Found, Only, Searched, fit, rendered

Given = Mapping[str, Any] | None
Requests = Sequence[tuple[str, str]]
"""Agents and their queries."""


class PlainModel(ModelLimits):
    """The reference for agents that have nothing to do with each other."""

    # Searching

    def searching(self, agent: str, session: str | None = None) -> AgentSearch:
        """How an agent searches, all that is its own or one session."""
        seen = [memory for memory in self.seen(agent) if session in (None, memory.session)]
        others, pinned = [m for m in seen if m.tier != PINNED], self.pinned(agent, session)
        return AgentSearch(self.rules, self.embed, pinned, others, session)

    def hot_context(self, agent: str, session: str | None = None) -> str:
        return rendered(self.searching(agent, session).front())

    def search_many(
        self, requests: Requests, limit: int | None, tokens: int | None, only: Only = USUAL
    ) -> list[Searched]:
        own = [(self.searching(agent), query) for agent, query in requests]
        found = [agent.find(query, limit, tokens, only) for agent, query in own]
        self._use_all(requests, found)
        return found

    def relevant_many(
        self,
        requests: Requests,
        limit: int | None,
        tokens: int | None,
        session: str | None = None,
    ) -> list[str]:
        found = [
            self.searching(agent, session).context(query, limit, tokens)
            for agent, query in requests
        ]
        texts = [rendered([hit.memory for hit in hits], len(left)) for hits, left in found]
        self._use_all(requests, found)
        return texts

    def recall(
        self, agent: str, query: str, limit: int, auto_promote: bool, only: Only
    ) -> tuple[list[Kept], list[float], list[int]]:
        """The items as they are afterwards, their scores, and which of them became hot."""
        hits: list[Found] = []
        if query.strip() and limit:
            hits = self._recalled(agent, query, limit, only)
        found = [(self.memories[hit.memory.key], hit.score) for hit in hits]
        for memory, score in found:
            if score >= LEAST:
                memory.use(self.tick, score, recalled=True)
        worthy = [
            m
            for m, score in found
            if auto_promote
            and m.temperature != HOT
            and m.deserves_to_be_hot(self.tick, query, score)
        ]
        fitting = [m for m in worthy if not self.rules.auto_spill or self.fits(m)]
        for memory in worthy:
            memory.temperature = HOT if memory in fitting else WARM
        if fitting:
            self._relieve_hot(agent, [memory.sequence for memory in fitting])
        items = [memory for memory, _ in found]
        hot = [m.sequence for m in items if m in worthy and m.temperature == HOT]
        return items, [hit.score for hit in hits], hot

    def _recalled(self, agent: str, query: str, limit: int, only: Only) -> list[Found]:
        """The best matches; pinned ones without their boost, and only if they match."""
        own, pinned = self.searching(agent), self.pinned(agent)
        everything = replace(own, pinned=[], others=[*pinned, *own.others])
        hits, _ = everything.find(query, limit + len(pinned), MANY, only)  # no budget
        hits = [hit for hit in hits if hit.memory.tier != PINNED or hit.score >= LEAST]
        hits.sort(
            key=lambda hit: (
                -(hit.score if hit.memory.tier == PINNED else hit.boosted_score),
                -hit.score,
                -hit.memory.sequence,
            )
        )
        return hits[:limit]

    def _use_all(self, requests: Requests, found: Sequence[Searched]) -> None:
        for (_, query), (hits, _) in zip(requests, found, strict=True):
            for hit in hits if query.strip() else ():
                if hit.score < LEAST:
                    continue
                self.memories[hit.memory.key].use(self.tick, hit.score)

    # Adding, tiers and hot

    def add_many(self, items: Sequence[tuple[Any, ...]]) -> list[Kept]:
        """``(agent, content, tier, metadata, options)``, the last optional; all or none."""
        options = [item[4] or {} for item in items if len(item) > 4]
        if not self.rules.merges and not any("key" in each for each in options):
            for item in items:  # before anything is done
                self._new(*item)
        with self._all_or_nothing():
            self._expire({item[0] for item in items})
            return [copy.copy(self._store(*item)) for item in items]

    def _store(
        self,
        agent: str,
        content: str,
        tier: int | None,
        metadata: Given,
        options: Given = None,
        *,
        may_merge: bool = True,
    ) -> Kept:
        """Add a memory, put it in the place of a former version, or count a repetition."""
        self._expire({agent})  # a pinned one past its end, which the one before pushed down
        chosen = dict(options or {})
        key = chosen.pop("key", None)
        former = None if key is None else self.live(agent, key)
        if tier is None:
            tier = NORMAL if former is None else former.tier
        if key is not None:
            metadata = {**(metadata or {}), "memory_key": key}
        ttl = chosen.get("ttl")
        merges = may_merge and self.rules.merges
        session = (metadata or {}).get("session", chosen.get("session"))
        session = None if session is None else str(session)
        same = self._repeated(agent, content, key, former, ttl, session) if merges else None
        if same is not None:
            same.use(self.tick, 1.0)
            return self.set_tier(agent, same.sequence, min(tier, same.tier))
        new = self._new(agent, content, tier, metadata, chosen)
        place = None
        if former is not None:
            if former.tier == tier and self.rules.cap(tier) is not None:
                place = former.tier_tick, former.entered
            if former.tier == PINNED:
                self._enter(former, NORMAL)
            self._hide(former, ARCHIVED)
        self._add(new)
        if place is not None:
            new.tier_tick, new.entered = place
        return new

    def _repeated(
        self,
        agent: str,
        content: str,
        key: str | None,
        former: Kept | None,
        ttl: int | None,
        session: str | None,
    ) -> Kept | None:
        """The oldest memory that says the same in the session, under the same key, for as long."""
        text = " ".join(content.casefold().split())
        for memory in [m for m in self.seen(agent) if key is None or m is former]:
            lives = memory.expires_tick is None or (
                ttl is not None and memory.expires_tick >= self.tick + ttl
            )
            is_free = key is not None or "memory_key" not in memory.metadata
            is_there = memory.session == session
            if memory.normal_text == text and lives and is_free and is_there:
                return memory
        return None

    def update(
        self, agent: str, sequence: int, identifier: str, content: str, tier: int | None
    ) -> Kept:
        memory = self.get(agent, sequence)
        if memory.retention != ACTIVE:
            raise Refused("not active" if self.superseding(memory) is None else "superseded")
        key = memory.subject or identifier
        wanted = memory.tier if tier is None else tier
        options: dict[str, Any] = {"kind": memory.kind, "tags": memory.tags, "key": key}
        if PINNED not in (wanted, memory.tier):
            options["temperature"] = TEMPERATURES[memory.temperature]
            if memory.expires_tick is not None:
                options["ttl"] = memory.expires_tick - self.tick
        fixed: tuple[str, ...] = ("memory_key",)
        if "memory_source" in memory.metadata:  # a new version is the agent's own
            fixed = ("memory_key", "memory_source", "speaker", "told_note")
        own = {name: value for name, value in memory.metadata.items() if name not in fixed}
        before, memory.alias = memory.alias, memory.alias or identifier
        try:
            with self._all_or_nothing():
                self._expire({agent})
                new = self._store(agent, content, wanted, own, options, may_merge=False)
                return copy.copy(new)
        except Refused:
            self.memories[agent, sequence].alias = before
            raise

    def _check_key(self, memory: Kept) -> None:
        """A memory that becomes active must be the only one of its key."""
        if memory.retention == ACTIVE:
            return
        live = None if memory.subject is None else self.live(memory.agent_id, memory.subject)
        now = live or self.heir(memory)
        if now is not None and now.retention == ACTIVE:
            raise Refused("superseded")

    def _new(
        self, agent: str, content: str, tier: int | None, metadata: Given, options: Given = None
    ) -> Kept:
        options = options or {}
        tier = NORMAL if tier is None else tier
        ttl, tags = options.get("ttl"), tuple(sorted(set(options.get("tags", ()))))
        temperature = self.rules.first_temperature(tier, options.get("temperature"), ttl)
        expires = None if ttl is None else self.tick + ttl
        said = {"session": options["session"]} if options.get("session") is not None else {}
        ordered = dict(sorted({**(metadata or {}), **said}.items()))
        return Kept(
            agent, 0, content, tier, self.tick, self.tick, ordered, options.get("kind", "fact"),
            tags, temperature, expires,
        )  # fmt: skip

    def _add(self, memory: Kept) -> Kept:
        agent = memory.agent_id
        self._make_room(agent, memory.tier, newcomer=None)
        self.issued[agent] = memory.sequence = self.issued.get(agent, 0) + 1
        self.memories[memory.key] = memory
        self._enters(memory)
        self._relieve_hot(agent, [memory.sequence])
        return memory

    def set_tier(self, agent: str, sequence: int, tier: int) -> Kept:
        memory = self.get(agent, sequence)
        if memory.tier == tier:
            return memory
        with self._all_or_nothing():
            self._expire({agent})
            if tier == PINNED:
                self._check_key(memory)
            if tier == PINNED or memory.retention == ACTIVE:  # an archived one takes no room
                self._make_room(agent, tier, newcomer=sequence)
            self._enter(memory, tier)
            self._relieve_hot(agent, [sequence])
        return memory

    def pin(self, agent: str, sequence: int) -> Kept:
        return self.set_tier(agent, sequence, PINNED)

    def unpin(self, agent: str, sequence: int, to: int) -> Kept:
        if to == PINNED:
            raise Refused("unpinned is not pinned")
        memory = self.get(agent, sequence)
        return self.set_tier(agent, sequence, to) if memory.tier == PINNED else memory

    def apply_rules(self, rules: Rules) -> bool:
        """Caps may be smaller now: the oldest of a tier moves, one by one; whether one did."""
        self.rules, before = rules, self.saved().memories
        for agent in self.issued:
            for tier in (PINNED, CRITICAL):
                cap = rules.cap(tier)
                while cap is not None and len(self._in_tier(agent, tier, None)) > cap:
                    self._push_down(self._in_tier(agent, tier, None), None)
            self._relieve_hot(agent, ())
        return self.memories != before

    # Temperature and retention

    def promote(self, agent: str, sequence: int) -> bool:
        memory = self._active(agent, sequence)
        too_large = self.rules.auto_spill and not self.fits(memory)
        if memory.tier == PINNED or too_large:
            return False
        others = [m for m in self.hot(agent) if m.tier != PINNED and m is not memory]
        granted, mean = divmod(memory.mean, 2)
        more = 0
        while True:  # as few as make it more relevant than all others, and promoted
            uses = memory.access_count + 1 + granted + more
            if granted + more >= 1 and all(self._more_used(uses, m) for m in others):
                break
            more += 1
        was_hot = memory.temperature == HOT
        memory.use(self.tick, mean + 2 * more)
        if was_hot:
            return False
        memory.temperature = HOT
        self._relieve_hot(agent, [sequence])
        return memory.temperature == HOT

    @staticmethod
    def _more_used(uses: float, other: Kept) -> bool:
        """Whether so many uses outdo another memory at any mean: one more, or two above 0.5."""
        granted, mean = divmod(other.mean, 2)
        return uses > other.access_count + granted + (0.75 - min(mean, 1.0) / 2 < 0.5)

    def demote(self, agent: str, sequence: int, to: str) -> bool:
        memory = self._active(agent, sequence)
        if memory.tier == PINNED:
            raise Refused("pinned")
        before = memory.temperature
        memory.temperature = max(before, TEMPERATURES.index(to))
        return memory.temperature != before

    def spill(
        self,
        agent: str,
        count: int | None,
        sequences: Sequence[int] | None,
        tokens: int | None = None,
        session: str | None = None,
    ) -> dict[int, int]:
        """What left hot, and where to."""
        if sequences is not None:
            chosen = [self.get(agent, sequence) for sequence in sequences]
            for memory in chosen:
                if memory.tier == PINNED:
                    raise Refused("pinned")
                if session not in (None, memory.session):
                    raise Refused("not part of the session")
            self._expire({agent})
            hot = self.hot(agent, session)
            return self._leave_hot((m for m in chosen if m in hot), session)
        self._expire({agent})
        order = self._least_relevant(agent, session)
        if tokens is not None:
            count = 0
            while count < len(order) and sum(m.cost for m in order[:count]) < tokens:
                count += 1
        over = self._over(agent, session) or order[:1]
        return self._leave_hot(over if count is None else order[:count], session)

    def archive(self, agent: str, sequence: int) -> Kept:
        return self._hide(self.get(agent, sequence), ARCHIVED)

    def delete(self, agent: str, sequence: int) -> None:
        self._hide(self.get(agent, sequence), DELETED)

    def restore(self, agent: str, sequence: int) -> Kept:
        memory = self.get(agent, sequence, gone=True)
        expired = self.is_expired(memory)
        if memory.retention == ACTIVE and expired:
            memory.retention, memory.retained = DELETED, self.tick
        if memory.retention == ACTIVE:
            return memory
        if memory.retention == DELETED and self.tick - memory.retained >= self.rules.grace:
            raise Refused("the grace is over")
        self._check_key(memory)
        with self._all_or_nothing():
            self._expire({agent})
            self._make_room(agent, memory.tier, newcomer=sequence)
            memory.retention, memory.retained = ACTIVE, self.tick
            if expired:
                memory.expires_tick = None  # the agent wants to have it
            self._relieve_hot(agent, [sequence])
        return memory

    def forget(self, agent: str, sequence: int) -> None:
        if self.get(agent, sequence, gone=True).tier == PINNED:
            raise Refused("pinned")
        del self.memories[agent, sequence]

    # Time

    def advance(self, tick: int) -> None:
        if tick < self.tick:
            raise Refused("the clock does not go back")
        self.tick = tick

    def prune(self, agent: str | None) -> list[Key]:
        """Archive what is cold beyond the limit, the least worth first; never what is critical."""
        agents = sorted(self.issued) if agent is None else [agent]
        self._expire(agents, everywhere=True)
        chosen = []
        for each in agents:
            cold = [memory for memory in self.of(each) if memory.temperature == COLD]
            going = [memory for memory in cold if memory.tier > CRITICAL]
            going.sort(key=lambda m: (m.relevance, m.access_count, m.sequence))
            for memory in going[: max(0, len(cold) - self.rules.most_cold)]:
                self._hide(memory, ARCHIVED)
                chosen.append(memory.key)
        return chosen

    def compact(self, agent: str | None, moves: dict[Key, int], session: str | None = None) -> None:
        """What expired is deleted, then rules made these moves; a session is not pruned."""
        self._expire(sorted(self.issued) if agent is None else [agent], everywhere=True)
        for key, to in moves.items():
            self.memories[key].temperature = to
        if self.rules.auto_prune and session is None:
            self.prune(agent)

    def sweep(self) -> None:
        """What expired is deleted, what was deleted long ago is purged, what is idle fades."""
        self._expire(list(self.issued), everywhere=True)
        for key, memory in list(self.memories.items()):
            over = self.tick - memory.retained >= self.rules.grace
            if memory.retention == DELETED and over:
                del self.memories[key]
            # Compaction would make a hot blocker hot again.
            stays = memory.temperature == HOT and "blocker" in memory.tags
            if self.rules.decays and memory.retention == ACTIVE and not stays:
                memory.temperature += memory.has_faded(self.tick)


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
