"""What a bank counts while it is open."""

from collections.abc import Callable
from typing import Any

import pytest

from agents import AgentMemory, MemoryBank, tools
from agents.errors import BankClosed
from agents.simulation import Loop, Observation
from agents.simulation.kept_ticks import ticks_of
from banks import MakeBank, undone
from worlds import Diary, Mind

NAMES = {
    "memory_hot_utilization",
    "memory_spill_count",
    "memory_recall_count",
    "memory_promotion_count",
    "memory_recall_latency_ms",
    "memory_hit_rate",
    "memory_demotion_count",
    "memory_expiration_count",
    "memory_purge_count",
}


def test_a_new_bank_counts_nothing(bank: MemoryBank) -> None:
    assert bank.metrics() == dict.fromkeys(NAMES, 0)


def test_a_closed_bank_has_no_metrics(bank: MemoryBank) -> None:
    bank.close()
    with pytest.raises(BankClosed):
        bank.metrics()


def test_a_search_of_who_only_looks_on_is_a_search_and_no_use(make_bank: MakeBank) -> None:
    bank = make_bank()
    memory = bank.agent("alice").add("salt <1 0>")
    before = bank.state_hash()
    assert not tools.call(bank.agent("alice"), "memory_query", {"query": "<1 0>"}, "read").is_error
    assert bank.metrics()["memory_hit_rate"] == 1.0
    assert bank.agent("alice").get(memory.id).access_count == 0
    assert bank.state_hash() == before


def test_the_hit_rate_is_the_share_of_worded_searches_that_gave_something(
    make_bank: Callable[..., MemoryBank],
) -> None:
    bank = make_bank(temperature={"min_score": 0.5})
    alice = bank.agent("alice")
    alice.add("fish <1 0>")
    alice.search("<1 0>")
    alice.search("<0 1>")  # not similar enough to count
    alice.search(" ")
    bank.search_many([("alice", "<1 0.1>"), ("nobody", "<1 0>"), ("alice", "")])
    alice.search("<1 0>", include_cold=True)
    assert bank.metrics()["memory_hit_rate"] == 3 / 5


def test_making_room_in_a_tier_counts_as_demotion(bank: MemoryBank, alice: AgentMemory) -> None:
    for n in range(7):
        alice.add(f"{n}", "pinned")
    assert bank.metrics()["memory_demotion_count"] == 2


def test_movements_count_once_they_are_committed(bank: MemoryBank, alice: AgentMemory) -> None:
    ids = [alice.add(f"{n} <{n}>").id for n in range(4)]
    for each in ids:
        alice.update(each, temperature="hot")
    alice.update(ids[0], temperature="warm")
    alice.spill(ids=ids[1:3])
    alice.forget(ids[3])
    counted = bank.metrics()
    assert counted["memory_promotion_count"] == 4
    assert counted["memory_demotion_count"] == 0
    assert counted["memory_spill_count"] == 2
    assert counted["memory_purge_count"] == 1


def test_what_is_undone_does_not_count(bank: MemoryBank, alice: AgentMemory) -> None:
    memory = alice.add("one")
    with undone(bank):
        alice.update(memory.id, temperature="hot")
    with bank.transaction():
        alice.update(memory.id, temperature="hot")
        assert bank.metrics()["memory_promotion_count"] == 0
    assert bank.metrics()["memory_promotion_count"] == 1
    alice.add("a plain commit")
    assert bank.metrics()["memory_promotion_count"] == 1
    assert bank.engine.ledger.totals.added == 2


def test_an_expired_memory_counts_when_it_is_swept(bank: MemoryBank, alice: AgentMemory) -> None:
    alice.add("soon gone", ttl=2)
    bank.advance(2)
    assert bank.metrics()["memory_expiration_count"] == 0
    bank.sweep()
    assert bank.metrics()["memory_expiration_count"] == 1


def test_recalls_count_and_take_time(bank: MemoryBank, alice: AgentMemory) -> None:
    alice.add("fish <1 0>")
    assert alice.recall("<1 0>").items
    counted = bank.metrics()
    assert counted["memory_recall_count"] == 1
    assert counted["memory_promotion_count"] == 1
    assert counted["memory_recall_latency_ms"] > 0


def test_hot_utilization_is_that_of_the_fullest_agent(make_bank: Callable[..., Any]) -> None:
    bank = make_bank(temperature={"hot_max_tokens": 10})
    bank.agent("alice").add("a" * 17, temperature="hot")  # a line of 20 characters
    bank.agent("bob").add("b", temperature="hot")
    assert bank.metrics()["memory_hot_utilization"] == 0.5


def test_counts_begin_anew_when_the_bank_is_opened(open_bank: MakeBank) -> None:
    alice = open_bank().agent("alice")
    alice.update(alice.add("one").id, temperature="hot")
    assert open_bank().metrics() == {**dict.fromkeys(NAMES, 0), "memory_hot_utilization": 0.001}


def test_each_tick_of_a_run_records_what_is_hot_warm_and_cold_and_what_moved(
    make_bank: MakeBank,
) -> None:
    bank = make_bank(
        temperature={"hot_max_facts": 1, "hot_max_tokens": 100, "min_score": 0.5},
        retention={"grace": 1},
    )
    world = Diary()
    world.says = lambda agent: Observation("", query="<1 0>")
    loop = Loop(bank, world, Mind(), ["alice", "bob"])
    loop.begin(
        [
            ("alice", "first <1 0>", "normal", None, {"temperature": "hot"}),
            ("alice", "second <1 0>", "normal", None, {"temperature": "hot"}),
            ("alice", "short <0 1>", "normal", None, {"ttl": 2}),
            ("bob", "other <0 1>"),
        ]
    )
    first, second, third = loop.tick(), loop.tick(), loop.tick()
    begun = next(iter(ticks_of(bank).records()))[0]
    assert (begun["hot"], begun["warm"], begun["cold"], begun["spilled"]) == (1, 2, 1, 1)
    assert first["hit_rate"] == 0.5  # of two searches, bob's found nothing that is similar
    assert 0 < first["hot_utilization"] < 1
    assert (second["expired"], second["warm"]) == (1, 1)
    assert (third["purged"], third["promoted"], third["recalled"]) == (1, 0, 0)
