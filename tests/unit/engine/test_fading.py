"""With decay, memories that nobody uses become warm, then cold."""

from pathlib import Path
from typing import Any

import pytest

from agents import Memory, MemoryBank, Retention, Temperature
from agents.simulation.tick.loop import Loop
from banks import MANUAL, MakeBank, undone
from movements import COLD, FADING, HOT, WARM, moved, temperatures
from worlds import Diary, Mind


def faded_at(bank: MemoryBank, memory: Memory, to: Temperature, until: int = 400) -> int:
    """The tick of the sweep that made a memory so."""
    while bank.agent(memory.agent_id).get(memory.id).temperature != to:
        assert bank.tick < until, "it did not fade"
        bank.advance(bank.tick + 1)
        bank.sweep()
    return bank.tick


def test_an_idle_hot_memory_becomes_warm_then_cold(make_bank: MakeBank) -> None:
    bank = make_bank(decay=FADING)
    memory = bank.agent("alice").add("a", temperature="hot")
    assert faded_at(bank, memory, WARM) == 11  # below a half, after more than one half-life
    assert faded_at(bank, memory, COLD) == 21
    bank.advance(9999)
    bank.sweep()
    assert bank.agent("alice").all() == [bank.agent("alice").get(memory.id)]


@pytest.mark.parametrize(
    ("tier", "expected"), [("critical", 81), ("important", 41), ("normal", 21), ("low", 11)]
)
def test_what_matters_more_fades_more_slowly(make_bank: MakeBank, tier: str, expected: int) -> None:
    bank = make_bank(decay=FADING)
    assert faded_at(bank, bank.agent("alice").add("a", tier), COLD) == expected


def test_what_was_used_fades_half_as_fast_from_its_last_use(make_bank: MakeBank) -> None:
    bank = make_bank(decay=FADING)
    alice = bank.agent("alice")
    memory = alice.add("a <1 0>")
    bank.advance(4)
    alice.search("<1 0>")
    assert faded_at(bank, memory, COLD) == 4 + 41


def test_many_memories_fade_each_at_its_time(make_bank: MakeBank) -> None:
    bank = make_bank(decay=FADING)
    expected = {}
    for tick in (0, 3, 7):
        bank.advance(tick)
        for name in ("alice", "bob"):
            agent = bank.agent(name)
            expected[agent.add("low", "low").id] = tick + 11
            expected[agent.add("normal").id] = tick + 21
            expected[agent.add("hot", temperature="hot").id] = tick + 21
    found: dict[str, int] = {}
    for tick in range(8, 60):
        bank.advance(tick)
        bank.sweep()
        for name in ("alice", "bob"):
            for memory in bank.agent(name).all(temperature="cold"):
                found.setdefault(memory.id, tick)
    assert found == expected


def test_a_sweep_after_a_long_pause_catches_up(make_bank: MakeBank) -> None:
    bank = make_bank(decay=FADING)
    alice = bank.agent("alice")
    memory = alice.add("a", temperature="hot")
    bank.advance(500)
    bank.sweep()
    assert alice.get(memory.id).temperature is WARM
    bank.sweep()
    assert alice.get(memory.id).temperature is COLD


def test_pinned_memories_never_fade(make_bank: MakeBank) -> None:
    bank = make_bank(decay=FADING)
    pin = bank.agent("alice").add("a", "pinned")
    bank.advance(10**6)
    bank.sweep()
    assert bank.agent("alice").get(pin.id).temperature is HOT


def test_an_unpinned_memory_fades_again(make_bank: MakeBank) -> None:
    bank = make_bank(decay=FADING)
    alice = bank.agent("alice")
    memory = alice.add("a", "pinned")
    bank.advance(100)
    bank.sweep()
    alice.unpin(memory.id)
    assert faded_at(bank, memory, COLD) <= 121


