"""Notes in checkpoints, snapshots and earlier ticks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from note_banks import divergences, finish, found, market, note_texts

from agents import MemoryBank, Retention
from agents.bank import history
from agents.engine.read import nth
from agents.simulation.runs.branch import branch
from agents.simulation.runs.compare import differences
from agents.simulation.runs.run import Run
from agents.storage.journal.journal import Journal
from agents.storage.journal.tables import Commit
from banks import MANUAL, MakeBank

# Going back


def test_going_back_keeps_files_that_were_never_indexed(tmp_path: Path) -> None:
    place = tmp_path / "bank"
    with MemoryBank.open(place, storage=MANUAL) as bank:
        bank.agent("alice").notes.write("MEMORY.md", "then\n")
        bank.advance(1)
        bank.agent("alice").notes.write("MEMORY.md", "later\n")
    folder = place / "notes/alice"
    (folder / "memory").mkdir()
    (folder / "memory/plans.md").write_text("by a person\n")
    for number in (1, 2):
        history.rewind(place, 0)
        with MemoryBank.open(place, storage=MANUAL) as bank:
            assert bank.agent("alice").notes.paths() == ["MEMORY.md"]
            assert bank.agent("alice").notes.read() == "then\n"
        if number == 1:
            assert (folder / ".replaced-1/memory/plans.md").read_text() == "by a person\n"
            assert (folder / ".replaced-1/MEMORY.md").read_text() == "later\n"
            (folder / "memory/more.md").write_text("more\n")
    assert (folder / ".replaced-2/memory/more.md").read_text() == "more\n"


def test_restoring_beside_notes_alone_makes_a_bank_of_its_own(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        bank.agent("alice").add("a fish")
        bank.checkpoint(tmp_path / "one.tmck")
        first = bank.engine.journal.get("bank")["id"]
    (tmp_path / "new/notes/alice").mkdir(parents=True)
    with MemoryBank.restore(tmp_path / "one.tmck", tmp_path / "new", storage=MANUAL) as bank:
        assert bank.engine.journal.get("bank")["id"] != first


def test_a_checkpoint_has_the_notes_and_restoring_writes_them(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        alice = bank.agent("alice")
        alice.notes.write("MEMORY.md", "the dragon sleeps at noon\n")
        expected = bank.state_hash()
        bank.checkpoint(tmp_path / "one.tmck")
        alice.notes.write("MEMORY.md", "changed later\n")
        alice.notes.append("a new day")
        assert bank.state_hash() != expected
    for place in (tmp_path / "bank", tmp_path / "elsewhere"):
        with MemoryBank.restore(tmp_path / "one.tmck", place, storage=MANUAL) as bank:
            assert bank.state_hash() == expected
            assert found(bank.agent("alice"), "dragon") == ["MEMORY.md#L1"]
        files = [path for path in (place / "notes/alice").glob("[!.]*") if path.is_file()]
        assert [(path.name, path.read_text()) for path in files] == [
            ("MEMORY.md", "the dragon sleeps at noon\n")
        ]


def test_a_snapshot_has_the_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.storage.state.ledger.Ledger.SNAPSHOT_ON_CLOSE", 1)
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        bank.agent("alice").notes.write("MEMORY.md", "the dragon sleeps at noon\n")
        expected = bank.state_hash()
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        assert bank.state_hash() == expected


def test_a_note_is_part_of_the_state(tmp_path: Path) -> None:
    hashes = set()
    for text in ("a\n", "b\n", "b\n"):
        with MemoryBank.ephemeral() as bank:
            bank.agent("alice").notes.write("MEMORY.md", text)
            hashes.add(bank.state_hash())
    assert len(hashes) == 2


def test_the_past_has_the_notes_of_then(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        alice = bank.agent("alice")
        bank.advance(1)
        alice.notes.append("first", "MEMORY.md")
        bank.advance(2)
        alice.notes.append("second", "MEMORY.md")
        with MemoryBank.at(tmp_path / "bank", 1) as then:
            assert then.agent("alice").notes.read() == "first\n"
        assert alice.notes.read() == "first\nsecond\n"


# The past keeps the chunks of then


def outdated(place: Path) -> None:
    """A bank in which a note's first chunk is long gone."""
    with MemoryBank.open(place, storage=MANUAL, retention={"grace": 1}) as bank:
        alice = bank.agent("alice")
        alice.notes.write("MEMORY.md", "the dragon sleeps at noon\n")
        bank.advance(1)
        alice.notes.write("MEMORY.md", "salt is dear\n")
        bank.advance(5)
        bank.sweep()
        assert nth(alice.engine, "alice", 1) is None
        assert bank.engine.state.memory("alice", 1) is None


