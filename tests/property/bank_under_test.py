"""A bank on disk beside the model of it: what the state machine does, and how it compares them."""

import contextlib
import itertools
import json
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis.stateful import RuleBasedStateMachine
from model import Backwards, Full, IsPinned, ModelBank, NotActive, NotThere, SmallEmbedder

from agents import (
    Explanation,
    Hit,
    InvalidInput,
    Memory,
    MemoryBank,
    MemoryNotFound,
    MemoryPinned,
    Tier,
    TierFull,
)
from agents.storage.state.ledger import Ledger

AGENTS = ("alice", "bob", "@Carol-3._")

_ERRORS = {
    Full: TierFull,
    NotThere: MemoryNotFound,
    Backwards: InvalidInput,
    IsPinned: MemoryPinned,
    NotActive: InvalidInput,
}


class Stop(Exception):
    """Raised inside a transaction to make it fail."""


class BankUnderTest(RuleBasedStateMachine):
    """A bank on disk, the model, and a twin that only ever sees what was committed."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="tiermem-machine-"))
        self.folders = (self.root / str(number) for number in itertools.count())
        self.thresholds = Ledger.SNAPSHOT_ON_CLOSE, Ledger.SNAPSHOT_ON_COMMIT
        self.ids: dict[tuple[str, int], str] = {}
        self.uncommitted: list[Callable[[MemoryBank], Any]] = []
        self.bank: MemoryBank | None = None
        self.twin: MemoryBank | None = None
        self.model: ModelBank
        self.folder: Path
        self.twin_folder: Path
        self.caps: tuple[int, int, str]
        self.fixed: dict[str, Any]
        self.more: dict[str, Any]
        self.reproducible: bool

    def teardown(self) -> None:
        Ledger.SNAPSHOT_ON_CLOSE, Ledger.SNAPSHOT_ON_COMMIT = self.thresholds
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, self.root)
            for bank in (self.bank, self.twin):
                if bank is not None:
                    stack.callback(bank.close)

    def open(self, folder: Path) -> MemoryBank:
        pinned, critical, on_full = self.caps
        memory = {"max_pinned": pinned, "max_critical": critical, "on_tier_full": on_full}
        return MemoryBank.open(
            folder,
            embedder=SmallEmbedder(reproducible=self.reproducible),
            preset="vector",  # the model knows no words
            memory=memory | self.fixed,
            storage={"sync": "manual"},
            retention={"grace": 10**6},  # the model knows no end of it
            # Spilling is another test's.
            temperature={"hot_max_tokens": 10**9, "hot_max_facts": 10**6},
            **self.more,
        )

    def copy_as_if_killed(self) -> Path:
        """What a kill at this moment would leave on disk."""
        copy = next(self.folders)
        copy.mkdir()
        for suffix in ("", "-wal", "-shm"):
            file = self.folder / f"journal.db{suffix}"
            if file.exists():
                shutil.copy(file, copy)
        return copy

    def continue_with(self, folder: Path) -> None:
        self.bank.close()
        self.folder = folder
        self.bank = self.open(folder)

    # The same to the model, the bank and, once committed, the twin

    def perform(self, name: str, arguments: Any, call: Callable | None = None) -> None:
        """Do the same to the model and to the bank; both do it, or both refuse."""
        on_model, on_bank = getattr(self, f"_{name}")(*self.split(name, arguments))
        on_bank = call or on_bank
        try:
            expected = on_model()
        except tuple(_ERRORS) as error:
            with pytest.raises(_ERRORS[type(error)]):
                on_bank(self.bank)
            return
        got = on_bank(self.bank)
        if isinstance(expected, list):
            assert [self.known(memory) for memory in got] == [fields(memory) for memory in expected]
        elif expected is not None:
            assert self.known(got) == fields(expected)
        # The twin gets a batch one by one.
        one_by_one = (
            [self._add(*item)[1] for item in arguments] if name == "add_many" else [on_bank]
        )
        self.uncommitted += one_by_one

    @staticmethod
    def split(name: str, arguments: Any) -> tuple[Any, ...]:
        return (arguments,) if name == "add_many" else tuple(arguments)

    def perform_all(self, operations: list[tuple[str, Any]]) -> None:
        for name, arguments in operations:
            self.perform(name, arguments)

    def commit_to_twin(self) -> None:
        for call in self.uncommitted:
            call(self.twin)
        self.uncommitted.clear()

    @contextlib.contextmanager
    def undone(self) -> Iterator[None]:
        """What happens inside ends with Stop, and never happened."""
        saved, mark = self.model.saved(), len(self.uncommitted)
        with pytest.raises(Stop):
            yield
        self.model.restore(saved)
        del self.uncommitted[mark:]

    def _add(self, agent, text, tier, extra, more=None):
        wanted, spelled = tier
        more = options(wanted, more)
        return (
            lambda: self.model.add(agent, text, int(wanted), extra, more),
            lambda bank: bank.agent(agent).add(text, spelled, extra, **more),
        )

    def _add_many(self, items):
        wanted, spelled = [], []
        for agent, text, (tier, spelling), extra, *more in items:
            told = options(tier, *more)
            wanted.append((agent, text, int(tier), extra, told))
            spelled.append((agent, text, spelling, extra, told))
        return lambda: self.model.add_many(wanted), lambda bank: bank.add_many(spelled)

    def _set_tier(self, agent, pick, tier):
        wanted, spelled = tier
        identifier, sequence = self.choose(agent, pick)
        return (
            lambda: self.model.set_tier(agent, sequence, int(wanted)),
            lambda bank: bank.agent(agent).set_tier(identifier, spelled),
        )

    def _pin(self, agent, pick):
        identifier, sequence = self.choose(agent, pick)
        return (
            lambda: self.model.set_tier(agent, sequence, 0),
            lambda bank: bank.agent(agent).pin(identifier),
        )

    def _unpin(self, agent, pick, to):
        wanted, spelled = to
        identifier, sequence = self.choose(agent, pick)
        return (
            lambda: self.model.unpin(agent, sequence, int(wanted)),
            lambda bank: bank.agent(agent).unpin(identifier, spelled),
        )

    def _delete(self, agent, pick):
        identifier, sequence = self.choose(agent, pick)
        return (
            lambda: self.model.delete(agent, sequence),
            lambda bank: bank.agent(agent).delete(identifier),
        )

    def _archive(self, agent, pick):
        identifier, sequence = self.choose(agent, pick)
        return (
            lambda: self.model.archive(agent, sequence),
            lambda bank: bank.agent(agent).archive(identifier),
        )

    def _restore(self, agent, pick):
        identifier, sequence = self.choose(agent, pick, hidden=True)
        return (
            lambda: self.model.bring_back(agent, sequence),
            lambda bank: bank.agent(agent).restore(identifier),
        )

    def _forget(self, agent, pick):
        identifier, sequence = self.choose(agent, pick, hidden=pick % 2 == 0)
        return (
            lambda: self.model.forget(agent, sequence),
            lambda bank: bank.agent(agent).forget(identifier),
        )

    def _promote(self, agent, pick):
        identifier, sequence = self.choose(agent, pick)
        return (
            lambda: self.model.promote(agent, sequence),
            lambda bank: bank.agent(agent).promote(identifier),
        )

    def _demote(self, agent, pick, to):
        identifier, sequence = self.choose(agent, pick)
        return (
            lambda: self.model.demote(agent, sequence, to),
            lambda bank: bank.agent(agent).demote(identifier, to),
        )

    def _advance(self, delta):
        tick = self.model.tick + delta
        if tick < 0:
            delta, tick = 0, self.model.tick
        return lambda: self.model.advance(tick), lambda bank: bank.advance(tick)

    def choose(self, agent: str, pick: int, hidden: bool = False) -> tuple[str, int]:
        """Mostly one of the agent's memories; else one that was forgotten, undone, or another's.

        Mostly an active one, or on request one that is archived or deleted.
        """
        every = self.model.memories.get(agent, [])
        own = [memory for memory in every if (memory.retention != "active") == hidden]
        if pick % 5 == 4:
            own = every
        if own and (pick <= 30 or pick < len(own)):
            sequence = own[pick % len(own)].sequence
            return self.ids[agent, sequence], sequence
        others = [
            identifier
            for (owner, sequence), identifier in sorted(self.ids.items())
            if owner != agent or all(memory.sequence != sequence for memory in every)
        ]
        if not others:
            return str(uuid.UUID(int=pick)), -1
        return others[pick % len(others)], -1

    def known(self, memory: Memory) -> tuple[Any, ...]:
        """The fields of a memory whose id is its own, always the same, and no other's."""
        key = memory.agent_id, memory.sequence
        if key not in self.ids:
            assert memory.id not in self.ids.values()
            assert str(uuid.UUID(memory.id)) == memory.id
            self.ids[key] = memory.id
        assert memory.id == self.ids[key]
        return fields(memory)

    def check_contents(self) -> None:
        assert self.bank.tick == self.model.tick
        assert self.bank.agents() == sorted(self.model.memories)
        for agent in AGENTS:
            view = self.bank.agent(agent)
            expected = self.model.of(agent)
            memories = view.all()
            assert [self.known(memory) for memory in memories] == [fields(m) for m in expected]
            assert view.count() == len(expected)
            assert [use(memory) for memory in memories] == [use(memory) for memory in expected]
            pinned = [fields(memory) for memory in view.get_pinned_memories()]
            assert pinned == [fields(memory) for memory in self.model.pinned(agent)]
            for tier in Tier:
                assert view.all(tier) == [memory for memory in memories if memory.tier is tier]
            for memory in memories:
                assert tuple(view.get(memory.id)) == tuple(memory)
            for each in self.model.memories.get(agent, []):
                if each.retention == "archived":
                    assert self.known(view.find(each.sequence)) == fields(each)
                elif each.retention == "deleted":
                    assert view.find(each.sequence) is None
                    with pytest.raises(MemoryNotFound):
                        view.get(self.ids[agent, each.sequence])

    def check_search(self, agent: str, query: str, limit: int | None, tokens: int | None) -> None:
        before = self.bank.agent(agent).all()
        hits = self.used(lambda bank: bank.agent(agent).search(query, limit, context_tokens=tokens))
        assert self.bank.agent(agent).all() == before  # but for their use
        assert all(hit.memory.agent_id == agent for hit in hits)
        assert len({hit.memory.id for hit in hits}) == len(hits)
        assert sorted(hits, key=lambda hit: hit.memory.tier is not Tier.PINNED) == hits
        expected, left_out = self.model.search(agent, query, limit, tokens)
        assert [shape(hit) for hit in hits] == [shape(row)[:-2] for row in expected]
        assert [fields(m) for m in hits.pinned_left_out] == [fields(m) for m in left_out]
        self.count(agent, query, hits)

    def used(self, call: Callable[[MemoryBank], Any]) -> Any:
        """What a search gives, which is use; the twin sees it too."""
        self.uncommitted.append(call)
        return call(self.bank)

    def count(self, agent: str, query: str, hits: list[Hit]) -> None:
        """Tell the model what a search gave."""
        if query.strip():
            self.model.given(agent, [(hit.memory.sequence, hit.score) for hit in hits])


