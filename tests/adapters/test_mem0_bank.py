"""What ``tiermem.mem0`` shows of a bank whose memories move, end, or belong to notes and boards."""

import asyncio
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mem0_calls import ANN, add, texts

from tiermem import BankLocked, InvalidInput, MemoryBank
from tiermem.mem0 import AsyncMemory, Memory

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # third-party code
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


class Stop(Exception):
    """Leaves a transaction, which undoes it."""


# Undone and restored


def test_a_memory_is_found_by_its_id_after_an_undone_transaction() -> None:
    memory = Memory()
    with suppress(Stop), memory.bank.transaction():
        undone = add(memory, "tea")
        assert memory.get(undone) is not None
        raise Stop
    first = add(memory, "milk", user_id="bob")
    assert (memory.get(first) or {})["memory"] == "milk"
    assert memory.get(undone) is None
    assert memory.history(undone) == []
    memory.delete(first)
    assert memory.get(first) is None


def test_what_is_expired_stays_hidden_after_an_undone_transaction() -> None:
    memory = Memory()
    with suppress(Stop), memory.bank.transaction():
        add(memory, "tea")
        memory.search("tea", filters=ANN)
        raise Stop
    add(memory, "old tea", expiration_date="2020-01-01")
    assert texts(memory.search("tea", filters=ANN)) == []
    assert texts(memory.get_all(filters=ANN)) == []


def test_what_is_expired_stays_hidden_when_it_is_restored() -> None:
    memory = Memory()
    first = add(memory, "tea")
    dated = add(memory, "old tea", expiration_date="2020-01-01")
    memory.delete(dated)
    assert texts(memory.get_all(filters=ANN)) == ["tea"]
    memory.delete(first)
    memory.bank.agent("ann").update(dated, retention="active")
    assert texts(memory.get_all(filters=ANN)) == []
    assert texts(memory.get_all(filters=ANN, show_expired=True)) == ["old tea"]


# Cold


def test_what_is_expired_stays_hidden_when_it_is_cold() -> None:
    memory = Memory()
    first = add(memory, "old tea", expiration_date="2020-01-01")
    memory.bank.agent("ann").update(first, temperature="cold")
    assert texts(memory.get_all(filters=ANN)) == []
    assert texts(memory.search("tea", filters=ANN)) == []
    assert texts(memory.search("tea", filters=ANN, show_expired=True)) == ["old tea"]
    memory.close()


def test_a_search_finds_cold_memories_as_get_all_does() -> None:
    memory = Memory()
    first = add(memory, "the harbour is closed", metadata={"day": 3, "names": ["Ann"]})
    for number in range(3):
        add(memory, f"tea {number}", metadata={"names": ["Bob"]})
    agent = memory.bank.agent("ann")
    agent.update(first, temperature="cold")
    for filters in ({}, {"day": 3}, {"names": {"contains": "Ann"}}, {"day": {"ne": 4}}):
        wanted: dict[str, Any] = {**ANN, **filters}
        assert "the harbour is closed" in texts(memory.get_all(filters=wanted))
        assert texts(memory.search("harbour", filters=wanted, top_k=1)) == ["the harbour is closed"]
    assert texts(memory.search("harbour", filters={**ANN, "day": 4})) == []
    (row,) = memory.search("harbour", filters=ANN, top_k=1, explain=True)["results"]
    assert row["score_details"]["final_score"] == row["score"]
    assert row["score_details"]["semantic_score"] is None
    memory.close()


# Uses


def test_only_what_a_search_of_all_users_gives_counts_as_used() -> None:
    memory = Memory()
    for user in ("ann", "bob"):
        for place in ("bay", "hill") if user == "ann" else ("hill", "bay"):
            memory.add(f"tea {place}", user_id=user, metadata={"place": place}, infer=False)
    memory.search("tea", filters={"user_id": "*", "place": {"contains": "ba"}})
    used = {
        (user, each.content): each.access_count
        for user in ("ann", "bob")
        for each in memory.bank.agent(user).all()
    }
    assert used == {
        ("ann", "tea bay"): 1,
        ("ann", "tea hill"): 0,
        ("bob", "tea bay"): 1,
        ("bob", "tea hill"): 0,
    }


# Notes and boards


def test_deletions_leave_notes_alone(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", store=None) as bank:
        memory = Memory(bank)
        bank.agent("ann").notes.write("MEMORY.md", "# Tea\n\nAnn likes tea\n")
        add(memory, "milk")
        (note,) = [row for row in memory.get_all(filters=ANN)["results"] if row["memory"] != "milk"]
        with pytest.raises(InvalidInput, match="edit the note"):
            memory.delete(note["id"])
        memory.delete_all(**ANN)
        assert memory.get_all(filters=ANN)["results"] == [note]
        assert "Ann likes tea" in texts(memory.search("tea", filters=ANN))[0]


def test_a_reset_purges_boards_and_keeps_their_groups() -> None:
    memory = Memory()
    add(memory, "tea")
    group = memory.bank.group("club", ["ann"])
    group.post("ann", "the club meets")
    group.post("ann", "no fire", "important")
    memory.reset()
    assert group.all() == []
    assert list(group.members()) == ["ann"]
    assert group.post("ann", "again").content == "again"


def test_ids_lead_to_memories_of_users_alone() -> None:
    memory = Memory()
    memory.add("tea", user_id="u" * 300, infer=False)
    post = memory.bank.group("club", ["ann"]).post("ann", "the club meets")
    (name,) = memory.bank.agent("@@names").all()
    for other in (post.id, name.id):
        assert memory.get(other) is None
        assert memory.history(other) == []
        for call in (lambda: memory.delete(other), lambda: memory.update(other, text="x")):  # noqa: B023
            with pytest.raises(InvalidInput, match="not found"):
                call()


# Numbers


@pytest.mark.parametrize("temperature", ["warm", "cold"])
def test_top_k_may_be_any_number(tmp_path: Path, temperature: str) -> None:
    memory = Memory(tmp_path / "bank")
    first = add(memory, "tea")
    if temperature == "cold":
        memory.bank.agent("ann").update(first, temperature="cold")
        memory.bank.sync()  # mem0's store refuses numbers that are too large
    for filters in (ANN, {**ANN, "memory": {"contains": "t"}}):
        for number in (2**31, 2**63, 10**30):
            assert texts(memory.search("tea", filters=filters, top_k=number)) == ["tea"]
            assert texts(memory.get_all(filters=filters, top_k=number)) == ["tea"]
    memory.close()


# Closing


@pytest.mark.parametrize("is_over", [False, True])
def test_a_cancellation_while_it_closes_leaves_no_bank_open(tmp_path: Path, is_over: bool) -> None:
    may_go_on = threading.Event()
    bank = MemoryBank.open(tmp_path / "bank", store=None)

    async def main() -> None:
        memory = AsyncMemory(bank, infer=False, closes=True)

        async def body() -> None:
            async with memory:
                pass

        slow = memory.bank.run(lambda _: may_go_on.wait(20))
        tasks = [asyncio.create_task(slow), asyncio.create_task(body())]
        for _ in range(10):  # from now on, the second waits for the first
            await asyncio.sleep(0)
        tasks[1].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[1]
        if not is_over:  # else the program ends, and the event loop with it
            may_go_on.set()
            await tasks[0]

    asyncio.run(main())
    may_go_on.set()
    for _ in range(1000):
        with suppress(BankLocked):
            MemoryBank.open(tmp_path / "bank", store=None).close()
            return
        threading.Event().wait(0.01)
    pytest.fail("the bank is still open")
