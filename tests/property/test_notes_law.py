"""However notes are written, by agents or by hand, index, journal and files agree after a sync."""

import contextlib
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agents import MemoryBank
from agents.engine.read import nth
from agents.notes.markdown import cut
from examples import examples

PATHS = ["MEMORY.md", "memory/a.md", "memory/b.md"]
LINES = ["fish", "# Head", "", "## Sub <!-- tier: critical -->", "```", "salt " * 30, "東京", "x\r"]
SMALL = {"chunk_tokens": 20, "chunk_overlap": 5}

texts = st.lists(st.sampled_from(LINES), min_size=1, max_size=8).map(lambda lines: "\n".join(lines))
steps = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["write", "append", "undone", "half undone", "by hand", "meanwhile"]),
            st.sampled_from(PATHS),
            texts,
        ),
        st.tuples(st.sampled_from(["delete", "sync", "reopen"]), st.sampled_from(PATHS), st.none()),
    ),
    max_size=12,
)


class Undone(Exception):
    """Ends a transaction."""


def open_bank(folder: Path) -> MemoryBank:
    return MemoryBank.open(folder / "bank", storage={"sync": "manual"}, notes=SMALL)


def files_in(folder: Path) -> dict[str, str]:
    place = folder / "bank/notes/alice"
    files = (path for path in place.rglob("*.md") if path.is_file())
    return {str(path.relative_to(place)): path.read_bytes().decode() for path in files}


def play(bank: MemoryBank, folder: Path, step: tuple[str, str, Any]) -> None:
    what, path, text = step
    notes, file = bank.agent("alice").notes, folder / "bank/notes/alice" / path
    if what == "write":
        notes.write(path, text)
    elif what == "append":
        notes.append(text, path)
    elif what == "undone":
        with contextlib.suppress(Undone), bank.transaction():
            notes.append(text, path)
            notes.write(PATHS[0], text)
            raise Undone
    elif what == "half undone":
        with bank.transaction():
            notes.append("outer", PATHS[0])
            with contextlib.suppress(Undone), bank.transaction():
                notes.write(path, text)
                raise Undone
    elif what == "by hand":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    elif what == "meanwhile":
        with bank.transaction():
            notes.append("by an agent", path)
            edited = f"{text}\nby a person"  # never what was there before
            file.write_bytes(edited.encode())
        assert edited in files_in(folder).values()
    elif what == "delete":
        file.unlink(missing_ok=True)
    elif what == "sync":
        notes.sync()


def check(bank: MemoryBank, folder: Path) -> None:
    alice = bank.agent("alice")
    assert alice.notes.sync().problems == ()
    kept = bank.engine.state.block("alice").notes
    assert {path: note.text for path, note in kept.items()} == files_in(folder)
    expected, found = [], []
    for path, note in kept.items():
        chunks = cut(note.text, SMALL["chunk_tokens"], SMALL["chunk_overlap"])
        expected += [(path, each.text, each.first, each.last) for each in chunks]
        for number, first, last in note.chunks:
            memory = nth(alice.engine, "alice", number)
            assert memory is not None
            assert memory.kind == "note"
            found.append((memory.metadata["path"], memory.content, first, last))
    assert found == expected
    active = [memory.sequence for memory in alice.all() if memory.kind == "note"]
    assert sorted(active) == sorted(n for note in kept.values() for n, _, _ in note.chunks)
    assert list(folder.rglob("*.new")) == []


@settings(max_examples=examples(40), deadline=None)
@given(steps)
def test_index_journal_and_files_agree(steps: list[tuple[str, str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bank = open_bank(folder)
        for step in steps:
            if step[0] == "reopen":
                bank.close()
                bank = open_bank(folder)
            else:
                play(bank, folder, step)
        check(bank, folder)
        expected = bank.state_hash()
        bank.close()
        with open_bank(folder) as again:
            assert again.state_hash() == expected
            check(again, folder)
