"""Hashes over how memories were used are in an agent's sum as if all were hashed anew."""

from contextlib import suppress

import pytest

from agents import MemoryBank


def _bank() -> MemoryBank:
    bank = MemoryBank.ephemeral(preset="vector", seed=1)
    bank.add_many([(name, f"{name} {n}") for name in ("alice", "bob") for n in range(6)])
    bank.state_hash()
    bank.search_many([("alice", "alice 1"), ("bob", "bob 2")], limit=4)
    return bank


def _hashed_anew(bank: MemoryBank) -> str:
    """The hash of the state after all that is kept of it was forgotten."""
    blocks = bank.engine.state.blocks
    for block in blocks.values():
        block.table.sums.forget(block.slot)
    blocks.touch(blocks)
    return bank.state_hash()


def test_memories_that_go_leave_no_hash_behind() -> None:
    with _bank() as bank:
        for hit in bank.agent("alice").search("alice 1", limit=6):
            bank.agent("alice").forget(hit.memory.id)
        assert bank.state_hash() == _hashed_anew(bank)


def test_undone_searches_leave_no_hash_behind() -> None:
    with _bank() as bank:
        before = bank.state_hash()
        for _ in range(3):
            with suppress(KeyError), bank.transaction():
                bank.search_many([("alice", "alice 5"), ("bob", "bob 5")], limit=6)
                bank.agent("alice").add("x")
                raise KeyError
        assert bank.state_hash() == before == _hashed_anew(bank)


@pytest.mark.parametrize("leaving", [1, 3, 6])
def test_memories_that_cool_and_come_back_are_hashed_as_if_counted_anew(leaving: int) -> None:
    with _bank() as bank:
        alice = bank.agent("alice")
        alice.search("alice 1", limit=6)
        going = [memory.id for memory in alice.all()][:leaving]
        for each in going:
            alice.update(each, temperature="cold")
        for each in going:
            alice.update(each, temperature="hot")
            alice.update(each, temperature="warm")
        bank.search_many([("alice", "alice 1"), ("bob", "bob 2")], limit=4)
        assert bank.state_hash() == _hashed_anew(bank)
