"""Any sequence of operations, reopenings and kills leaves a bank as the plain-Python model says.

Whatever adds, moves, hides, uses or forgets memories: none is lost or changed, none is found by
another agent, and what was undone never happened.
"""

import contextlib
import itertools
import shutil
from dataclasses import replace

import pytest
from bank_under_test import BankUnderTest, Stop
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from machine_strategies import AGENTS, adding, agents, caps, operations, picks, switches
from model.comparison import assert_equal, look
from model.memories import ACTIVE, CRITICAL, HOT, PINNED

from agents import (
    InvalidAgentId,
    InvalidContent,
    InvalidInput,
    InvalidMetadata,
    InvalidTier,
    MemoryBank,
    MemoryNotFound,
    Tier,
)
from agents.bank.history import rewind
from asking import asker
from banks import child
from examples import PROFILE, number_by_profile
from tiermem.testing import SmallEmbedder
from tiermem.testing.strategies import contents, not_tiers

pytestmark = pytest.mark.again

# The default run is short and the same every time; the profiles ci and full do more of the same,
# and thorough looks for what they do not find.

_HASH = """
import sys
from agents import MemoryBank
from tiermem.testing import SmallEmbedder
small = {"embedder": SmallEmbedder(), "preset": "vector"}
with MemoryBank.open(sys.argv[1], apply_caps=False, **small) as bank:
    print(bank.state_hash())
"""
_MOST_CHILDREN = 6
"""A fresh process takes half a second, so only the first few of a run are made."""


