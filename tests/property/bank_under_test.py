"""A bank on disk beside its model: what one does, the other does, and after it both are equal."""

import contextlib
import itertools
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import machine_operations
import machine_society
import pytest
from hypothesis.stateful import RuleBasedStateMachine
from machine_strategies import AGENTS, Switches
from model.bank import ModelBank
from model.comparison import assert_equal, memories_in, plain, settings_of
from model.memories import ACTIVE, ARCHIVED, DELETED, TEMPERATURES, Key, Refused

from agents import (
    InvalidInput,
    InvalidTier,
    Memory,
    MemoryBank,
    MemoryNotFound,
    MemoryPinned,
    Tier,
    TierFull,
    TierMemError,
)
from agents.engine import clock
from agents.memory.tiers import Temperature
from agents.storage.state.ledger import Ledger
from agents.telling.groups import agent_counts
from tiermem.testing import SmallEmbedder

_ERRORS = {
    "a board has no caps": (InvalidTier, "board"),
    "a pinned memory is hot for ever": (InvalidInput, "pinned"),
    "full": (TierFull, "full|may be"),
    "gone, but can be restored": (MemoryNotFound, "restore"),
    "no member": (InvalidInput, "not a member"),
    "no such memory": (MemoryNotFound, "has no memory"),
    "not active": (InvalidInput, "restore"),
    "not part of the session": (InvalidInput, "is not part of the session"),
    "pinned": (MemoryPinned, "unpin"),
    "superseded": (InvalidInput, "superseded"),
    "the clock does not go back": (InvalidInput, "go back"),
    "the grace is over": (MemoryNotFound, "grace"),
    "unpinned is not pinned": (InvalidTier, "unpin"),
}

Call = Callable[[MemoryBank], Any]

_MS_PER_DAY = 86_400_000
_FAR_DAY = 100 * 365
_NOW_MS = clock.now_ms


class Stop(Exception):
    """Raised inside a transaction to make it fail."""


