"""A search by words in other scripts, and among the memories of a session."""

from typing import Any

import pytest
from hybrid import SMALL_TALK, WEATHER, Make, contents

from agents import AgentMemory, MemoryBank
from agents.rules.words import words_of


def score_of(alice: AgentMemory, query: str, content: str, **options: Any) -> float:
    hits = alice.search(query, 100, **options)
    (score,) = [hit.score for hit in hits if hit.memory.content == content]
    return score


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


@pytest.mark.parametrize("language", ["none", "german"])
def test_another_stemmer_or_none(make: Make, language: str) -> None:
    alice = make(retrieval={"mode": "keyword", "stemmer": language})
    alice.add_many(["Die Katzen schlafen", "Der Hund bellt"])
    found = alice.search("Katze", 1)[0]
    assert (found.score > 0.0) is (language == "german")


# Sessions


def test_an_expired_question_lends_nothing(make: Make) -> None:
    alice = make()
    alice.add("Where does the dragon sleep?", session="a", ttl=5)
    alice.add("In the old mill.", session="a")
    alice.add_many(SMALL_TALK)
    before = score_of(alice, "where does the dragon sleep", "In the old mill.")
    MemoryBank(alice.engine).advance(5)
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


def test_explain_shows_what_a_session_adds(make: Make) -> None:
    alice = make()
    alice.add("Where does the dragon sleep?", session="talk", speaker="Bob")
    answer = alice.add("In the old mill.", session="talk", speaker="Carol")
    alice.add_many(WEATHER)
    rows = {row.memory.id: row for row in alice.explain("where does the dragon sleep?", 40)}
    assert rows[answer.id].context == pytest.approx(rows[answer.id].score - rows[answer.id].fusion)
    assert rows[answer.id].context > 0.1


def test_the_answer_after_a_question_is_found_by_the_question(make: Make) -> None:
    alice, without = make(), make()
    for each, session in ((alice, "talk"), (without, None)):
        each.add("Where does the dragon sleep?", session=session, speaker="Bob")
        each.add("In the old mill.", session=session, speaker="Carol")
        each.add_many(WEATHER)
    query = "where does the dragon sleep at night"
    assert "In the old mill." in contents(alice.search(query, 2))
    assert "In the old mill." not in contents(without.search(query, 2))


def test_the_speaker_that_a_query_names_is_preferred(make: Make) -> None:
    alice = make(retrieval={"spread": {"speaker": 0.1}})
    for speaker in ("Bob", "Carol Ann"):
        alice.add("I went fishing", session=speaker, speaker=speaker)
    assert alice.search("did Bob go fishing", 1)[0].memory.speaker == "Bob"
    assert alice.search("did Carol Ann go fishing", 1)[0].memory.speaker == "Carol Ann"


def test_session_and_speaker_are_metadata(make: Make) -> None:
    memory = make().add("hello", metadata={"source": "x"}, session=7, speaker="Bob")
    assert (memory.session, memory.speaker) == (7, "Bob")
    assert dict(memory.metadata) == {"source": "x", "session": 7, "speaker": "Bob"}