def test_decay_neither_deletes_nor_filters(make_bank: MakeBank) -> None:
    bank = make_bank(decay=FADING)
    alice = bank.agent("alice")
    added = [alice.add(f"{n} <1 {n}>", n % 4 + 1) for n in range(8)]
    for tick in (50, 100, 1000):
        bank.advance(tick)
        bank.sweep()
        assert {m.retention for m in alice.all()} == {Retention.ACTIVE}
        assert [m.id for m in alice.all()] == [m.id for m in added]
    assert len(alice.search("<1 0>", 50, include_cold=True)) == 8


def test_without_decay_nothing_fades(make_bank: MakeBank) -> None:
    bank = make_bank()
    memory = bank.agent("alice").add("a", temperature="hot")
    bank.advance(10**6)
    bank.sweep()
    assert bank.agent("alice").get(memory.id).temperature is HOT


def test_what_a_rule_keeps_hot_does_not_fade(make_bank: MakeBank) -> None:
    bank = make_bank(decay=FADING)
    alice = bank.agent("alice")
    blocker = alice.add("a", tags=["blocker"], temperature="hot")
    bank.advance(1000)
    bank.sweep()
    assert alice.get(blocker.id).temperature is HOT
    assert moved(bank.compact()) == (0, 0, 0)


def test_hot_memories_fade_where_there_are_no_rules(make_bank: MakeBank) -> None:
    bank = make_bank(decay=FADING, temperature={"rules": []})
    memory = bank.agent("alice").add("a", temperature="hot")
    assert faded_at(bank, memory, WARM) == 11


def test_hot_memories_fade_where_no_rule_speaks_of_them(make_bank: MakeBank) -> None:
    rules = [{"name": "completed", "when": {"kind": "decision"}, "to": "cold"}]
    bank = make_bank(decay=FADING, temperature={"rules": rules})
    memory = bank.agent("alice").add("a", temperature="hot")
    assert faded_at(bank, memory, WARM) == 11


def test_a_preference_fades_as_any_other_hot_memory(make_bank: MakeBank) -> None:
    bank = make_bank(decay=FADING)
    memory = bank.agent("alice").add("a", kind="preference", temperature="hot")
    assert faded_at(bank, memory, WARM) == 11


def test_in_a_simulation_each_agents_memories_fade_once_in_so_many_ticks(
    make_bank: MakeBank,
) -> None:
    bank = make_bank(decay={**FADING, "every": 4})
    world = Diary()
    world.says = lambda agent: ""
    names = ["alice", "bob", "carol"]
    loop = Loop(bank, world, Mind(), names)
    loop.begin([(name, "a", "low") for name in names])
    cold: dict[str, int] = {}
    for tick in range(1, 20):
        loop.tick()
        for name in names:
            if temperatures(bank.agent(name))["a"] is COLD:
                cold.setdefault(name, tick)
    # Due in tick 11, and each when it is its turn: that depends on its name alone.
    assert cold == {"alice": 13, "bob": 12, "carol": 13}


def test_each_tick_of_a_simulation_sweeps(make_bank: MakeBank) -> None:
    bank = make_bank(decay={**FADING, "every": 1})
    world = Diary()
    world.says = lambda agent: ""
    loop = Loop(bank, world, Mind(), ["alice"])
    loop.begin([("alice", "a", "low")])
    for _ in range(11):
        loop.tick()
    assert temperatures(bank.agent("alice"))["a"] is COLD


def test_decay_continues_after_reopening(open_bank: MakeBank) -> None:
    bank = open_bank(decay=FADING)
    memory = bank.agent("alice").add("a", temperature="hot")
    bank.advance(6)
    bank.sweep()
    assert faded_at(open_bank(decay=FADING), memory, WARM) == 11


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


def test_other_agents_make_no_difference_to_when_memories_fade(make_bank: MakeBank) -> None:
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


def test_sweeps_that_were_undone_keep_no_memory_from_fading(make_bank: MakeBank) -> None:
    """A sweep says when an agent's next memory may fade; the tick may go back after it."""
    bank = make_bank(decay=FADING)
    bank.agent("alice").add("it fades late", "critical")
    with undone(bank):
        for tick in range(1, 9):
            bank.advance(tick)
            bank.sweep()
    assert faded_at(bank, bank.agent("alice").add("a", "low"), COLD) == 11
