"""Promoting and demoting a memory."""

import pytest

from agents import AgentMemory, InvalidInput, MemoryBank, MemoryNotFound, MemoryPinned, Tier
from asking import asked
from banks import MakeBank
from movements import COLD, FADING, HOT, WARM


def test_promoting_makes_hot_and_counts_as_a_use(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a", temperature="cold")
    bank.advance(3)
    assert asked(alice, "promote", memory.id) is True
    now = alice.get(memory.id)
    assert (now.temperature, now.last_access_tick) == (HOT, 3)
    assert asked(alice, "promote", memory.id) is False


@pytest.mark.parametrize(
    ("start", "to", "moves"),
    [
        ("hot", "warm", True), ("hot", "cold", True), ("warm", "cold", True),
        ("warm", "warm", False), ("cold", "cold", False), ("cold", "warm", False),
    ],
)  # fmt: skip
def test_demoting_is_false_where_nothing_changes(
    bank: MemoryBank, start: str, to: str, moves: bool
) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a", temperature=start)
    before = bank.state_hash()
    assert asked(alice, "demote", memory.id, to) is moves
    assert alice.get(memory.id).temperature.name.lower() == (to if moves else start)
    assert (bank.state_hash() == before) is not moves


def test_demoting_makes_warm_unless_told(alice: AgentMemory) -> None:
    memory = alice.add("a", temperature="hot")
    assert alice.update(memory.id, temperature="warm")
    assert alice.get(memory.id).temperature is WARM


def test_demoting_to_hot_is_refused(alice: AgentMemory) -> None:
    memory = alice.add("a")
    with pytest.raises(InvalidInput, match="promote it"):
        asked(alice, "demote", memory.id, "hot")


def test_demoting_a_pinned_memory_says_to_unpin(alice: AgentMemory) -> None:
    pin = alice.add("a", "pinned")
    with pytest.raises(MemoryPinned, match="unpin it first"):
        alice.update(pin.id, temperature="warm")
    assert asked(alice, "promote", pin.id) is False
    assert alice.get(pin.id).temperature is HOT


@pytest.mark.parametrize("method", ["promote", "demote"])
def test_moving_an_archived_memory_says_to_restore_it(alice: AgentMemory, method: str) -> None:
    memory = alice.add("a")
    alice.update(memory.id, retention="archived")
    with pytest.raises(InvalidInput, match="archived; restore it first"):
        asked(alice, method, memory.id)


@pytest.mark.parametrize("method", ["promote", "demote"])
def test_moving_another_agents_memory_is_memory_not_found(bank: MemoryBank, method: str) -> None:
    theirs = bank.agent("bob").add("b")
    with pytest.raises(MemoryNotFound):
        asked(bank.agent("alice"), method, theirs.id)


def test_promoting_what_can_not_fit_beside_the_pinned_changes_nothing(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"hot_max_tokens": 60}).agent("alice")
    alice.add("p " * 70, "pinned")
    hot = alice.add("tiny", temperature="hot")
    for heat in (WARM, COLD):
        large = alice.add("w " * 60, temperature=heat)
        assert asked(alice, "promote", large.id) is False
        assert tuple(alice.get(large.id)) == tuple(large)
    assert alice.get(hot.id).temperature is HOT


def test_no_movement_changes_the_tier(make_bank: MakeBank) -> None:
    bank = make_bank(decay=FADING, temperature={"hot_max_facts": 2, "promote_threshold": 0.5})
    alice = bank.agent("alice")
    added = [alice.add(f"{n} <1 {n}>", n % 4 + 1, temperature="hot") for n in range(8)]
    alice.recall("<1 1>", 8)
    bank.compact()
    bank.advance(1000)
    bank.sweep()
    alice.spill(count=9)
    assert [m.tier for m in alice.all()] == [Tier(m.tier) for m in added]
