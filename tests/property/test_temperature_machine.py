"""Whatever moves memories between hot, warm, cold and the archive, none is lost or changed."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from model import CRITICAL, PINNED, SmallEmbedder
from temperature_bank import (
    AGENTS,
    GRACE,
    MOST_COLD,
    TEMPERATURES,
    TOKENS,
    Stop,
    TemperatureBank,
    assert_equal,
    look,
    settings_of,
)
from temperature_model import ACTIVE, HOT, TemperatureModel

from agents import MemoryBank, MemoryNotFound
from agents.bank.history import rewind
from agents.memory.context import approximate_tokens, cost
from agents.storage.state.ledger import Ledger
from banks import child

# The default run takes about twenty seconds, and is the same every time.
_COMMON: dict[str, Any] = {
    "deadline": None,
    "phases": [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much],
    "print_blob": True,
    "report_multiple_bugs": False,
}
_PROFILES = {
    "default": settings(max_examples=20, stateful_step_count=25, derandomize=True, **_COMMON),
    "thorough": settings(max_examples=3000, stateful_step_count=60, **_COMMON),
}

_agents = st.sampled_from([AGENTS[0]] * 6 + [*AGENTS])
_picks = st.integers(0, 30)
_tiers = st.sampled_from([0, 1, 1, 2, 3, 3, 4])
_kinds = st.sampled_from(["fact", "fact", "decision", "preference", "message"])
_tag = st.sampled_from(["task", "blocker", "open", "blocker"])
_tags = st.lists(_tag, max_size=2)
_queries = st.sampled_from(["one", "two", "three", "four", "zq00001qz", "zq00004qz", "", " "])
_limits = st.integers(0, 5)
_some = st.sampled_from

_filters = st.fixed_dictionaries(
    {},
    optional={
        "tier": st.lists(_tiers, min_size=1, max_size=3),
        "temperature": st.lists(_some(TEMPERATURES), min_size=1, max_size=3),
        "kind": st.lists(_kinds, min_size=1, max_size=2),
        "tags": st.lists(_tag, min_size=1, max_size=2),
        "min_score": _some([0.0, 0.3, 0.9]),
        "since_tick": st.integers(0, 6),
    },
)
_adding = st.tuples(
    st.just("add"),
    _agents,
    _some([0, 0, 1, 1, 2, 4, 8]),
    _tiers,
    _some([None, None, "hot", "hot", "warm", "cold"]),
    _some([None, None, None, 1, 3, 6]),
    _kinds,
    _tags,
    _some([None, {"n": 1}, {"s": "text"}]),
)
_operation = st.one_of(
    _adding,
    _adding,
    _adding,
    st.tuples(st.just("set_tier"), _agents, _picks, _tiers),
    st.tuples(st.just("pin"), _agents, _picks),
    st.tuples(st.just("unpin"), _agents, _picks, _some([1, 2, 3])),
    st.tuples(st.just("promote"), _agents, _picks),
    st.tuples(st.just("demote"), _agents, _picks, _some(["warm", "cold", "cold"])),
    st.tuples(st.just("cold_to_hot_to_cold"), _agents, _picks),
    st.tuples(
        st.just("spill"),
        _agents,
        st.none(),
        st.one_of(st.none(), st.lists(_picks, max_size=3)),
    ),
    st.tuples(st.just("spill"), _agents, st.integers(0, 3), st.none()),
    st.tuples(
        st.just("recall"),
        _agents,
        _queries,
        _limits,
        st.booleans(),
        _some([None, None, ["fact"], ["decision", "fact"]]),
        _some([None, None, 0.5]),
    ),
    st.tuples(st.just("search"), _agents, _queries, _limits, _filters, st.booleans()),
    st.tuples(st.just("search"), _agents, _queries, _limits, st.just({}), st.booleans()),
    st.tuples(st.just("relevant"), _agents, _queries, _limits),
    st.tuples(
        st.just("retain"),
        _agents,
        _picks,
        _some(["archive", "delete", "restore", "restore", "forget"]),
    ),
    st.tuples(st.just("compact"), st.one_of(st.none(), _agents)),
    st.tuples(st.just("prune"), st.one_of(st.none(), _agents)),
    st.tuples(st.just("sweep")),
    st.tuples(st.just("advance"), st.integers(1, 3)),
    st.tuples(st.just("pass_time"), st.integers(1, 5)),
)
_operations = st.lists(_operation, min_size=1, max_size=4)

_HASH = """
import sys
from agents import MemoryBank
from property.model import SmallEmbedder
small = {"embedder": SmallEmbedder(), "preset": "vector"}
with MemoryBank.open(sys.argv[1], apply_caps=False, **small) as bank:
    print(bank.state_hash())
