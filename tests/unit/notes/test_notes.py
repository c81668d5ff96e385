"""An agent's Markdown notes: files that a person may edit, found by every search."""

import contextlib
import os
import re
import time
from pathlib import Path

import pytest
from note_banks import found, note_texts

from agents import AgentMemory, MemoryBank
from agents.engine.read import nth
from agents.errors import InvalidInput, InvalidTier, NoteRefused, TierFull
from agents.memory.tiers import Retention
from agents.notes.agent_notes import AgentNotes
from agents.notes.files import MOST_BYTES
from agents.notes.index import Synced
from agents.notes.markdown import cut
from banks import MANUAL


@pytest.fixture
def notes(alice: AgentMemory) -> AgentNotes:
    return alice.notes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "bank" / "notes" / "alice"
    (place / "memory").mkdir(parents=True)
    return place


# Writing


def test_a_new_note_is_a_file_of_the_day(notes: AgentNotes, folder: Path) -> None:
    path = notes.append("Bob sold me a rotten fish")
    assert re.fullmatch(r"memory/\d{4}-\d\d-\d\d\.md", path)
    assert (folder / path).read_text() == "Bob sold me a rotten fish\n"


def test_once_the_clock_has_moved_it_is_a_file_of_the_tick(
    bank: MemoryBank, notes: AgentNotes
) -> None:
    bank.advance(120)
    assert notes.append("a rotten fish") == "memory/tick-000120.md"


@pytest.mark.parametrize(
    ("how", "shape"), [("date", r"memory/\d{4}-\d\d-\d\d\.md"), ("tick", "memory/tick-000000.md")]
)
def test_the_settings_say_how_it_is_called(how: str, shape: str) -> None:
    with MemoryBank.ephemeral(notes={"daily": how}) as bank:
        assert re.fullmatch(shape, bank.agent("alice").notes.append("a fish"))


def test_appending_adds_lines_and_ends_an_unfinished_one(notes: AgentNotes, folder: Path) -> None:
    (folder / "MEMORY.md").write_text("one")
    notes.append("two", "MEMORY.md")
    notes.append("three\n", "MEMORY.md")
    assert notes.read() == "one\ntwo\nthree\n"


def test_writing_replaces_and_editing_changes_a_part(notes: AgentNotes) -> None:
    notes.write("MEMORY.md", "fish is cheap\nsalt is dear\n")
    notes.edit("MEMORY.md", "cheap", "dear")
    assert notes.read("MEMORY.md") == "fish is dear\nsalt is dear\n"


@pytest.mark.parametrize("old", ["dear", "gold", ""])
def test_what_is_edited_must_be_there_exactly_once(notes: AgentNotes, old: str) -> None:
    notes.write("MEMORY.md", "fish is dear\nsalt is dear\n")
    with pytest.raises(InvalidInput, match="exactly once"):
        notes.edit("MEMORY.md", old, "x")
    assert notes.read("MEMORY.md") == "fish is dear\nsalt is dear\n"


