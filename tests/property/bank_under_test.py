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
from model import Backwards, Full, ModelBank, NotThere, SmallEmbedder

from agents import (
    Explanation,
    Hit,
    InvalidInput,
    Memory,
    MemoryBank,
    MemoryNotFound,
    Tier,
    TierFull,
)
from agents.storage.ledger import Ledger

AGENTS = ("alice", "bob", "@Carol-3._")

_ERRORS = {Full: TierFull, NotThere: MemoryNotFound, Backwards: InvalidInput}


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
            memory=memory | self.fixed,
            storage={"sync": "manual"},
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

    def _add(self, agent, text, tier, extra):
        wanted, spelled = tier
        return (
            lambda: self.model.add(agent, text, int(wanted), extra),
            lambda bank: bank.agent(agent).add(text, spelled, extra),
        )

    def _add_many(self, items):
        wanted = [(agent, text, int(tier), extra) for agent, text, (tier, _), extra in items]
        spelled = [(agent, text, tier, extra) for agent, text, (_, tier), extra in items]
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

    def _advance(self, delta):
        tick = self.model.tick + delta
        if tick < 0:
            delta, tick = 0, self.model.tick
        return lambda: self.model.advance(tick), lambda bank: bank.advance(tick)

    def choose(self, agent: str, pick: int) -> tuple[str, int]:
        """Mostly one of the agent's memories; else one that was deleted, undone, or another's."""
        own = self.model.of(agent)
        if own and (pick <= 30 or pick < len(own)):
            sequence = own[pick % len(own)].sequence
            return self.ids[agent, sequence], sequence
        others = [
            identifier
            for (owner, sequence), identifier in sorted(self.ids.items())
            if owner != agent or all(memory.sequence != sequence for memory in own)
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
            pinned = [fields(memory) for memory in view.get_pinned_memories()]
            assert pinned == [fields(memory) for memory in self.model.pinned(agent)]
            for tier in Tier:
                assert view.all(tier) == [memory for memory in memories if memory.tier is tier]
            for memory in memories:
                assert view.get(memory.id) == memory

    def check_search(self, agent: str, query: str, limit: int | None, tokens: int | None) -> None:
        hits = self.bank.agent(agent).search(query, limit, context_tokens=tokens)
        assert all(hit.memory.agent_id == agent for hit in hits)
        assert len({hit.memory.id for hit in hits}) == len(hits)
        assert sorted(hits, key=lambda hit: hit.memory.tier is not Tier.PINNED) == hits
        expected, left_out = self.model.search(agent, query, limit, tokens)
        assert [shape(hit) for hit in hits] == [shape(row)[:-2] for row in expected]
        assert [fields(m) for m in hits.pinned_left_out] == [fields(m) for m in left_out]


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
    )


def shape(row: Any) -> tuple[Any, ...]:
    """A hit or an explanation, with every bit of its numbers."""
    numbers = (row.score.hex(), row.boost.hex(), row.boosted_score.hex())
    if isinstance(row, Hit) and not isinstance(row, Explanation):
        return fields(row.memory), *numbers
    return fields(row.memory), *numbers, row.rank, row.reason