def options(tier: Tier, more: dict[str, Any] | None = None) -> dict[str, Any]:
    """What else is told of a new memory; pinned ones are hot."""
    told = dict(more or {})
    if tier is Tier.PINNED:
        told.pop("temperature", None)
    return told


def use(memory: Any) -> tuple[Any, ...]:
    """How a memory was used, to the bit."""
    return memory.access_count, memory.last_access_tick, memory.relevance.hex()


def name_of(value: Any) -> str:
    return value if isinstance(value, str) else value.name.lower()


def fields(memory: Any) -> tuple[Any, ...]:
    """What a memory and a model's memory have in common. As JSON, 1, 1.0 and true differ."""
    return (
        memory.agent_id,
        memory.sequence,
        memory.content,
        int(memory.tier),
        memory.created_tick,
        memory.tier_tick,
        json.dumps(dict(memory.metadata)),
        memory.kind,
        memory.tags,
        name_of(memory.temperature),
        name_of(memory.retention),
    )


def shape(row: Any) -> tuple[Any, ...]:
    """A hit or an explanation, with every bit of its numbers."""
    numbers = (row.score.hex(), row.boost.hex(), row.boosted_score.hex())
    if isinstance(row, Hit) and not isinstance(row, Explanation):
        return fields(row.memory), *numbers
    return fields(row.memory), *numbers, row.rank, row.reason
