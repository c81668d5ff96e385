"""Transcripts of sessions: indexed as they grow, cited by line, and never written."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from note_banks import found, note_texts

from agents import AgentMemory, MemoryBank
from agents.bank import history
from agents.errors import NoteRefused
from agents.notes import transcripts
from agents.notes.index import Synced
from banks import MANUAL

PATH = "sessions/monday.jsonl"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "bank"


@pytest.fixture
def reopen(folder: Path) -> Iterator[Callable[..., AgentMemory]]:
    """Opens the bank, closing it first if it is open."""
    banks: list[MemoryBank] = []

    def opened(**notes: Any) -> AgentMemory:
        for bank in banks:
            bank.close()
        notes = {"transcripts": True, **notes}
        banks.append(MemoryBank.open(folder, storage=MANUAL, notes=notes))
        return banks[-1].agent("alice")

    yield opened
    for bank in banks:
        bank.close()


@pytest.fixture
def alice(reopen: Callable[..., AgentMemory]) -> AgentMemory:
    return reopen()


@pytest.fixture
def file(folder: Path) -> Path:
    place = folder / "notes" / "alice" / PATH
    place.parent.mkdir(parents=True)
    return place


def say(file: Path, *messages: object) -> None:
    """Append messages, each as a line."""
    with file.open("a") as lines:
        lines.writelines(json.dumps(each) + "\n" for each in messages)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


LONG = "the market opens at nine " * 63
"""A message that leaves no room for another one in its chunk."""


def test_a_transcript_is_found_and_cited_by_its_lines(alice: AgentMemory, file: Path) -> None:
    say(file, {"type": "session", "id": 7}, user("When does the dragon sleep?"))
    say(file, {"role": "assistant", "content": [{"type": "text", "text": "At noon."}]})
    assert found(alice, "when does the dragon sleep?") == [f"{PATH}#L2-L3"]
    assert note_texts(alice) == ["user: When does the dragon sleep?\nassistant: At noon.\n"]
    assert alice.notes.lines(PATH, 3, 1) == (PATH, 3, 3, "assistant: At noon.\n")
    assert alice.notes.paths() == [PATH]
    assert alice.notes.read(PATH).splitlines() == [
        "", "user: When does the dragon sleep?", "assistant: At noon.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (user("tea"), "user: tea"),
        ({"type": "message", "message": user("tea")}, "user: tea"),
        ({"type": "response_item", "payload": user("tea")}, "user: tea"),
        ({"role": "a", "content": ["one", {"text": "two"}, {"image": "x"}]}, "a: one two"),
        (user("one\n\n  two\ud800\0"), "user: one two?\ufffd"),
        ({"role": "system", "content": "be kind"}, None),
        ({"role": "tool", "content": "42"}, None),
        ({"role": "user", "content": [{"type": "image"}]}, None),
        ({"role": "user", "content": None}, None),
        ({"role": 7, "content": "tea"}, None),
        ({"message": "tea"}, None),
        ({}, None),
    ],
)
def test_messages_of_common_shapes_are_read(
    alice: AgentMemory, file: Path, line: object, text: str | None
) -> None:
    say(file, line)
    assert alice.notes.sync() == Synced((PATH,), (), 0, ())
    assert note_texts(alice) == ([] if text is None else [f"{text}\n"])


def test_only_new_lines_are_read_and_embedded(
    reopen: Callable[..., AgentMemory], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = reopen()
    say(file, *(user(f"{LONG} {n}") for n in range(20)))
    assert alice.notes.sync().changed == (PATH,)
    before = {memory.id for memory in alice.all()}
    read: list[int] = []
    real = transcripts._message
    monkeypatch.setattr(transcripts, "_message", lambda line: (read.append(1), real(line))[1])
    for count in (1, 2):
        say(file, user("the dragon sleeps"))
        alice = reopen()  # the bookmark is in the journal
        assert note_texts(alice)[-1] == "user: the dragon sleeps\n" * count
        assert len(read) == 2  # the last message, and the new one
        read.clear()
    assert len(before - {memory.id for memory in alice.all()}) == 0
    assert alice.notes.sync() == Synced((), (), 1, ())
    assert read == []


def test_chunks_do_not_depend_on_when_a_transcript_was_read(
    alice: AgentMemory, folder: Path, file: Path
) -> None:
    texts = [f"{n} " + "the dragon sleeps " * (n * 37 % 90) for n in range(60)]
    for text in texts:
        say(file, user(text))
        alice.notes.sync()
    other = file.parents[2] / "bob" / PATH
    other.parent.mkdir(parents=True)
    say(other, *map(user, texts))
    bob = MemoryBank(alice.engine).agent("bob")
    bob.notes.sync()
    assert note_texts(alice) == note_texts(bob)
    ours, theirs = (
        [agent.notes.citation(memory) for memory in agent.all()] for agent in (alice, bob)
    )
    assert ours == theirs
    assert None not in ours
    assert "".join(note_texts(bob)) == bob.notes.read(PATH)


def test_a_torn_last_line_waits_for_its_end(alice: AgentMemory, file: Path) -> None:
    say(file, user("one"))
    with file.open("a") as lines:
        lines.write(json.dumps(user("two")))
    alice.notes.sync()
    assert note_texts(alice) == ["user: one\n"]
    assert alice.notes.sync() == Synced((), (), 1, ())
    with file.open("a") as lines:
        lines.write("\n")
    assert alice.notes.sync().changed == (PATH,)
    assert note_texts(alice) == ["user: one\nuser: two\n"]


def test_bad_lines_are_skipped_and_named_once(alice: AgentMemory, file: Path) -> None:
    say(file, user("one"))
    with file.open("ab") as lines:
        lines.write(b"{not json\n[1]\n\xff\n\n" + b"[" * 100_000 + b"\n")
        lines.write(b'{"role": "user", "content": "' + b"x" * (1 << 20) + b'"}\n')
    say(file, user("two"))
    synced = alice.notes.sync()
    assert (synced.changed, synced.problems) == ((PATH,), ())
    (said,) = synced.skipped
    assert said.startswith(f"{PATH}: lines 2, 3, 4, 6, 7 skipped: no JSON object")
    assert note_texts(alice) == ["user: one\nuser: two\n"]
    assert found(alice, "two") == [f"{PATH}#L1-L8"]
    assert alice.notes.sync().skipped == ()


@pytest.mark.parametrize("how", ["truncated", "replaced", "longer", "gone"])
def test_a_file_that_is_not_the_one_that_was_read_is_read_anew(
    alice: AgentMemory, file: Path, how: str
) -> None:
    say(file, user(f"one {LONG}"), user("two"))
    alice.notes.sync()
    if how == "truncated":
        file.write_text(json.dumps(user("two")) + "\n")
    else:
        file.unlink()
    if how == "replaced":
        say(file, user(f"three{LONG}"), user("two"))
    elif how == "longer":
        say(file, user("four"), user("two"), user(LONG), user(LONG))
    synced = alice.notes.sync()
    if how == "gone":
        assert (synced.removed, note_texts(alice)) == ((PATH,), [])
    else:
        assert synced.changed == (PATH,)
        assert "".join(note_texts(alice)) == alice.notes.read(PATH)


def test_the_last_chunk_keeps_its_tier_when_it_grows(alice: AgentMemory, file: Path) -> None:
    say(file, user("never trust X"))
    alice.notes.sync()
    alice.pin(alice.all()[0].id)
    say(file, user("and eat well"))
    alice.notes.sync()
    (memory,) = alice.all()
    assert (memory.content, int(memory.tier)) == ("user: never trust X\nuser: and eat well\n", 0)


def test_transcripts_are_off_unless_the_settings_say_so(
    reopen: Callable[..., AgentMemory], file: Path
) -> None:
    say(file, user("the dragon sleeps"))
    alice = reopen(transcripts=False)
    assert alice.notes.paths() == []
    with pytest.raises(NoteRefused, match="transcripts are not indexed"):
        alice.notes.lines(PATH)
    assert reopen().notes.paths() == [PATH]
    alice = reopen(transcripts=False)
    assert (alice.notes.paths(), note_texts(alice)) == ([], [])


@pytest.mark.parametrize("path", [PATH, "sessions/new.jsonl"])
def test_transcripts_are_only_read(alice: AgentMemory, file: Path, path: str) -> None:
    say(file, user("one"))
    before = file.read_bytes()
    for write in (
        lambda: alice.notes.write(path, "x"),
        lambda: alice.notes.append("x", path),
        lambda: alice.notes.edit(path, "one", "x"),
    ):
        with pytest.raises(NoteRefused, match="is only read"):
            write()
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == [file.name]


@pytest.mark.parametrize(
    "path",
    [
        "sessions/../MEMORY.jsonl",
        "sessions/a/b.jsonl",
        "sessions/.a.jsonl",
        "sessions/a.md",
        "a.jsonl",
    ],
)
def test_no_other_file_is_a_transcript(alice: AgentMemory, path: str) -> None:
    with pytest.raises(NoteRefused, match="is not a note's path"):
        alice.notes.lines(path)


def test_a_link_is_no_transcript(alice: AgentMemory, file: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    say(secret, user("the secret of another"))
    file.symlink_to(secret)
    (file.parent / "hard.jsonl").hardlink_to(secret)
    synced = alice.notes.sync()
    assert [each.partition(": ")[0] for each in synced.problems] == ["sessions/hard.jsonl", PATH]
    assert note_texts(alice) == []


def test_agents_have_their_own_transcripts(alice: AgentMemory, file: Path) -> None:
    say(file, user("the dragon sleeps"))
    bob = MemoryBank(alice.engine).agent("bob")
    assert found(bob, "dragon") == []
    assert bob.notes.lines(PATH).text == ""


def test_very_many_messages_are_read_in_parts(alice: AgentMemory, file: Path) -> None:
    say(file, *(user(f"{n} " + "x" * 1000) for n in range(1200)))
    with pytest.raises(NoteRefused, match="ask for fewer lines"):
        alice.notes.read(PATH)
    assert alice.notes.lines(PATH, 1200).text.startswith("user: 1199 x")


def test_a_message_that_is_too_long_for_a_chunk_is_cut(alice: AgentMemory, file: Path) -> None:
    say(file, user("one"), user("the dragon sleeps at noon " * 200), user("two"))
    alice.notes.sync()
    cited = [alice.notes.citation(memory) for memory in alice.all()]
    assert cited[0] == f"{PATH}#L1"
    assert set(cited[1:-1]) == {f"{PATH}#L2"}
    assert cited[-1] == f"{PATH}#L3"
    assert "".join(note_texts(alice)) == alice.notes.read(PATH)


def test_a_bank_that_goes_back_reads_the_rest_again(
    reopen: Callable[..., AgentMemory], folder: Path, file: Path
) -> None:
    alice = reopen()
    say(file, user("one"))
    alice.notes.sync()
    MemoryBank(alice.engine).advance(5)
    say(file, user("two"))
    alice.notes.sync()
    text = file.read_bytes()
    with MemoryBank.at(folder, 0) as copy:
        assert note_texts(copy.agent("alice")) == ["user: one\n"]
        assert copy.agent("alice").notes.paths() == [PATH]
        with pytest.raises(NoteRefused, match="a copy of a bank has no transcripts"):
            copy.agent("alice").notes.lines(PATH)
    MemoryBank(alice.engine).close()
    history.rewind(folder, 0)
    alice = reopen()
    assert file.read_bytes() == text
    assert note_texts(alice) == ["user: one\nuser: two\n"]