@pytest.mark.parametrize("path", ["../bob/MEMORY.md", "/etc/passwd", "notes.txt", "memory/../x.md"])
def test_no_note_is_written_elsewhere(notes: AgentNotes, path: str, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    for act in (notes.write, notes.append):
        with pytest.raises(NoteRefused):
            act(*((path, "x") if act == notes.write else ("x", path)))  # type: ignore[operator]
    with pytest.raises(NoteRefused):
        notes.read(path)
    assert sorted(tmp_path.rglob("*")) == before


def test_text_that_no_file_can_hold_is_refused_and_changes_nothing(
    bank: MemoryBank, notes: AgentNotes
) -> None:
    before = bank.state_hash()
    for text in ("a\0b", "\ud800", "x" * (1 << 20) + "x"):
        with pytest.raises(NoteRefused):
            notes.write("MEMORY.md", text)
    with pytest.raises(InvalidInput):
        notes.append(7)  # type: ignore[arg-type]
    assert bank.state_hash() == before
    assert notes.paths() == []


def test_a_transaction_that_is_undone_leaves_the_file_and_the_index(
    bank: MemoryBank, alice: AgentMemory, folder: Path
) -> None:
    alice.notes.write("MEMORY.md", "fish is cheap\n")
    before = bank.state_hash()
    with contextlib.suppress(KeyError), bank.transaction():
        alice.notes.append("salt is dear", "MEMORY.md")
        alice.notes.append("a new note")
        raise KeyError
    assert bank.state_hash() == before
    assert alice.notes.read() == "fish is cheap\n"
    assert sorted(os.listdir(folder)) == ["MEMORY.md", "memory"]
    assert os.listdir(folder / "memory") == []


def test_an_undone_inner_transaction_leaves_what_the_outer_one_wrote(
    bank: MemoryBank, notes: AgentNotes, folder: Path
) -> None:
    with bank.transaction():
        notes.append("outer", "MEMORY.md")
        with contextlib.suppress(KeyError), bank.transaction():
            notes.append("inner", "MEMORY.md")
            raise KeyError
        assert not (folder / "MEMORY.md").exists()
    assert (folder / "MEMORY.md").read_text() == "outer\n"
    assert notes.read() == "outer\n"


def test_a_bank_in_memory_has_notes_without_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with MemoryBank.ephemeral() as bank:
        alice = bank.agent("alice")
        alice.notes.write("MEMORY.md", "the dragon sleeps at noon\n")
        assert alice.notes.read() == "the dragon sleeps at noon\n"
        assert found(alice, "when does the dragon sleep?") == ["MEMORY.md#L1"]
    assert list(tmp_path.iterdir()) == []


# Searching


def test_a_note_is_found_with_file_and_lines(alice: AgentMemory, folder: Path) -> None:
    lines = [f"on day {n} nothing happened\n" for n in range(49)]
    text = "".join(lines) + "\n## The dragon\n\nIt sleeps at noon.\n\n## Weather\n" + "mild\n" * 300
    (folder / "memory/2026-01-20.md").write_text(text)
    citation = found(alice, "when does the dragon sleep?")[0]
    assert citation is not None
    path, first, last = re.fullmatch(r"(.+)#L(\d+)-L(\d+)", citation).groups()  # type: ignore[union-attr]
    assert path == "memory/2026-01-20.md"
    got = alice.notes.lines(path, int(first), int(last) - int(first) + 1)
    assert "It sleeps at noon." in got.text
    assert got.text == "".join(text.splitlines(keepends=True)[int(first) - 1 : int(last)])


@pytest.mark.parametrize("change", ["edit", "delete", "rename"])
def test_a_search_is_fresh_after_a_person_changed_a_file(
    alice: AgentMemory, folder: Path, change: str
) -> None:
    path = folder / "memory/a.md"
    path.write_text("the dragon sleeps at noon\n")
    assert found(alice, "dragon") == ["memory/a.md#L1"]
    if change == "edit":
        path.write_text("nothing\nthe dragon sleeps at night\n")
        assert found(alice, "dragon sleeps at night") == ["memory/a.md#L1-L2"]
        assert note_texts(alice) == ["nothing\nthe dragon sleeps at night\n"]
    elif change == "delete":
        path.unlink()
        assert found(alice, "dragon") == []
        assert note_texts(alice) == []
    else:
        path.rename(folder / "memory/b.md")
        assert found(alice, "dragon") == ["memory/b.md#L1"]


def test_a_change_of_the_same_length_in_the_same_moment_is_seen(
    alice: AgentMemory, folder: Path
) -> None:
    path = folder / "MEMORY.md"
    path.write_text("the dragon sleeps\n")
    times = path.stat()
    alice.notes.sync()
    path.write_text("the dragon wakes!\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert alice.notes.sync().changed == ("MEMORY.md",)


def test_an_unchanged_note_keeps_its_memories_and_their_ids(
    bank: MemoryBank, alice: AgentMemory, folder: Path
) -> None:
    (folder / "MEMORY.md").write_text("# One\n\n" + "a fish\n" * 150 + "# Two\n\n" + "salt\n" * 150)
    assert alice.notes.sync().changed == ("MEMORY.md",)
    before = [memory.id for memory in alice.all()]
    head = bank.engine.journal.head
    assert alice.notes.sync() == Synced((), (), 1, ())
    assert bank.engine.journal.head == head
    alice.notes.append("# Three\n\nthe dragon sleeps\n", "MEMORY.md")
    kept = [memory.id for memory in alice.all()]
    assert len(set(before) & set(kept)) >= len(before) - 1


def test_lines_that_moved_are_cited_where_they_are_now(alice: AgentMemory, folder: Path) -> None:
    body = "# Dragon\n\n" + "the dragon sleeps at noon\n" * 50
    (folder / "MEMORY.md").write_text("# Day\n\n" + "nothing happened on that day\n" * 55 + body)
    before = alice.memory_search("dragon sleeps")[0]
    (folder / "MEMORY.md").write_text("# Day\n\n" + "it was a longer day than that\n" * 55 + body)
    after = alice.memory_search("dragon sleeps")[0]
    assert (after.memory.id, after.citation) == (before.memory.id, before.citation)
    (folder / "MEMORY.md").write_text("# Day\n\n" + "it was a longer day than that\n" * 50 + body)
    moved = alice.memory_search("dragon sleeps")[0]
    assert moved.memory.id == before.memory.id
    assert moved.citation == "MEMORY.md#L53-L104"


def test_memories_are_found_beside_notes_and_have_no_citation(alice: AgentMemory) -> None:
    alice.add("the dragon eats fish")
    alice.notes.write("MEMORY.md", "the dragon sleeps at noon\n")
    assert set(found(alice, "what does the dragon do?")) == {None, "MEMORY.md#L1"}


@pytest.mark.parametrize(
    ("citations", "group", "shown"),
    [
        ("on", True, True),
        ("on", False, True),
        ("off", False, False),
        ("auto", False, True),
        ("auto", True, False),
    ],
)
def test_citations_are_shown_as_the_settings_say(citations: str, group: bool, shown: bool) -> None:
    with MemoryBank.ephemeral(notes={"citations": citations}) as bank:
        alice = bank.agent("alice")
        alice.notes.write("MEMORY.md", "the dragon sleeps at noon\n")
        (finding,) = alice.memory_search("dragon", group=group)
        assert (finding.citation is not None) is shown


def test_what_matches_too_little_is_no_result_even_if_pinned(alice: AgentMemory) -> None:
    alice.add("salt is dear", "pinned")
    alice.notes.write("MEMORY.md", "the dragon sleeps at noon\n")
    assert found(alice, "dragon") == ["MEMORY.md#L1"]
    assert len(alice.memory_search("dragon", min_score=0.0)) == 2
    assert len(alice.memory_search("dragon", 1, min_score=0.0)) == 1


@pytest.mark.parametrize("query", ["", " \n"])
def test_a_blank_query_finds_nothing(alice: AgentMemory, query: str) -> None:
    alice.notes.write("MEMORY.md", "the dragon sleeps at noon\n")
    assert alice.memory_search(query) == []


@pytest.mark.parametrize("bad", [{"max_results": -1}, {"min_score": 2}, {"max_results": "x"}])
def test_bad_numbers_are_refused(alice: AgentMemory, bad: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        alice.memory_search("dragon", **bad)  # type: ignore[arg-type]


def test_a_long_chunk_is_shown_in_part(alice: AgentMemory) -> None:
    alice.notes.write("MEMORY.md", "the dragon sleeps at noon " * 50)
    (finding,) = alice.memory_search("dragon")
    assert len(finding.snippet) <= 700
    assert finding.snippet.endswith("…")


def test_a_note_in_a_context_does_not_show_the_end_of_its_last_line(alice: AgentMemory) -> None:
    alice.notes.write("MEMORY.md", "the dragon sleeps\nat noon\n")
    assert alice.get_relevant_memories("dragon") == "- the dragon sleeps\\nat noon"


# Reading lines


def test_exactly_these_lines_come_back(alice: AgentMemory) -> None:
    alice.notes.write("MEMORY.md", "one\r\ntwo\nthree\u2028still three\nfour")
    assert alice.notes.lines("MEMORY.md", 2, 2) == (
        "MEMORY.md", 2, 3, "two\nthree\u2028still three\n",
    )  # fmt: skip
    assert alice.notes.lines("MEMORY.md").text == "one\r\ntwo\nthree\u2028still three\nfour"
    assert alice.notes.lines("MEMORY.md", 4, 100).last == 4
    assert alice.notes.lines("MEMORY.md", 9, 2) == ("MEMORY.md", 9, 8, "")


def test_a_missing_day_is_an_empty_result(alice: AgentMemory) -> None:
    assert alice.notes.lines("memory/1999-01-01.md", 5, 3).text == ""


@pytest.mark.parametrize("bad", [(0, 1), (1, -1), (True, 1), (1.5, 1), ("1", 1)])
def test_lines_are_whole_numbers_from_1(alice: AgentMemory, bad: tuple[object, object]) -> None:
    with pytest.raises(InvalidInput, match="whole number"):
        alice.notes.lines("MEMORY.md", *bad)  # type: ignore[arg-type]


# What goes wrong


def test_a_note_that_cannot_be_indexed_is_found_as_it_was(alice: AgentMemory, folder: Path) -> None:
    path = folder / "MEMORY.md"
    path.write_text("the dragon sleeps at noon\n")
    alice.notes.sync()
    path.write_bytes(b"\xff\xfe not text")
    problems = alice.notes.sync().problems
    assert len(problems) == 1
    assert "UTF-8" in problems[0]
    assert found(alice, "dragon") == ["MEMORY.md#L1"]
    path.write_text("---\ntier: vital\n---\nx\n")
    assert "vital" in alice.notes.sync().problems[0]
    assert found(alice, "dragon") == ["MEMORY.md#L1"]


def test_one_bad_note_does_not_keep_others_from_being_indexed(
    alice: AgentMemory, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    (folder / "memory/a.md").symlink_to(tmp_path / "secret")
    (folder / "memory/b.md").write_text("the dragon sleeps at noon\n")
    assert found(alice, "dragon") == ["memory/b.md#L1"]
    assert found(alice, "secret") == []


def test_where_tiers_reject_a_note_that_does_not_fit_leaves_the_old_index(tmp_path: Path) -> None:
    memory = {"max_pinned": 1, "on_tier_full": "reject"}
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, memory=memory) as bank:
        alice = bank.agent("alice")
        alice.add("by hand", "pinned")
        alice.notes.write("MEMORY.md", "never trust X\n")
        before = bank.state_hash()
        with pytest.raises(TierFull):
            alice.notes.write("MEMORY.md", "---\ntier: pinned\n---\nnever trust X\n")
        assert bank.state_hash() == before
        assert alice.notes.read() == "never trust X\n"


def test_agents_have_their_own_notes(bank: MemoryBank) -> None:
    bank.agent("alice").notes.write("MEMORY.md", "the dragon sleeps at noon\n")
    bob = bank.agent("bob")
    assert bob.notes.read() == ""
    assert found(bob, "dragon") == []


def test_a_chunk_that_an_agent_deleted_is_indexed_again_when_its_note_changes(
    alice: AgentMemory,
) -> None:
    alice.notes.write("MEMORY.md", "the dragon sleeps at noon\n")
    alice.delete(alice.all()[0].id)
    assert alice.all() == []
    alice.notes.append("and wakes at dusk", "MEMORY.md")
    assert len(alice.all()) == 1


def test_what_is_gone_from_a_note_is_deleted_and_can_be_restored_for_a_while(
    alice: AgentMemory,
) -> None:
    alice.notes.write("MEMORY.md", "the dragon sleeps at noon\n")
    old = alice.all()[0]
    alice.notes.write("MEMORY.md", "something else\n")
    assert alice.update(old.id, retention="active").retention is Retention.ACTIVE
    assert alice.notes.citation(old) is None


def test_a_bank_without_files_refuses_what_files_refuse() -> None:
    with MemoryBank.ephemeral() as bank:
        for text in ("a\0b", "\ud800", "x" * (1 << 20) + "x"):
            with pytest.raises(NoteRefused):
                bank.agent("alice").notes.write("MEMORY.md", text)
        assert bank.agent("alice").notes.paths() == []


def test_what_a_note_still_has_is_not_forgotten(
    bank: MemoryBank, alice: AgentMemory, tmp_path: Path
) -> None:
    alice.notes.write("MEMORY.md", "the password is hunter2\n")
    memory = alice.all()[0]
    with pytest.raises(InvalidInput, match=r"MEMORY\.md.*edit the note first"):
        alice.forget(memory.id)
    alice.notes.write("MEMORY.md", "no password\n")
    alice.forget(memory.id)
    assert nth(alice.engine, "alice", memory.sequence) is None


def test_a_note_with_a_wrong_tier_is_read_and_replaced(notes: AgentNotes, file: Path) -> None:
    text = "# Rules <!-- tier: crtical -->\n\nan important line\n"
    notes.write("MEMORY.md", "first\n")
    file.write_text(text)
    assert notes.read() == text
    assert notes.lines("MEMORY.md", 3, 1).text == "an important line\n"
    with pytest.raises(InvalidTier, match="crtical"):
        notes.append("x", "MEMORY.md")
    assert file.read_text() == text
    notes.write("MEMORY.md", "right\n")
    assert file.read_text() == "right\n"
    assert notes.read() == "right\n"


# Opening


def test_what_was_edited_while_the_bank_was_closed_is_indexed_on_opening(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        bank.agent("alice").notes.write("MEMORY.md", "the dragon sleeps at noon\n")
    (tmp_path / "bank/notes/alice/MEMORY.md").write_text("the dragon sleeps at night\n")
    (tmp_path / "bank/notes/bob/memory").mkdir(parents=True)
    (tmp_path / "bank/notes/bob/memory/a.md").write_text("hello\n")
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        assert note_texts(bank.agent("alice")) == ["the dragon sleeps at night\n"]
        assert note_texts(bank.agent("bob")) == ["hello\n"]


def test_a_file_that_was_committed_but_not_written_is_written_on_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        bank.agent("alice").notes.write("MEMORY.md", "first\n")
        with monkeypatch.context() as killed:  # before the last step
            killed.setattr(bank.engine, "settle_notes", lambda: None)
            bank.agent("alice").notes.write("MEMORY.md", "second\n")
    folder = tmp_path / "bank/notes/alice"
    assert (folder / "MEMORY.md").read_text() == "first\n"
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        assert bank.agent("alice").notes.read() == "second\n"
    assert os.listdir(folder) == ["MEMORY.md"]


def test_a_file_that_was_staged_but_not_committed_is_dropped_on_opening(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        bank.agent("alice").notes.write("MEMORY.md", "first\n")
    folder = tmp_path / "bank/notes/alice"
    (folder / ".MEMORY.md.new").write_text("never committed\n")
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        assert bank.agent("alice").notes.read() == "first\n"
    assert os.listdir(folder) == ["MEMORY.md"]


def test_a_folder_that_is_no_agents_is_left_alone(tmp_path: Path) -> None:
    odd = tmp_path / "bank/notes/.git"
    odd.mkdir(parents=True)
    (odd / "MEMORY.md").write_text("x")
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        assert bank.agents() == []


@pytest.mark.parametrize("path", ["memory/x.md/y.md", "memory/a/X.MD/y.md", "memory/x.jsonl/y.md"])
def test_no_path_goes_through_a_note(bank: MemoryBank, notes: AgentNotes, path: str) -> None:
    notes.write("memory/x.md", "a file")
    with pytest.raises(NoteRefused, match="a folder with the name of a note"):
        notes.write(path, "in a file")
    in_memory = MemoryBank.ephemeral()
    with in_memory, pytest.raises(NoteRefused, match="a folder with the name of a note"):
        in_memory.agent("alice").notes.write(path, "in a file")
    assert notes.paths() == ["memory/x.md"]
    assert bank.agent("alice").notes.sync().problems == ()


def test_an_edit_counts_places_that_overlap(notes: AgentNotes) -> None:
    notes.write("MEMORY.md", "- done\n- done\n- done\n")
    with pytest.raises(InvalidInput, match="exactly once; it is there 2 times"):
        notes.edit("MEMORY.md", "- done\n- done\n", "- X\n")
    assert notes.read("MEMORY.md") == "- done\n- done\n- done\n"


# Long notes

LONG_TEXT = "".join(f"line {number} of a note\n" for number in range(3000))


def chunk_places(bank: MemoryBank, path: str = "MEMORY.md") -> list[tuple[str, int, int]]:
    """The text and the lines of each chunk of alice's note."""
    contents = {memory.sequence: memory.content for memory in bank.agent("alice").all()}
    places = bank.engine.state.block("alice").notes[path].chunks
    assert len(contents) == len(places)
    return [(contents[number], first, last) for number, first, last in places]


@pytest.mark.parametrize("head", ["", "---\ntier: low\n---\n", "```\n"])
def test_a_note_that_grew_line_by_line_has_the_chunks_of_its_whole_text(
    bank: MemoryBank, notes: AgentNotes, head: str
) -> None:
    text = head + LONG_TEXT
    notes.write("MEMORY.md", text)
    before = {memory.sequence for memory in bank.agent("alice").all()}
    for line in ("more", "# Heading", "low", "```"):
        notes.append(line, "MEMORY.md")
        text += f"{line}\n"
    assert chunk_places(bank) == [(each.text, each.first, each.last) for each in cut(text)]
    after = {memory.sequence for memory in bank.agent("alice").all()}
    assert len(before - after) <= 2, "chunks whose text stays keep their memories"


def test_a_line_that_no_note_may_have_is_refused_by_its_number(notes: AgentNotes) -> None:
    notes.write("MEMORY.md", LONG_TEXT)
    with pytest.raises(InvalidTier, match="line 3002: 'huge' is not a tier"):
        notes.append("y\n# B <!-- tier: huge -->", "MEMORY.md")
    assert notes.read() == LONG_TEXT


def test_a_chunk_that_was_deleted_comes_back_when_the_note_grows(alice: AgentMemory) -> None:
    """As it does when any other part of the note changes."""
    alice.notes.write("MEMORY.md", LONG_TEXT)
    first, count = alice.all()[0], alice.count()
    alice.delete(first.id)
    alice.notes.append("more", "MEMORY.md")
    assert alice.count() == count
    assert first.content in {memory.content for memory in alice.all()}


def test_a_line_at_the_end_of_the_longest_note_takes_less_than_a_second(notes: AgentNotes) -> None:
    """Other clients of the bank wait for as long."""
    line = "some words in a line of a note, as an agent writes them\n"
    notes.write("MEMORY.md", line * ((MOST_BYTES - 1000) // len(line)))
    began = time.process_time()
    notes.append("more", "MEMORY.md")
    assert time.process_time() - began < 1
