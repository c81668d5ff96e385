"""Searching by meaning and by words, through a bank."""

import numpy as np
import pytest
from hybrid import SMALL_TALK, WEATHER, Make, contents

from agents import MemoryBank
from agents.storage.columns.agent_columns import KeywordIndex, Vocabulary


@pytest.mark.parametrize("query", ["ERR-42", "err-42", "what was ERR-42 about?", "$50K", "50k"])
def test_an_identifier_is_found_among_small_talk(make: Make, query: str) -> None:
    alice = make()
    alice.add_many([*WEATHER, "The gate failed with ERR-42 after the $50K deal"])
    assert contents(alice.search(query, 1)) == ["The gate failed with ERR-42 after the $50K deal"]


def test_vector_search_alone_can_miss_what_words_find(make: Make) -> None:
    texts = ["code 7781 opens the gate", *(f"code {n} opens a gate" for n in range(8000, 8040))]
    alice, by_vectors = make(), make(preset="vector")
    for each in (alice, by_vectors):
        each.add_many(texts)
    query = "which gate does 7781 open"
    assert contents(alice.search(query, 1)) == [texts[0]]
    assert alice.explain(query)[0].keyword > by_vectors.explain(query)[0].keyword == 0.0


def test_meaning_is_found_without_a_word_in_common(make: Make) -> None:
    alice = make()
    alice.add_many(["The vessel sank in a storm", *WEATHER])
    assert contents(alice.search("a ship went under", 1)) == ["The vessel sank in a storm"]


def test_explain_shows_vector_keyword_fusion_and_boost(make: Make) -> None:
    alice = make(retrieval={"vector_weight": 0.7, "text_weight": 0.3})
    alice.add_many([("the dragon sleeps at noon", "important"), "fish is cheap today"])
    first = alice.explain("when does the dragon sleep?")[0]
    assert first.fusion == pytest.approx(0.7 * first.vector + 0.3 * first.keyword)
    assert first.score == first.fusion
    assert first.context == 0.0
    assert first.boosted_score == pytest.approx(first.score + 0.15)
    assert 0.0 < first.keyword <= 1.0
    assert 0.0 < first.vector <= 1.0


def test_the_minimum_never_hides_an_exact_match(make: Make) -> None:
    alice = make(preset="weighted-sum")
    alice.add_many([*WEATHER, "zqxv"])
    (hit,) = alice.search("zqxv", 1, min_score=0.9)
    assert hit.memory.content == "zqxv"


@pytest.mark.parametrize("cold", [False, True])
def test_the_minimum_may_be_compared_with_the_score_alone(make: Make, cold: bool) -> None:
    texts = ["the dragon sleeps at noon", "a dragon", "fish is cheap today"]
    found = {}
    for match in ("best", "score"):
        alice = make(preset="weighted-sum", retrieval={"match": match})
        alice.add_many(texts)
        if cold:
            alice.add("the dragon was seen", temperature="cold")
        least = max(hit.score for hit in alice.search("dragon noon", include_cold=cold))
        hits = alice.search("dragon noon", min_score=least, include_cold=cold)
        found[match] = [(hit.memory.content, hit.match) for hit in hits]
    assert found["score"] == [(found["best"][0][0], least)]
    assert len(found["best"]) > 1


def test_the_minimum_leaves_out_what_does_not_match(make: Make) -> None:
    alice = make()
    alice.add_many(WEATHER)
    assert alice.search("quantum chromodynamics", min_score=0.35) == []


def test_a_blank_query_still_gives_the_newest_by_tier(make: Make) -> None:
    alice = make()
    alice.add_many(["first", ("second", "critical"), "third"])
    assert contents(alice.search(" ")) == ["second", "third", "first"]


def test_words_of_punctuation_alone_are_searched_by_their_vector(make: Make) -> None:
    alice = make()
    alice.add_many(["???", "fish"])
    assert alice.search("?!", 1)[0].score > 0.0


def test_a_query_of_thousands_of_words_is_answered(make: Make) -> None:
    alice = make()
    alice.add("fish is cheap")
    assert contents(alice.search(" ".join(f"word{n}" for n in range(5000)) + " fish"))


def test_one_search_and_many_give_the_same_bits() -> None:
    with MemoryBank.ephemeral() as bank:
        for number in range(12):
            bank.agent(f"agent_{number}").add_many(WEATHER[: 3 + 2 * number])
        asked = [(f"agent_{n}", f"what did Agent_{n} say about the weather?") for n in range(12)]
        together = bank.search_many(asked)
        alone = [bank.agent(agent).search(query) for agent, query in asked]
        assert [[hit[1:] for hit in hits] for hits in together] == [
            [hit[1:] for hit in hits] for hits in alone
        ]


@pytest.mark.parametrize("provider", ["none", "offline"])
def test_identifiers_in_cold_memories_are_found_as_they_are(make: Make, provider: str) -> None:
    alice = make(embedder={"provider": provider})
    for text in ("a100b", "a1_0b", "50% off", "500 off"):
        alice.update(alice.add(text).id, temperature="cold")
    for query in ("a1_0b", "50%", "500"):
        (found,) = contents(alice.search(query, 1, include_cold=True))
        assert query in found


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


@pytest.mark.parametrize("temperature", ["warm", "cold"])
def test_a_hit_says_what_was_compared_with_the_minimum(make: Make, temperature: str) -> None:
    alice, query = make(), "a ship went under the day before"
    alice.add_many([*SMALL_TALK, "The vessel sank in a storm"])
    alice.pin(alice.add("keep calm").id)
    if temperature == "cold":
        alice.update(alice.all()[-2].id, temperature="cold")
    pinned, hit = alice.search(query, min_score=0.3, include_cold=True)
    assert hit.memory.content == "The vessel sank in a storm"
    assert hit.match is not None
    assert hit.score < 0.3 <= hit.match
    assert pinned.match is None
    assert {each.match for each in alice.search(query, include_cold=True)} == {None}
    told = alice.explain(query, min_score=0.3, include_cold=True)
    assert [each.match for each in told if each.rank == 2] == [hit.match]
    found = alice.recall(query, 5, min_relevance=0.3, auto_promote=False)
    assert hit.match in found.matches
    assert all(each is not None and each >= 0.3 for each in found.matches)


def test_of_several_searches_each_hit_has_its_own_match(make: Make) -> None:
    alice, bob = make(), make(preset="vector")
    for each in (alice, bob):
        each.add_many([*SMALL_TALK, "The vessel sank in a storm", "fish"])
        each.pin(each.add("keep calm").id)
        for hit in each.search("a ship went under", min_score=0.1)[1:]:
            assert hit.match is not None
            assert hit.match >= max(hit.score, 0.1)
            assert each is alice or hit.match == hit.score


def test_questions_are_not_learned(make: Make) -> None:
    alice = make()
    alice.add("fish is cheap")
    alice.search("fish")
    vocabulary = alice.engine.search.reader._vocabulary
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
