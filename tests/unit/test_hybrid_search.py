"""Searching by meaning and by words, through a bank."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import MemoryBank
from agents.bank.agent_memory import AgentMemory
from agents.errors import EmbedderError

SMALL_TALK = [f"Agent_{n} said the weather on day {n} was mild" for n in range(30)]


@pytest.fixture
def make() -> Any:
    banks: list[MemoryBank] = []

    def make(**options: Any) -> AgentMemory:
        banks.append(MemoryBank.ephemeral(**options))
        return banks[-1].agent("alice")

    yield make
    for bank in banks:
        bank.close()


Make = Callable[..., AgentMemory]


class Failing:
    """An embedder that fails when it is told to."""

    name, dims, reproducible = "test/failing", 8, True
    fails = False

    def embed(self, texts: Sequence[str], /) -> Any:
        if self.fails:
            raise RuntimeError("out of order")
        return np.ones((len(texts), 8))


def contents(hits: Any) -> list[str]:
    return [hit.memory.content for hit in hits]


@pytest.mark.parametrize("query", ["ERR-42", "err-42", "what was ERR-42 about?", "$50K", "50k"])
def test_an_identifier_is_found_among_small_talk(make: Make, query: str) -> None:
    alice = make()
    alice.add_many([*SMALL_TALK, "The gate failed with ERR-42 after the $50K deal"])
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
    alice.add_many(["The vessel sank in a storm", *SMALL_TALK])
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


def test_explain_shows_what_a_session_adds(make: Make) -> None:
    alice = make()
    alice.add("Where does the dragon sleep?", session="talk", speaker="Bob")
    answer = alice.add("In the old mill.", session="talk", speaker="Carol")
    alice.add_many(SMALL_TALK)
    rows = {row.memory.id: row for row in alice.explain("where does the dragon sleep?", 40)}
    assert rows[answer.id].context == pytest.approx(rows[answer.id].score - rows[answer.id].fusion)
    assert rows[answer.id].context > 0.1


def test_the_answer_after_a_question_is_found_by_the_question(make: Make) -> None:
    alice, without = make(), make()
    for each, session in ((alice, "talk"), (without, None)):
        each.add("Where does the dragon sleep?", session=session, speaker="Bob")
        each.add("In the old mill.", session=session, speaker="Carol")
        each.add_many(SMALL_TALK)
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


def test_the_minimum_never_hides_an_exact_match(make: Make) -> None:
    alice = make(preset="weighted-sum")
    alice.add_many([*SMALL_TALK, "zqxv"])
    (hit,) = alice.search("zqxv", 1, min_score=0.9)
    assert hit.memory.content == "zqxv"


def test_the_minimum_leaves_out_what_does_not_match(make: Make) -> None:
    alice = make()
    alice.add_many(SMALL_TALK)
    assert alice.search("quantum chromodynamics", min_score=0.35) == []


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


def test_reciprocal_ranks_put_first_what_is_first_in_both(make: Make) -> None:
    alice = make(retrieval={"fusion": "rrf"})
    alice.add_many([*SMALL_TALK, "the dragon sleeps at noon"])
    (hit,) = alice.search("when does the dragon sleep?", 1)
    assert hit.memory.content == "the dragon sleeps at noon"
    assert hit.score == 1.0


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
            bank.agent(f"agent_{number}").add_many(SMALL_TALK[: 3 + 2 * number])
        asked = [(f"agent_{n}", f"what did Agent_{n} say about the weather?") for n in range(12)]
        together = bank.search_many(asked)
        alone = [bank.agent(agent).search(query) for agent, query in asked]
        assert [[hit[1:] for hit in hits] for hits in together] == [
            [hit[1:] for hit in hits] for hits in alone
        ]


def test_cold_memories_are_scored_by_their_words_too(make: Make) -> None:
    alice = make()
    cold = alice.add("The gate failed with ERR-42")
    alice.add_many(SMALL_TALK)
    alice.demote(cold.id, "cold")
    (hit,) = alice.search("ERR-42", 1, include_cold=True)
    assert hit.memory.id == cold.id
    assert hit.score > 0.6


@pytest.mark.parametrize("language", ["none", "german"])
def test_another_stemmer_or_none(make: Make, language: str) -> None:
    alice = make(retrieval={"mode": "keyword", "stemmer": language})
    alice.add_many(["Die Katzen schlafen", "Der Hund bellt"])
    found = alice.search("Katze", 1)[0]
    assert (found.score > 0.0) is (language == "german")


@pytest.mark.parametrize("provider", ["offline", "none"])
def test_a_cold_memory_is_found_by_a_rare_word_among_many(make: Make, provider: str) -> None:
    alice = make(embedder={"provider": provider})
    texts = [f"the gate failed with code {n}_A after a deal of ${n}K" for n in range(300)]
    for memory in alice.add_many(texts):
        alice.demote(memory.id, "cold")
    found = alice.search("what about 7_A", 1, include_cold=True)
    assert contents(found) == [texts[7]]
    assert alice.recall("$123K").items[0].content == texts[123]


def test_signs_of_like_in_a_word_are_only_themselves(make: Make) -> None:
    alice = make(embedder={"provider": "none"})
    for text in ("a100b", "a1_0b", "50% off", "500 off"):
        alice.demote(alice.add(text).id, "cold")
    shelf = alice.parts.ledger.resident.shelf
    assert shelf.with_words("alice", ["a1_0b"], 9) == [2]
    assert shelf.with_words("alice", ["50%"], 9) == [3]
    assert shelf.with_words("alice", ["OFF"], 9) == [4, 3]
    assert contents(alice.search("a1_0b", 1, include_cold=True)) == ["a1_0b"]


@pytest.mark.parametrize("provider", ["offline", "none"])
def test_what_is_cold_is_found_alike_before_and_after_a_commit_and_a_sync(
    tmp_path: Path, provider: str
) -> None:
    texts = [f"the gate failed with code {n}_A after a deal of ${n}K" for n in range(60)]
    queries = ["7_A", "$12K", "a gate that broke", "who failed?", "???"]
    embedder = {"provider": provider}
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}, embedder=embedder) as bank:
        alice = bank.agent("alice")

        def found() -> list[list[tuple[int, float]]]:
            return [
                [(hit.memory.sequence, hit.score) for hit in alice.search(q, 4, include_cold=True)]
                for q in queries
            ]

        with bank.transaction():
            for memory in alice.add_many(texts):
                alice.demote(memory.id, "cold")
            pending = found()
        committed = found()
        bank.sync()
        assert found() == committed == pending
