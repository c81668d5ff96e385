"""Scores have the same bits in every batch, order and size of vector."""

import itertools
import math
import random
from collections.abc import Callable

import numpy as np
import pytest

from agents import Hits, MemoryBank
from agents.memory.filters import parse_filter
from agents.search.request import SearchRequest
from embedders import FromFunction, Noise

MakeBank = Callable[..., MemoryBank]

NAMES = [f"agent{n}" for n in range(12)]
DIMS = [1, 2, 7, 256, 1039, 1040, 1041, 1536, 3072]


def bits(results: list[Hits]) -> list[list[tuple[str, str, str]]]:
    """What was found, with scores as exact text."""
    return [
        [(hit.memory.id, hit.score.hex(), hit.boosted_score.hex()) for hit in hits]
        for hits in results
    ]


def filled(bank: MemoryBank, most: int = 30) -> MemoryBank:
    bank.add_many(
        [
            (name, f"{name} remembers {n}", (n * 3 + 1) % 5)
            for place, name in enumerate(NAMES)
            for n in range(most - 2 * place)
        ]
    )
    return bank


@pytest.mark.parametrize("dims", DIMS)
def test_single_batched_and_reordered_calls_agree_bit_for_bit(
    make_bank: MakeBank, dims: int
) -> None:
    bank = filled(make_bank(embedder=Noise(dims)))
    requests = [(name, f"query {n}") for name in NAMES for n in range(3)]
    expected = bits([bank.agent(name).search(query, 8) for name, query in requests])
    assert bits(bank.search_many(requests, 8)) == expected

    order = list(range(len(requests)))
    random.Random(1).shuffle(order)
    shuffled = bits(bank.search_many([requests[i] for i in order], 8))
    assert [found for _, found in sorted(zip(order, shuffled, strict=True))] == expected

    parts = [requests[i : i + 5] for i in range(0, len(requests), 5)]
    in_parts = itertools.chain.from_iterable(bank.search_many(part, 8) for part in parts)
    assert bits(list(in_parts)) == expected


