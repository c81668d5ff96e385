"""Any sequence of operations, reopenings and kills leaves a bank as the plain-Python model says."""

import contextlib
import os
from typing import Any

import pytest
from bank_under_test import AGENTS, BankUnderTest, Stop, fields, shape
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from model import ModelBank
from strategies import contents, metadata, not_tiers, queries, spelled_tiers

from agents import (
    InvalidAgentId,
    InvalidContent,
    InvalidInput,
    InvalidMetadata,
    InvalidTier,
    MemoryNotFound,
    Tier,
)
from agents.storage.state.ledger import Ledger

# The default run takes about a minute, and is the same every time; HYPOTHESIS_PROFILE=thorough is
# for finding what it does not.
_COMMON: dict[str, Any] = {
    "deadline": None,
    # Explaining a failure takes longer than finding and shrinking it.
    "phases": [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much],
    "print_blob": True,
    "report_multiple_bugs": False,
}
_PROFILES = {
    "default": settings(max_examples=35, stateful_step_count=30, derandomize=True, **_COMMON),
    "thorough": settings(max_examples=3000, stateful_step_count=60, **_COMMON),
}

# Small, so that tiers are full most of the time.
_cap = st.sampled_from([2, 1, 2, 0, 3])
_caps = st.tuples(_cap, _cap, st.sampled_from(["demote", "demote", "reject"]))
_boosts = st.sampled_from(
    [
        (1.0, 0.3, 0.15, 0.0, -0.1),
        # Differences that similarities of small vectors have too: equal sums of unequal parts.
        (1.0, 0.5, 0.25, 0.0, -0.25),
        (0.0, 0.0, 0.0, 0.0, 0.0),
    ]
)
_agents = st.sampled_from([*AGENTS, AGENTS[0]])
_picks = st.integers(0, 40)

_heats = st.sampled_from(["hot", "warm", "cold"])
_more = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["decision", "message", "fact"]),
        "tags": st.lists(st.sampled_from(["task", "open", "ü"]), max_size=2),
        "temperature": _heats,
    },
)
_adding = st.tuples(_agents, contents, spelled_tiers, metadata, _more)
_operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), _adding),
        st.tuples(st.just("add_many"), st.lists(_adding, max_size=4)),
        st.tuples(st.just("set_tier"), st.tuples(_agents, _picks, spelled_tiers)),
        st.tuples(st.just("pin"), st.tuples(_agents, _picks)),
        st.tuples(st.just("delete"), st.tuples(_agents, _picks)),
        st.tuples(
            st.sampled_from(["archive", "restore", "forget", "promote"]),
            st.tuples(_agents, _picks),
        ),
        st.tuples(st.just("demote"), st.tuples(_agents, _picks, st.sampled_from(["warm", "cold"]))),
        st.tuples(st.just("advance"), st.tuples(st.integers(0, 3))),
    ),
    max_size=4,
)


