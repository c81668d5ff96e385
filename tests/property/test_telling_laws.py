"""Laws of telling: nobody reads what it was not told, and every chain ends where it began."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agents import Memory, MemoryBank, MemoryNotFound, Tier, TierMemError
from agents.bank.history import branch, rewind
from agents.memory.tiers import Retention
from agents.storage.state.ledger import Ledger
from asking import asker
from banks import MANUAL
from embedders import Directions

AGENTS = ["ann", "ben", "cy", "dee", "eve"]
GROUPS = ["guild", "town"]
KEYS = ["home", "job"]
TEXT = re.compile(r"\w+ knows \d+ <\d 1>")
"""A text of the world below, wherever it stands in what is rendered."""


class World:
    """A bank in which agents do what is drawn, and the texts that each may know."""

    def __init__(self, bank: MemoryBank, seed: int, *, forgets: bool = True) -> None:
        self.bank = bank
        self.forgets = forgets
        """Whether agents purge memories, which are then gone from the past as well."""
        self.rng = Random(seed)
        self.told: dict[str, set[str]] = {name: set() for name in AGENTS}
        """What each agent stored or was told."""
        self.own_ids: dict[str, set[str]] = {name: set() for name in AGENTS}
        """The ids of the memories that each agent stored or was given."""
        self.boards: dict[str, set[str]] = {name: set() for name in GROUPS}
        self.members: dict[str, set[str]] = {name: set() for name in GROUPS}
        self.ids: list[str] = []
        self.attempts = 0
        self._count = 0

    def step(self) -> None:
        """One thing happens, and somebody tries to read."""
        deeds: list[Callable[[str], None]] = [
            self.add, self.add, self.add, self.change, self.tell, self.tell, self.broadcast,
            self.link, self.lose, self.post, self.join, self.leave, self.retract, self.trust,
            self.wait,
        ]  # fmt: skip
        self.rng.choice(deeds)(self.rng.choice(AGENTS))
        for _ in range(2):
            self.attempt(self.rng.choice(AGENTS))

    def _text(self, who: str) -> str:
        self._count += 1
        return f"{who} knows {self._count} <{self.rng.randrange(9)} 1>"

    def _any(self, agent: str) -> Memory | None:
        own = self.bank.agent(agent).all()
        return self.rng.choice(own) if own else None

    def _has(self, agent: str, memory_id: str, text: str) -> None:
        self.ids.append(memory_id)
        self.own_ids[agent].add(memory_id)
        self.told[agent].add(text)

    def add(self, agent: str) -> None:
        text = self._text(agent)
        tier = self.rng.choice(["pinned", "critical", "normal", "low"])
        key = self.rng.choice([None, None, *KEYS])
        self._has(agent, self.bank.agent(agent).add(text, tier, key=key).id, text)

    def change(self, agent: str) -> None:
        memory, text = self._any(agent), self._text(agent)
        if memory is not None:
            self._has(agent, self.bank.agent(agent).update(memory.id, text).id, text)

    def tell(self, agent: str) -> None:
        memory, to = self._any(agent), self.rng.choice(AGENTS)
        if memory is None or to == agent:
            return
        told = self.bank.agent(agent).social.tell(to, memory.id)
        self._has(to, told.memory_id, memory.content)

    def broadcast(self, agent: str) -> None:
        memory = self._any(agent)
        others = [name for name in AGENTS if name != agent]
        to = self.rng.sample(others, self.rng.randrange(1, 3))
        if memory is not None:
            for told in self.bank.agent(agent).social.broadcast(memory.id, to):
                assert told.listener in to
                self._has(told.listener, told.memory_id, memory.content)

    def link(self, agent: str) -> None:
        one, other = self._any(agent), self._any(agent)
        if one is None or other is None or one.id == other.id:
            return
        which = self.rng.choice(["supersedes", "contradicts"])
        try:
            self.bank.agent(agent).link(one.id, **{which: other.id})
        except TierMemError:  # it would close a circle
            return

    def lose(self, agent: str) -> None:
        memory = self._any(agent)
        if memory is not None and memory.tier is not Tier.PINNED:
            own = self.bank.agent(agent)
            purge = own.forget if self.forgets else own.delete
            self.rng.choice(
                [asker(own, "archive"), own.delete, purge, partial(own.update, temperature="cold")]
            )(memory.id)

    def post(self, agent: str) -> None:
        group, text = self.rng.choice(GROUPS), self._text(agent)
        if agent in self.members[group]:
            self.ids.append(self.bank.agent(agent).social.post(group, text).id)
            self.boards[group].add(text)
        else:
            with pytest.raises(TierMemError):
                self.bank.agent(agent).social.post(group, text)

    def join(self, agent: str) -> None:
        group = self.rng.choice(GROUPS)
        self.bank.group(group, [agent])
        self.members[group].add(agent)

    def leave(self, agent: str) -> None:
        group = self.rng.choice(GROUPS)
        if agent in self.members[group]:
            self.bank.agent(agent).social.leave(group)
            self.members[group].remove(agent)

    def retract(self, agent: str) -> None:
        memory, text = self._any(agent), self._text(agent)
        if memory is None or self.rng.random() < 0.7:
            return
        told = self.bank.agent(agent).social.retract(memory.id, text)
        self.told[agent].add(text)
        self.own_ids[agent] |= {each.id for each in self.bank.agent(agent).all()}
        for each in told:
            self._has(each.listener, each.memory_id, text)

    def trust(self, agent: str) -> None:
        other = self.rng.choice([name for name in AGENTS if name != agent])
        self.bank.agent(agent).social.trust(other, self.rng.choice([0, 0.25, 1]))

    def wait(self, agent: str) -> None:
        self.bank.advance(self.bank.tick + 1)

    def attempt(self, agent: str) -> None:
        """An agent reads in any way that there is; it sees only what it may."""
        self.attempts += 1
        ways = [
            self._by_id, self._by_search, self._by_explanation, self._by_rendering,
            self._by_key, self._by_list, self._by_links, self._by_groups, self._among_others,
        ]  # fmt: skip
        seen = set(self.rng.choice(ways)(agent))
        assert seen <= self.told[agent], (agent, seen - self.told[agent])

    def _query(self) -> str:
        return self.rng.choice(["knows", f"<{self.rng.randrange(9)} 1>"])

    def _by_id(self, agent: str) -> Iterable[str]:
        own = self.bank.agent(agent)
        try:
            return [own.get(self.rng.choice(self.ids)).content] if self.ids else []
        except MemoryNotFound:
            return []

    def _by_search(self, agent: str) -> Iterable[str]:
        own, query = self.bank.agent(agent), self._query()
        if self.rng.random() < 0.25:
            return [each.content for each in own.recall(query, 20, auto_promote=False).items]
        more: dict[str, Any] = self.rng.choice(
            [{}, {"include_cold": True}, {"include_superseded": True}]
        )
        return [hit.memory.content for hit in own.search(query, 50, **more)]

    def _by_explanation(self, agent: str) -> Iterable[str]:
        return [row.memory.content for row in self.bank.agent(agent).explain(self._query(), 5)]

    def _by_rendering(self, agent: str) -> Iterable[str]:
        own = self.bank.agent(agent)
        return TEXT.findall(
            own.get_relevant_memories(self._query(), 50) + own.get_relevant_memories()
        )

    def _by_key(self, agent: str) -> Iterable[str]:
        return [each.content for each in self.bank.agent(agent).history(self.rng.choice(KEYS))]

    def _by_list(self, agent: str) -> Iterable[str]:
        own = self.bank.agent(agent)
        lists = [own.all(), own.get_pinned_memories(), own.all(retention=Retention.ARCHIVED)]
        return [each.content for each in self.rng.choice(lists)]

    def _by_links(self, agent: str) -> Iterable[str]:
        """Links and tellers of any memory: another's is not found, links lead to own memories."""
        own, memory_id = self.bank.agent(agent), self.rng.choice(self.ids or ["none"])
        try:
            links, flags = own.links(memory_id), own.links(memory_id).flags
            teller = own.social.heard(memory_id).teller
        except MemoryNotFound:
            assert memory_id not in {each.id for each in own.all()}
            return []
        assert memory_id in self.own_ids[agent]
        assert {*links.contradicts, links.superseded_by} - {None} <= self.own_ids[agent]
        assert (flags, teller != agent) == ((), True)
        return []

    def _by_groups(self, agent: str) -> Iterable[str]:
        own, boards = self.bank.agent(agent), set[str]()
        for group in GROUPS:
            boards |= self.boards[group] if agent in self.members[group] else set()
        assert set(own.social.groups()) == {g for g in GROUPS if agent in self.members[g]}
        look = self.rng.choice([own.search, own.explain])
        found = look(self._query(), 99, include_groups=True)
        return {each.memory.content for each in found} - boards

    def _among_others(self, agent: str) -> Iterable[str]:
        """One of many who ask at once."""
        query, requests = self._query(), [(name, self._query()) for name in AGENTS]
        place = self.rng.randrange(len(requests) + 1)
        requests.insert(place, (agent, query))
        if self.rng.random() < 0.5:
            return [hit.memory.content for hit in self.bank.search_many(requests, 50)[place]]
        return TEXT.findall(self.bank.relevant_many(requests, 50)[place])

    def check_chains(self) -> None:
        """Chains go from memory to memory, never twice to one, and end at an origin or a gap."""
        for name in AGENTS:
            for memory in self.bank.agent(name).all():
                chain = self.bank.chain(memory)
                ids = [each.id for each in chain.memories]
                assert len(set(ids)) == len(ids)
                last, source = chain.memories[-1], memory.source
                if source is None:
                    assert (ids, chain.missing) == ([memory.id], None)
                elif chain.is_whole:
                    assert (last.agent_id, last.id) == (source.origin_agent, source.origin_id)
                    assert source.hands == len(ids) - 1
                    assert {each.content for each in chain.memories} == {memory.content}
                else:
                    assert len(ids) <= source.hands