"""
_MOST_CHILDREN = 6
"""A fresh process takes half a second, so only the first few of a run are made."""


class TemperatureMachine(TemperatureBank):
    """Memories are added, used, moved, hidden and forgotten, in any order, over time."""

    children = 0

    @initialize(
        auto_spill=_some([True, True, True, False]),
        auto_prune=_some([False, False, True]),
        decays=st.booleans(),
        lifetime=_some([{}, {"ttl_cold_below": 2, "ttl_warm_below": 5, "initial": "hot"}]),
        snapshots=_some([(1, 1), (4, 6), (10_000, 1_000_000)]),
    )
    def make_a_bank(self, auto_spill, auto_prune, decays, lifetime, snapshots) -> None:
        Ledger.SNAPSHOT_ON_CLOSE, Ledger.SNAPSHOT_ON_COMMIT = snapshots
        self.temperature = {
            "auto_spill": auto_spill, "auto_prune": auto_prune, "decays": decays, **lifetime
        }  # fmt: skip
        self.model = TemperatureModel(max_pinned=2, max_critical=3)
        self.folder = next(self.folders)
        self.bank = self.open(self.folder)

    @rule(operations=_operations)
    def operate(self, operations) -> None:
        self.perform_all(operations)
        self.committed()

    @rule(operations=_operations)
    def operate_more(self, operations) -> None:
        """As often again."""
        self.operate(operations)

    @rule(operations=st.lists(_adding, min_size=3, max_size=6))
    def add_several(self, operations) -> None:
        self.perform_all(operations)

    # Transactions

    @rule(operations=_operations)
    def transaction(self, operations) -> None:
        with self.transaction_of_several():
            self.perform_all(operations)

    @rule(operations=_operations)
    def transaction_that_fails(self, operations) -> None:
        with self.undone(), self.transaction_of_several():
            self.perform_all(operations)
            raise Stop

    @rule(before=_operations, inner=_operations, after=_operations)
    def transaction_with_one_inside_that_fails(self, before, inner, after) -> None:
        with self.transaction_of_several():
            self.perform_all(before)
            with self.undone(), self.bank.transaction():
                self.perform_all(inner)
                raise Stop
            self.perform_all(after)

    # Closing and going back

    @rule(in_a_fresh_process=st.booleans())
    def reopen(self, in_a_fresh_process) -> None:
        before = self.bank.state_hash()
        self.bank.close()
        if in_a_fresh_process and TemperatureMachine.children < _MOST_CHILDREN:
            TemperatureMachine.children += 1
            assert child(_HASH, self.folder) == before
        self.bank = self.open(self.folder)
        assert self.bank.state_hash() == before

    @rule()
    def continue_from_a_checkpoint(self) -> None:
        before = self.bank.state_hash()
        file, folder = self.root / "checkpoint", next(self.folders)
        self.bank.checkpoint(file)
        self.bank.close()
        self.bank = MemoryBank.restore(
            file, folder, embedder=SmallEmbedder(), **settings_of(**self.temperature)
        )
        self.folder = folder
        self.history.clear()  # it begins here
        assert self.bank.state_hash() == before

    @rule(pick=_picks)
    def look_at_a_copy(self, pick) -> None:
        """Of the bank as it is, or as it was."""
        self.bank.commit()
        ticks = [None, *(tick for tick in sorted(self.history) if tick < self.model.tick)]
        tick = ticks[pick % len(ticks)]
        now = self.model, self.bank.state_hash()
        model, state = now if tick is None else self.history[tick]
        with MemoryBank.at(self.folder, tick, embedder=SmallEmbedder()) as copy:
            assert_equal(copy, model)
            assert state in (None, copy.state_hash())

    @rule(pick=_picks)
    @precondition(lambda self: self.history)
    def go_back_to_an_earlier_tick(self, pick) -> None:
        tick = sorted(self.history)[pick % len(self.history)]
        if tick == self.model.tick:
            return
        self.bank.close()
        rewind(self.folder, tick)
        self.bank = self.open(self.folder)
        model, state = self.history[tick]
        self.model = model.saved()
        self.history = {each: kept for each, kept in self.history.items() if each < tick}
        assert_equal(self.bank, self.model)
        assert state in (None, self.bank.state_hash())
        self.ids = {
            key: each
            for key, each in self.ids.items()
            if key[1] <= self.model.issued.get(key[0], 0)
        }

    @rule()
    @precondition(lambda self: self.forgotten)
    def what_was_forgotten_is_in_no_file(self) -> None:
        before = self.bank.state_hash()
        self.bank.vacuum()
        self.bank.close()
        for file in self.folder.rglob("*"):
            data = file.read_bytes() if file.is_file() else b""
            for text in self.forgotten:
                assert text[:9].encode() not in data, f"{text} is still in {file.name}"
        self.bank = self.open(self.folder)
        assert self.bank.state_hash() == before

    # After every step

    @invariant()
    def all_views_agree_with_the_model(self) -> None:
        if hasattr(self, "bank"):
            assert_equal(self.bank, self.model)
            self.check_views()

    @invariant()
    def pinned_is_hot_and_active_and_caps_hold(self) -> None:
        if not hasattr(self, "bank"):
            return
        for agent in AGENTS:
            own = [memory for memory, _, _ in look(self.bank).values() if memory.agent_id == agent]
            pinned = [memory for memory in own if memory.tier == PINNED]
            assert all((m.temperature, m.retention) == (HOT, ACTIVE) for m in pinned)
            assert len(pinned) <= self.model.max_pinned
            critical = [m for m in own if m.tier == CRITICAL and m.retention == ACTIVE]
            assert len(critical) <= self.model.max_critical

    @invariant()
    def searching_everything_equals_brute_force(self) -> None:
        if hasattr(self, "bank"):
            for query in ("one", "two", ""):
                self.check_found(AGENTS[0], query, 4)

    @invariant()
    def hot_is_within_its_limits(self) -> None:
        if hasattr(self, "bank") and self.temperature["auto_spill"]:
            for agent in AGENTS:
                self.check_hot(agent)


TestTemperatureMachine = TemperatureMachine.TestCase
TestTemperatureMachine.settings = _PROFILES[os.environ.get("HYPOTHESIS_PROFILE", "default")]


# What the machine found, in the smallest form.


@pytest.fixture
def small(folder: Path) -> Iterator[MemoryBank]:
    with open_small(folder) as bank:
        yield bank


def open_small(folder: Path, **temperature: object) -> MemoryBank:
    chosen = settings_of(auto_spill=True, **temperature)
    return MemoryBank.open(folder, embedder=SmallEmbedder(), preset="vector", **chosen)


def hot_tokens(bank: MemoryBank) -> int:
    return sum(
        cost(each, approximate_tokens) for each in bank.agent("alice").all(temperature="hot")
    )


def test_a_longer_label_makes_no_hot_that_is_over_its_limit(small: MemoryBank) -> None:
    alice = small.agent("alice")
    first, second = (alice.add("x" * (2 * TOKENS - 3), temperature="hot") for _ in range(2))
    assert hot_tokens(small) == TOKENS
    alice.set_tier(first.id, "important")
    assert alice.all(temperature="hot") == [alice.get(first.id)]
    assert alice.get(second.id).temperature.name == "COLD"


@pytest.mark.parametrize("how", ["add", "restore", "set_tier"])
def test_a_longer_label_of_what_makes_room_counts_as_well(small: MemoryBank, how: str) -> None:
    """The label of important is one letter longer than that of critical."""
    alice = small.agent("alice")
    room = 4 * TOKENS - len("- [critical] \n")
    alice.add("x" * room, "critical", temperature="hot")
    assert hot_tokens(small) == TOKENS
    alice.add_many([("one", "critical"), ("two", "critical")])
    three = alice.add("three", "normal")
    if how == "add":
        alice.add("four", "critical")
    elif how == "set_tier":
        alice.set_tier(three.id, "critical")
    else:
        alice.archive(three.id)
        alice.set_tier(three.id, "critical")
        alice.restore(three.id)
    assert alice.find(1).tier.name == "IMPORTANT"
    assert hot_tokens(small) <= TOKENS


def test_a_dry_run_counts_what_pruning_would_archive_after_the_moves(folder: Path) -> None:
    with open_small(folder, auto_prune=True) as bank:
        for number in range(MOST_COLD + 2):
            bank.agent("alice").add(f"decision {number}", kind="decision")
        planned = bank.compact(dry_run=True)
        done = bank.compact()
        assert planned[:4] == done[:4] == (0, 0, MOST_COLD + 2, 2)


def test_a_dry_run_deletes_nothing_that_expired(small: MemoryBank) -> None:
    small.agent("alice").add("warm", ttl=1)
    small.advance(1)
    before = small.state_hash()
    small.compact(dry_run=True)
    assert small.state_hash() == before


@pytest.mark.parametrize("with_another", [False, True])
def test_a_warm_blocker_fades_whatever_else_is_hot(folder: Path, with_another: bool) -> None:
    with open_small(folder, decays=True) as bank:
        alice = bank.agent("alice")
        blocker = alice.add("warm", tags=["blocker"])
        bank.advance(10)
        if with_another:
            alice.add("hot", temperature="hot")
        bank.sweep()
        assert alice.get(blocker.id).temperature.name == "COLD"


def test_going_back_before_a_forget_gives_no_number_twice(
    folder: Path, snapshots_on_close: None
) -> None:
    with open_small(folder) as bank:
        secret = bank.agent("bob").add("secret")
        bank.advance(1)
        bank.agent("bob").forget(secret.id)
    rewind(folder, 0)
    with open_small(folder) as bank:
        state = bank.state_hash()
    with open_small(folder) as bank:
        assert bank.state_hash() == state
        assert bank.agent("bob").add("another").id != secret.id


def test_what_expired_is_unseen_then_deleted_then_purged(small: MemoryBank) -> None:
    alice = small.agent("alice")
    warm = alice.add("warm", ttl=2)
    cold = alice.add("cold", ttl=2, temperature="cold")
    small.advance(1)
    assert len(alice.search("warm", include_cold=True)) == 2
    small.advance(2)
    assert alice.search("warm", include_cold=True) == []
    assert alice.recall("warm").items == ()
    assert "warm" not in alice.get_relevant_memories("warm")
    small.sweep()
    for memory in (warm, cold):
        with pytest.raises(MemoryNotFound, match="restore"):
            alice.get(memory.id)
    small.advance(2 + GRACE)
    small.sweep()
    for memory in (warm, cold):
        with pytest.raises(MemoryNotFound):
            alice.restore(memory.id)


def test_forgetting_leaves_the_hash_of_every_commit_as_it_was(folder: Path) -> None:
    with open_small(folder) as bank:
        secret = bank.agent("alice").add("zqsecretqz", metadata={"also": "zqthisqz"})
        bank.agent("alice").add("other")
        before = commit_hashes(folder)
        bank.agent("alice").forget(secret.id)
        assert commit_hashes(folder)[: len(before)] == before
        state = bank.state_hash()
    with open_small(folder) as bank:
        assert bank.state_hash() == state


def commit_hashes(folder: Path) -> list[bytes]:
    with contextlib.closing(sqlite3.connect(folder / "journal.db")) as database:
        return [row[0] for row in database.execute("SELECT hash FROM commits ORDER BY id")]