class BankUnderTest(RuleBasedStateMachine):
    """A bank, its model, a twin that only sees what was committed, and the ends of past ticks."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="tiermem-machine-"))
        self.folders = (self.root / str(number) for number in itertools.count())
        self.thresholds = Ledger.SNAPSHOT_ON_CLOSE, Ledger.SNAPSHOT_ON_COMMIT
        self.words = itertools.count()
        self.ids: dict[Key, str] = {}
        self.uncommitted: list[Call] = []
        """What the twin has not seen yet."""
        self.history: dict[int, tuple[ModelBank, str | None]] = {}
        """The model and the state's hash at the end of a tick; no hash where some was purged."""
        self.purged: list[Key] = []
        """Since the last commit."""
        self.forgotten: list[str] = []
        self.in_transaction = False
        self.bank: MemoryBank | None = None
        self.twin: MemoryBank | None = None

    def begin(self, switches: Switches) -> None:
        self.switches = switches
        self.day = 0
        """What the wall clock shows, in days from a far year: clocks of children are behind."""
        clock.now_ms = lambda: (_FAR_DAY + self.day) * _MS_PER_DAY
        Ledger.SNAPSHOT_ON_CLOSE, Ledger.SNAPSHOT_ON_COMMIT = switches.snapshots
        self.model = ModelBank(switches.rules)
        self.folder, self.twin_folder = next(self.folders), next(self.folders)
        self.bank, self.twin = self.open(self.folder), self.open(self.twin_folder)

    def teardown(self) -> None:
        Ledger.SNAPSHOT_ON_CLOSE, Ledger.SNAPSHOT_ON_COMMIT = self.thresholds
        clock.now_ms = _NOW_MS
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, self.root)
            for bank in (self.bank, self.twin):
                if bank is not None:
                    stack.callback(bank.close)

    # Opening

    @property
    def options(self) -> dict[str, Any]:
        return {
            "embedder": SmallEmbedder(reproducible=self.switches.reproducible),
            "embedder.cache_size": self.switches.cache_size,
            "seed": self.switches.seed,
            **settings_of(self.model.rules),
            "clock": {"mode": "wall" if self.switches.wall else "ticks", "ticks_per_day": 1},
        }

    def open(self, folder: Path) -> MemoryBank:
        """Only the bank writes mem0's store; its twin finds in the journal what is cold."""
        sync = "manual" if folder == self.twin_folder else self.switches.sync
        return MemoryBank.open(folder, **self.options, storage={"sync": sync})

    def copy_as_if_killed(self) -> Path:
        """What a kill at this moment would leave on disk."""
        return shutil.copytree(self.folder, next(self.folders))

    def continue_with(self, folder: Path) -> None:
        self.bank.close()
        self.folder = folder
        self.bank = self.open(folder)

    # The same to the model, to the bank and, once it is committed, to the twin

    def both(self, call: Call, on_model: Callable[[], Any], on_twin: Sequence[Call] = ()) -> Any:
        """Both do it and give the same, or both refuse for the same reason."""
        call, on_twin = self.on_this_day(call), [self.on_this_day(each) for each in on_twin]
        before = self.model.memories.keys() - ()
        try:
            expected = on_model()
        except Refused as refused:
            error, words = _ERRORS[str(refused)]
            with pytest.raises(error, match=words):
                call(self.bank)
            self.uncommitted.append(call)  # what expired may be deleted all the same
            got = None
        else:
            got = call(self.bank)
            assert plain(got) == plain(expected)
            for memory in memories_in(got):
                self.check_id(memory)
            self.uncommitted += on_twin or [call]
        self.purged += before - self.model.memories.keys()
        self.check_state()
        return got

    def on_this_day(self, call: Call) -> Call:
        """The call, with the wall clock as it is now: the twin does it later."""
        day = self.day

        def timed(bank: MemoryBank) -> Any:
            now, self.day = self.day, day
            try:
                return call(bank)
            finally:
                self.day = now

        return timed

    def commit_to_twin(self) -> None:
        for call in self.uncommitted:
            with contextlib.suppress(TierMemError):
                call(self.twin)
        self.uncommitted.clear()

    def committed(self) -> None:
        """What was purged for good is gone from the past as well."""
        for tick, (model, _) in list(self.history.items()):
            if gone := model.memories.keys() & self.purged:
                for key in gone:
                    del model.memories[key]
                self.history[tick] = (model, None)
        self.purged.clear()
        self.commit_to_twin()

    def remember_this_tick(self) -> None:
        self.bank.commit()
        self.committed()
        self.history[self.model.tick] = (self.model.saved(), self.bank.state_hash())

    def perform_all(self, operations: Sequence[tuple[Any, ...]]) -> None:
        for name, *arguments in operations:
            where = machine_society if hasattr(machine_society, name) else machine_operations
            getattr(where, name)(self, *arguments)
        if not self.in_transaction:
            self.committed()

    @contextlib.contextmanager
    def transaction(self, commit_first: bool = True) -> Iterator[None]:
        is_inside = self.in_transaction
        if not is_inside and commit_first:
            self.remember_this_tick()
        elif not is_inside:  # what searches did is pending, so this tick has no end yet
            self.history.pop(self.model.tick, None)
        self.in_transaction = True
        try:
            with self.bank.transaction():
                yield
        finally:
            self.in_transaction = is_inside
        if not is_inside:
            self.committed()

    @contextlib.contextmanager
    def undone(self) -> Iterator[Callable[[], None]]:
        """What happens inside ends with Stop, and never happened; what it gives keeps what did."""

        def save() -> None:
            nonlocal saved, hashed, lengths
            if not self.in_transaction:
                self.committed()
            saved, hashed = self.model.saved(), self.bank.state_hash()
            lengths = len(self.uncommitted), len(self.purged), len(self.forgotten)

        saved, hashed, lengths = self.model, "", (0, 0, 0)
        save()
        with pytest.raises(Stop):
            yield save
        self.model = saved
        calls, purges, texts = lengths
        del self.uncommitted[calls:], self.purged[purges:], self.forgotten[texts:]
        assert self.bank.state_hash() == hashed
        self.check_state()

    def choose(self, agent: str, pick: int, hidden: bool = False) -> tuple[str, int]:
        """Mostly one of the agent's memories; else one that was forgotten, undone, or another's.

        Mostly an active one, or on request one that is archived or deleted.
        """
        every = self.model.every(agent)
        own = [memory for memory in every if (memory.retention != ACTIVE) == hidden]
        if pick % 5 == 4:
            own = every
        if own and (pick <= 30 or pick < len(own)):
            memory = own[pick % len(own)]
            return self.ids[memory.key], memory.sequence
        keys = {memory.key for memory in every}
        others = [identifier for key, identifier in sorted(self.ids.items()) if key not in keys]
        return others[pick % len(others)] if others else str(uuid.UUID(int=pick)), -1

    def text(self, text: str | int) -> str:
        """A text, or a new one of this length."""
        if isinstance(text, str):
            return text
        return f"zq{next(self.words):05d}qz" + " and so on" * text

    # Comparing

    def check_id(self, memory: Memory) -> None:
        """Its id is its own, always the same, and no other's."""
        key = memory.agent_id, memory.sequence
        if key not in self.ids:
            assert memory.id not in self.ids.values()
            assert str(uuid.UUID(memory.id)) == memory.id
            self.ids[key] = memory.id
        assert memory.id == self.ids[key]

    def check_state(self) -> None:
        for memory, _, _ in assert_equal(self.bank, self.model):
            self.check_id(memory)

    def check_counts(self) -> None:
        """Every view counts the same memories: cold ones too, and none that has expired."""
        seen = [memory for agent in AGENTS for memory in self.bank.agent(agent).all()]
        tiers = {tier: sum(memory.tier is tier for memory in seen) for tier in Tier}
        heats = [sum(memory.temperature == heat for memory in seen) for heat in range(3)]
        assert agent_counts(self.bank.engine) == (tiers, dict(zip(Temperature, heats, strict=True)))
        status = self.bank.status()
        assert [each.items for each in status.tiers.values()] == list(tiers.values())
        assert [each.items for each in status.temperatures.values()] == heats
        assert status.retention["active"] == len(seen)

        for agent, session in itertools.product(AGENTS, ("talk", "7")):
            status = self.bank.agent(agent).status(session=session)
            own = [m for m in self.model.seen(agent) if m.session == session]
            heats = [sum(m.temperature == heat for m in own) for heat in range(3)]
            assert [each.items for each in status.temperatures.values()] == heats
            hidden = [m for m in self.model.every(agent) if m.session == session]
            assert status.retention == {
                "active": len(own),
                "archived": sum(m.retention == ARCHIVED for m in hidden),
                "deleted": sum(m.retention == DELETED for m in hidden),
            }

    def check_views(self) -> None:
        """What callers see of the bank is what the model says."""
        assert self.bank.agents() == self.model.agents()
        for agent in AGENTS:
            view, seen = self.bank.agent(agent), self.model.seen(agent)
            assert view.social.groups() == self.model.groups_of(agent)
            memories = view.all()
            assert plain(memories) == plain(seen)
            assert plain(view.get_pinned_memories()) == plain(self.model.pinned(agent))
            assert view.count() == len(seen)
            for tier in Tier:
                assert view.all(tier) == [memory for memory in memories if memory.tier is tier]
                assert view.count(tier) == len(view.all(tier))
            for heat, name in enumerate(TEMPERATURES):
                own = [memory for memory in memories if memory.temperature == heat]
                assert view.all(temperature=name) == own
            for memory in memories:
                assert tuple(view.get(memory.id)) == tuple(memory)
            self.check_history(agent)
            for each in self.model.of(agent, ARCHIVED):
                assert plain(view.get(self.ids[each.key])) == plain(each)
            for each in self.model.of(agent, DELETED):
                with pytest.raises(MemoryNotFound, match="restore"):
                    view.get(self.ids[each.key])

    def check_history(self, agent: str) -> None:
        """Under each key is what the model says, and one at most is active."""
        view = self.bank.agent(agent)
        for key in {memory.subject for memory in self.model.every(agent)} - {None}:
            found = [m for m in self.model.versions(agent, key) if m.retention != DELETED]
            found = [m for m in found if m.retention != ACTIVE or not self.model.is_expired(m)]
            history = view.history(key)
            assert plain(history) == plain(found)
            assert sum(memory.retention == ACTIVE for memory in history) <= 1
            for each in found:
                assert view.history(self.ids[each.key]) == history

    def check_searches(self) -> None:
        """Searches give what brute force finds, in all temperatures as well.

        That is use, which keeps memories from fading, so only some runs search after every step.
        """
        for agent, query in itertools.product(AGENTS, ("hello", "zq00001qz", "")):
            machine_operations.explain(self, agent, query, 4, None)
            for include_cold in (False, True):
                if self.switches.searches or not query:  # a blank query is no use
                    machine_operations.search(self, agent, query, 4, None, {}, include_cold)
