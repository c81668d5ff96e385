"""The status of a bank: what there is, how full it is, and what to do about it."""

import json
from collections.abc import Callable

import pytest

from agents import AgentMemory, MemoryBank
from agents.engine import status as statuses
from agents.engine.status import Amount, Status, Suggestion, TierAmount
from agents.errors import BankClosed, InvalidAgentId
from agents.memory.context import approximate_tokens, cost

MakeBank = Callable[..., MemoryBank]


def found(status: Status, what: str) -> list[Suggestion]:
    return [each for each in status.suggestions if each.what == what]


def only(status: Status, what: str) -> Suggestion:
    (suggestion,) = found(status, what)
    return suggestion


# Counts


def test_an_empty_bank_has_a_status(bank: MemoryBank) -> None:
    status = bank.status()
    assert (status.agents, status.utilization, status.suggestions) == (0, 0.0, ())
    assert status.temperatures == dict.fromkeys(("hot", "warm", "cold"), Amount(0, 0))
    assert status.retention == {"active": 0, "archived": 0, "deleted": 0}
    assert bank.agent("nobody").status().tiers["low"] == TierAmount(0, None, 0)


def test_tokens_are_those_of_lines_in_hot_and_of_texts_elsewhere(alice: AgentMemory) -> None:
    pinned = alice.add("NEVER trust agent_X", "pinned")
    hot = alice.add("[busy]\nwith trading", temperature="hot")
    warm = alice.add("the market opens at nine")
    cold = alice.add("it rained last year, for weeks", temperature="cold")
    status = alice.status()
    assert status.temperatures == {
        "hot": Amount(2, sum(cost(each, approximate_tokens) for each in (pinned, hot))),
        "warm": Amount(1, approximate_tokens(warm.content)),
        "cold": Amount(1, approximate_tokens(cold.content)),
    }
    assert status.utilization == max(status.temperatures["hot"].tokens / 2000, 2 / 50)


def test_a_token_counter_of_your_own_is_used(make_bank: MakeBank) -> None:
    bank = make_bank(count_tokens=lambda text: len(text.split()))
    bank.add_many(
        [("alice", "one two three"), ("alice", "one two", 3, None, {"temperature": "hot"})]
    )
    amounts = bank.status().temperatures
    assert (amounts["warm"].tokens, amounts["hot"].tokens) == (3, 3)  # with the dash of its line


def test_cold_memories_count_for_tiers_and_caps(alice: AgentMemory) -> None:
    alice.add("a", "critical")
    alice.add("b", "critical", temperature="cold")
    alice.add("c", "low", temperature="cold")
    tiers = alice.status().tiers
    assert tiers["critical"] == TierAmount(2, 10, 2)
    assert tiers["low"] == TierAmount(1, None, 1)
    assert tiers["pinned"] == TierAmount(0, 5, 0)


def test_archived_and_deleted_count_for_retention_alone(alice: AgentMemory) -> None:
    kept, hidden, gone, away = (alice.add(text, "critical") for text in "abcd")
    alice.update(hidden.id, temperature="cold")
    alice.update(hidden.id, retention="archived")
    alice.delete(gone.id)
    alice.forget(away.id)
    status = alice.status()
    assert status.retention == {"active": 1, "archived": 1, "deleted": 1}
    assert status.tiers["critical"].items == 1
    assert status.temperatures["cold"] == Amount(0, 0)
    assert status.temperatures["warm"].items == 1
    assert kept.id


def test_of_all_agents_it_is_the_sum_and_the_fullest(bank: MemoryBank) -> None:
    for name, number in (("alice", 3), ("bob", 1), ("carol", 0)):
        bank.agent(name).add("warm")
        for _ in range(number):
            bank.agent(name).add("important thing", "pinned")
    status = bank.status()
    assert (status.agents, status.retention["active"]) == (3, 7)
    assert [(each.agent_id, each.items) for each in status.fullest] == [("alice", 3), ("bob", 1)]
    assert status.utilization == status.fullest[0].utilization == 3 / 50
    assert status.tiers["pinned"] == TierAmount(4, 5, 3)
    assert bank.status("bob") == bank.agent("bob").status()
    assert bank.status("bob").tiers["pinned"] == TierAmount(1, 5, 1)


def test_what_is_not_committed_yet_counts(bank: MemoryBank) -> None:
    with bank.transaction():
        first = bank.agent("alice").add("one")
        bank.agent("alice").update(first.id, temperature="cold")
        assert bank.status().temperatures["cold"].items == 1


