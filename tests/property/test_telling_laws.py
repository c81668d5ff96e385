"""Laws of telling: nobody reads what it was not told, and every chain ends where it began."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agents import Memory, MemoryBank, MemoryNotFound, Tier, TierMemError
from agents.bank.history import branch, rewind
from agents.memory.retention import Retention
from agents.storage.state.ledger import Ledger
from banks import MANUAL
from embedders import Directions

AGENTS = ["ann", "ben", "cy", "dee", "eve"]
GROUPS = ["guild", "town"]


class World:
    """A bank in which agents do what is drawn, and the texts that each may know."""

    def __init__(self, bank: MemoryBank, seed: int, *, forgets: bool = True) -> None:
        self.bank = bank
        self.forgets = forgets
        """Whether agents purge memories, which are then gone from the past as well."""
        self.rng = Random(seed)
        self.told: dict[str, set[str]] = {name: set() for name in AGENTS}
        """What each agent stored or was told."""
        self.boards: dict[str, set[str]] = {name: set() for name in GROUPS}
        self.members: dict[str, set[str]] = {name: set() for name in GROUPS}
        self.ids: list[str] = []
        self.attempts = 0
        self._count = 0

    def step(self) -> None:
        """One thing happens, and somebody tries to read."""
        deeds: list[Callable[[str], None]] = [
            self.add, self.tell, self.tell, self.tell, self.lose, self.post, self.join, self.leave,
            self.retract, self.trust, self.wait,
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

    def add(self, agent: str) -> None:
        text = self._text(agent)
        tier = self.rng.choice(["pinned", "critical", "normal", "low"])
        self.ids.append(self.bank.agent(agent).add(text, tier).id)
        self.told[agent].add(text)

    def tell(self, agent: str) -> None:
        memory, to = self._any(agent), self.rng.choice(AGENTS)
        if memory is None or to == agent:
            return
        self.ids.append(self.bank.agent(agent).tell(to, memory.id).memory_id)
        self.told[to].add(memory.content)

    def lose(self, agent: str) -> None:
        memory = self._any(agent)
        if memory is not None and memory.tier is not Tier.PINNED:
            own = self.bank.agent(agent)
            purge = own.forget if self.forgets else own.delete
            self.rng.choice([own.archive, own.delete, purge, partial(own.demote, to="cold")])(
                memory.id
            )

    def post(self, agent: str) -> None:
        group, text = self.rng.choice(GROUPS), self._text(agent)
        if agent in self.members[group]:
            self.ids.append(self.bank.agent(agent).post(group, text).id)
            self.boards[group].add(text)
        else:
            with pytest.raises(TierMemError):
                self.bank.agent(agent).post(group, text)

    def join(self, agent: str) -> None:
        group = self.rng.choice(GROUPS)
        self.bank.group(group, [agent])
        self.members[group].add(agent)

    def leave(self, agent: str) -> None:
        group = self.rng.choice(GROUPS)
        if agent in self.members[group]:
            self.bank.agent(agent).leave(group)
            self.members[group].remove(agent)

    def retract(self, agent: str) -> None:
        memory, text = self._any(agent), self._text(agent)
        if memory is None or self.rng.random() < 0.7:
            return
        told = self.bank.agent(agent).retract(memory.id, text)
        self.told[agent].add(text)
        for each in told:
            self.told[each.listener].add(text)

    def trust(self, agent: str) -> None:
        other = self.rng.choice([name for name in AGENTS if name != agent])
        self.bank.agent(agent).trust(other, self.rng.choice([0, 0.25, 1]))

    def wait(self, agent: str) -> None:
        self.bank.advance(self.bank.tick + 1)

    def attempt(self, agent: str) -> None:
        """An agent reads in any way that there is; it sees only what it may."""
        own, rng = self.bank.agent(agent), self.rng
        self.attempts += 1
        boards: set[str] = set()
        found: list[str] = []
        way = rng.randrange(7)
        if way == 0 and self.ids:
            try:
                found = [own.get(rng.choice(self.ids)).content]
            except MemoryNotFound:
                return
        elif way == 1:
            found = [hit.memory.content for hit in own.search(f"<{rng.randrange(9)} 1>", 50)]
        elif way == 2:
            for group in GROUPS:
                boards |= self.boards[group] if agent in self.members[group] else set()
            hits = own.search(f"<{rng.randrange(9)} 1>", 99, include_groups=True)
            found = [hit.memory.content for hit in hits]
        elif way == 3:
            cold = own.search("knows", 50, include_cold=True)
            found = [hit.memory.content for hit in cold]
        elif way == 4:
            former = own.search("knows", 50, include_superseded=True)
            found = [hit.memory.content for hit in former]
        elif way == 5:
            for group in GROUPS:
                boards |= self.boards[group] if agent in self.members[group] else set()
            rows = own.explain(f"<{rng.randrange(9)} 1>", 3, include_groups=True)
            found = [row.memory.content for row in rows]
        else:
            found = [each.content for each in own.hidden(Retention.ARCHIVED)]
            found += [row.memory.content for row in own.explain("knows", 5)]
        assert set(found) <= self.told[agent] | boards

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


@pytest.mark.parametrize("attempts", [400, 100_000])
def test_nobody_reads_what_it_was_not_told(attempts: int) -> None:
    made, seed = 0, 0
    while made < attempts:
        with MemoryBank.ephemeral(embedder=Directions(), **SETTINGS) as bank:
            world = World(bank, seed)
            for _ in range(200):
                world.step()
            world.check_chains()
        made, seed = made + world.attempts, seed + 1


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