class BankMachine(BankUnderTest):
    """Whatever people do with a bank, in any order."""

    @initialize(
        caps=_caps,
        boosts=_boosts,
        multiplier=st.integers(1, 3),
        limit=st.integers(0, 4),
        tokens=st.sampled_from([None, None, 20, 60]),
        cache_size=st.sampled_from([0, 1, 65536]),
        reproducible=st.booleans(),
        seed=st.sampled_from([0, 7]),
        snapshots=st.sampled_from([(1, 1), (4, 6), (10_000, 1_000_000)]),
    )
    def make_a_bank(
        self, caps, boosts, multiplier, limit, tokens, cache_size, reproducible, seed, snapshots
    ) -> None:
        Ledger.SNAPSHOT_ON_CLOSE, Ledger.SNAPSHOT_ON_COMMIT = snapshots
        names = ("pinned", "critical", "important", "normal", "low")
        self.fixed = {
            "tier_boosts": dict(zip(names, boosts, strict=True)),
            "candidate_multiplier": multiplier,
            "default_limit": limit,
            "context_tokens": tokens,
        }
        self.more = {"embedder.cache_size": cache_size, "seed": seed}
        self.reproducible = reproducible
        self.caps = caps
        pinned, critical, on_full = caps
        self.model = ModelBank(
            pinned, critical, on_full == "reject", boosts, multiplier, limit, tokens
        )
        self.folder = next(self.folders)
        self.bank = self.open(self.folder)
        self.twin_folder = next(self.folders)
        self.twin = self.open(self.twin_folder)

    # Operations

    @rule(item=_adding)
    def add(self, item) -> None:
        self.perform("add", item)
        self.commit_to_twin()

    @rule(items=st.lists(_adding, max_size=6))
    def add_many(self, items) -> None:
        self.perform("add_many", items)
        self.commit_to_twin()

    @rule(agent=_agents, texts=st.lists(contents, min_size=6, max_size=6))
    def fill_the_tiers_that_have_caps(self, agent, texts) -> None:
        pinned, critical, _ = self.caps
        wanted = [(Tier.CRITICAL, 1)] * critical + [(Tier.PINNED, 0)] * pinned
        items = [(agent, texts[n], tier, None) for n, tier in enumerate(wanted)]
        self.perform("add_many", items)
        self.commit_to_twin()

    @rule(agent=_agents, items=st.lists(st.tuples(contents, spelled_tiers, metadata), max_size=4))
    def add_many_of_one_agent(self, agent, items) -> None:
        rows = [(text, spelled, extra) for text, (_, spelled), extra in items]
        whole = [(agent, *item, {}) for item in items]
        self.perform("add_many", whole, call=lambda bank: bank.agent(agent).add_many(rows))
        self.commit_to_twin()

    @rule(agent=_agents, text=contents, tier=spelled_tiers)
    def record_an_observation(self, agent, text, tier) -> None:
        item = (agent, text, tier, None, {"kind": "observation"})
        self.perform("add", item, call=lambda b: b.agent(agent).record_observation(text, tier[1]))
        self.commit_to_twin()

    @rule(agent=_agents, success=st.booleans(), tier=spelled_tiers)
    def record_an_action(self, agent, success, tier) -> None:
        outcome = "succeeded" if success else "failed"
        kept = {"action_type": "transfer", "success": success}
        self.perform(
            "add",
            (agent, f"transfer {outcome}: 5 to bob", tier, kept, {"kind": "action"}),
            call=lambda b: b.agent(agent).record_action("transfer", "5 to bob", success, tier[1]),
        )
        self.commit_to_twin()

    @rule(agent=_agents, pick=_picks, tier=spelled_tiers)
    def set_tier(self, agent, pick, tier) -> None:
        self.perform("set_tier", (agent, pick, tier))
        self.commit_to_twin()

    @rule(agent=_agents, pick=_picks)
    def pin(self, agent, pick) -> None:
        self.perform("pin", (agent, pick))
        self.commit_to_twin()

    @rule(agent=_agents, pick=_picks)
    def pin_what_is_critical(self, agent, pick) -> None:
        """Where both tiers are full, one moves down into the place that this one leaves."""
        own = [n for n, memory in enumerate(self.model.of(agent)) if memory.tier == Tier.CRITICAL]
        if own:
            self.perform("pin", (agent, own[pick % len(own)]))
            self.commit_to_twin()

    @rule(agent=_agents, pick=_picks, to=spelled_tiers)
    def unpin(self, agent, pick, to) -> None:
        if to[0] is Tier.PINNED:
            with pytest.raises(InvalidTier):
                self.bank.agent(agent).unpin(self.choose(agent, pick)[0], to[1])
        else:
            self.perform("unpin", (agent, pick, to))
            self.commit_to_twin()

    @rule(agent=_agents, pick=_picks)
    def delete(self, agent, pick) -> None:
        self.perform("delete", (agent, pick))
        self.commit_to_twin()

    @rule(
        agent=_agents,
        pick=_picks,
        name=st.sampled_from(["archive", "restore", "restore", "forget", "promote"]),
    )
    def retain_or_promote(self, agent, pick, name) -> None:
        self.perform(name, (agent, pick))
        self.commit_to_twin()

    @rule(agent=_agents, pick=_picks, to=st.sampled_from(["warm", "cold"]))
    def demote(self, agent, pick, to) -> None:
        self.perform("demote", (agent, pick, to))
        self.commit_to_twin()

    @rule(delta=st.integers(-2, 3))
    def advance(self, delta) -> None:
        self.perform("advance", (delta,))
        self.commit_to_twin()

    @rule(agent=_agents, text=contents, tier=not_tiers, pick=_picks)
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

    # Searching

    @rule(
        agent=_agents,
        query=queries,
        limit=st.one_of(st.none(), st.integers(0, 6), st.just(10_000)),
        tokens=st.one_of(st.none(), st.integers(1, 60)),
    )
    def search(self, agent, query, limit, tokens) -> None:
        view = self.bank.agent(agent)
        self.check_search(agent, query, limit, tokens)
        self.check_relevant([(agent, query)], limit, tokens)
        explained = view.explain(query, limit, context_tokens=tokens)
        expected = self.model.explain(agent, query, limit, tokens)
        assert [shape(row) for row in explained] == [shape(row) for row in expected]

    @rule(
        requests=st.lists(st.tuples(_agents, queries), max_size=6),
        limit=st.one_of(st.none(), st.integers(0, 6)),
        tokens=st.one_of(st.none(), st.integers(1, 60)),
    )
    def search_many(self, requests, limit, tokens) -> None:
        found = self.used(lambda bank: bank.search_many(requests, limit, context_tokens=tokens))
        assert len(found) == len(requests)
        for (agent, query), hits in zip(requests, found, strict=True):
            expected, left_out = self.model.search(agent, query, limit, tokens)
            assert [shape(hit) for hit in hits] == [shape(row)[:-2] for row in expected]
            assert [fields(m) for m in hits.pinned_left_out] == [fields(m) for m in left_out]
        for (agent, query), hits in zip(requests, found, strict=True):
            self.count(agent, query, hits)
        self.check_relevant(requests, limit, tokens)

    def check_relevant(self, requests, limit, tokens) -> None:
        """Texts say what the contexts hold, and these are what the model says."""
        expected = [self.model.relevant(*each, limit, tokens) for each in requests]
        texts = self.used(lambda bank: bank.relevant_many(requests, limit, context_tokens=tokens))
        assert texts == expected
        given = [self.model.context(*each, limit, tokens)[0] for each in requests]
        for (agent, query), rows in zip(requests, given, strict=True):
            self.count(agent, query, rows)

    # Transactions

    @rule(operations=_operations)
    def transaction(self, operations) -> None:
        with self.bank.transaction():
            self.perform_all(operations)
        self.commit_to_twin()

    @rule(operations=_operations)
    def transaction_that_fails(self, operations) -> None:
        with self.undone(), self.bank.transaction():
            self.perform_all(operations)
            self.check_contents()
            raise Stop

    @rule(before=_operations, inner=_operations, after=_operations, outer_fails=st.booleans())
    def transaction_with_one_inside_that_fails(self, before, inner, after, outer_fails) -> None:
        with self.undone() if outer_fails else contextlib.nullcontext(), self.bank.transaction():
            self.perform_all(before)
            with self.undone(), self.bank.transaction():
                self.perform_all(inner)
                raise Stop
            self.check_contents()
            self.perform_all(after)
            if outer_fails:
                raise Stop
        self.commit_to_twin()

    @rule(before=_operations, after=_operations, nested=st.booleans())
    def transaction_that_fails_after_a_commit(self, before, after, nested) -> None:
        """What commit() was told to keep stays; what came later goes."""
        with contextlib.ExitStack() as stack:
            if nested:
                stack.enter_context(self.bank.transaction())
            self.perform_all(before)
            with contextlib.suppress(Stop), self.bank.transaction():
                self.perform_all(before)
                self.bank.commit()
                self.commit_to_twin()
                with self.undone():
                    self.perform_all(after)
                    raise Stop
                raise Stop
            self.check_contents()
        self.commit_to_twin()

    # Reopening

    @rule()
    def reopen(self) -> None:
        before = self.bank.state_hash()
        self.bank.close()
        self.bank = self.open(self.folder)
        assert self.bank.state_hash() == before

    @rule(caps=_caps)
    def reopen_with_other_caps(self, caps) -> None:
        self.commit_to_twin()  # it searches what the bank searched, before the caps change that
        self.bank.close()
        self.twin.close()
        self.caps = caps
        pinned, critical, on_full = caps
        self.model.change_caps(pinned, critical, on_full == "reject")
        self.bank = self.open(self.folder)
        self.twin = self.open(self.twin_folder)

    @rule()
    def kill_and_reopen(self) -> None:
        self.bank.commit()  # else what searches did since the last commit is lost
        before = self.bank.state_hash()
        copy = self.copy_as_if_killed()
        self.continue_with(copy)
        assert self.bank.state_hash() == before

    @rule(operations=_operations)
    def kill_inside_a_transaction_and_reopen(self, operations) -> None:
        self.bank.commit()
        before = self.bank.state_hash()
        with self.undone(), self.bank.transaction():
            self.perform_all(operations)
            copy = self.copy_as_if_killed()
            raise Stop
        self.continue_with(copy)
        assert self.bank.state_hash() == before

    # After every step

    @invariant()
    def bank_equals_the_model(self) -> None:
        self.check_contents()

    @invariant()
    def bank_equals_one_that_only_saw_the_commits(self) -> None:
        self.commit_to_twin()
        assert self.bank.state_hash() == self.twin.state_hash()

    @invariant()
    def caps_hold(self) -> None:
        pinned, critical, _ = self.caps
        for agent in AGENTS:
            assert self.bank.agent(agent).count("pinned") <= pinned
            assert self.bank.agent(agent).count("critical") <= critical

    @invariant()
    def searches_equal_brute_force(self) -> None:
        for agent in AGENTS:
            for query in ("hello", "trade", ""):
                self.check_search(agent, query, 4, None)

    @invariant()
    @precondition(lambda self: self.ids)
    def no_agent_reaches_the_memory_of_another(self) -> None:
        (owner, _), identifier = max(self.ids.items())
        for agent in AGENTS:
            if agent != owner:
                view = self.bank.agent(agent)
                for call in (
                    view.get, view.pin, view.unpin, view.delete, view.archive, view.restore,
                    view.forget, view.promote, view.demote,
                ):  # fmt: skip
                    with pytest.raises(MemoryNotFound):
                        call(identifier)
                with pytest.raises(MemoryNotFound):
                    view.set_tier(identifier, "low")
                with pytest.raises(MemoryNotFound):
                    view.spill(ids=[identifier])


TestBankMachine = BankMachine.TestCase
TestBankMachine.settings = _PROFILES[os.environ.get("HYPOTHESIS_PROFILE", "default")]
