"""What it costs to append to a note: about the same, however long the note is."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from agents import MemoryBank
from agents.errors import InvalidTier
from agents.notes import chunks, growth, kept_marks, marks
from agents.notes.markdown import split_lines
from banks import MANUAL
from embedders import Counting

pytestmark = pytest.mark.slow_after(1)

LINE = "some words in a line of a note\n"


def lines(line: str, before: str = "") -> Callable[[int], str]:
    """Makes a note of about as many characters as it is given."""
    return lambda size: before + line * (size // len(line))


NOTES = {
    "lines": lines(LINE),
    "short": lines("x\n"),
    "sections": lines("# A\nwords\n\n"),
    "other line ends": lines("some words in a line of a note\r\n"),
    "old line ends": lines("some words in a line of a note\r"),
    "an open fence": lines(LINE, "# Code\n```\n"),
    "fences": lines(f"{LINE * 3}```\ncode\n```\n"),
    "front matter": lines(LINE, "---\ntier: low\n---\n"),
    "front matter without an end": lines(LINE, "---\nkey: 1\n"),
    "no front matter yet": lines("#words of a note\n", "---\n"),
    "a mark at its beginning": lines(LINE, "\ufeff# A\n"),
    "blank lines": lines("\n", LINE * 3),
    "one long line": lambda size: "words " * (size // 6) + "\n",
    "no end": lambda size: lines(LINE)(size) + "the last line",
}


class Work:
    """Counts the characters of lines whose tokens are counted, and of texts cut into lines."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.characters = 0
        for module in (chunks, growth, marks):
            monkeypatch.setattr(module, "split_lines", self._split)

    def __call__(self, text: str, /) -> int:
        self.characters += len(text)
        return -(-len(text) // 4)

    def _split(self, text: str) -> list[str]:
        self.characters += len(text)
        return split_lines(text)


def work_of_appending(folder: Path, text: str, work: Work, line: str = "x") -> tuple[int, int]:
    """The characters that were looked at, and the texts that were embedded, for one more line."""
    embedder = Counting()
    with MemoryBank.open(folder, storage=MANUAL, embedder=embedder, count_tokens=work) as bank:
        notes = bank.agent("alice").notes
        notes.write("MEMORY.md", text)
        notes.append(line, "MEMORY.md")
        notes.append(line, "MEMORY.md")
        work.characters, embedded = 0, len(embedder.texts)
        notes.append(line, "MEMORY.md")
        counted = work.characters, len(embedder.texts) - embedded
        whole = notes.read()
        between = "" if text.endswith(("\n", "\r")) else "\n"
        assert whole == f"{text}{between}" + f"{line}\n" * 3
        _is_cut_as_a_whole(bank, whole)
    with MemoryBank.open(folder, storage=MANUAL, embedder=embedder) as again:
        assert again.agent("alice").notes.read() == whole
    return counted


def _is_cut_as_a_whole(bank: MemoryBank, text: str) -> None:
    """The chunks of alice's note are those of its whole text."""
    settings = bank.engine.settings.notes
    wanted = chunks.cut(text, settings.chunk_tokens, settings.chunk_overlap)
    found = {memory.sequence: memory.content for memory in bank.agent("alice").all()}
    places = bank.engine.state.block("alice").notes["MEMORY.md"].chunks
    assert [(found[number], first, last) for number, first, last in places] == [
        (each.text, each.first, each.last) for each in wanted
    ]
    assert len(found) == len(places)


@pytest.mark.long_after(4)
@pytest.mark.parametrize("note", NOTES.values(), ids=NOTES)
def test_a_line_costs_the_same_in_a_long_note_as_in_a_short_one(
    tmp_path: Path, note: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work(monkeypatch)
    short = work_of_appending(tmp_path / "short", note(30_000), work)
    long = work_of_appending(tmp_path / "long", note(300_000), work)
    assert long[1] == short[1] <= 2
    assert long[0] <= 1.5 * short[0]
    assert long[0] < 120_000


ROWS = {"headings": lines("# one of many\n"), "a heading, then blank lines": lines("\n", "# A\n")}


@pytest.mark.long_after(2)
@pytest.mark.parametrize("line", ["# x", "x"])
@pytest.mark.parametrize("note", ROWS.values(), ids=ROWS)
def test_so_does_a_line_after_a_long_row_of_headings(
    tmp_path: Path, note: Callable[[int], str], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work(monkeypatch)
    short = work_of_appending(tmp_path / "short", note(30_000), work, line)
    long = work_of_appending(tmp_path / "long", note(300_000), work, line)
    assert long[1] <= short[1] + 1 <= 5
    assert long[0] <= 1.5 * short[0]
    assert long[0] < 120_000


def long_note(bank: MemoryBank) -> str:
    """A long note of alice, with a mark near its end."""
    text = lines(LINE, "# A\n")(300_000)
    bank.agent("alice").notes.write("MEMORY.md", text)
    bank.agent("alice").notes.append("x", "MEMORY.md")
    return f"{text}x\n"


def test_a_note_whose_append_was_undone_goes_on_from_its_old_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work(monkeypatch)
    with MemoryBank.open(
        tmp_path / "bank", storage=MANUAL, embedder=Counting(), count_tokens=work
    ) as bank:
        text, notes = long_note(bank), bank.agent("alice").notes
        with suppress(ZeroDivisionError), bank.transaction():
            notes.append("# B\n```", "MEMORY.md")
            raise ZeroDivisionError
        work.characters = 0
        notes.append("y", "MEMORY.md")
        assert work.characters < 120_000
        _is_cut_as_a_whole(bank, f"{text}y\n")


def test_a_note_that_a_person_changed_is_looked_through_again(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, embedder=Counting()) as bank:
        text, notes = long_note(bank), bank.agent("alice").notes
        file = tmp_path / "bank" / "notes" / "alice" / "MEMORY.md"
        changed = text.replace("# A\n", "```\n", 1)
        assert len(changed) == len(text)
        file.write_text(changed)
        notes.append("```\n# B\nlow", "MEMORY.md")
        _is_cut_as_a_whole(bank, f"{changed}```\n# B\nlow\n")


def test_a_line_that_no_note_may_have_is_refused_by_its_number(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, embedder=Counting()) as bank:
        text = long_note(bank)
        number = text.count("\n") + 2
        wrong = f"line {number}: 'huge' is not a tier"
        with pytest.raises(InvalidTier, match=wrong):
            bank.agent("alice").notes.append("y\n# B <!-- tier: huge -->", "MEMORY.md")
        assert bank.agent("alice").notes.read() == text


def test_the_marks_of_few_notes_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_marks, "_MOST", 3)
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, embedder=Counting()) as bank:
        notes = bank.agent("alice").notes
        for number in range(5):
            notes.write(f"memory/{number}.md", lines(LINE)(40_000))
            notes.append("x", f"memory/{number}.md")
        notes.append("x", "memory/2.md")
        notes.append("x", "memory/0.md")
        paths = [path for _, path in bank.engine.note_marks]
        assert paths == ["memory/4.md", "memory/2.md", "memory/0.md"]


def test_a_chunk_that_was_deleted_comes_back_when_the_note_grows(tmp_path: Path) -> None:
    """As it does when any other part of the note changes."""
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, embedder=Counting()) as bank:
        alice = bank.agent("alice")
        alice.notes.write("MEMORY.md", "".join(f"line {n} of a note\n" for n in range(3000)))
        first, count = alice.all()[0], alice.count()
        alice.delete(first.id)
        alice.notes.append("more", "MEMORY.md")
        assert alice.count() == count
        assert first.content in {memory.content for memory in alice.all()}
