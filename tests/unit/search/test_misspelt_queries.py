"""Misspelt words and nicknames in queries are read as what the agent's memories have."""

from typing import Any

import pytest
from hybrid import SMALL_TALK, Make, Ones, contents

from agents import AgentMemory, MemoryBank

LAKE = "The restaurant by the lake had perch"


def talk(agent: AgentMemory) -> None:
    """A talk of Caroline and Tim, with small talk of theirs around it."""
    said = {"session": "first", "speaker": "Tim"}
    agent.add_many([(text, "normal", said) for text in SMALL_TALK])
    agent.add("I sing in a choir on Mondays", session="second", speaker="Caroline")
    agent.add("I keep bees behind the barn", session="second", speaker="Tim")


def the_first(agent: AgentMemory, query: str, **more: Any) -> str:
    memory: str = agent.search(query, 1, **more)[0].memory.content
    return memory


@pytest.mark.parametrize("written", ["restuarant", "restarant", "restaurrant", "RESTUARANT"])
def test_a_misspelt_word_finds_what_has_it(make: Make, written: str) -> None:
    alice = make(retrieval={"mode": "keyword"})
    alice.add_many([*SMALL_TALK, LAKE])
    found = alice.search(f"which {written}", 1)
    assert contents(found) == [LAKE]
    assert found.note == f"read “{written}” as “restaurant”"
    assert found[0].score == alice.search("which restaurant", 1)[0].score


def test_a_word_is_left_as_it_is_if_the_settings_say_so(make: Make) -> None:
    alice = make(retrieval={"mode": "keyword", "spelling": False})
    talk(alice)
    alice.add(LAKE)
    assert alice.search("restuarant Caro", 1)[0].score == 0.0
    assert alice.search("restuarant Caro", 1).note == ""


@pytest.mark.parametrize(
    ("memory", "query"),
    [
        ("the house is cold", "mouse"),  # a well-known word, though no memory has it
        ("he ate a tart", "a tasting"),  # the stems are near, and the words are not
        ("the boat is old", "boet"),  # too short
        ("hotel", "notel"),  # few change the first letter
        ("agent_77x reports", "agent_78x"),  # an identifier
        ("it was about then", "abuot"),  # a word that says little
        (LAKE, "restruarnant"),  # too far
    ],
)
def test_what_may_be_another_word_is_not_read_as_a_near_one(
    make: Make, memory: str, query: str
) -> None:
    alice = make(retrieval={"mode": "keyword"})
    alice.add(memory)
    assert alice.search(query, 1).note == ""


def test_a_word_that_a_memory_has_is_not_misspelt(make: Make) -> None:
    alice = make(retrieval={"mode": "keyword"})
    alice.add_many([LAKE, "Restuarant Zwei is a restuarant in Berlin"])
    assert the_first(alice, "restuarant") == "Restuarant Zwei is a restuarant in Berlin"
    assert alice.search("restuarant", 1).note == ""


def test_the_nearest_word_is_meant_and_of_these_the_one_that_more_memories_have(make: Make) -> None:
    alice = make(retrieval={"mode": "keyword"})
    alice.add_many(["the gravels", "he travels", "she travels", "the trammels"])
    assert alice.search("travles", 1).note == "read “travles” as “travels”"
    alice.add_many(["a flower", "the flour", "more flour"])
    assert alice.search("flouer", 1).note == "read “flouer” as “flour”"


def test_a_word_counts_once_however_often_it_is_misspelt(make: Make) -> None:
    alice = make(retrieval={"mode": "keyword"})
    alice.add_many([*SMALL_TALK, LAKE])
    once = alice.search("perch restaurant", 1)[0].score
    assert alice.search("perch restaurant restuarant", 1).note == ""
    twice = alice.search("perch restarant restuarant", 1)
    assert twice.note == "read “restarant” as “restaurant”"
    assert 0.5 < twice[0].score < once


def test_other_agents_decide_nothing() -> None:
    with MemoryBank.ephemeral(retrieval={"mode": "keyword"}) as bank:
        alice, bob = bank.agent("alice"), bank.agent("bob")
        alice.add(LAKE)
        before = alice.search("restuarant", 1)
        bob.add_many(["a restuarant", "the restuarantes"] * 5)
        bob.search("restuarant", 1)
        after = alice.search("restuarant", 1)
        assert (list(after), after.note) == (list(before), before.note)
        assert bob.search("restuarant", 1).note == ""


def test_other_languages_have_no_list_of_well_known_words(make: Make) -> None:
    alice = make(retrieval={"mode": "keyword", "stemmer": "german"})
    alice.add("Der Kastanienbaum steht noch")
    assert alice.search("Kastaneinbaum", 1).note == ""


