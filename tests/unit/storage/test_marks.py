"""Hashes over how memories were used: where they are kept, and that none is left behind."""

from contextlib import suppress

import numpy as np
import pytest

from agents import MemoryBank
from agents.storage.columns.hashes import DIGEST, UseHashes


def _mark(number: int) -> bytes:
    return number.to_bytes(DIGEST, "big")


def test_a_place_is_given_out_once_and_again_when_it_is_free() -> None:
    marks = UseHashes()
    places = np.zeros(3, np.int32)
    assert not marks.exchange(places, [_mark(5), _mark(6), _mark(7)]).any()
    assert sorted(places.tolist()) == [1, 2, 3]
    others = np.zeros(2, np.int32)
    marks.exchange(others, [_mark(1), _mark(2)])
    assert len({*places.tolist(), *others.tolist()}) == len(marks) == 5
    assert marks.take(places[:2]) == 11
    assert places.tolist()[:2] == [0, 0]
    assert len(marks) == 3
    again = np.zeros(3, np.int32)
    assert not marks.exchange(again, [_mark(8)] * 3).any()
    assert not {*again.tolist()} & {*places.tolist(), *others.tolist()}
    assert marks.take(np.concatenate([again, others, places])) == 24 + 3 + 7
    assert len(marks) == 0


def test_what_was_at_a_place_comes_back_when_it_changes() -> None:
    marks = UseHashes()
    places = np.zeros(2, np.int32)
    marks.exchange(places, [_mark(5), _mark(2**255)])
    old = marks.exchange(places, [_mark(1), _mark(2)])
    assert [row.tobytes() for row in old] == [_mark(5), _mark(2**255)]
    assert marks.take(places) == 3


def _bank() -> MemoryBank:
    bank = MemoryBank.ephemeral(preset="vector", seed=1)
    bank.add_many([(name, f"{name} {n}") for name in ("alice", "bob") for n in range(6)])
    bank.state_hash()
    bank.search_many([("alice", "alice 1"), ("bob", "bob 2")], limit=4)
    return bank


def test_memories_that_go_leave_no_hash_behind() -> None:
    with _bank() as bank:
        marks = bank.engine.state.table.use_hashes
        assert len(marks) == 8
        for hit in bank.agent("alice").search("alice 1", limit=6):
            bank.agent("alice").forget(hit.memory.id)
        assert len(marks) == 4


def test_undone_searches_leave_no_hash_behind() -> None:
    with _bank() as bank:
        marks, before = bank.engine.state.table.use_hashes, bank.state_hash()
        for _ in range(3):
            with suppress(KeyError), bank.transaction():
                bank.search_many([("alice", "alice 5"), ("bob", "bob 5")], limit=6)
                bank.agent("alice").add("x")
                raise KeyError
        assert bank.state_hash() == before
        assert len(marks) <= 8


@pytest.mark.parametrize("leaving", [1, 3, 6])
def test_memories_that_cool_and_come_back_are_hashed_as_if_counted_anew(leaving: int) -> None:
    with _bank() as bank:
        resident, alice = bank.engine.state, bank.agent("alice")
        alice.search("alice 1", limit=6)
        going = [memory.id for memory in alice.all()][:leaving]
        for each in going:
            alice.update(each, temperature="cold")
        assert len(resident.table.use_hashes) == 10 - leaving
        for each in going:
            alice.update(each, temperature="hot")
            alice.update(each, temperature="warm")
        assert len(resident.table.use_hashes) == 10
        bank.search_many([("alice", "alice 1"), ("bob", "bob 2")], limit=4)
        kept = bank.state_hash()
        for block in resident.blocks.values():
            block.table.sums.forget(block.slot)
        resident.blocks.touch(resident.blocks)
        assert bank.state_hash() == kept
        assert len(resident.table.use_hashes) == 10
