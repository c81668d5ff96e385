"""Many agents with few memories: read, moved and hashed many at once, as one by one."""

import gc
import random
from contextlib import suppress

import numpy as np
import pytest

from agents import MemoryBank
from agents.memory.tiers import Temperature
from agents.storage.columns import table as tables
from agents.storage.columns.agent_columns import AgentColumns
from asking import asked

NAMES = [f"agent_{number:03}" for number in range(120)]


def fill(bank: MemoryBank) -> None:
    chance = random.Random(7)
    for step in range(6):
        bank.advance(step)
        chosen = chance.sample(NAMES, 70)
        bank.add_many([(name, f"{name} saw {step} {n}") for name in chosen for n in range(step)])
        bank.search_many([(name, "saw") for name in chosen[::2]], limit=2)
    for name in NAMES[:5]:
        own = bank.agent(name)
        own.add("pinned", tier="pinned")
        own.add("with all", metadata={"n": 1}, kind="decision", ttl=9)
        own.update(own.all()[0].id, temperature="cold") if name != NAMES[0] else own.recall("saw")


def fresh_hash(bank: MemoryBank) -> str:
    """The hash of the state without anything that was kept of earlier hashes."""
    state = bank.engine.state
    for seat in state.blocks.slots_of(state.blocks):
        state.table.sums.forget(seat)
    state.blocks.touch(state.blocks)
    return bank.state_hash()


def test_a_hash_that_was_kept_up_is_that_of_a_new_look(tmp_path) -> None:
    with MemoryBank.open(tmp_path, preset="vector", storage={"sync": "manual"}) as bank:
        fill(bank)
        assert bank.state_hash() == bank.state_hash()
        bank.add_many([("a_newcomer", "hello"), (NAMES[3], "more")])
        kept = bank.state_hash()
        assert kept == fresh_hash(bank)
        bank.agent(NAMES[7]).add("later")
        assert bank.state_hash() != kept
        with suppress(ZeroDivisionError), bank.transaction():
            bank.add_many([("of_a_moment", "undone"), (NAMES[9], "undone")])
            bank.state_hash()
            raise ZeroDivisionError
        undone = bank.state_hash()
        assert undone == fresh_hash(bank)
        bank.engine.ledger._snapshot_if(0)
    with MemoryBank.open(tmp_path, preset="vector", storage={"sync": "manual"}) as bank:
        assert bank.state_hash() == undone


@pytest.mark.parametrize("rows", [1, 7, 1 << 16])
def test_agents_are_read_together_as_they_were(tmp_path, monkeypatch, rows) -> None:
    """However many rows are copied at once."""
    monkeypatch.setattr(tables, "_AT_ONCE", rows)
    with MemoryBank.open(tmp_path, preset="vector", storage={"sync": "manual"}) as bank:
        fill(bank)
        seen = {name: [tuple(memory) for memory in bank.agent(name).all()] for name in NAMES}
        expected = bank.state_hash()
        bank.engine.ledger._snapshot_if(0)
    with MemoryBank.open(tmp_path, preset="vector", storage={"sync": "manual"}) as bank:
        again = {name: [tuple(memory) for memory in bank.agent(name).all()] for name in NAMES}
        assert again == seen
        assert bank.state_hash() == expected
        bank.add_many([(name, f"{name} more {n}") for n in range(9) for name in NAMES])
        assert bank.state_hash() == fresh_hash(bank)


def looked_at(bank: MemoryBank) -> list[str]:
    """The agents of a bank that have an object."""
    gc.collect()
    found = [own for own in gc.get_objects() if isinstance(own, AgentColumns)]
    return sorted(own.agent_id for own in found if own.table is bank.engine.state.table)


@pytest.mark.long
def test_an_agent_that_nobody_looks_at_is_no_object(tmp_path) -> None:
    with MemoryBank.open(tmp_path, preset="vector", storage={"sync": "manual"}) as bank:
        bank.add_many([(name, f"{name} {n}") for name in NAMES for n in range(5)])
        bank.add_many([(name, "pinned", "pinned") for name in NAMES])
        bank.agent(NAMES[0]).update(bank.agent(NAMES[0]).all()[0].id, temperature="cold")
        expected = bank.state_hash()
        bank.engine.ledger._snapshot_if(0)
    with MemoryBank.open(tmp_path, preset="vector", storage={"sync": "manual"}) as bank:
        assert bank.state_hash() == expected
        assert bank.agents() == NAMES
        state = bank.engine.state
        assert len(state) == 6 * len(NAMES) - 1
        assert sum(state.tier_counts().values()) == 6 * len(NAMES)
        assert state.temperature_counts()[Temperature.HOT] == len(NAMES)
        bank.checkpoint(tmp_path / "file")
        assert looked_at(bank) == []
        bank.advance(3)
        bank.agent(NAMES[4]).search("4")
        assert looked_at(bank) == [NAMES[4]]
        assert state.blocks.rooms().sum() <= 1.4 * len(state)


