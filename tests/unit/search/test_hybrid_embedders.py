"""A search by meaning and by words where the embedder fails, is missing or gives no vector."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hybrid import Make, Ones, contents

from agents import ConfigError, MemoryBank
from agents.errors import EmbedderError


class Failing:
    """An embedder that fails when it is told to."""

    name, dims, reproducible = "test/failing", 8, True
    fails = False

    def embed(self, texts: Sequence[str], /) -> Any:
        if self.fails:
            raise RuntimeError("out of order")
        return np.ones((len(texts), 8))


def test_every_search_says_that_it_was_by_words_alone(make: Make) -> None:
    embedder = Ones()
    alice = make(embedder=embedder)
    alice.add_many(["fish is cheap", "ERR-42 at the gate"])
    embedder.fails = True
    assert "out of order" in alice.search("broken fish", include_cold=True).note
    assert "out of order" in alice.recall("broken fish").notes[0]
    assert "out of order" in alice.memory_search("broken fish").note


def test_only_the_query_that_fails_is_by_words_alone() -> None:
    embedder = Ones()
    with MemoryBank.ephemeral(embedder=embedder) as bank:
        bank.agent("alice").add_many(["fish is cheap", "salt"])
        embedder.fails = True
        broken, whole = bank.search_many([("alice", "broken fish"), ("alice", "fish")])
        assert "out of order" in broken.note
        assert whole.note == ""
        assert [hit.score for hit in whole] == [
            hit.score for hit in bank.agent("alice").search("fish")
        ]


def test_a_bank_without_an_embedder_says_so(make: Make) -> None:
    alice = make(embedder={"provider": "none"})
    alice.add("fish is cheap")
    assert "no embedder" in alice.search("fish").note


def test_no_embedder_and_vectors_alone_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs vectors"):
        MemoryBank.ephemeral(embedder={"provider": "none"}, preset="vector")


def test_an_additive_embedder_gives_whole_numbers_or_is_told(make: Make) -> None:
    class Fractions(Ones):
        additive = True

        def embed(self, texts: Sequence[str], /) -> Any:
            return np.full((len(texts), 8), 0.25)

    alice = make(embedder=Fractions())
    alice.add("fish is cheap")
    hits = alice.search("fish")
    assert "whole numbers" in hits.note
    assert contents(hits) == ["fish is cheap"]


def test_an_embedder_may_embed_queries_otherwise_than_texts(make: Make) -> None:
    class Asking(Ones):
        additive = True
        """It does not count: the vector of a query is not a sum of its words."""

        def embed(self, texts: Sequence[str], /) -> Any:
            return np.array([[1, -1] * 4 if "?" in text else [1] * 8 for text in texts])

        def embed_queries(self, texts: Sequence[str], /) -> Any:
            assert not any("\0" in text for text in texts)
            return np.ones((len(texts), 8))

    alice = make(embedder=Asking(), preset="vector")
    alice.add_many(["where is the key?", "under the mat"])
    for query in ("where is the key?", "under the mat", "key?"):
        hits = alice.search(query)
        assert [(hit.memory.content, hit.score) for hit in hits] == [
            ("under the mat", 1.0),
            ("where is the key?", 0.0),
        ]
    alice.add("is it there?")
    assert contents(alice.search("is it there?"))[0] == "under the mat"


@pytest.mark.parametrize(
    ("memories", "sif", "asked", "embedded"),
    [
        (40, 0.001, "How does Caroline's dog relax?", "How does dog relax?"),
        (40, 0, "How does Caroline's dog relax?", "How does Caroline's dog relax?"),
        (40, 0.001, "Who is Caroline?", "Who is Caroline?"),  # else it would say nothing
        (20, 0.001, "How does Caroline's dog relax?", "How does Caroline's dog relax?"),
    ],
)
def test_a_sentence_is_embedded_without_what_is_in_every_memory(
    make: Make, memories: int, sif: float, asked: str, embedded: str
) -> None:
    class Sentences(Ones):
        def __init__(self) -> None:
            self.asked: list[str] = []

        def embed(self, texts: Sequence[str], /) -> Any:
            self.asked += texts
            return super().embed(texts)

    embedder = Sentences()
    alice = make(embedder=embedder, retrieval={"sif": sif})
    alice.add_many([f"Caroline saw a number, {number}" for number in range(memories)])
    del embedder.asked[:]
    alice.search(asked)
    assert embedder.asked == [embedded]


def test_however_small_sif_is_a_query_has_a_vector(make: Make) -> None:
    alice = make(retrieval={"sif": 1e-9})
    alice.add_many(["fish is cheap", "salt is dear"])
    assert alice.explain("fish")[0].vector > 0.0


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_without_an_embedder_memories_are_found_by_words(make: Make, mode: str) -> None:
    alice = make(embedder={"provider": "none"}, retrieval={"mode": mode})
    alice.add_many(["fish is cheap", "ERR-42 at the gate"])
    assert contents(alice.search("ERR-42", 1)) == ["ERR-42 at the gate"]
    assert alice.search("ERR-42")[0].score == pytest.approx(1.0, abs=0.1)


def test_a_failing_embedder_leaves_words_and_the_result_says_so(make: Make) -> None:
    embedder = Failing()
    alice = make(embedder=embedder)
    alice.add_many(["fish is cheap", "ERR-42 at the gate"])
    embedder.fails = True
    hits = alice.search("ERR-42", 1)
    assert contents(hits) == ["ERR-42 at the gate"]
    assert "words alone" in hits.note
    assert "out of order" in hits.note
    assert alice.memory_search("ERR-42").note == hits.note


def test_a_failing_embedder_fails_a_search_by_vectors_alone(make: Make) -> None:
    embedder = Failing()
    alice = make(embedder=embedder, preset="vector")
    alice.add("fish is cheap")
    embedder.fails = True
    with pytest.raises(EmbedderError, match="out of order"):
        alice.search("fish")


def test_a_memory_with_a_zero_vector_is_found_by_its_words(make: Make) -> None:
    class Zeros(Failing):
        def embed(self, texts: Sequence[str], /) -> Any:
            return np.array([np.zeros(8) if "zero" in text else np.ones(8) for text in texts])

    alice = make(embedder=Zeros())
    alice.add_many(["zero ERR-42", "another thing", "a third"])
    hit = alice.search("ERR-42", 1, min_score=0.35)[0]
    assert hit.memory.content == "zero ERR-42"
    assert hit.score == pytest.approx(1.0, abs=0.1)
