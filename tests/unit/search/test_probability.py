"""How likely a memory is part of the answer: it means the same with every embedder."""

from typing import Any

import numpy as np
import pytest
from hybrid import WEATHER, Make, contents

from agents import InvalidInput, MemoryBank
from agents.memory.filters import Filter
from agents.rules.ranking import probabilities
from agents.search.request import SearchRequest
from agents.tools import call

QUERY = "who sleeps in the old mill?"
TEXTS = [*WEATHER, "The dragon sleeps in the old mill.", "A mill is for sale."]


def test_what_stands_out_is_likely_and_the_rest_is_not(make: Make) -> None:
    alice = make()
    alice.add_many(TEXTS)
    hits = alice.search(QUERY, 10, min_probability=0)
    chances = [hit.relevance_probability or 0.0 for hit in hits]
    assert contents(hits) == contents(alice.search(QUERY, 10))
    assert hits[0].memory.content == "The dragon sleeps in the old mill."
    assert chances[0] > 0.6
    assert chances[1] < 0.5
    assert max(chances[2:]) < 0.05


def test_a_least_probability_leaves_out_what_is_unlikely_but_no_pins(make: Make) -> None:
    alice = make()
    alice.add("Never lend money.", tier="pinned")
    alice.add_many(TEXTS)
    pinned, hit = alice.search(QUERY, 10, min_probability=0.5)
    assert pinned.memory.content == "Never lend money."
    assert hit.memory.content == "The dragon sleeps in the old mill."
    assert pinned.relevance_probability is not None
    assert pinned.relevance_probability < 0.05
    assert [each.relevance_probability for each in alice.search(QUERY, 3)] == [None] * 3
    assert alice.search("", 3, min_probability=0.5) == alice.search("", 3)


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (0.3, 0.65), (0.05, 0.0)])
def test_scores_that_crowd_elsewhere_mean_the_same(scale: float, offset: float) -> None:
    scores = np.linspace(0.0, 1.0, 200) ** 64
    moved = probabilities(scale * scores + offset)
    assert np.abs(moved - probabilities(scores)).max() < 1e-3
    assert moved[-1] > 0.5


def test_what_a_search_does_not_see_counts_for_nothing() -> None:
    scores, seen = np.linspace(0.0, 1.0, 40) ** 4, np.arange(40) % 2 == 1
    assert probabilities(scores, seen)[seen].tolist() == probabilities(scores[seen]).tolist()
    assert probabilities(scores, np.zeros(40, bool)).tolist() == [0.0] * 40
    assert probabilities(np.full(3, 0.25)).tolist() == [probabilities(np.zeros(3))[0]] * 3


@pytest.mark.parametrize("temperature", ["warm", "cold"])
def test_it_is_the_same_one_by_one_in_a_batch_explained_and_cold(
    make: Make, temperature: str
) -> None:
    alice = make()
    alice.add("Never lend money.", tier="pinned")
    for text in TEXTS:
        alice.add(text, temperature=temperature)
    options: dict[str, Any] = {"include_cold": True, "min_probability": 0.2}
    one = alice.search(QUERY, 10, **options)
    bob = alice.engine.state.block("bob")
    assert not bob.size
    request = SearchRequest(
        ["alice", "bob"],
        [QUERY] * 2,
        10,
        only=Filter(min_probability=0.2),
        with_cold=temperature == "cold",
    )
    assert alice.engine.search.run(alice.engine.search.read(request)).hits[0] == one
    told = {each.memory.id: each for each in alice.explain(QUERY, 10, **options)}
    assert [told[hit.memory.id].relevance_probability for hit in one] == [
        hit.relevance_probability for hit in one
    ]
    assert len([hit for hit in one if hit.relevance_probability]) == len(one) > 1


@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan"), True, "0.5"])
def test_it_is_a_number_from_0_to_1(make: Make, value: Any) -> None:
    with pytest.raises(InvalidInput, match="min_probability is a number from 0 to 1"):
        make().search("mill", min_probability=value)


def test_tools_ask_for_it_and_give_it() -> None:
    with MemoryBank.ephemeral() as bank:
        bank.agent("alice").add_many(TEXTS)
        asked = {"query": QUERY, "min_probability": 0.5}
        for name in ("memory_query", "memory_recall"):
            outcome = call(bank.agent("alice"), name, asked)
            assert outcome.result is not None
            (found,) = outcome.result["results"]
            assert found["relevance_probability"] > 0.5
        outcome = call(bank.agent("alice"), "memory_query", {"min_probability": 0})
        assert outcome.failure is not None
        assert "min_probability goes with a query" in outcome.failure.message
