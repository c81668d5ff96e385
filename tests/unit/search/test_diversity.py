"""retrieval.diversity: of memories that are alike, the best one stands for all."""

from typing import Any

import pytest

from agents import AgentMemory, ConfigError, MemoryBank
from banks import Engine

TEXTS = ["a <1 0>", "a again <1 0.01>", "a too <1 0.02>", "b <1 1>", "c <0 1>"]


def alice_of(make_bank: Engine, diversity: float, **options: Any) -> AgentMemory:
    bank = make_bank(retrieval={"diversity": diversity}, **options)
    bank.agent("alice").add_many(TEXTS)
    return bank.agent("alice")


def found(alice: AgentMemory, limit: int = 3, **options: Any) -> list[str]:
    return [hit.memory.content.split(" <")[0] for hit in alice.search("<1 0>", limit, **options)]


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize(
    ("diversity", "expected"),
    [
        (0, ["a", "a again", "a too"]),
        (0.3, ["a", "a again", "a too"]),
        (0.6, ["a", "c", "b"]),
        (0.8, ["a", "c", "b"]),
        (1, ["a", "c", "b"]),
    ],
)
def test_the_more_diverse_the_fewer_alike(
    make_bank: Engine, diversity: float, expected: list[str], cold: bool
) -> None:
    assert found(alice_of(make_bank, diversity), include_cold=cold) == expected


def test_cold_memories_take_part(make_bank: Engine) -> None:
    alice = alice_of(make_bank, 0.8)
    for memory in alice.all()[1:4]:
        alice.update(memory.id, temperature="cold")
    assert found(alice, include_cold=True) == ["a", "c", "b"]
    assert found(alice) == ["a", "c"]


def test_what_is_like_a_pinned_memory_comes_later(make_bank: Engine) -> None:
    alice = alice_of(make_bank, 0.8)
    alice.pin(alice.all()[2].id)
    for cold in (False, True):
        assert found(alice, 2, include_cold=cold) == ["a too", "b"]


def test_scores_stay_what_they_are(make_bank: Engine) -> None:
    plain, diverse = alice_of(make_bank, 0), alice_of(make_bank, 0.8)
    scores = [
        {hit.memory.content: hit[1:] for hit in alice.search("<1 0>", 5)}
        for alice in (plain, diverse)
    ]
    assert scores[0] == scores[1]


def test_a_batch_gives_the_same_as_single_searches(make_bank: Engine) -> None:
    bank = make_bank(retrieval={"diversity": 0.6})
    names = [f"a{n}" for n in range(7)]
    bank.add_many([(name, text) for n, name in enumerate(names) for text in TEXTS[n % 3 :]])
    bank.agent("a3").pin(bank.agent("a3").all()[0].id)
    requests = [(name, "<1 0.5>") for name in names]
    together = bank.search_many(requests, 3)
    assert together == [bank.agent(name).search(query, 3) for name, query in requests]


def test_equals_keep_their_order(make_bank: Engine) -> None:
    bank = make_bank(retrieval={"diversity": 1})
    alice = bank.agent("alice")
    alice.add_many([f"same {n} <1 0>" for n in range(4)])
    assert found(alice, 4) == [f"same {n}" for n in (3, 2, 1, 0)]


@pytest.mark.parametrize("cold", [False, True])
def test_explain_says_what_a_diverse_search_gives(make_bank: Engine, cold: bool) -> None:
    alice = alice_of(make_bank, 0.8)
    told = alice.explain("<1 0>", 3, include_cold=cold)
    given = [each.memory.content.split(" <")[0] for each in told if each.rank is not None]
    assert given == found(alice, include_cold=cold)
    assert {each.reason for each in told if each.rank is None} == {"below the cut"}


def test_it_is_a_share() -> None:
    with pytest.raises(ConfigError, match="diversity"):
        MemoryBank.ephemeral(retrieval={"diversity": 1.5})
