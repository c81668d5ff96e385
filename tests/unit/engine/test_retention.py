"""Active, archived, deleted, purged: who sees a memory, how long, and what is left of it."""

import contextlib
import json
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import (
    AgentMemory,
    InvalidInput,
    Memory,
    MemoryBank,
    MemoryNotFound,
    MemoryPinned,
    Retention,
    Temperature,
    Tier,
    TierFull,
)
from agents.engine.read import nth
from agents.simulation.tick.loop import Loop
from asking import asked, asker
from banks import MANUAL, MakeBank, child, undone, value
from embedders import Counting, Directions
from worlds import Diary, Mind

ACTIVE, ARCHIVED, DELETED = Retention

HOT, WARM, COLD = Temperature

SECRET = "the password is swordfish"

GRACE = 7 * 24


def seen(agent: AgentMemory) -> list[set[str]]:
    """The texts that each way of looking shows, without their directions."""
    found = [
        [hit.memory.content for hit in agent.search("<1 0>", 50)],
        [hit.memory.content for hit in agent.search("", 50)],
        [hit.memory.content for hit in agent.search("<1 0>", 50, include_cold=True)],
        [hit.memory.content for hit in agent.search("", 50, include_cold=True)],
        [item.content for item in agent.recall("<1 0>", 50, auto_promote=False).items],
        [row.memory.content for row in agent.explain("<1 0>", 50) if row.rank],
        agent.get_relevant_memories("<1 0>", 50).splitlines(),
        agent.get_relevant_memories("", 50).splitlines(),
        agent.get_relevant_memories().splitlines(),
    ]
    return [{text.removeprefix("- ").split(" <")[0] for text in texts} for texts in found]


def is_seen(agent: AgentMemory, name: str) -> bool:
    return any(name in shown for shown in seen(agent))


def events(folder: Path) -> list[list[Any]]:
    database = sqlite3.connect(folder / "journal.db")
    try:
        rows = database.execute("SELECT events FROM commits ORDER BY id").fetchall()
    finally:
        database.close()
    return [event for (text,) in rows for event in json.loads(text)]


def files_with(folder: Path, *texts: str) -> list[str]:
    """The files of a folder that have one of these texts in their bytes."""
    needles = [text.encode() for text in texts]
    return [
        path.name
        for path in folder.rglob("*")
        if path.is_file() and any(needle in path.read_bytes() for needle in needles)
    ]


# Archiving


each_temperature = pytest.mark.parametrize("temperature", ["hot", "warm", "cold"])


@each_temperature
def test_an_archived_memory_is_read_by_its_id_and_never_found(
    alice: AgentMemory, temperature: str
) -> None:
    memory = alice.add("gone <1 0>", temperature=temperature)
    alice.add("here <1 0>", temperature="hot")
    assert is_seen(alice, "gone")
    archived = alice.update(memory.id, retention="archived")
    assert archived.retention is ARCHIVED
    assert alice.get(memory.id) == nth(alice.engine, "alice", memory.sequence) == archived
    assert not is_seen(alice, "gone")
    assert [each.content for each in alice.all()] == ["here <1 0>"]
    assert alice.count() == 1


@each_temperature
def test_archiving_leaves_everything_else_alone(bank: MemoryBank, temperature: str) -> None:
    alice = bank.agent("alice")
    memory = alice.add(
        "a", "important", {"k": 1}, kind="entity", tags=["t"], temperature=temperature, ttl=99
    )
    bank.advance(3)
    archived = alice.update(memory.id, retention="archived")
    assert archived == memory._replace(retention=ARCHIVED)
    assert alice.update(memory.id, retention="active") == memory == alice.get(memory.id)
    assert alice.all() == [memory]


