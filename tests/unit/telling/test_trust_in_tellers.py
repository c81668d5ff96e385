"""retrieval.trust: what a teller told counts as much as its listener trusts the teller."""

from pathlib import Path
from typing import Any

import pytest

from agents import AgentMemory, Explanation, InvalidInput, MemoryBank
from banks import MakeBank, everything, undone

ON = {"retrieval": {"trust": True}}


def told_bank(make_bank: MakeBank, **options: Any) -> tuple[MemoryBank, AgentMemory]:
    """Alice, of whom bob and carol told something each, and who knows something herself."""
    bank = make_bank(**options)
    alice = bank.agent("alice")
    for teller, text in (("bob", "bob's word <10 0>"), ("carol", "carol's word <9 1>")):
        bank.agent(teller).social.tell("alice", bank.agent(teller).add(text).id)
    alice.add("her own word <8 2>")
    return bank, alice


def found(alice: AgentMemory, **options: Any) -> list[str]:
    return [hit.memory.content.split()[0] for hit in alice.search("<10 0>", 3, **options)]


def of(rows: list[Explanation], word: str) -> Explanation:
    return next(row for row in rows if row.memory.content.startswith(word))


@pytest.mark.parametrize("cold", [False, True])
def test_trust_is_a_factor_of_the_score(make_bank: MakeBank, cold: bool) -> None:
    _, alice = told_bank(make_bank, **ON)
    assert found(alice, include_cold=cold) == ["bob's", "carol's", "her"]
    before = of(alice.explain("<10 0>"), "bob's")
    alice.social.trust("bob", 0.5)
    alice.social.trust("carol", 0)
    assert found(alice, include_cold=cold) == ["her", "bob's", "carol's"]
    after = of(alice.explain("<10 0>"), "bob's")
    assert (before.trust, after.trust) == (1.0, 0.5)
    assert (after.score, after.boost) == (before.score * 0.5, before.boost * 0.5)
    assert after.boosted_score == after.score + after.boost
    assert of(alice.explain("<10 0>"), "her").trust == 1.0


def test_the_boost_of_a_tier_does_not_outvote_distrust(make_bank: MakeBank) -> None:
    bank, alice = told_bank(make_bank, **ON)
    bob = bank.agent("bob")
    bob.social.tell("alice", bob.add("important <10 0>", "important").id)
    alice.social.trust("bob", 0)
    assert found(alice)[:2] == ["carol's", "her"]
    (hit,) = [hit for hit in alice.search("<10 0>", 9) if hit.memory.content.startswith("impo")]
    assert (hit.score, hit.boost, hit.boosted_score) == (0, 0, 0)


def test_a_cold_memory_is_trusted_as_little(make_bank: MakeBank) -> None:
    _, alice = told_bank(make_bank, **ON)
    told = next(each for each in alice.all() if each.content.startswith("bob"))
    alice.social.trust("bob", 0.5)
    warm = of(alice.explain("<10 0>"), "bob's")
    alice.update(told.id, temperature="cold")
    (hit,) = [
        hit for hit in alice.search("<10 0>", 9, include_cold=True) if hit.memory.id == told.id
    ]
    assert (hit.score, hit.boosted_score) == (warm.score, warm.boosted_score)


def test_distrust_does_not_crowd_out_the_candidates(make_bank: MakeBank) -> None:
    bank, alice = told_bank(make_bank, **ON)
    bob = bank.agent("bob")
    for number in range(40):
        bob.social.tell("alice", bob.add(f"spam {number} <10 0>").id)
    alice.social.trust("bob", 0.1)
    assert found(alice)[:2] == ["carol's", "her"]


def test_many_agents_get_what_one_gets(make_bank: MakeBank) -> None:
    bank, alice = told_bank(make_bank, **ON)
    alice.social.trust("bob", 0.25)
    names = ["alice", "bob", "carol"]
    batch = bank.search_many([(name, "<10 0>") for name in names])
    assert batch == [bank.agent(name).search("<10 0>") for name in names]


def test_without_the_setting_trust_changes_nothing(make_bank: MakeBank) -> None:
    _, alice = told_bank(make_bank)
    before = alice.explain("<10 0>")
    alice.social.trust("bob", 0)
    assert alice.explain("<10 0>") == before
    assert alice.social.trust_of("bob") == 0


def test_trust_is_kept(open_bank: MakeBank, snapshots_on_close: None, folder: Path) -> None:
    bank = open_bank()
    alice = bank.agent("alice")
    assert alice.social.trust_of("bob") == 1
    alice.social.trust("bob", 0.2)
    assert bank.agents() == []
    state, head = bank.state_hash(), bank.engine.journal.head
    alice.social.trust("bob", 0.2)
    assert bank.engine.journal.head == head
    with undone(bank):
        alice.social.trust("bob", 0.9)
    assert (alice.social.trust_of("bob"), bank.state_hash()) == (0.2, state)
    for _ in range(2):
        reopened = open_bank()
        assert reopened.agent("alice").social.trust_of("bob") == 0.2
        assert reopened.state_hash() == state
    reopened.agent("alice").social.trust("bob", 1)
    assert not reopened.engine.state.block("alice").holdings


@pytest.mark.parametrize("trust", [-0.1, 1.1, float("nan"), True, "0.5", None])
def test_trust_is_a_number_from_0_to_1(bank: MemoryBank, alice: AgentMemory, trust: Any) -> None:
    alice.add("a")
    before = everything(bank)
    with pytest.raises(InvalidInput, match="from 0 to 1"):
        alice.social.trust("bob", trust)
    with pytest.raises(InvalidInput):
        alice.social.trust("alice", 0.5)
    with pytest.raises(InvalidInput):
        alice.social.trust("*", 0.5)
    assert everything(bank) == before