# Nicknames


@pytest.mark.parametrize("nickname", ["Caro", "caro", "Carol"])
def test_a_nickname_stands_for_the_speaker_who_has_such_a_name(make: Make, nickname: str) -> None:
    alice = make()
    talk(alice)
    found, named = alice.search(f"does {nickname} sing?", 3), alice.search("does Caroline sing?", 3)
    assert list(found) == list(named)
    assert found.note == f"read “{nickname}” as “Caroline”"


def test_a_possessive_keeps_its_ending(make: Make) -> None:
    alice = make()
    talk(alice)
    assert list(alice.search("Timmy's bees", 3)) == list(alice.search("Tim's bees", 3))


def test_a_name_that_others_call_a_speaker_is_hers_also_if_memories_have_it(make: Make) -> None:
    alice = make()
    talk(alice)
    alice.add("Caro, see you on Friday", session="second", speaker="Tim")
    assert alice.search("does Caro sing?", 1).note == "read “Caro” as “Caroline”"


def test_a_name_that_the_speaker_says_too_stays_beside_the_speakers(make: Make) -> None:
    alice = make()
    talk(alice)
    alice.add("Caro is my cousin", session="second", speaker="Caroline")
    assert alice.search("does Caro sing?", 1).note == "read “Caro” as “Caro Caroline”"


@pytest.mark.parametrize(
    ("speakers", "query"),
    [
        (["Caroline", "Carola"], "does Caro sing?"),  # whose?
        (["Caroline", "Caro"], "does Caro sing?"),  # a name of its own
        (["Caroline"], "does Caro sing, or Caroline?"),  # both are named
        (["Maya"], "what happened in May?"),
        (["Isabel"], "Is it late?"),
        (["Artur"], "which art is it?"),  # a well-known word without a capital
    ],
)
def test_what_may_be_nobodys_nickname_is_left(make: Make, speakers: list[str], query: str) -> None:
    alice = make()
    for speaker in speakers:
        alice.add("I sing in a choir", session="a", speaker=speaker)
    assert alice.search(query, 1).note == ""


# Everywhere


def test_cold_memories_are_asked_as_warm_ones_are(make: Make) -> None:
    warm, cold = make(), make()
    for alice in (warm, cold):
        talk(alice)
        alice.add(LAKE)
    for memory in list(cold.all()):
        cold.update(memory.id, temperature="cold")
    query = "did Caro like the restuarant?"
    found, again = warm.search(query, 5), cold.search(query, 5, include_cold=True)
    assert contents(found) == contents(again)
    assert [hit.score for hit in found] == [hit.score for hit in again]
    assert (
        again.note == found.note == "read “Caro” as “Caroline”; read “restuarant” as “restaurant”"
    )
    assert cold.search(query, 5).note == ""


def test_a_batch_gives_what_single_searches_give() -> None:
    queries = ["did Caro like it?", "the restuarant", "which restaurant", "", "Timmy's bees"]
    with MemoryBank.ephemeral() as bank:
        agents = [bank.agent(name) for name in ("alice", "bob")]
        for agent in agents:
            talk(agent)
        agents[0].add(LAKE)
        asked = [(agent.agent_id, query) for agent in agents for query in queries]
        together = bank.search_many(asked, 4)
        alone = [bank.agent(agent).search(query, 4) for agent, query in asked]
        assert [(list(hits), hits.note) for hits in together] == [
            (list(hits), hits.note) for hits in alone
        ]


def test_explain_tells_how_the_query_was_read(make: Make) -> None:
    alice = make()
    talk(alice)
    alice.add(LAKE)
    rows = alice.explain("the restuarant", limit=2)
    assert {row.note for row in rows} == {"read “restuarant” as “restaurant”"}
    assert rows[0].keyword > 0.5
    assert {row.note for row in alice.explain("the restaurant", limit=2)} == {""}


def test_a_word_that_becomes_known_is_not_misspelt_any_more(make: Make) -> None:
    alice = make(retrieval={"mode": "keyword"})
    alice.add(LAKE)
    assert alice.search("restuarant", 1).note
    own = alice.add("the restuarant, as they write it")
    assert alice.search("restuarant", 1).note == ""
    alice.forget(own.id)
    assert alice.search("restuarant", 1).note == "read “restuarant” as “restaurant”"


def test_what_could_not_be_done_is_told_beside(make: Make) -> None:
    embedder = Ones()
    alice = make(embedder=embedder)
    alice.add(LAKE)
    embedder.fails = True
    note = alice.search("broken restuarant", 1).note
    assert note.startswith("read “restuarant” as “restaurant”; found by words alone, because")