def test_a_status_is_json(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    alice.add("cold <1 2>", temperature="cold")
    for _ in range(2):
        alice.recall("<1 2>", auto_promote=False)
    alice.add("hot", temperature="hot")
    as_dict = bank.status().to_dict()
    assert json.loads(json.dumps(as_dict)) == as_dict
    assert as_dict["temperatures"]["hot"] == {"items": 1, "tokens": 2}
    assert as_dict["suggestions"][0]["what"] == "recall"


def test_looking_changes_nothing(bank: MemoryBank) -> None:
    bank.agent("alice").add("a", temperature="cold")
    before = bank.state_hash()
    bank.status()
    bank.status("alice")
    assert bank.state_hash() == before
    assert bank.agents() == ["alice"]


def test_a_wrong_agent_and_a_closed_bank_are_errors(bank: MemoryBank) -> None:
    with pytest.raises(InvalidAgentId):
        bank.status("*")
    bank.close()
    with pytest.raises(BankClosed):
        bank.status()


# Suggestions


def test_nearly_full_hot_suggests_a_spill_of_the_least_relevant(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"hot_max_facts": 10})
    alice = bank.agent("alice")
    ids = [alice.add(f"fact {n}", temperature="hot").id for n in range(9)]
    assert found(alice.status(), "spill") == []
    alice.add("fact 9", temperature="hot")
    said = only(bank.status(), "spill")
    assert said.agent_id == "alice"
    assert said.ids == (ids[0],)
    assert "10 of 10 memories" in said.reason
    assert list(alice.spill(count=1).moved) == [ids[0]]
    assert found(alice.status(), "spill") == []


def test_hot_over_its_limits_is_shown_where_auto_spill_is_off(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"hot_max_facts": 2, "auto_spill": False})
    for n in range(5):
        bank.agent("alice").add(f"fact {n}", temperature="hot")
    status = bank.status()
    assert (status.auto_spill, status.over_limits, status.utilization) == (False, 1, 2.5)
    assert "auto_spill is off" in only(status, "spill").reason
    assert len(only(status, "spill").ids) == 4


def test_too_many_cold_suggest_what_prune_would_do(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 20})
    alice = bank.agent("alice")
    alice.add("kept", "critical", temperature="cold")
    for n in range(19):
        alice.add(f"old {n}", temperature="cold")
    assert found(bank.status(), "prune") == []
    for n in range(12):
        alice.add(f"older {n}", temperature="cold")
    said = only(bank.status(), "prune")
    would = bank.prune(dry_run=True)
    assert "32 cold memories, 12 more" in said.reason
    assert "archive the 12" in said.reason
    assert list(said.ids) == would[:10]


def test_many_cold_memories_are_counted_without_being_read(
    make_bank: MakeBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statuses, "_MOST_COLD", 5)
    bank = make_bank(temperature={"max_cold_items": 2})
    for name, number in (("alice", 6), ("bob", 4)):
        for n in range(number):
            bank.agent(name).add(f"old {n}", temperature="cold")
    alice, bob = found(bank.status(), "prune")
    assert "archive the 4" in alice.reason
    assert (alice.ids, len(bob.ids)) == ((), 2)


def test_what_is_asked_for_repeatedly_is_to_be_promoted(alice: AgentMemory) -> None:
    wanted = alice.add("harbour <1 0>", temperature="cold")
    alice.add("mill <0 1>", temperature="cold")
    alice.recall("<1 0.01>", 1, auto_promote=False)
    assert found(alice.status(), "recall") == []
    alice.recall("<1 0.01>", 1, auto_promote=False)
    said = only(alice.status(), "recall")
    assert said.ids == (wanted.id,)
    assert "up to 2 times" in said.reason
    alice.update(wanted.id, temperature="hot")
    assert found(alice.status(), "recall") == []


def test_agents_may_share_memories(bank: MemoryBank) -> None:
    for name in ("alice", "bob"):
        bank.agent(name).add("coins <10 1>")
        bank.agent(name).add("fish <1 10>")
    assert bank.status().suggestions == ()


# Expired memories


def test_an_expired_memory_is_counted_and_suggested_nowhere(make_bank: MakeBank) -> None:
    own = {"max_cold_items": 1, "hot_max_facts": 2, "auto_spill": False}
    bank = make_bank(temperature=own)
    alice = bank.agent("alice")
    for number in range(4):
        alice.add(f"hot {number} <1 0>", temperature="hot", ttl=2)
        alice.add(f"cold {number} <1 0>", temperature="cold", ttl=2)
        alice.add(f"critical {number} <1 0>", "critical", ttl=2)
        alice.add(f"both {number} <1 0>", "critical", temperature="cold", ttl=2)
    for _ in range(3):
        alice.recall("<1 0>", 9, auto_promote=False)
    bank.advance(1)
    before = {each.what for each in bank.status().suggestions}
    assert {"spill", "prune", "recall"} == before
    assert bank.metrics()["memory_hot_utilization"] > 0
    bank.advance(2)
    status = bank.status()
    assert (status.suggestions, status.utilization, status.over_limits) == ((), 0.0, 0)
    assert status.temperatures == dict.fromkeys(("hot", "warm", "cold"), Amount(0, 0))
    assert [each.items for each in status.tiers.values()] == [0] * 5
    assert status.retention["active"] == 0
    assert bank.metrics()["memory_hot_utilization"] == 0
