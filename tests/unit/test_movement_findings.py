"""What a review found, each as a behaviour that holds now."""

import contextlib
import threading
from pathlib import Path
from typing import Any

import pytest

from agents import (
    BankError,
    InvalidInput,
    MemoryBank,
    MemoryNotFound,
    MemoryPinned,
    Retention,
    Temperature,
)
from banks import MANUAL, OpenBank

HOT, WARM, COLD = Temperature


def test_an_expired_cold_memory_takes_no_place_in_hot(make_bank: OpenBank) -> None:
    bank = make_bank(temperature={"hot_max_facts": 1})
    alice = bank.agent("alice")
    old = alice.add("old", tags=["blocker"], temperature="cold")
    alice.add("expired", tags=["blocker"], temperature="cold", ttl=5)
    bank.advance(10)
    assert bank.compact().hot == 1
    assert alice.get(old.id).temperature is HOT
    assert bank.compact()[:3] == (0, 0, 0)


def test_pruning_brings_no_expired_memory_back_and_counts_none(make_bank: OpenBank) -> None:
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


def test_promoting_what_can_not_fit_beside_the_pinned_changes_nothing(make_bank: OpenBank) -> None:
    alice = make_bank(temperature={"hot_max_tokens": 60}).agent("alice")
    alice.add("p " * 70, "pinned")
    hot = alice.add("tiny", temperature="hot")
    for heat in (WARM, COLD):
        large = alice.add("w " * 60, temperature=heat)
        assert alice.promote(large.id) is False
        assert tuple(alice.get(large.id)) == tuple(large)
    assert alice.get(hot.id).temperature is HOT


def test_an_interrupt_right_after_a_commit_hides_no_cold_memory(
    bank: MemoryBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = bank.agent("alice")
    alice.add("first")
    journal = bank.parts.ledger.journal
    append = journal.append

    def interrupted(*arguments: Any) -> None:
        append(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(journal, "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        alice.add("frozen", temperature="cold")
    monkeypatch.undo()
    (cold,) = alice.all(temperature="cold")
    assert alice.get(cold.id).content == "frozen"
    assert alice.promote(cold.id)


def test_what_a_rule_keeps_hot_fades_at_the_same_tick_after_reopening(tmp_path: Path) -> None:
    rules = [
        {"name": "new blockers", "when": {"tag": "blocker"}, "unless": {"age": 14}, "to": "hot"}
    ]

    def left_hot(name: str, reopened: int | None) -> int:
        settings: dict[str, Any] = {
            "storage": MANUAL,
            "decay": {"enabled": True, "half_life": {"normal": 10}},
            "temperature": {"rules": rules},
        }
        bank = MemoryBank.open(tmp_path / name, settings)
        memory = bank.agent("alice").add("a", temperature="hot", tags=["blocker"])
        for tick in range(1, 40):
            if tick == reopened:
                bank.close()
                bank = MemoryBank.open(tmp_path / name, settings)
            bank.advance(tick)
            bank.sweep()
            if bank.agent("alice").get(memory.id).temperature is not HOT:
                break
        bank.close()
        return tick

    assert left_hot("live", None) == left_hot("at 13", 13) == left_hot("at 14", 14) == 14


def test_other_agents_make_no_difference_to_when_memories_fade(make_bank: OpenBank) -> None:
    def faded(others: bool) -> int:
        bank = make_bank(decay={"enabled": True, "half_life": {"normal": 1}})
        bank.agent("z").add("a", temperature="hot")
        for tick in range(1, 60):
            bank.advance(tick)
            if others:
                bank.agent(f"a{tick:02}").add("x")
            bank.sweep(every=3)
            if bank.agent("z").all()[0].temperature is not HOT:
                return tick
        return 0

    assert 0 < faded(others=False) == faded(others=True) < 8


def test_an_undone_inner_transaction_keeps_the_outer_ones_tick(bank: MemoryBank) -> None:
    with bank.transaction():
        bank.advance(1)
        bank.ticks.record({"n": 1}, {"s": 1})
        bank.compact(dry_run=True)
    assert [record for record, _ in bank.ticks.records()] == [{"n": 1}]
    assert bank.ticks.state() == {"s": 1}


def test_pinning_and_archiving_from_two_threads_take_turns(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    for n in range(50):
        memory = alice.add(f"{n}")
        begin = threading.Barrier(2)

        def pin(identifier: str = memory.id, begin: threading.Barrier = begin) -> None:
            begin.wait()
            alice.pin(identifier)

        other = threading.Thread(target=pin)
        other.start()
        begin.wait()
        with contextlib.suppress(MemoryPinned):
            alice.archive(memory.id)
        other.join()
        found = alice.get(memory.id)
        assert (found.temperature, found.retention) == (HOT, Retention.ACTIVE)
        alice.unpin(memory.id)


def test_the_store_is_not_rebuilt_inside_a_transaction(bank: MemoryBank) -> None:
    with bank.transaction(), pytest.raises(BankError, match="transaction"):
        bank.repair_store()


@pytest.mark.parametrize("heat", ["hot", "warm", "cold"])
def test_without_grace_what_expired_is_purged_in_the_same_sweep(
    make_bank: OpenBank, heat: str
) -> None:
    bank = make_bank(retention={"grace": 0})
    alice = bank.agent("alice")
    memory = alice.add("a", temperature=heat, ttl=2)
    bank.advance(2)
    bank.sweep()
    with pytest.raises(MemoryNotFound):
        alice.restore(memory.id)
    assert bank.metrics()["memory_purge_count"] == 1


@pytest.mark.parametrize("name", ["tier", "temperature", "kind", "tags"])
def test_a_filter_with_an_empty_list_is_refused(bank: MemoryBank, name: str) -> None:
    empty: dict[str, Any] = {name: []}
    with pytest.raises(InvalidInput, match="empty list"):
        bank.agent("alice").search("x", **empty)


def test_reopening_with_smaller_limits_spills(open_bank: OpenBank) -> None:
    alice = open_bank().agent("alice")
    for n in range(4):
        alice.add(f"{n}", temperature="hot")
    alice = open_bank(temperature={"hot_max_facts": 2}).agent("alice")
    assert len(alice.all(temperature="hot")) == 2


def test_spilling_takes_a_list_of_ids(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a", temperature="hot")
    with pytest.raises(InvalidInput, match="list of ids"):
        alice.spill(ids=memory.id)
