"""The oldest of a tier is the memory that entered it first, whatever became of the bank since."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from agents import AgentMemory, MemoryBank
from embedders import Directions

MakeBank = Callable[..., MemoryBank]
CAPS = {"max_pinned": 3, "max_critical": 3}


def pin_the_first_last(alice: AgentMemory) -> None:
    """In one tick, pin b, then c, then a, which was created first."""
    a, b, c, *_ = alice.add_many(["a", "b", "c", "d", "e", "f"])
    for memory in (b, c, a):
        alice.pin(memory.id)


def demoted(alice: AgentMemory) -> list[str]:
    """The order in which pins leave, as more memories are pinned."""
    left = []
    for memory in alice.all("normal"):
        before = {each.content for each in alice.all("pinned")}
        alice.pin(memory.id)
        left += [
            text for text in before if text in {each.content for each in alice.all("critical")}
        ]
    return left


def test_the_sixth_pin_demotes_the_pin_that_was_pinned_first(alice: AgentMemory) -> None:
    old, *others, last = [alice.add(f"m{n}") for n in range(6)]
    for memory in (*others, old, last):
        alice.pin(memory.id)
    assert [each.content for each in alice.all("critical")] == ["m1"]
    assert alice.get(old.id).tier.name == "PINNED"


def test_pins_of_one_tick_are_listed_as_they_were_pinned(alice: AgentMemory) -> None:
    pin_the_first_last(alice)
    assert [each.content for each in alice.get_pinned_memories()] == ["b", "c", "a"]


def test_a_memory_that_is_added_pinned_comes_after_earlier_pins(make_bank: MakeBank) -> None:
    alice = make_bank(memory=CAPS).agent("alice")
    pin_the_first_last(alice)
    alice.add("new", "pinned")
    assert [each.content for each in alice.get_pinned_memories()] == ["c", "a", "new"]


def test_critical_memories_keep_their_order_while_they_are_cold(make_bank: MakeBank) -> None:
    alice = make_bank(memory=CAPS).agent("alice")
    a, b, c, d = alice.add_many(["a", "b", "c", "d"])
    for memory in (c, b, a):
        alice.set_tier(memory.id, "critical")
    for memory in (b, c):
        alice.update(memory.id, temperature="cold")
    alice.set_tier(d.id, "critical")
    assert [each.content for each in alice.all("important")] == ["c"]


def test_a_demotion_is_the_newest_of_its_tier(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"max_pinned": 1, "max_critical": 2}).agent("alice")
    oldest = alice.add("pinned first", "pinned")
    alice.add_many([("x", "critical"), ("y", "critical")])
    alice.add("pinned second", "pinned")
    assert [each.content for each in alice.all("critical")] == ["pinned first", "y"]
    alice.add("z", "critical")
    assert alice.get(oldest.id).tier.name == "CRITICAL"
    assert [each.content for each in alice.all("important")] == ["x", "y"]


def test_the_order_survives_a_reopening(open_bank: MakeBank) -> None:
    pin_the_first_last(open_bank(memory=CAPS).agent("alice"))
    assert demoted(open_bank().agent("alice")) == ["b", "c", "a"]


@pytest.mark.usefixtures("snapshots_on_close")
def test_the_order_survives_a_snapshot(open_bank: MakeBank) -> None:
    pin_the_first_last(open_bank(memory=CAPS).agent("alice"))
    bank = open_bank()
    assert bank.engine.journal.snapshot().commit
    assert demoted(bank.agent("alice")) == ["b", "c", "a"]


def test_the_order_survives_a_checkpoint(open_bank: MakeBank, tmp_path: Path) -> None:
    bank = open_bank(memory=CAPS)
    pin_the_first_last(bank.agent("alice"))
    bank.checkpoint(tmp_path / "now.tmck")
    MemoryBank.restore(tmp_path / "now.tmck", tmp_path / "copy", embedder=Directions()).close()
    with MemoryBank.open(tmp_path / "copy", embedder=Directions()) as copy:
        assert demoted(copy.agent("alice")) == ["b", "c", "a"]


def test_an_undone_pin_leaves_no_trace(make_bank: MakeBank) -> None:
    bank = make_bank(memory=CAPS)
    alice = bank.agent("alice")
    pin_the_first_last(alice)
    with suppress(KeyError), bank.transaction():
        alice.pin(alice.all("normal")[0].id)
        raise KeyError
    assert demoted(alice) == ["b", "c", "a"]


@pytest.mark.parametrize("batched", [True, False])
def test_a_batch_gives_the_same_order_as_single_calls(make_bank: MakeBank, batched: bool) -> None:
    bank = make_bank(memory=CAPS)
    alice = bank.agent("alice")
    alice.add_many([("p1", "pinned"), ("p2", "pinned"), ("c1", "critical"), ("c2", "critical")])
    items = [("plain",), ("p3", "pinned"), ("plain",), ("p4", "pinned"), ("c3", "critical")]
    for part in [items] if batched else [[item] for item in items]:
        alice.add_many(part)
    assert bank.engine.state.block("alice").tier_order == {1: (7, 1)}
    assert [each.content for each in alice.all("critical")] == ["p1", "c2", "c3"]


def test_memories_that_entered_while_archived_return_in_that_order(make_bank: MakeBank) -> None:
    alice = make_bank(memory=CAPS).agent("alice")
    a, b, c, d = alice.add_many(["a", "b", "c", "d"])
    for memory in (c, b, a):
        alice.update(memory.id, retention="archived")
        alice.set_tier(memory.id, "critical")
    for memory in (a, b, c):
        alice.update(memory.id, retention="active")
    alice.set_tier(d.id, "critical")
    assert [each.content for each in alice.all("important")] == ["c"]
    alice.add("e", "critical")
    assert [each.content for each in alice.all("important")] == ["b", "c"]