def test_the_past_has_chunks_that_are_long_gone(tmp_path: Path) -> None:
    outdated(tmp_path / "bank")
    with MemoryBank.at(tmp_path / "bank", 0) as then:
        assert note_texts(then.agent("alice")) == ["the dragon sleeps at noon\n"]
    history.rewind(tmp_path / "bank", 0)
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        assert note_texts(bank.agent("alice")) == ["the dragon sleeps at noon\n"]


def test_chunks_that_are_gone_are_gone_after_a_snapshot_and_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.storage.state.ledger.Ledger.SNAPSHOT_ON_CLOSE", 1)
    outdated(tmp_path / "bank")
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        assert nth(bank.engine, "alice", 1) is None
        bank.checkpoint(tmp_path / "one.tmck")
    with MemoryBank.restore(tmp_path / "one.tmck", tmp_path / "new", storage=MANUAL) as bank:
        assert nth(bank.engine, "alice", 1) is None


def test_a_chunk_that_was_forgotten_later_is_indexed_again_after_going_back(
    tmp_path: Path,
) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        alice = bank.agent("alice")
        alice.notes.write("MEMORY.md", "the dragon sleeps at noon\n")
        old = alice.all()[0]
        bank.advance(1)
        alice.notes.write("MEMORY.md", "salt is dear\n")
        alice.forget(old.id)
    history.rewind(tmp_path / "bank", 0)
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        assert note_texts(bank.agent("alice")) == ["the dragon sleeps at noon\n"]


def files_with(place: Path, text: str) -> list[str]:
    files = [path for path in place.rglob("*") if path.is_file()]
    return sorted(path.name for path in files if text.encode() in path.read_bytes())


def test_an_outdated_chunk_of_a_transcript_is_in_no_file_after_a_vacuum(tmp_path: Path) -> None:
    place = tmp_path / "bank"
    options: dict[str, Any] = {"retention": {"grace": 1}, "notes": {"transcripts": True}}
    with MemoryBank.open(place, storage=MANUAL, **options) as bank:
        file = place / "notes/alice/sessions/monday.jsonl"
        file.parent.mkdir(parents=True)
        file.write_text('{"role": "user", "content": "the password is swordfish"}\n')
        bank.sync_notes()
        assert bank.agent("alice").count() == 1
        bank.pass_time(1)
        file.unlink()
        bank.sync_notes()
        bank.pass_time(5)
        assert bank.vacuum() == []
    assert files_with(place, "swordfish") == []
    with MemoryBank.at(place, 0) as then:
        assert then.agent("alice").all() == []


def test_a_purged_memory_that_no_note_has_is_in_no_file_after_a_vacuum(tmp_path: Path) -> None:
    place = tmp_path / "bank"
    with MemoryBank.open(place, storage=MANUAL, retention={"grace": 1}) as bank:
        alice = bank.agent("alice")
        alice.notes.write("MEMORY.md", "salt is dear\n")
        made_up = {"kind": "note", "metadata": {"path": "MEMORY.md"}}
        alice.delete(alice.add("the password is swordfish", **made_up).id)
        bank.pass_time(5)
        assert bank.vacuum() == []
        assert note_texts(alice) == ["salt is dear\n"]
    assert files_with(place, "swordfish") == []