class BankMachine(BankUnderTest):
    """Whatever people do with a bank, in any order, over time."""

    children = 0

    @initialize(switches=switches)
    def make_a_bank(self, switches) -> None:
        self.begin(switches)

    # Operations

    @rule(operations=operations)
    def operate(self, operations) -> None:
        self.perform_all(operations)

    @rule(operations=operations)
    def operate_more(self, operations) -> None:
        """As often again."""
        self.perform_all(operations)

    @rule(items=st.lists(adding, min_size=3, max_size=6))
    def add_several(self, items) -> None:
        self.perform_all([("add", item) for item in items])

    @rule(agent=agents, texts=st.lists(contents, min_size=6, max_size=6))
    def fill_the_tiers_that_have_caps(self, agent, texts) -> None:
        rules = self.model.rules
        tiers = [(Tier.CRITICAL, 1)] * rules.max_critical + [(Tier.PINNED, 0)] * rules.max_pinned
        items = [(agent, texts[n], tier, None, {}) for n, tier in enumerate(tiers)]
        self.perform_all([("add_many", items)])

    @rule(agent=agents, text=contents, tier=not_tiers, pick=picks)
    def bad_input_changes_nothing(self, agent, text, tier, pick) -> None:
        before = self.bank.state_hash()
        alice = self.bank.agent(agent)
        good = (agent, text, Tier.PINNED, None)
        with pytest.raises(InvalidTier):
            alice.add(text, tier)
        with pytest.raises(InvalidTier):
            self.bank.add_many([good, (agent, text, tier)])
        with pytest.raises(InvalidTier):
            alice.set_tier(self.choose(agent, pick)[0], tier)
        for bad, error in [
            (("*", text), InvalidAgentId),
            ((agent, " \n"), InvalidContent),
            ((agent, "nul \0"), InvalidContent),
            ((agent, "surrogate \ud800"), InvalidContent),
            ((agent, text, 3, {"tier": 0}), InvalidMetadata),
            ((agent, text, 3, {"x": float("nan")}), InvalidMetadata),
            ((agent,), InvalidInput),
        ]:
            with pytest.raises(error):
                self.bank.add_many([good, bad])
        assert self.bank.state_hash() == before

    # Transactions

    @rule(operations=operations, commit_first=st.booleans())
    def transaction_that_succeeds(self, operations, commit_first) -> None:
        with self.transaction(commit_first):
            self.perform_all(operations)

    @rule(operations=operations, commit_first=st.booleans())
    def transaction_that_fails(self, operations, commit_first) -> None:
        with self.undone(), self.transaction(commit_first):
            self.perform_all(operations)
            self.check_views()
            raise Stop

    @rule(before=operations, inner=operations, after=operations, outer_fails=st.booleans())
    def transaction_with_one_inside_that_fails(self, before, inner, after, outer_fails) -> None:
        with self.undone() if outer_fails else contextlib.nullcontext(), self.transaction():
            self.perform_all(before)
            with self.undone(), self.transaction():
                self.perform_all(inner)
                raise Stop
            self.check_views()
            self.perform_all(after)
            if outer_fails:
                raise Stop

    @rule(before=operations, after=operations, nested=st.booleans())
    def transaction_that_fails_after_a_commit(self, before, after, nested) -> None:
        """What commit() was told to keep stays; what came later goes."""
        with self.transaction() if nested else contextlib.nullcontext():
            self.perform_all(before)
            with self.undone() as keep, self.transaction():
                self.perform_all(before)
                self.remember_this_tick()
                keep()
                self.perform_all(after)
                raise Stop
            self.check_views()

    # Closing, killing and going back

    @rule(in_a_fresh_process=st.booleans())
    def reopen(self, in_a_fresh_process) -> None:
        before = self.bank.state_hash()
        self.bank.close()
        if in_a_fresh_process and self.switches.reproducible and self.children < _MOST_CHILDREN:
            BankMachine.children += 1
            assert child(_HASH, self.folder) == before
        self.bank = self.open(self.folder)
        assert self.bank.state_hash() == before

    @rule(caps=caps)
    def reopen_with_other_caps(self, caps) -> None:
        self.commit_to_twin()  # it searches what the bank searched, before the caps change that
        self.bank.close()
        self.twin.close()
        self.model.apply_rules(replace(self.model.rules, **caps))
        self.bank, self.twin = self.open(self.folder), self.open(self.twin_folder)

    @rule()
    def kill_and_reopen(self) -> None:
        self.remember_this_tick()  # else what searches did since the last commit is lost
        before = self.bank.state_hash()
        self.continue_with(self.copy_as_if_killed())
        assert self.bank.state_hash() == before

    @rule(operations=operations)
    def kill_inside_a_transaction_and_reopen(self, operations) -> None:
        self.remember_this_tick()
        before = self.bank.state_hash()
        with self.undone(), self.transaction():
            self.perform_all(operations)
            copy = self.copy_as_if_killed()
            raise Stop
        self.continue_with(copy)
        assert self.bank.state_hash() == before

    @rule()
    def continue_from_a_checkpoint(self) -> None:
        before = self.bank.state_hash()
        file, folder = self.root / "checkpoint", next(self.folders)
        self.bank.checkpoint(file)
        self.bank.close()
        sync = {"sync": self.switches.sync}
        self.bank = MemoryBank.restore(file, folder, **self.options, storage=sync)
        self.folder = folder
        self.history.clear()  # it begins here
        assert self.bank.state_hash() == before

    @rule(pick=picks)
    def look_at_a_copy(self, pick) -> None:
        """Of the bank as it is, or as it was."""
        self.remember_this_tick()
        ticks = [None, *sorted(self.history)]
        tick = ticks[pick % len(ticks)]
        model, state = self.history[self.model.tick if tick is None else tick]
        embedder = SmallEmbedder(reproducible=self.switches.reproducible)
        with MemoryBank.at(self.folder, tick, embedder=embedder) as copy:
            assert_equal(copy, model)
            assert state in (None, copy.state_hash())

    @rule(pick=picks)
    @precondition(lambda self: self.history and not self.switches.wall)  # it would not stay there
    def go_back_to_an_earlier_tick(self, pick) -> None:
        tick = sorted(self.history)[pick % len(self.history)]
        if tick == self.model.tick:
            return
        self.commit_to_twin()
        self.bank.close()
        self.twin.close()
        rewind(self.folder, tick)
        rules, (model, state) = self.model.rules, self.history[tick]
        self.model = model.saved()
        if self.model.apply_rules(rules):
            state = None
        self.twin_folder = next(self.folders)
        shutil.copytree(self.folder, self.twin_folder)
        self.bank, self.twin = self.open(self.folder), self.open(self.twin_folder)
        self.history = {each: kept for each, kept in self.history.items() if each < tick}
        assert_equal(self.bank, self.model)
        assert state in (None, self.bank.state_hash())
        issued = self.model.issued
        self.ids = {key: each for key, each in self.ids.items() if key[1] <= issued.get(key[0], 0)}

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
    def bank_equals_the_model(self) -> None:
        self.check_state()
        self.check_views()
        self.check_counts()

    @invariant()
    def bank_equals_one_that_only_saw_the_commits(self) -> None:
        self.commit_to_twin()
        assert self.bank.state_hash() == self.twin.state_hash()

    @invariant()
    def pinned_is_hot_and_active_and_caps_hold(self) -> None:
        rules, found = self.model.rules, [memory for memory, _, _ in look(self.bank).values()]
        for agent in AGENTS:
            own = [memory for memory in found if memory.agent_id == agent]
            pinned = [memory for memory in own if memory.tier == PINNED]
            assert all((m.temperature, m.retention) == (HOT, ACTIVE) for m in pinned)
            assert len(pinned) <= rules.max_pinned
            critical = [m for m in own if m.tier == CRITICAL and m.retention == ACTIVE]
            assert len(critical) <= rules.max_critical

    @invariant()
    def hot_is_within_its_limits(self) -> None:
        rules = self.model.rules
        for agent, session in itertools.product(AGENTS, (None, "talk", "7")):
            hot, (tokens, facts) = self.model.hot(agent, session), rules.hot_limits(session)
            if sum(m.cost for m in hot) > tokens or len(hot) > facts:
                assert not rules.auto_spill or all(memory.tier == PINNED for memory in hot)

    @invariant()
    def searches_equal_brute_force(self) -> None:
        self.check_searches()

    @invariant()
    @precondition(lambda self: self.ids)
    def no_agent_reaches_the_memory_of_another(self) -> None:
        (owner, _), identifier = max(self.ids.items())
        for agent in AGENTS:
            if agent != owner:
                view = self.bank.agent(agent)
                for call in (
                    view.get, view.pin, view.unpin, view.delete, view.forget,
                    asker(view, "archive"), asker(view, "restore"), asker(view, "promote"),
                    asker(view, "demote"),
                ):  # fmt: skip
                    with pytest.raises(MemoryNotFound):
                        call(identifier)
                with pytest.raises(MemoryNotFound):
                    view.set_tier(identifier, "low")
                with pytest.raises(MemoryNotFound):
                    view.update(identifier, "mine")
                assert view.history(identifier) == []
                with pytest.raises(MemoryNotFound):
                    view.spill(ids=[identifier])


TestBankMachine = BankMachine.TestCase
TestBankMachine.settings = settings(
    max_examples=number_by_profile(2, 4, 35, thorough=3000),
    stateful_step_count=60 if PROFILE == "thorough" else 30,
    derandomize=PROFILE != "thorough",
    deadline=None,
    # Explaining a failure takes longer than finding and shrinking it.
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    print_blob=True,
    report_multiple_bugs=False,
)
