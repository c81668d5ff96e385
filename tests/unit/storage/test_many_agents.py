"""Many agents with few memories: read, moved and hashed many at once, as one by one."""

import gc
import random
from contextlib import suppress

import numpy as np
import pytest

from agents import MemoryBank
from agents.storage.resident import table as tables
from agents.storage.resident.agent_columns import AgentColumns

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
        own.demote(own.all()[0].id, "cold") if name != NAMES[0] else own.recall("saw")


def fresh_hash(bank: MemoryBank) -> str:
    """The hash of the state without anything that was kept of earlier hashes."""
    state = bank.parts.ledger.resident
    for block in state.blocks.values():
        block.memory_sum = None
    state._hash.forget()
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
        bank.parts.ledger._snapshot_if(0)
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
        bank.parts.ledger._snapshot_if(0)
    with MemoryBank.open(tmp_path, preset="vector", storage={"sync": "manual"}) as bank:
        again = {name: [tuple(memory) for memory in bank.agent(name).all()] for name in NAMES}
        assert again == seen
        assert bank.state_hash() == expected
        bank.add_many([(name, f"{name} more {n}") for n in range(9) for name in NAMES])
        assert bank.state_hash() == fresh_hash(bank)


def test_an_agent_that_nobody_looks_at_is_one_object(tmp_path) -> None:
    with MemoryBank.open(tmp_path, preset="vector", storage={"sync": "manual"}) as bank:
        bank.add_many([(name, f"{name} {n}") for name in NAMES for n in range(5)])
        bank.parts.ledger._snapshot_if(0)
    with MemoryBank.open(tmp_path, preset="vector", storage={"sync": "manual"}) as bank:
        blocks = bank.parts.ledger.resident.blocks
        bank.state_hash()
        for block in blocks.values():
            assert isinstance(block, AgentColumns)
            assert block.is_common
            owned = [each for each in gc.get_referents(block) if gc.is_tracked(each)]
            assert {id(each) for each in owned} <= {id(block.table), id(AgentColumns)}
        rows = sum(block.room for block in blocks.values())
        assert rows <= 2 * sum(block.size for block in blocks.values())


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