def test_a_restored_bank_keeps_the_chunks_of_the_notes_that_it_began_with(tmp_path: Path) -> None:
    dragon, place = "the dragon sleeps at noon\n", tmp_path / "new"
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        bank.agent("alice").notes.write("MEMORY.md", "the password is swordfish\n")
        bank.agent("alice").notes.write("MEMORY.md", dragon)
        bank.checkpoint(tmp_path / "one.tmck")
    options: dict[str, Any] = {"storage": MANUAL, "retention": {"grace": 1}}
    with MemoryBank.restore(tmp_path / "one.tmck", place, **options) as bank:
        bank.advance(1)
        bank.agent("alice").notes.write("MEMORY.md", "salt is dear\n")
        bank.pass_time(5)
        bank.vacuum()
    with MemoryBank.at(place, 0) as then:
        assert note_texts(then.agent("alice")) == [dragon]
    assert files_with(place, "swordfish") == []


def test_a_chunk_that_is_outdated_and_purged_in_one_commit_is_no_error(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, retention={"grace": 0}) as bank:
        alice = bank.agent("alice")
        with bank.transaction():
            alice.notes.write("MEMORY.md", "the dragon sleeps at noon\n")
            alice.notes.write("MEMORY.md", "salt is dear\n")
            bank.sweep()
        before = bank.state_hash()
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        assert bank.state_hash() == before
        assert note_texts(bank.agent("alice")) == ["salt is dear\n"]


def test_a_chunk_that_an_agent_deleted_does_not_come_back(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, retention={"grace": 1}) as bank:
        alice = bank.agent("alice")
        alice.notes.write("MEMORY.md", "the dragon sleeps at noon\n")
        alice.delete(alice.all()[0].id)
        bank.advance(5)
        bank.sweep()
        alice.notes.sync()
        assert note_texts(alice) == []


@pytest.mark.slow
def test_a_run_that_appends_is_replayed_from_any_tick_and_branched(tmp_path: Path) -> None:
    run = tmp_path / "run"
    finish(Run.create(run, market()))
    assert [divergences(run, tick) for tick in (None, 2, 8, 12)] == [[], [], [], []]
    branch(run, 2, tmp_path / "branch")
    with MemoryBank.open(tmp_path / "branch/bank", storage=MANUAL) as bank:
        assert note_texts(bank.agent("agent_00")) == ["fish: 1\nfish: 2\n"]


# Looking and comparing


def test_notes_that_differ_are_named() -> None:
    with MemoryBank.ephemeral() as one, MemoryBank.ephemeral() as other:
        for bank, end in ((one, ""), (other, "\n")):
            bank.agent("alice").notes.write("MEMORY.md", f"first\n{end}")
            bank.agent("alice").notes.write("memory/empty.md", "")
        assert [str(each) for each in differences(one, other)] == [
            'alice, MEMORY.md#L2: note is missing and "\\n"'
        ]
    with MemoryBank.ephemeral() as one, MemoryBank.ephemeral() as other:
        for bank in (one, other):
            bank.agent("alice").add("a fish")
        one.agent("alice").notes.write("MEMORY.md", "")
        assert [each[1:] for each in differences(one, other)] == [
            ("MEMORY.md#L1", "note", "", None)
        ]


def test_a_sweep_reads_a_commit_once_for_all_its_chunks(
    open_bank: MakeBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = open_bank(retention={"grace": 1})
    for text in ("# Plan\n\ngo north\n", "# Plan\n\nstay\n"):
        with bank.transaction():
            for number in range(9):
                bank.agent(f"agent_{number}").notes.write("MEMORY.md", text)
        bank.advance(bank.tick + 1)
    bank.advance(bank.tick + 5)
    read: list[int] = []
    commits = Journal.commits

    def counted(journal: Journal, after: int) -> Iterator[Commit]:
        read.append(after)
        return commits(journal, after)

    monkeypatch.setattr(Journal, "commits", counted)
    bank.sweep()
    assert [len(bank.agent(name).all(retention=Retention.DELETED)) for name in bank.agents()] == [
        0
    ] * 9
    assert 0 < len(read) == len(set(read)) < 9
