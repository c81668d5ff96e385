"""What the search of notes finds, and which part of a note it shows."""

from pathlib import Path

import pytest
from note_banks import found

from agents import AgentMemory, MemoryBank
from banks import MANUAL

DRAGON = "the dragon sleeps at noon\n"


def test_a_note_is_found_whatever_its_temperature(bank: MemoryBank, alice: AgentMemory) -> None:
    alice.notes.write("MEMORY.md", DRAGON)
    (chunk,) = alice.all()
    warm = alice.memory_search("when does the dragon sleep?")
    for change in (
        lambda: alice.update(chunk.id, temperature="cold"),
        lambda: alice.update(chunk.id, retention="archived"),
    ):
        change()
        assert alice.search("when does the dragon sleep?") == []
        (finding,) = alice.memory_search("when does the dragon sleep?")
        assert (finding.citation, finding.memory.id) == ("MEMORY.md#L1", chunk.id)
        assert finding.score == pytest.approx(warm[0].score, abs=0.2)


def test_cold_notes_and_warm_memories_are_ranked_together(alice: AgentMemory) -> None:
    alice.add("a fish of the dragon")
    alice.add("the dragon was seen", temperature="cold")
    alice.notes.write("MEMORY.md", DRAGON)
    alice.notes.write("memory/day.md", "a dragon is no fish\n")
    for memory in alice.all():
        if memory.kind == "note":
            alice.update(memory.id, temperature="cold")
    texts = [each.snippet for each in alice.memory_search("the dragon sleeps at noon", 10, 0.0)]
    assert texts[0] == DRAGON
    assert set(texts) == {DRAGON, "a dragon is no fish\n", "a fish of the dragon"}
    assert len(alice.memory_search("the dragon sleeps at noon", 2, 0.0)) == 2


def test_a_cold_note_is_found_without_mem0s_store_and_again_after_opening(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    with MemoryBank.open(folder, storage=MANUAL) as bank:
        alice = bank.agent("alice")
        alice.notes.write("MEMORY.md", DRAGON)
        alice.update(alice.all()[0].id, temperature="cold")
        first = alice.memory_search("dragon")
    with MemoryBank.open(folder, storage=MANUAL) as bank:
        (again,) = bank.agent("alice").memory_search("dragon")
        assert (again.citation, again.score) == (first[0].citation, first[0].score)
    assert not (folder / "chroma").exists()


def test_a_chunk_that_was_deleted_or_has_left_its_note_is_not_found(alice: AgentMemory) -> None:
    alice.notes.write("MEMORY.md", DRAGON)
    alice.update(alice.all()[0].id, temperature="cold")
    alice.notes.write("MEMORY.md", "nothing\n")
    assert found(alice, "dragon") == []
    alice.notes.write("MEMORY.md", DRAGON)
    chunk = next(each for each in alice.all() if each.content == DRAGON)
    alice.update(chunk.id, temperature="cold")
    alice.delete(chunk.id)
    assert found(alice, "dragon") == []


def test_the_place_of_a_chunk_is_known_whether_it_is_cited_or_not(alice: AgentMemory) -> None:
    alice.notes.write("memory/day.md", f"# Monday\n\n{DRAGON}")
    alice.add("the dragon was seen")
    for group in (False, True):
        note, memory = sorted(
            alice.memory_search("dragon", min_score=0.0, group=group),
            key=lambda finding: finding.memory.kind != "note",
        )
        place = alice.notes.place(note.memory)
        assert place == ("memory/day.md", 1, 3)
        assert str(place) == "memory/day.md#L1-L3"
        assert note.citation == (None if group else "memory/day.md#L1-L3")
        assert (alice.notes.place(memory.memory), memory.citation) == (None, None)


def test_notes_alone_are_searched_by_their_kind(alice: AgentMemory) -> None:
    alice.add("the dragon sleeps")
    alice.notes.write("MEMORY.md", DRAGON)
    alice.notes.write("memory/day.md", "the dragon was seen\n")
    alice.update(alice.all()[-1].id, temperature="cold")
    found = alice.memory_search("dragon sleeps", 2, 0.0, kind="note")
    assert [each.memory.kind for each in found] == ["note", "note"]
    assert len(alice.memory_search("dragon sleeps", 9, 0.0, kind=["note", "fact"])) == 3


# Snippets


def test_a_snippet_shows_the_part_that_matched(alice: AgentMemory) -> None:
    text = "It rained all day and nobody came by.\n" * 30
    alice.notes.write("MEMORY.md", f"{text}Bob hid the Golden-Key under a loose stone.\n{text}")
    snippet = alice.memory_search("where are the keys that Bob hid?", min_score=0.0)[0].snippet
    assert "Bob hid the Golden-Key under a loose stone." in snippet
    assert len(snippet) <= 700
    assert snippet.startswith("…")


@pytest.mark.parametrize("where", ["first", "last"])
def test_a_snippet_has_a_mark_only_where_text_is_left_out(alice: AgentMemory, where: str) -> None:
    filler = "nothing happened on that day\n" * 40
    match = "the dragon sleeps at noon\n"
    alice.notes.write("MEMORY.md", match + filler if where == "first" else filler + match)
    snippet = alice.memory_search("dragon", min_score=0.0)[0].snippet
    assert (snippet.startswith("…"), snippet.endswith("…")) == (where == "last", where == "first")
    assert "the dragon sleeps at noon" in snippet


def test_a_snippet_without_a_word_of_the_query_is_the_beginning(alice: AgentMemory) -> None:
    alice.notes.write("MEMORY.md", "fish is cheap in the north\n" * 40)
    snippet = alice.memory_search("zebra", min_score=0.0)[0].snippet
    assert snippet.startswith("fish is cheap")
    assert snippet.endswith("…")


def test_a_snippet_prefers_different_words_to_one_word_often(alice: AgentMemory) -> None:
    often, filler = "dragon dragon dragon dragon\n", "nothing happened on that day\n" * 28
    alice.notes.write("MEMORY.md", often + filler + "the dragon sleeps at noon\n")
    snippet = alice.memory_search("dragon sleeps noon", min_score=0.0)[0].snippet
    assert "the dragon sleeps at noon" in snippet


def test_a_snippet_of_a_text_without_blanks_shows_the_match(alice: AgentMemory) -> None:
    alice.notes.write("MEMORY.md", "山" * 250 + "龍は正午に眠る" + "川" * 250)
    findings = alice.memory_search("龍は眠る", min_score=0.0)
    assert "龍は正午に眠る" in findings[0].snippet