SETTINGS: dict[str, Any] = {
    "preset": "vector",
    "memory": {"max_pinned": 2, "max_critical": 3},
    "retrieval": {"trust": True},
    "storage": MANUAL,
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("attempts", [400, pytest.param(100_000, marks=pytest.mark.long)])
def test_nobody_reads_what_it_was_not_told(attempts: int) -> None:
    made, seed = 0, 0
    while made < attempts:
        with MemoryBank.ephemeral(embedder=Directions(), **SETTINGS) as bank:
            world = World(bank, seed)
            for _ in range(200):
                world.step()
            world.check_chains()
        made, seed = made + world.attempts, seed + 1


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_a_bank_of_tells_goes_back_and_branches_bit_for_bit(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, "SNAPSHOT_ON_CLOSE", 60)
    folder, hashes = tmp_path / "bank", dict[int, str]()
    with MemoryBank.open(folder, embedder=Directions(), **SETTINGS) as bank:
        world = World(bank, seed, forgets=False)
        for _ in range(120):
            world.step()
            bank.commit()
            hashes[bank.tick] = bank.state_hash()
    last, middle = max(hashes), sorted(hashes)[len(hashes) // 2]
    with MemoryBank.open(folder, embedder=Directions()) as bank:
        assert bank.state_hash() == hashes[last]
    with MemoryBank.at(folder, middle, embedder=Directions()) as past:
        assert past.state_hash() == hashes[middle]
    branch(folder, middle, tmp_path / "branch")
    rewind(folder, middle)
    for place in (tmp_path / "branch", folder):
        with MemoryBank.open(place, embedder=Directions()) as bank:
            assert bank.state_hash() == hashes[middle]