@pytest.mark.parametrize("least", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_a_single_search_with_a_filter_gives_the_bits_of_a_batch(
    make_bank: MakeBank, least: float, trusted: bool, mode: str
) -> None:
    """The same search twice is a batch; each time it gives what it gives alone."""
    bank = make_bank(embedder=Noise(16), retrieval={"mode": mode, "trust": trusted})
    filled(bank)
    ann, bob = bank.agent("agent0"), bank.agent("agent1")
    for memory in bob.all()[:9]:
        bob.social.tell(ann.agent_id, memory.id)
    ann.social.trust(bob.agent_id, 0.25)
    ann.add("agent0 forgets 3", "important", {"place": "bay"}, ttl=1)
    ann.add_many([(f"agent0 remembers {n} too", 3, {"place": "bay"}) for n in range(5)])
    bank.advance(1)
    for filters in (None, {"metadata.place": "bay"}):
        only = parse_filter(min_score=least, filters=filters)
        for query, limit in itertools.product(("remembers 3", "agent0 bay"), (0, 1, 8, 1000)):
            with bank.engine.observing():
                (alone,) = bank.engine.find(SearchRequest(["agent0"], [query], limit, only=only))
                batch = SearchRequest(["agent0"] * 2, [query] * 2, limit, only=only)
                pair = bank.engine.find(batch)
            assert [list(hits) for hits in pair] == [list(alone)] * 2
            assert bits(pair) == bits([alone]) * 2


@pytest.mark.parametrize("dims", [3, 256, 1041])
def test_a_score_does_not_depend_on_what_else_the_agent_remembers(
    make_bank: MakeBank, dims: int
) -> None:
    alone, among = make_bank(embedder=Noise(dims)), make_bank(embedder=Noise(dims))
    alone.agent("a").add("the one")
    among.agent("a").add_many([f"other {n}" for n in range(99)])
    one = among.agent("a").add("the one")
    (hit,) = alone.agent("a").search("query")
    scores = {h.memory.id: h.score for h in among.agent("a").search("query", 1000)}
    assert scores[one.id].hex() == hit.score.hex()


@pytest.mark.parametrize("dims", [256, 1536])
def test_scores_are_the_same_after_reopening(open_bank: MakeBank, dims: int) -> None:
    requests = [(name, f"query {n}") for name in NAMES for n in range(2)]
    before = bits(filled(open_bank(embedder=Noise(dims))).search_many(requests, 10))
    assert bits(open_bank(embedder=Noise(dims)).search_many(requests, 10)) == before


@pytest.mark.parametrize("dims", [2, 1040, 1041, 4096])
def test_the_largest_possible_products_are_exact(make_bank: MakeBank, dims: int) -> None:
    """All entries ±127: sums as large as they get; one entry of 126 must still be seen."""

    def vectors(texts: list[str]) -> np.ndarray:
        rows = np.full((len(texts), dims), 127.0)
        for row, text in zip(rows, texts, strict=True):
            if text.startswith("off by"):
                row[-1] = 126.0
        return rows

    bank = make_bank(embedder=FromFunction(vectors, dims))
    bank.agent("a").add_many(["off by one", "same"])
    scores = {hit.memory.content: hit.score for hit in bank.agent("a").search("query")}
    dot = 127 * 127 * (dims - 1) + 127 * 126
    norms = math.sqrt(127 * 127 * dims) * math.sqrt(127 * 127 * (dims - 1) + 126 * 126)
    assert scores["off by one"] == min(1.0, dot / norms)
    assert scores["same"] == pytest.approx(1.0, abs=1e-15)
    assert scores["same"] <= 1.0


def test_the_same_text_scores_at_most_1(make_bank: MakeBank) -> None:
    bank = make_bank(embedder=Noise(32))
    texts = [f"text {n}" for n in range(300)]
    bank.agent("a").add_many(texts)
    found = bank.search_many([("a", text) for text in texts], 1)
    for text, (hit,) in zip(texts, found, strict=True):
        assert hit.memory.content == text
        assert 1 - 1e-15 <= hit.score <= 1.0


def test_a_zero_vector_is_similar_to_nothing(make_bank: MakeBank) -> None:
    bank = make_bank()
    alice = bank.agent("alice")
    alice.add_many(["nowhere", "somewhere <1 0>"])
    assert [hit.score for hit in alice.search("nowhere")] == [0.0, 0.0]
    assert [hit.score for hit in alice.search("<1 0>")] == [1.0, 0.0]


@pytest.mark.parametrize("scale", [1.7e308, 1e154, 1e-154, 1e-300, 5e-324])
def test_the_scale_of_a_vector_does_not_matter(make_bank: MakeBank, scale: float) -> None:
    alice = make_bank().agent("alice")
    alice.add(f"<{scale} {scale}>")
    (hit,) = alice.search("<1 1>")
    assert hit.score == pytest.approx(1.0, abs=1e-15)


def test_huge_and_tiny_entries_in_one_vector_stay_finite(make_bank: MakeBank) -> None:
    alice = make_bank().agent("alice")
    alice.add("<1.7e308 -1.7e308 5e-324 0>")
    (hit,) = alice.search("<1.7e308 1e-300 0 0>")
    assert hit.score == pytest.approx(math.sqrt(0.5), abs=1e-12)


@pytest.mark.parametrize(
    "kind", [np.float16, np.float32, np.float64, np.int8, np.int64, list, tuple]
)
def test_an_embedder_may_give_any_kind_of_numbers(make_bank: MakeBank, kind: type) -> None:
    def vectors(texts: list[str]) -> object:
        rows = [[3, 4, 0, 0] if text == "query" else [4, 3, 0, 0] for text in texts]
        return kind(rows) if kind in (list, tuple) else np.array(rows, kind)

    alice = make_bank(embedder=FromFunction(vectors)).agent("alice")
    alice.add("x")
    (hit,) = alice.search("query")
    assert hit.score == pytest.approx(0.96, abs=0.005)


def test_scores_are_python_floats(make_bank: MakeBank) -> None:
    alice = make_bank().agent("alice")
    alice.add_many(["a <1 1>", ("b <1 1>", "pinned")])
    for hit in alice.search("<1 0>"):
        assert type(hit.score) is type(hit.boost) is type(hit.boosted_score) is float
