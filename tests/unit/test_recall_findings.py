"""Cases in which a search by words and meaning was wrong once."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import AgentMemory, ConfigError, MemoryBank
from agents.rules.words import words_of
from agents.storage.resident.keyword_index import KeywordIndex, Vocabulary

Make = Callable[..., AgentMemory]

SMALL_TALK = [f"day {n} was mild" for n in range(60)]


@pytest.fixture
def make() -> Iterator[Make]:
    banks: list[MemoryBank] = []

    def make(**options: Any) -> AgentMemory:
        banks.append(MemoryBank.ephemeral(**options))
        return banks[-1].agent("alice")

    yield make
    for bank in banks:
        bank.close()


class Embedder:
    """Ones, but zeros for a text with the word zero; fails for one with the word broken."""

    name, dims, reproducible = "test/ones", 8, True
    fails = False

    def embed(self, texts: Sequence[str], /) -> Any:
        if self.fails and any("broken" in text for text in texts):
            raise RuntimeError("out of order")
        return np.array([np.zeros(8) if "zero" in text else np.ones(8) for text in texts])


def contents(hits: Any) -> list[str]:
    return [hit.memory.content for hit in hits]


def score_of(alice: AgentMemory, query: str, content: str, **options: Any) -> float:
    hits = alice.search(query, 100, **options)
    (score,) = [hit.score for hit in hits if hit.memory.content == content]
    return score


# Long memories


def test_a_long_note_with_the_word_asked_for_is_found_among_short_memories(make: Make) -> None:
    alice = make()
    long = "ERR-42 came up. " + "We talked about this and that, and much else besides. " * 25
    alice.add_many([*SMALL_TALK, long])
    assert alice.memory_search("ERR-42")[0].memory.content == long
    assert contents(alice.search("ERR-42", 1)) == [long]


@pytest.mark.parametrize("least", [0.35, 0.95, 1.0])
def test_no_minimum_hides_what_has_every_word_of_the_query(make: Make, least: float) -> None:
    alice = make()
    text = "the gate failed with ERR-42 when the bridge was open and nobody was there to close it"
    alice.add_many([*SMALL_TALK, text, "ERR-42 gate", "fish"])
    assert text in contents(alice.search("ERR-42 gate", min_score=least))
    assert contents(alice.search(text, 1, min_score=least)) == [text]


def test_what_is_only_similar_passes_a_minimum_that_its_similarity_reaches(make: Make) -> None:
    alice = make()
    alice.add_many([*SMALL_TALK, "The vessel sank in a storm"])
    (row, *_) = alice.explain("a ship went under the day before")
    assert row.score < 0.3 <= row.vector
    assert contents(alice.search("a ship went under the day before", min_score=0.3)) == [
        "The vessel sank in a storm"
    ]


# Cold beside resident


def test_an_agent_whose_memories_are_all_cold_finds_them(make: Make) -> None:
    alice = make(retrieval={"mode": "keyword"})
    alice.demote(alice.add("The gate failed with ERR-42 at noon").id, "cold")
    (hit,) = alice.search("ERR-42", min_score=0.35, include_cold=True)
    assert hit.score > 0.8


def test_ranks_are_given_to_cold_and_resident_memories_together(make: Make) -> None:
    alice = make(retrieval={"fusion": "rrf"})
    alice.add("the dragon sleeps at the old mill")
    cold = alice.add("fish was sold at noon")
    alice.demote(cold.id, "cold")
    hits = alice.search("where does the dragon sleep", 2, include_cold=True)
    assert contents(hits)[0] == "the dragon sleeps at the old mill"
    assert hits[1].score < hits[0].score == 1.0


def test_a_word_that_only_cold_memories_have_counts_for_all_of_them(make: Make) -> None:
    alice = make(embedder=Embedder())
    alice.add_many(["a third", "another thing"])
    alice.demote(alice.add("ERR-42 at the gate").id, "cold")
    hits = alice.search("ERR-42", 3, include_cold=True)
    assert hits[0].memory.content == "ERR-42 at the gate"
    assert hits[1].score == pytest.approx(0.5)


def test_a_cold_memory_without_a_vector_has_its_keyword_score(make: Make) -> None:
    alice = make(embedder=Embedder())
    alice.add_many(["a third", "another thing"])
    alice.demote(alice.add("zero ERR-42").id, "cold")
    assert alice.search("ERR-42", 1, include_cold=True)[0].score > 0.8


def test_a_cold_memory_of_a_session_does_not_overtake_because_it_is_cold(make: Make) -> None:
    alice = make()
    first = alice.add("the dragon sleeps in the old mill at noon", session="a")
    second = alice.add("the dragon sleeps", session="a")
    alice.add_many(SMALL_TALK)
    query = "does the dragon sleep in the mill at noon"
    both = contents(alice.search(query, 2))
    assert both == [first.content, second.content]
    alice.demote(second.id, "cold")
    assert contents(alice.search(query, 2, include_cold=True)) == both


# Scripts


@pytest.mark.parametrize(
    "text",
    [
        "Tôi đã gặp một người bạn cũ ở chợ hôm qua",
        "L'école est fermée à cause de la tempête",
        "Żółta łódź płynęła przez mgłę",
        "Новый мост построили за рекой",
    ],
)
def test_accents_are_part_of_what_a_word_means(make: Make, text: str) -> None:
    alice = make(retrieval={"stemmer": "none"})
    alice.add_many([text, *SMALL_TALK])
    assert alice.explain(text)[0].vector > 0.95


def test_a_russian_adjective_is_found_in_another_case(make: Make) -> None:
    alice = make(retrieval={"stemmer": "russian", "mode": "keyword"})
    alice.add_many(["новая лодка", "старый дом"])
    assert alice.search("новый", 1)[0].score > 0.5


def test_an_elided_article_does_not_hide_its_word(make: Make) -> None:
    alice = make(retrieval={"stemmer": "french", "mode": "keyword"})
    alice.add_many(["l'école est fermée", "le marché"])
    assert alice.search("école", 1)[0].score > 0.5
    assert "t" not in words_of("don't").terms


# Sessions


def test_an_expired_question_lends_nothing(make: Make) -> None:
    alice = make()
    alice.add("Where does the dragon sleep?", session="a", ttl=5)
    alice.add("In the old mill.", session="a")
    alice.add_many(SMALL_TALK)
    before = score_of(alice, "where does the dragon sleep", "In the old mill.")
    MemoryBank(alice.parts).advance(5)
    after = score_of(alice, "where does the dragon sleep", "In the old mill.")
    assert after < before / 3


def test_a_semicolon_asks_nothing(make: Make) -> None:
    scores = []
    for mark in (";", "."):
        alice = make()
        alice.add(f"the dragon sleeps{mark}", session="a")
        alice.add("salt is dear", session="a")
        scores.append(score_of(alice, "dragon sleeps", "salt is dear"))
    assert scores[0] == pytest.approx(scores[1], abs=0.01)


# Embedders


def test_every_search_says_that_it_was_by_words_alone(make: Make) -> None:
    embedder = Embedder()
    alice = make(embedder=embedder)
    alice.add_many(["fish is cheap", "ERR-42 at the gate"])
    embedder.fails = True
    assert "out of order" in alice.search("broken fish", include_cold=True).note
    assert "out of order" in alice.recall("broken fish").notes[0]
    assert "out of order" in alice.memory_search("broken fish").note


def test_only_the_query_that_fails_is_by_words_alone() -> None:
    embedder = Embedder()
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
    class Fractions(Embedder):
        additive = True

        def embed(self, texts: Sequence[str], /) -> Any:
            return np.full((len(texts), 8), 0.25)

    alice = make(embedder=Fractions())
    alice.add("fish is cheap")
    hits = alice.search("fish")
    assert "whole numbers" in hits.note
    assert contents(hits) == ["fish is cheap"]


def test_in_reciprocal_ranks_a_memory_without_a_vector_goes_by_its_words(make: Make) -> None:
    alice = make(embedder=Embedder(), retrieval={"fusion": "rrf"})
    alice.add_many(["zero ERR-42", "another thing", "a third"])
    assert contents(alice.search("ERR-42", 1)) == ["zero ERR-42"]


def test_however_small_sif_is_a_query_has_a_vector(make: Make) -> None:
    alice = make(retrieval={"sif": 1e-9})
    alice.add_many(["fish is cheap", "salt is dear"])
    assert alice.explain("fish")[0].vector > 0.0


# What stays in memory


def test_questions_are_not_learned(make: Make) -> None:
    alice = make()
    alice.add("fish is cheap")
    alice.search("fish")
    vocabulary = alice.parts.search._reader._vocabulary
    before = len(vocabulary.names())
    for number in range(200):
        alice.search(" ".join(f"word{number}x{n}" for n in range(50)))
    assert len(vocabulary.names()) == before


def test_a_term_that_comes_later_is_found_by_a_question_asked_before(make: Make) -> None:
    alice = make(retrieval={"mode": "keyword"})
    alice.add("fish is cheap")
    assert alice.search("ERR-42")[0].score == 0.0
    alice.add("ERR-42 at the gate")
    assert contents(alice.search("ERR-42", 1)) == ["ERR-42 at the gate"]


def test_an_interrupted_search_leaves_no_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = Vocabulary("english")
    index = KeywordIndex(vocabulary)
    index.extend(["fish is cheap", "salt is dear"])
    expected = index.find(vocabulary.query("salt"))
    broken = KeywordIndex(vocabulary)
    broken._terms = np.array([10**6], np.int32)
    broken._used = 1
    with pytest.raises(IndexError):
        broken.find(vocabulary.query("fish"))
    again = index.find(vocabulary.query("salt"))
    assert all(np.array_equal(one, other) for one, other in zip(expected, again, strict=True))


def test_a_reopened_bank_finds_what_is_cold_as_the_live_one_did(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank") as bank:
        alice = bank.agent("alice")
        texts = [f"angling trip number {n} on the lake" for n in range(100)]
        for memory in alice.add_many([*texts, "Marcel keeps all his invoices in a tin"]):
            alice.demote(memory.id, "cold")
        alice.add("the lake is deep")
        live = [(hit.memory.id, hit.score) for hit in alice.search("Marcel fishing", 3,
                                                                  include_cold=True)]  # fmt: skip
    with MemoryBank.open(tmp_path / "bank") as bank:
        again = bank.agent("alice").search("Marcel fishing", 3, include_cold=True)
        assert [(hit.memory.id, hit.score) for hit in again] == live
        assert again[0].memory.content.startswith("Marcel")


def test_a_copy_of_a_bank_finds_what_is_cold(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank") as bank:
        alice = bank.agent("alice")
        alice.demote(alice.add("the gate failed with ERR-42").id, "cold")
    with MemoryBank.at(tmp_path / "bank") as copy:
        found = copy.agent("alice").search("what failed at the gate?", include_cold=True)
        assert contents(found) == ["the gate failed with ERR-42"]
