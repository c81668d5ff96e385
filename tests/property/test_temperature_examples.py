"""Small banks in which memories leave hot, expire, fade, and are forgotten."""

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from model.comparison import settings_of
from model.memories import Rules

from agents import MemoryBank, MemoryNotFound
from agents.bank.history import rewind
from agents.engine.read import nth
from agents.memory.context import approximate_tokens, cost
from tiermem.testing import SmallEmbedder

TOKENS, MOST_COLD, GRACE = 20, 2, 3
SMALL = Rules(hot_tokens=TOKENS, hot_facts=4, most_cold=MOST_COLD, grace=GRACE)


@pytest.fixture
def small(folder: Path) -> Iterator[MemoryBank]:
    with open_small(folder) as bank:
        yield bank


def open_small(folder: Path, **rules: bool) -> MemoryBank:
    chosen = settings_of(replace(SMALL, **rules))
    return MemoryBank.open(folder, embedder=SmallEmbedder(), storage={"sync": "manual"}, **chosen)


def hot_tokens(bank: MemoryBank) -> int:
    return sum(
        cost(each, approximate_tokens) for each in bank.agent("alice").all(temperature="hot")
    )


def test_a_longer_label_makes_no_hot_that_is_over_its_limit(small: MemoryBank) -> None:
    alice = small.agent("alice")
    first, second = (alice.add("x" * (2 * TOKENS - 3), temperature="hot") for _ in range(2))
    assert hot_tokens(small) == TOKENS
    alice.set_tier(first.id, "important")
    assert alice.all(temperature="hot") == [alice.get(first.id)]
    assert alice.get(second.id).temperature.name == "COLD"


@pytest.mark.parametrize("how", ["add", "restore", "set_tier"])
def test_a_longer_label_of_what_makes_room_counts_as_well(small: MemoryBank, how: str) -> None:
    """The label of important is one letter longer than that of critical."""
    alice = small.agent("alice")
    room = 4 * TOKENS - len("- [critical] \n")
    alice.add("x" * room, "critical", temperature="hot")
    assert hot_tokens(small) == TOKENS
    alice.add_many([("one", "critical"), ("two", "critical")])
    three = alice.add("three", "normal")
    if how == "add":
        alice.add("four", "critical")
    elif how == "set_tier":
        alice.set_tier(three.id, "critical")
    else:
        alice.update(three.id, retention="archived")
        alice.set_tier(three.id, "critical")
        alice.update(three.id, retention="active")
    assert nth(alice.engine, "alice", 1).tier.name == "IMPORTANT"
    assert hot_tokens(small) <= TOKENS


def test_a_dry_run_counts_what_pruning_would_archive_after_the_moves(folder: Path) -> None:
    with open_small(folder, auto_prune=True) as bank:
        for number in range(MOST_COLD + 2):
            bank.agent("alice").add(f"decision {number}", kind="decision")
        planned = bank.compact(dry_run=True)
        done = bank.compact()
        assert planned[:4] == done[:4] == (0, 0, MOST_COLD + 2, 2)


def test_a_dry_run_deletes_nothing_that_expired(small: MemoryBank) -> None:
    small.agent("alice").add("warm", ttl=1)
    small.advance(1)
    before = small.state_hash()
    small.compact(dry_run=True)
    assert small.state_hash() == before


@pytest.mark.parametrize("with_another", [False, True])
def test_a_warm_blocker_fades_whatever_else_is_hot(folder: Path, with_another: bool) -> None:
    with open_small(folder, decays=True) as bank:
        alice = bank.agent("alice")
        blocker = alice.add("warm", tags=["blocker"])
        bank.advance(10)
        if with_another:
            alice.add("hot", temperature="hot")
        bank.sweep()
        assert alice.get(blocker.id).temperature.name == "COLD"


def test_going_back_before_a_forget_gives_no_number_twice(
    folder: Path, snapshots_on_close: None
) -> None:
    with open_small(folder) as bank:
        secret = bank.agent("bob").add("secret")
        bank.advance(1)
        bank.agent("bob").forget(secret.id)
    rewind(folder, 0)
    with open_small(folder) as bank:
        state = bank.state_hash()
    with open_small(folder) as bank:
        assert bank.state_hash() == state
        assert bank.agent("bob").add("another").id != secret.id


def test_what_expired_is_unseen_then_deleted_then_purged(small: MemoryBank) -> None:
    alice = small.agent("alice")
    warm = alice.add("warm", ttl=2)
    cold = alice.add("cold", ttl=2, temperature="cold")
    small.advance(1)
    assert len(alice.search("warm", include_cold=True)) == 2
    small.advance(2)
    assert alice.search("warm", include_cold=True) == []
    assert alice.recall("warm").items == ()
    assert "warm" not in alice.get_relevant_memories("warm")
    small.sweep()
    for memory in (warm, cold):
        with pytest.raises(MemoryNotFound, match="restore"):
            alice.get(memory.id)
    small.advance(2 + GRACE)
    small.sweep()
    for memory in (warm, cold):
        with pytest.raises(MemoryNotFound):
            alice.update(memory.id, retention="active")


def test_forgetting_leaves_the_hash_of_every_commit_as_it_was(folder: Path) -> None:
    with open_small(folder) as bank:
        secret = bank.agent("alice").add("zqsecretqz", metadata={"also": "zqthisqz"})
        bank.agent("alice").add("other")
        before = commit_hashes(folder)
        bank.agent("alice").forget(secret.id)
        assert commit_hashes(folder)[: len(before)] == before
        state = bank.state_hash()
    with open_small(folder) as bank:
        assert bank.state_hash() == state


def commit_hashes(folder: Path) -> list[bytes]:
    with contextlib.closing(sqlite3.connect(folder / "journal.db")) as database:
        return [row[0] for row in database.execute("SELECT hash FROM commits ORDER BY id")]