def test_archiving_twice_and_restoring_what_is_active_change_nothing(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a")
    assert alice.update(memory.id, retention="active") == memory
    archived, before = alice.update(memory.id, retention="archived"), bank.state_hash()
    assert alice.update(memory.id, retention="archived") == archived
    assert bank.state_hash() == before


@each_temperature
def test_a_restored_memory_is_found_as_before(alice: AgentMemory, temperature: str) -> None:
    memory = alice.add("back <1 0>", temperature=temperature)
    before = seen(alice)
    alice.update(memory.id, retention="archived")
    alice.update(memory.id, retention="active")
    assert seen(alice) == before


def test_an_archived_memory_stays_so_after_reopening(open_bank: MakeBank) -> None:
    alice = open_bank().agent("alice")
    memory = alice.add("a <1 0>", "important", {"k": 1}, temperature="hot")
    alice.update(memory.id, retention="archived")
    alice = open_bank().agent("alice")
    assert not is_seen(alice, "a")
    assert alice.update(memory.id, retention="active") == memory


def test_cold_and_active_is_recallable_archived_and_hot_is_not(alice: AgentMemory) -> None:
    alice.add("cold <1 0>", temperature="cold")
    hot = alice.add("hot <1 0>", temperature="hot")
    alice.update(hot.id, retention="archived")
    assert alice.get(hot.id).temperature is HOT
    assert [item.content for item in alice.recall("<1 0>").items] == ["cold <1 0>"]
    assert "hot <1 0>" not in alice.get_relevant_memories("<1 0>")


def test_the_tier_of_an_archived_memory_can_change(alice: AgentMemory) -> None:
    memory = alice.add("a")
    alice.update(memory.id, retention="archived")
    changed = alice.set_tier(memory.id, "low")
    assert (changed.tier, changed.retention) == (Tier.LOW, ARCHIVED)


# Pinned memories


@pytest.mark.parametrize("method", ["archive", "delete", "forget"])
def test_a_pinned_memory_is_not_taken_away_the_error_says_to_unpin(
    bank: MemoryBank, method: str
) -> None:
    alice = bank.agent("alice")
    pin = alice.add("a", "pinned")
    before = bank.state_hash()
    with pytest.raises(MemoryPinned, match=rf"memory {pin.id} is pinned .*unpin it first"):
        asked(alice, method, pin.id)
    assert bank.state_hash() == before
    alice.unpin(pin.id)
    asked(alice, method, pin.id)
    assert alice.all() == []


# Caps


@pytest.mark.parametrize("method", ["archive", "delete"])
def test_restoring_a_critical_memory_respects_the_cap(make_bank: MakeBank, method: str) -> None:
    alice = make_bank(memory={"max_critical": 2}).agent("alice")
    gone = alice.add("gone", "critical")
    asked(alice, method, gone.id)
    alice.add_many([("b", "critical"), ("c", "critical")])
    alice.update(gone.id, retention="active")
    assert [each.content for each in alice.all("critical")] == ["gone", "c"]


def test_restoring_into_a_full_tier_is_refused_where_the_settings_say_so(
    make_bank: MakeBank,
) -> None:
    own = {"max_critical": 1, "on_tier_full": "reject"}
    alice = make_bank(memory=own).agent("alice")
    gone = alice.add("gone", "critical")
    alice.update(gone.id, retention="archived")
    alice.add("b", "critical")
    with pytest.raises(TierFull):
        alice.update(gone.id, retention="active")
    assert alice.get(gone.id).retention is ARCHIVED


def test_many_archived_critical_memories_come_back_within_the_cap(make_bank: MakeBank) -> None:
    alice = make_bank(memory={"max_critical": 2}).agent("alice")
    gone = []
    for number in range(5):
        gone.append(alice.add(f"{number}", "critical", temperature=("warm", "cold")[number % 2]))
        alice.update(gone[-1].id, retention="archived")
    for memory in gone:
        alice.update(memory.id, retention="active")
        assert alice.count("critical") <= 2
    assert alice.count() == 5


# Deleting


@each_temperature
def test_a_deleted_memory_is_not_found_and_can_be_restored(
    alice: AgentMemory, temperature: str
) -> None:
    memory = alice.add("gone <1 0>", "important", {"k": 1}, temperature=temperature)
    alice.delete(memory.id)
    assert not is_seen(alice, "gone")
    assert nth(alice.engine, "alice", memory.sequence) is None
    assert alice.count() == 0
    with pytest.raises(MemoryNotFound, match="it was deleted; restore it first"):
        alice.get(memory.id)
    assert alice.update(memory.id, retention="active") == memory
    assert is_seen(alice, "gone")


def test_an_archived_memory_can_be_deleted_and_a_deleted_one_not_archived(
    alice: AgentMemory,
) -> None:
    memory = alice.add("a")
    alice.update(memory.id, retention="archived")
    alice.delete(memory.id)
    with pytest.raises(MemoryNotFound):
        alice.update(memory.id, retention="archived")
    assert alice.update(memory.id, retention="active").retention is ACTIVE


def test_a_deleted_memory_is_purged_after_its_grace(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a")
    bank.advance(5)
    alice.delete(memory.id)
    bank.advance(5 + GRACE - 1)
    bank.sweep()
    assert alice.update(memory.id, retention="active") == memory
    alice.delete(memory.id)
    bank.advance(5 + GRACE - 1 + GRACE)
    bank.sweep()
    with pytest.raises(MemoryNotFound):
        alice.update(memory.id, retention="active")


def test_an_archived_memory_is_never_purged_by_time(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a")
    alice.update(memory.id, retention="archived")
    bank.advance(10**6)
    bank.sweep()
    assert alice.update(memory.id, retention="active") == memory


def test_the_grace_is_a_setting(make_bank: MakeBank) -> None:
    bank = make_bank(retention={"grace": 3})
    alice = bank.agent("alice")
    memory = alice.add("a")
    alice.delete(memory.id)
    bank.advance(2)
    bank.sweep()
    alice.update(memory.id, retention="active")
    alice.delete(memory.id)
    bank.advance(5)
    bank.sweep()
    with pytest.raises(MemoryNotFound):
        alice.update(memory.id, retention="active")


def test_each_tick_of_a_simulation_sweeps(make_bank: MakeBank) -> None:
    bank = make_bank(retention={"grace": 2})
    loop = Loop(bank, Diary(), Mind(), ["alice"])
    loop.begin([("alice", "short", 3, None, {"ttl": 2}), ("alice", "long")])
    alice = bank.agent("alice")
    found = []
    for _ in range(5):
        loop.tick()
        stored = bank.engine.state.memory("alice", 1)
        found.append(None if stored is None else stored.retention)
    assert found == [ACTIVE, DELETED, DELETED, None, None]
    assert [memory.content for memory in alice.all()] == ["long"]


def test_the_number_of_a_purged_memory_is_not_given_again(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    gone = alice.add("a")
    alice.forget(gone.id)
    new = alice.add("b")
    assert (new.sequence, new.id == gone.id) == (2, False)


# Lifetimes


@each_temperature
def test_an_expired_memory_is_invisible_before_any_sweep(
    bank: MemoryBank, temperature: str
) -> None:
    alice = bank.agent("alice")
    alice.add("short <1 0>", temperature=temperature, ttl=5)
    alice.add("long <1 0>", temperature="hot")
    bank.advance(4)
    assert is_seen(alice, "short")
    bank.advance(5)
    assert not is_seen(alice, "short")
    assert is_seen(alice, "long")


def test_an_expired_memory_takes_no_place_of_another(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    alice.add("long <1 1>")
    for number in range(10):
        alice.add(f"short {number} <1 0>", "critical", ttl=1)
    bank.advance(1)
    assert [hit.memory.content for hit in alice.search("<1 0>", 1)] == ["long <1 1>"]


@each_temperature
def test_a_sweep_deletes_what_expired_and_later_purges_it(
    bank: MemoryBank, temperature: str
) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a", temperature=temperature, ttl=5)
    bank.advance(4)
    bank.sweep()
    assert alice.get(memory.id).retention is ACTIVE
    bank.advance(5)
    bank.sweep()
    with pytest.raises(MemoryNotFound, match="deleted"):
        alice.get(memory.id)
    bank.advance(5 + GRACE)
    bank.sweep()
    with pytest.raises(MemoryNotFound) as caught:
        alice.get(memory.id)
    assert "deleted" not in str(caught.value)


def test_memories_expire_each_at_its_tick(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    for number, heat in enumerate(["hot", "warm", "cold"] * 4, start=1):
        alice.add(f"{number}", temperature=heat, expires_tick=number)
    for tick in range(1, 13):
        bank.advance(tick)
        bank.sweep()
        assert [each.content for each in alice.all()] == [str(n) for n in range(tick + 1, 13)]


@each_temperature
def test_expiry_is_suspended_while_a_memory_is_pinned(bank: MemoryBank, temperature: str) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a <1 0>", temperature=temperature, ttl=5)
    alice.add("b", ttl=3)
    alice.pin(memory.id)
    for tick in (3, 5, 6, 50):
        bank.advance(tick)
        assert is_seen(alice, "- [pinned] a") or "a" in seen(alice)[0]
        bank.sweep()
        assert alice.get(memory.id).retention is ACTIVE
    assert alice.get(memory.id).expires_tick == 5
    alice.unpin(memory.id)
    assert not is_seen(alice, "a")
    bank.sweep()
    with pytest.raises(MemoryNotFound):
        alice.get(memory.id)


def test_a_pin_demoted_by_the_cap_expires_again(make_bank: MakeBank) -> None:
    bank = make_bank(memory={"max_pinned": 1})
    alice = bank.agent("alice")
    memory = alice.add("a <1 0>", ttl=5)
    alice.pin(memory.id)
    bank.advance(9)
    bank.sweep()
    alice.add("b", "pinned")
    assert not is_seen(alice, "a")


def test_an_archived_memory_does_not_expire(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a", ttl=5)
    alice.update(memory.id, retention="archived")
    bank.advance(9)
    bank.sweep()
    assert alice.get(memory.id).retention is ARCHIVED


def test_lifetimes_are_kept_over_reopening(open_bank: MakeBank) -> None:
    alice = open_bank().agent("alice")
    for heat in ("hot", "warm", "cold"):
        alice.add(f"{heat} <1 0>", temperature=heat, ttl=5)
    bank = open_bank()
    alice = bank.agent("alice")
    assert {each.expires_tick for each in alice.all()} == {5}
    bank.advance(5)
    assert all(not names & {"hot", "warm", "cold"} for names in seen(alice))
    bank.sweep()
    assert alice.all() == []


def test_the_longest_lifetime_comes_back_as_it_was_given(alice: AgentMemory) -> None:
    memory = alice.add("a", ttl=2**62 - 1)
    assert alice.get(memory.id).expires_tick == memory.expires_tick == 2**62 - 1
    with pytest.raises(InvalidInput, match="too long"):
        alice.add("b", ttl=2**62)


def test_a_checkpoint_keeps_temperature_use_lifetime_and_retention(
    open_bank: MakeBank, tmp_path: Path
) -> None:
    bank = open_bank()
    alice = bank.agent("alice")
    for heat in ("hot", "warm", "cold"):
        alice.add(f"{heat} <1 1>", "critical", {"k": 1}, temperature=heat, ttl=9, tags=[heat])
    archived, deleted = alice.add("archived"), alice.add("deleted", temperature="cold")
    bank.advance(2)
    alice.recall("<1 0>")
    alice.search("<1 0>")
    alice.update(archived.id, retention="archived")
    alice.delete(deleted.id)
    expected = bank.state_hash(), [tuple(each) for each in alice.all()]
    bank.checkpoint(tmp_path / "now.tmck")
    own: dict[str, Any] = {"embedder": Directions(), "storage": MANUAL}
    with MemoryBank.restore(tmp_path / "now.tmck", tmp_path / "other", **own) as other:
        there = other.agent("alice")
        assert (other.state_hash(), [tuple(each) for each in there.all()]) == expected
        assert there.get(archived.id).retention is ARCHIVED
        for each in (alice, there):  # the third recall promotes, here as there
            each.recall("<1 0>")
            assert len(each.recall("<1 0>").promoted) == 2
        assert other.state_hash() == bank.state_hash()
        for each in (bank, other):
            each.advance(9)
            each.sweep()
        assert there.all() == alice.all() == []
        assert there.update(deleted.id, retention="active") == deleted


def test_a_sweep_with_nothing_to_do_writes_nothing(open_bank: MakeBank, folder: Path) -> None:
    bank = open_bank()
    bank.agent("alice").add("a", ttl=9)
    before = value(folder, "SELECT count(*) FROM commits")
    bank.sweep()
    assert value(folder, "SELECT count(*) FROM commits") == before


def test_a_sweep_is_one_commit_for_all_agents(open_bank: MakeBank, folder: Path) -> None:
    bank = open_bank()
    for name in ("alice", "bob"):
        bank.agent(name).add("a", ttl=1)
        bank.agent(name).add("b", ttl=1, temperature="cold")
    bank.advance(1)
    before = value(folder, "SELECT count(*) FROM commits")
    bank.sweep()
    assert value(folder, "SELECT count(*) FROM commits") == before + 1


# Forgetting


@each_temperature
@pytest.mark.parametrize("first", ["active", "archived", "deleted"])
def test_a_forgotten_memory_is_gone_whatever_it_was(
    bank: MemoryBank, temperature: str, first: str
) -> None:
    alice = bank.agent("alice")
    memory = alice.add("gone <1 0>", temperature=temperature)
    if first != "active":
        alice.update(memory.id, retention=first)
    alice.forget(memory.id)
    assert not is_seen(alice, "gone")
    calls: list[Callable[[str], object]] = [
        alice.get, alice.delete, alice.forget, alice.pin,
        asker(alice, "restore"), asker(alice, "archive"),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(MemoryNotFound):
            call(memory.id)
    assert nth(alice.engine, "alice", 1) is None


def test_forgetting_another_agents_memory_is_memory_not_found(bank: MemoryBank) -> None:
    memory = bank.agent("bob").add("a")
    with pytest.raises(MemoryNotFound):
        bank.agent("alice").forget(memory.id)
    assert bank.agent("bob").all() == [memory]


def a_life(bank: MemoryBank, temperature: str) -> Memory:
    """A secret with all that can happen to a memory before it is forgotten."""
    alice = bank.agent("alice")
    alice.add("first")
    memory = alice.add(f"{SECRET} <1 0>", metadata={"where": "swordfish inn"}, tags=["sword"])
    alice.add("last")
    bank.advance(1)
    alice.set_tier(memory.id, "critical")
    alice.search("<1 0>")
    alice.update(memory.id, temperature="cold")
    alice.recall("<1 0>")
    alice.update(memory.id, retention="archived")
    alice.update(memory.id, retention="active")
    bank.advance(2)
    alice.set_tier(memory.id, "normal")
    if temperature != "hot":
        alice.update(memory.id, temperature=temperature)
    return alice.get(memory.id)


def test_the_event_remains_without_content(open_bank: MakeBank, folder: Path) -> None:
    bank = open_bank()
    memory = a_life(bank, "warm")
    assert ["add", "alice", 2, 3, memory.content] == next(
        event for event in events(folder) if event[2] == 2
    )[:5]
    bank.agent("alice").forget(memory.id)
    found = events(folder)
    assert ["add", "alice", 2, 3, None, None, None] in found
    assert ["purge", "alice", [2]] in found
    assert "swordfish" not in json.dumps(found)
    assert [each[4] for each in found if each[0] == "add"] == ["first", None, "last"]


@each_temperature
@pytest.mark.parametrize("snapshot", [False, True])
def test_a_bank_reopens_the_same_after_a_forget(
    open_bank: MakeBank, temperature: str, snapshot: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if snapshot:
        monkeypatch.setattr("agents.storage.state.ledger.Ledger.SNAPSHOT_ON_CLOSE", 1)
    bank = open_bank()
    memory = a_life(bank, temperature)
    bank = open_bank()
    bank.agent("alice").forget(memory.id)
    before = bank.state_hash()
    bank = open_bank()
    assert bank.state_hash() == before
    assert [each.content for each in bank.agent("alice").all()] == ["first", "last"]
    bank.agent("alice").add("and on")
    before = bank.state_hash()
    assert open_bank().state_hash() == before


@each_temperature
def test_the_state_after_a_forget_is_that_of_its_replay(
    make_bank: MakeBank, temperature: str
) -> None:
    bank = make_bank()
    memory = a_life(bank, temperature)
    bank.agent("alice").forget(memory.id)
    before, all_of_it = bank.state_hash(), [tuple(each) for each in bank.agent("alice").all()]
    with undone(bank):  # an undo reads the journal again
        bank.agent("alice").add("undone")
    assert bank.state_hash() == before
    assert [tuple(each) for each in bank.agent("alice").all()] == all_of_it


def test_a_purge_in_the_transaction_of_its_add_leaves_no_content(
    open_bank: MakeBank, folder: Path
) -> None:
    bank = open_bank()
    alice = bank.agent("alice")
    with bank.transaction():
        alice.add("before <0 1>")
        secret = alice.add(f"{SECRET} <1 0>", "low", {"where": "swordfish inn"}, tags=["x"])
        cold = alice.add(f"{SECRET} <1 0>", temperature="cold")
        alice.add("after <1 1>")
        alice.forget(secret.id)
        alice.forget(cold.id)
    assert files_with(folder, "swordfish") == []
    assert value(folder, "SELECT count(*) FROM commits") == 1
    vectors = value(folder, "SELECT vectors FROM commits")
    assert vectors[4:12] == bytes(8)
    before = bank.state_hash()
    bank = open_bank()
    assert bank.state_hash() == before
    assert [each.content for each in bank.agent("alice").all()] == ["before <0 1>", "after <1 1>"]
    assert [hit.score for hit in bank.agent("alice").search("<0 1>", 1)] == [1.0]


def test_a_forget_that_is_undone_never_happened(open_bank: MakeBank) -> None:
    bank = open_bank()
    memory = a_life(bank, "warm")
    before = bank.state_hash()
    with undone(bank):
        bank.agent("alice").forget(memory.id)
    assert bank.state_hash() == before
    bank.agent("alice").add("more")
    assert open_bank().agent("alice").get(memory.id) == memory


@each_temperature
@pytest.mark.parametrize("snapshot", [False, True])
def test_forgotten_text_is_in_no_file_after_a_vacuum(
    folder: Path, temperature: str, snapshot: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if snapshot:
        monkeypatch.setattr("agents.storage.state.ledger.Ledger.SNAPSHOT_ON_CLOSE", 1)
    options: dict[str, Any] = {"embedder": Directions(), "storage": MANUAL}
    with MemoryBank.open(folder, **options) as bank:
        memory = a_life(bank, temperature)
    assert files_with(folder, "swordfish")
    with MemoryBank.open(folder, **options) as bank:
        bank.agent("alice").forget(memory.id)
        bank.vacuum()
        assert files_with(folder, "swordfish") == []
    assert files_with(folder, "swordfish") == []
    with MemoryBank.open(folder, **options) as bank:
        assert [each.content for each in bank.agent("alice").all()] == ["first", "last"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::UserWarning:mem0")
def test_forgotten_text_is_in_no_file_of_mem0s_store_either(folder: Path) -> None:
    with MemoryBank.open(folder, embedder=Directions()) as bank:
        memories = [a_life(bank, "warm")]
        memories.append(bank.agent("bob").add(f"cold {SECRET}", temperature="cold"))
        bank.agent("bob").add("bob's")
    assert {"journal.db", "chroma.sqlite3"} <= set(files_with(folder, "swordfish"))
    with MemoryBank.open(folder, embedder=Directions()) as bank:
        for memory in memories:
            bank.agent(memory.agent_id).forget(memory.id)
        bank.vacuum()
        assert files_with(folder, "swordfish") == []
        assert [each.content for each in bank.agent("bob").all()] == ["bob's"]
    assert files_with(folder, "swordfish") == []
    with MemoryBank.open(folder, embedder=Directions()) as bank:
        assert [hit.memory.content for hit in bank.agent("alice").search("")] == ["last", "first"]


def test_what_a_sweep_purged_is_in_no_file_after_a_vacuum(
    open_bank: MakeBank, folder: Path
) -> None:
    bank = open_bank(retention={"grace": 2})
    alice = bank.agent("alice")
    for heat in ("hot", "warm", "cold"):
        alice.add(f"{heat} {SECRET}", temperature=heat, ttl=3)
        alice.delete(alice.add(f"{heat} {SECRET}", temperature=heat).id)
    for tick in (2, 3, 4, 5):
        assert files_with(folder, "swordfish")
        bank.advance(tick)
        bank.sweep()
    bank.vacuum()
    assert files_with(folder, "swordfish") == []


REMEMBERS = """
import sys
from pathlib import Path
from agents import MemoryBank
from embedders import Directions

folder = Path(sys.argv[1])
with MemoryBank.open(folder, embedder=Directions()) as bank:
    alice = bank.agent("alice")
    gone = [alice.add(f"secret {n} swordfish " * 20) for n in range(60)]
    alice.add("kept")
with MemoryBank.open(folder, embedder=Directions()) as bank:
    for memory in gone:
        bank.agent("alice").forget(memory.id)
    bank.vacuum()
    for path in folder.rglob("*"):
        if path.is_file() and b"swordfish" in path.read_bytes():
            print(path.name)
"""


@pytest.mark.slow
def test_a_vacuum_writes_no_leftovers_of_the_processs_memory_to_mem0s_store(folder: Path) -> None:
    """A store that writes memory it never set may write what this process once held there."""
    assert child(REMEMBERS, folder) == ""


def test_a_vacuum_of_a_bank_whose_store_was_never_written_writes_none(
    open_bank: MakeBank, folder: Path
) -> None:
    bank = open_bank()
    bank.agent("alice").add("a")
    before = {path.name for path in folder.iterdir() if path.is_dir()}
    bank.vacuum()
    assert {path.name for path in folder.iterdir() if path.is_dir()} == before


def test_the_embedding_of_a_forgotten_text_is_gone(open_bank: MakeBank, folder: Path) -> None:
    bank = open_bank(embedder=Counting(reproducible=False))
    alice = bank.agent("alice")
    kept, gone = alice.add("kept <1 0>"), alice.add("gone <0 1>")
    assert value(folder, "SELECT count(*) FROM embeddings") == 2
    alice.forget(gone.id)
    assert value(folder, "SELECT count(*) FROM embeddings") == 1
    with bank.transaction():
        alice.forget(alice.add("gone at once <0 1>").id)
    assert value(folder, "SELECT count(*) FROM embeddings") == 1
    alice = open_bank(embedder=Counting(reproducible=False)).agent("alice")
    assert alice.all() == [kept]
    assert value(folder, "SELECT count(*) FROM embeddings") == 1


def test_the_embedding_of_a_text_that_a_sweep_purged_is_gone(
    open_bank: MakeBank, folder: Path
) -> None:
    bank = open_bank(embedder=Counting(reproducible=False), retention={"grace": 1})
    alice = bank.agent("alice")
    alice.add("a", ttl=1)
    alice.delete(alice.add("b").id)
    for tick in (1, 2):
        bank.advance(tick)
        bank.sweep()
    assert alice.all() == []
    assert value(folder, "SELECT count(*) FROM embeddings") == 0


@each_temperature
def test_a_checkpoint_made_after_a_forget_lacks_it(
    open_bank: MakeBank, tmp_path: Path, temperature: str
) -> None:
    bank = open_bank(embedder=Counting(reproducible=False))
    memory = a_life(bank, temperature)
    bank.checkpoint(tmp_path / "before.tmck")
    bank.agent("alice").forget(memory.id)
    bank.checkpoint(tmp_path / "after.tmck")
    own: dict[str, Any] = {"embedder": Counting(reproducible=False), "storage": MANUAL}
    with MemoryBank.restore(tmp_path / "after.tmck", tmp_path / "other", **own) as other:
        assert other.state_hash() == bank.state_hash()
        assert [each.content for each in other.agent("alice").all()] == ["first", "last"]
        assert nth(other.engine, "alice", 2) is None
        assert files_with(tmp_path / "other", "swordfish") == []
    assert b"swordfish" not in (tmp_path / "after.tmck").read_bytes()


@each_temperature
@pytest.mark.parametrize("tick", [0, 1, 2])
def test_an_earlier_tick_still_opens_after_a_forget(
    open_bank: MakeBank, folder: Path, temperature: str, tick: int
) -> None:
    bank = open_bank()
    memory = a_life(bank, temperature)
    bank.advance(3)
    bank.agent("alice").forget(memory.id)
    with MemoryBank.at(folder, tick, embedder=Directions()) as past:
        assert past.tick == tick
        assert [each.content for each in past.agent("alice").all()] == ["first", "last"]
        assert nth(past.engine, "alice", 2) is None


@pytest.mark.usefixtures("snapshots_on_close")
def test_an_earlier_tick_opens_after_a_forget_of_what_a_snapshot_had(
    open_bank: MakeBank, folder: Path
) -> None:
    memory = a_life(open_bank(), "cold")
    bank = open_bank()
    bank.advance(3)
    bank.agent("alice").forget(memory.id)
    for tick in (0, 1, 2, 3):
        with MemoryBank.at(folder, tick, embedder=Directions()) as past:
            assert [each.content for each in past.agent("alice").all()] == ["first", "last"]


def test_the_past_of_what_was_archived_or_deleted_is_as_it_was(
    open_bank: MakeBank, folder: Path
) -> None:
    bank = open_bank()
    alice = bank.agent("alice")
    archived, deleted = alice.add("archived"), alice.add("deleted", temperature="cold")
    bank.advance(1)
    alice.update(archived.id, retention="archived")
    alice.delete(deleted.id)
    bank.advance(2)
    with MemoryBank.at(folder, 0, embedder=Directions()) as past:
        assert past.agent("alice").all() == [archived, deleted]
    with MemoryBank.at(folder, 1, embedder=Directions()) as past:
        assert past.agent("alice").all() == []
        assert past.agent("alice").update(deleted.id, retention="active") == deleted


def test_the_same_text_of_another_memory_stays(bank: MemoryBank) -> None:
    alice, bob = bank.agent("alice"), bank.agent("bob")
    first, second = alice.add("same <1 0>"), alice.add("same <1 0>")
    theirs = bob.add("same <1 0>")
    alice.forget(first.id)
    assert [hit.memory for hit in alice.search("<1 0>")] == [second]
    assert [hit.score for hit in bob.search("<1 0>")] == [1.0]
    assert bob.all() == [theirs]


def test_a_text_that_looks_like_an_event_stays(open_bank: MakeBank) -> None:
    bank = open_bank()
    alice = bank.agent("alice")
    trap = alice.add('["add","alice",2,3,"x"]', metadata={"e": '["add","alice",2,'})
    gone = alice.add("gone")
    eleven = [alice.add(f"more {n}") for n in range(20)]
    alice.forget(gone.id)
    assert open_bank().agent("alice").all() == [trap, *eleven]


def test_a_bank_can_not_be_vacuumed_inside_a_transaction(bank: MemoryBank) -> None:
    with bank.transaction(), pytest.raises(Exception, match="inside a transaction"):
        bank.vacuum()


def test_spilling_or_moving_a_deleted_memory_is_memory_not_found(alice: AgentMemory) -> None:
    memory = alice.add("a", temperature="hot")
    alice.delete(memory.id)
    for call in (
        asker(alice, "promote"),
        asker(alice, "demote"),
        lambda each: alice.spill(ids=[each]),
    ):
        with pytest.raises(MemoryNotFound):
            call(memory.id)


def test_spilling_an_archived_memory_moves_nothing(alice: AgentMemory) -> None:
    memory = alice.add("a", temperature="hot")
    alice.update(memory.id, retention="archived")
    assert alice.spill(ids=[memory.id]).moved == {}
    with pytest.raises(InvalidInput, match="restore"):
        alice.update(memory.id, temperature="warm")


def test_an_expired_memory_that_is_restored_stays(bank: MemoryBank, alice: AgentMemory) -> None:
    memory = alice.add("an offer", ttl=3)
    bank.advance(5)
    bank.sweep()
    assert alice.update(memory.id, retention="active").expires_tick is None
    bank.sweep()
    assert [each.id for each in alice.all()] == [memory.id]


def test_what_expired_counts_for_no_cap(make_bank: MakeBank) -> None:
    bank = make_bank(memory={"max_critical": 2, "on_tier_full": "reject"})
    alice = bank.agent("alice")
    alice.add("warm", "critical", ttl=3)
    alice.add("cold", "critical", ttl=3, temperature="cold")
    bank.advance(3)
    alice.add("new", "critical")
    alice.add("newer", "critical")
    assert alice.count("critical") == 2


def test_after_the_grace_period_nothing_is_restored_even_before_a_sweep(
    make_bank: MakeBank,
) -> None:
    bank = make_bank(retention={"grace": 4})
    alice = bank.agent("alice")
    memory = alice.add("a")
    alice.delete(memory.id)
    bank.advance(3)
    alice.update(memory.id, retention="active")
    alice.delete(memory.id)
    bank.advance(7)
    with pytest.raises(MemoryNotFound, match="grace"):
        alice.update(memory.id, retention="active")


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
            alice.update(memory.id, retention="archived")
        other.join()
        found = alice.get(memory.id)
        assert (found.temperature, found.retention) == (HOT, Retention.ACTIVE)
        alice.unpin(memory.id)


@pytest.mark.parametrize("heat", ["hot", "warm", "cold"])
def test_without_grace_what_expired_is_purged_in_the_same_sweep(
    make_bank: MakeBank, heat: str
) -> None:
    bank = make_bank(retention={"grace": 0})
    alice = bank.agent("alice")
    memory = alice.add("a", temperature=heat, ttl=2)
    bank.advance(2)
    bank.sweep()
    with pytest.raises(MemoryNotFound):
        alice.update(memory.id, retention="active")
    assert bank.metrics()["memory_purge_count"] == 1