@pytest.mark.slow
def test_a_tick_that_is_undone_wakes_nobody(tmp_path) -> None:
    with MemoryBank.open(tmp_path, storage={"sync": "manual"}) as bank:
        bank.add_many((name, "the mill is shut") for name in NAMES)
        bank.engine.ledger._snapshot_if(0)
    with MemoryBank.open(tmp_path) as bank:
        with suppress(ZeroDivisionError), bank.transaction():
            bank.advance(bank.tick + 3)
            raise ZeroDivisionError
        assert bank.tick == 0
        assert looked_at(bank) == []


def test_an_agent_that_was_looked_at_is_common_until_it_is_not(tmp_path) -> None:
    with MemoryBank.open(tmp_path, preset="vector", storage={"sync": "manual"}) as bank:
        bank.add_many([(name, "pinned", "pinned") for name in NAMES])
        bank.search_many([(name, "pinned") for name in NAMES])
        assert all(not block.has_extras for block in bank.engine.state.blocks.values())
        bank.agent(NAMES[1]).recall("pinned")
        assert bank.engine.state.blocks[NAMES[1]].has_extras


def test_agents_that_nobody_looks_at_move_with_the_table(tmp_path) -> None:
    with MemoryBank.open(tmp_path, preset="vector", storage={"sync": "manual"}) as bank:
        fill(bank)
        seen = {name: [tuple(memory) for memory in bank.agent(name).all()] for name in NAMES}
        bank.engine.ledger._snapshot_if(0)
    with MemoryBank.open(tmp_path, preset="vector", storage={"sync": "manual"}) as bank:
        rows = len(bank.engine.state.table.norms)
        bank.add_many([("a_newcomer", f"new {n}") for n in range(2 * rows)])
        assert len(bank.engine.state.table.norms) > rows
        assert bank.state_hash() == fresh_hash(bank)
        assert {n: [tuple(each) for each in bank.agent(n).all()] for n in NAMES} == seen


@pytest.mark.parametrize("seed", range(4))
def test_the_hash_is_that_of_a_new_look_after_anything(tmp_path, seed) -> None:
    """After changes, rollbacks, purges and reopening, whoever was looked at."""
    chance = random.Random(seed)

    def change(bank: MemoryBank) -> None:
        some = chance.sample(NAMES, chance.choice([1, 3, 60]))
        bank.add_many([(name, f"{name} {n}") for n in range(chance.randrange(4)) for name in some])
        bank.search_many([(name, "agent") for name in some], limit=chance.randrange(1, 5))
        own = bank.agent(chance.choice(some))
        free = [memory for memory in own.all() if memory.tier]
        for memory in chance.sample(free, min(2, len(free))):
            move = chance.choice(["forget", "delete", "archive", "pin", "cool"])
            heat = ("demote", "cold") if move == "cool" else (move,)
            asked(own, heat[0], memory.id, *heat[1:])
        own.social.trust(next(name for name in NAMES if name != own.agent_id), chance.random())

    for _ in range(4):
        with MemoryBank.open(tmp_path, preset="vector", storage={"sync": "manual"}) as bank:
            for _ in range(5):
                if chance.random() < 0.7:
                    bank.state_hash()
                with suppress(ZeroDivisionError), bank.transaction():
                    change(bank)
                    if chance.random() < 0.4:
                        bank.state_hash()
                    if chance.random() < 0.4:
                        raise ZeroDivisionError
                bank.advance(bank.tick + 1)
            kept = bank.state_hash()
            assert kept == fresh_hash(bank)
            if chance.random() < 0.5:
                bank.engine.ledger._snapshot_if(0)
        with MemoryBank.open(tmp_path, preset="vector", storage={"sync": "manual"}) as bank:
            assert bank.state_hash() == kept


def test_a_hash_that_was_interrupted_leaves_no_agent_half_hashed(tmp_path, monkeypatch) -> None:
    with MemoryBank.open(tmp_path, preset="vector", storage={"sync": "manual"}) as bank:
        fill(bank)
        for name in NAMES[:3]:
            bank.agent(name).social.trust(NAMES[9], 0.5)
        expected = bank.state_hash()
        bank.engine.state.blocks.touch(NAMES)

        def interrupted(*_: object) -> bytes:
            raise KeyboardInterrupt

        monkeypatch.setattr(AgentColumns, "hashed_beside", interrupted)
        with pytest.raises(KeyboardInterrupt):
            bank.state_hash()
        monkeypatch.undo()
        assert bank.state_hash() == expected


def test_only_agents_over_a_cap_are_relieved(tmp_path) -> None:
    settings = {"storage": {"sync": "manual"}, "memory": {"max_pinned": 4, "max_critical": 4}}
    with MemoryBank.open(tmp_path, settings, preset="vector") as bank:
        for number, name in enumerate(NAMES[:8]):
            tier = "pinned" if number % 2 else "critical"
            bank.agent(name).add_many([(f"{n}", tier) for n in range(number % 4 + 1)])
    settings["memory"] = {"max_pinned": 2, "max_critical": 2}
    with MemoryBank.open(tmp_path, settings, preset="vector") as bank:
        for number, name in enumerate(NAMES[:8]):
            tiers = np.array([memory.tier for memory in bank.agent(name).all()])
            assert (tiers == 0).sum() <= 2
            assert (tiers == 1).sum() <= 2
            assert len(tiers) == number % 4 + 1
