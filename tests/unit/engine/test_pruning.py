"""Pruning archives the cold memories that are worth least."""

import pytest

from agents import AgentMemory, Memory, MemoryNotFound, Retention
from banks import MakeBank
from movements import COLD, added_hot


def cold_ones(agent: AgentMemory, number: int, tier: str = "normal") -> list[Memory]:
    return [
        agent.add(f"{n} <{n} {number}>", tier, temperature="cold") for n in range(1, number + 1)
    ]


def test_up_to_the_most_nothing_is_pruned(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 3})
    cold_ones(bank.agent("alice"), 3)
    assert bank.prune() == []


def test_the_least_worth_is_pruned_first_and_archived(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 2})
    alice = bank.agent("alice")
    added = [alice.add(f"{n} <1 0>" if n else "0 <0 1>", temperature="cold") for n in range(4)]
    alice.recall("<1 0>", 9, auto_promote=False)  # 0: 0.25 + 0.1, the others: 0.75 + 0.1
    assert bank.prune() == [added[0].id, added[1].id]
    assert alice.get(added[0].id).retention is Retention.ARCHIVED
    assert [m.content for m in alice.all()] == ["2 <1 0>", "3 <1 0>"]
    assert bank.prune() == []


def test_what_was_used_is_pruned_after_what_never_was(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 1, "min_score": 0})
    alice = bank.agent("alice")
    often = alice.add("often <0 1>", temperature="cold", tags=["often"])
    never = alice.add("never <0 1>", temperature="cold")
    alice.search("<1 0>", include_cold=True, tags="often")
    assert alice.get(often.id).access_count == 1
    assert bank.prune() == [never.id]


def test_among_equals_the_oldest_is_pruned_first(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 1})
    added = cold_ones(bank.agent("alice"), 3)
    assert bank.prune() == [added[0].id, added[1].id]


def test_critical_memories_are_never_pruned(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 0})
    alice = bank.agent("alice")
    cold_ones(alice, 3, "critical")
    low = alice.add("low", "low", temperature="cold")
    assert bank.prune() == [low.id]
    assert alice.count("critical") == 3


def test_hot_and_warm_and_pinned_memories_are_never_pruned(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 0})
    alice = bank.agent("alice")
    added_hot(alice, "hot")
    alice.add_many(["warm", ("pin", "pinned")])
    assert bank.prune() == []


def test_a_dry_run_of_pruning_changes_nothing(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 1})
    alice = bank.agent("alice")
    added = cold_ones(alice, 3)
    before = bank.state_hash()
    planned = bank.prune(dry_run=True)
    assert planned == [added[0].id, added[1].id]
    assert bank.state_hash() == before
    assert bank.prune() == planned


def test_the_most_is_for_each_agent(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 2})
    for name in ("alice", "bob"):
        cold_ones(bank.agent(name), 3)
    assert len(bank.prune("bob")) == 1
    assert len(bank.agent("alice").all()) == 3
    assert len(bank.prune()) == 1


def test_compaction_prunes_where_the_settings_say_so(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 1, "auto_prune": True})
    alice = bank.agent("alice")
    for number in range(3):
        alice.add(f"done {number}", kind="decision")
    result = bank.compact()
    assert (result.cold, result.pruned) == (3, 2)
    assert len(alice.all()) == 1
    assert bank.compact().pruned == 0


def test_a_dry_run_of_compaction_says_how_many_it_would_prune(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 1, "auto_prune": True})
    for number in range(3):
        bank.agent("alice").add(f"done {number}", kind="decision")
    planned = bank.compact(dry_run=True)
    assert planned.pruned == bank.compact().pruned == 2


def test_pruned_memories_can_be_restored(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 0})
    alice = bank.agent("alice")
    (memory,) = cold_ones(alice, 1)
    bank.prune()
    assert alice.update(memory.id, retention="active").temperature is COLD
    assert alice.all() == [memory]


def test_pruning_brings_no_expired_memory_back_and_counts_none(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 1})
    alice = bank.agent("alice")
    live = alice.add("live", temperature="cold")
    expired = [alice.add(f"{n}", temperature="cold", ttl=5) for n in range(2)]
    bank.advance(10)
    before = bank.state_hash()
    assert bank.prune(dry_run=True) == []
    assert bank.state_hash() == before
    assert bank.prune() == []
    assert alice.get(live.id).retention is Retention.ACTIVE
    for memory in expired:
        with pytest.raises(MemoryNotFound):
            alice.get(memory.id)
