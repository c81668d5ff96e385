"""Notes where several want different things: people, agents, transactions, settings, the past."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import AgentMemory, MemoryBank
from agents.bank import history
from agents.config.load import load_settings
from agents.config.settings import Settings
from agents.errors import ConfigError, InvalidAgentId, InvalidInput, InvalidTier, TierFull
from agents.memory.tiers import Tier
from agents.notes.agent_notes import AgentNotes
from agents.notes.chunks import cut
from agents.notes.opening import look_at_files
from agents.simulation.runs.branch import branch
from agents.simulation.runs.compare import differences
from agents.simulation.runs.replay import Replay
from agents.simulation.runs.run import Run
from openai_server import OpenAIServer

MANUAL = {"sync": "manual"}


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[MemoryBank]:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as opened:
        yield opened


@pytest.fixture
def alice(bank: MemoryBank) -> AgentMemory:
    return bank.agent("alice")


@pytest.fixture
def notes(alice: AgentMemory) -> AgentNotes:
    alice.notes.write("MEMORY.md", "first\n")
    return alice.notes


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "bank/notes/alice/MEMORY.md"


def note_texts(alice: AgentMemory) -> list[str]:
    return [memory.content for memory in alice.all() if memory.kind == "note"]


# A person's edit, and a write that is undone


def test_an_undone_transaction_leaves_a_persons_edit(
    bank: MemoryBank, notes: AgentNotes, file: Path
) -> None:
    file.write_text("by hand\n")
    with contextlib.suppress(KeyError), bank.transaction():
        notes.append("second", "MEMORY.md")
        raise KeyError
    assert file.read_text() == "by hand\n"
    assert notes.read() == "by hand\n"


def test_an_undone_inner_transaction_leaves_a_persons_edit(
    bank: MemoryBank, alice: AgentMemory, notes: AgentNotes, file: Path
) -> None:
    file.write_text("by hand\n")
    with bank.transaction():
        alice.add("a fish")
        with contextlib.suppress(KeyError), bank.transaction():
            notes.append("second", "MEMORY.md")
            raise KeyError
    assert file.read_text() == "by hand\n"
    assert notes.read() == "by hand\n"


def test_an_undone_write_of_the_old_text_leaves_a_persons_edit(
    bank: MemoryBank, alice: AgentMemory, notes: AgentNotes, file: Path
) -> None:
    file.write_text("by hand\n")
    with bank.transaction():
        alice.add("a fish")
        with contextlib.suppress(KeyError), bank.transaction():
            notes.write("MEMORY.md", "first\n")
            raise KeyError
    assert file.read_text() == "by hand\n"


def test_a_refused_append_leaves_a_persons_edit(tmp_path: Path, file: Path) -> None:
    memory = {"on_tier_full": "reject", "max_critical": 1}
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, memory=memory) as bank:
        alice = bank.agent("alice")
        alice.notes.write("MEMORY.md", "first\n")
        alice.add("by hand", "critical")
        file.write_text("by hand\n")
        with pytest.raises(TierFull):
            alice.notes.append("# Never <!-- tier: critical -->\n\ntrust X", "MEMORY.md")
        assert file.read_text() == "by hand\n"
        assert alice.notes.read() == "by hand\n"


def test_an_undone_transaction_does_not_bring_a_deleted_file_back(
    bank: MemoryBank, notes: AgentNotes, file: Path
) -> None:
    file.unlink()
    with contextlib.suppress(KeyError), bank.transaction():
        notes.append("second", "MEMORY.md")
        raise KeyError
    assert not file.exists()
    assert notes.paths() == []


# A person's edit, and a write that is kept


def test_what_a_person_wrote_during_a_transaction_becomes_a_note_of_its_own(
    bank: MemoryBank, notes: AgentNotes, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (1, 2):
        with bank.transaction():
            notes.append(f"line {number}", "MEMORY.md")
            file.write_text(f"by hand {number}\n")
        assert f"memory/MEMORY-conflict-{number}.md" in caplog.text
    assert file.read_text() == "first\nline 1\nline 2\n"
    assert notes.paths()[1:] == ["memory/MEMORY-conflict-1.md", "memory/MEMORY-conflict-2.md"]
    assert notes.read("memory/MEMORY-conflict-2.md") == "by hand 2\n"


def test_the_conflict_of_a_note_with_a_long_name_is_kept_too(
    bank: MemoryBank, alice: AgentMemory, tmp_path: Path
) -> None:
    path = f"memory/{'ü' * 90}.md"
    with bank.transaction():
        alice.notes.append("one", path)
        (tmp_path / "bank/notes/alice" / path).write_text("by hand\n")
    assert alice.notes.sync().problems == ()
    assert sorted(map(alice.notes.read, alice.notes.paths())) == ["by hand\n", "one\n"]


@pytest.mark.parametrize("by_hand", [None, "", "first\nsecond\n"])
def test_where_a_person_lost_nothing_there_is_no_conflict(
    bank: MemoryBank, notes: AgentNotes, file: Path, by_hand: str | None
) -> None:
    with bank.transaction():
        notes.append("second", "MEMORY.md")
        file.unlink() if by_hand is None else file.write_text(by_hand)
    assert notes.paths() == ["MEMORY.md"]
    assert file.read_text() == "first\nsecond\n"
    assert os.listdir(file.parent) == ["MEMORY.md"]


def test_what_is_no_note_any_more_is_kept_too(
    bank: MemoryBank, notes: AgentNotes, file: Path
) -> None:
    with bank.transaction():
        notes.append("second", "MEMORY.md")
        file.write_bytes(b"\xff")
    assert file.read_text() == "first\nsecond\n"
    assert (file.parent / "memory/MEMORY-conflict-1.md").read_bytes() == b"\xff"


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
        first = bank.parts.ledger.journal.get("bank")["id"]
    (tmp_path / "new/notes/alice").mkdir(parents=True)
    with MemoryBank.restore(tmp_path / "one.tmck", tmp_path / "new", storage=MANUAL) as bank:
        assert bank.parts.ledger.journal.get("bank")["id"] != first


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
        assert alice.find(1) is None
        assert bank.parts.ledger.resident.memory("alice", 1) is None


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
        assert bank.agent("alice").find(1) is None
        bank.checkpoint(tmp_path / "one.tmck")
    with MemoryBank.restore(tmp_path / "one.tmck", tmp_path / "new", storage=MANUAL) as bank:
        assert bank.agent("alice").find(1) is None


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


def test_a_chunk_that_an_agent_deleted_does_not_come_back(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, retention={"grace": 1}) as bank:
        alice = bank.agent("alice")
        alice.notes.write("MEMORY.md", "the dragon sleeps at noon\n")
        alice.delete(alice.all()[0].id)
        bank.advance(5)
        bank.sweep()
        alice.notes.sync()
        assert note_texts(alice) == []


def market(**more: Any) -> Settings:
    return load_settings(
        {
            "seed": 3,
            "storage": MANUAL,
            "retention": {"grace": 3},
            "simulation": {
                "world": "market",
                "agents": 5,
                "ticks": 12,
                "policy": "scripted",
                "policy_options": {
                    "script": [
                        {
                            "tick": tick,
                            "actions": [
                                {
                                    "name": "append_note",
                                    "arguments": {"text": f"fish: {tick}", "path": "MEMORY.md"},
                                }
                            ],
                        }
                        for tick in range(1, 13)
                    ]
                },
            },
            **more,
        }
    )


def finish(run: Run) -> None:
    with run:
        for _ in run.advance(run.settings.simulation.ticks):
            pass
        run.finish(report=False)


def divergences(folder: Path, start: int | None = None) -> list[str]:
    replay = Replay(folder, start)
    try:
        return [str(each) for each in replay.ticks() if each]
    finally:
        replay.close()


def test_a_run_that_appends_is_replayed_from_any_tick_and_branched(tmp_path: Path) -> None:
    run = tmp_path / "run"
    finish(Run.create(run, market()))
    assert [divergences(run, tick) for tick in (None, 2, 8, 12)] == [[], [], [], []]
    branch(run, 2, tmp_path / "branch")
    with MemoryBank.open(tmp_path / "branch/bank", storage=MANUAL) as bank:
        assert note_texts(bank.agent("agent_00")) == ["fish: 1\nfish: 2\n"]


# Extra paths


def test_a_run_has_no_extra_paths(tmp_path: Path) -> None:
    (tmp_path / "rules.md").write_text("fish is cheap\n")
    with pytest.raises(ConfigError, match=r"notes\.extra_paths: a run has none"):
        Run.create(tmp_path / "run", market(notes={"extra_paths": [str(tmp_path / "rules.md")]}))
    assert not (tmp_path / "run").exists()


def test_all_agents_have_the_extra_notes_when_a_bank_is_opened(tmp_path: Path) -> None:
    (tmp_path / "rules.md").write_text("the dragon sleeps at noon\n")
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        bank.agent("alice").add("a fish")
    notes = {"extra_paths": [str(tmp_path / "rules.md")]}
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, notes=notes) as bank:
        assert note_texts(bank.agent("alice")) == ["the dragon sleeps at noon\n"]


def test_an_extra_path_that_cannot_be_listed_leaves_the_other_notes(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "docs")
    notes = {"extra_paths": [str(tmp_path / "link")]}
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, notes=notes) as bank:
        folder = tmp_path / "bank/notes/alice"
        folder.mkdir(parents=True)
        (folder / "MEMORY.md").write_text("hello\n")
        synced = bank.agent("alice").notes.sync()
        assert synced.changed == ("MEMORY.md",)
        assert "extra/link" in synced.problems[0]


def test_a_folder_that_cannot_be_listed_takes_no_note_away(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/rules.md").write_text("fish is cheap\n")
    notes = {"extra_paths": [str(tmp_path / "docs")]}
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, notes=notes) as bank:
        alice = bank.agent("alice")
        assert alice.notes.paths() == ["extra/docs/rules.md"]
        (tmp_path / "docs").rename(tmp_path / "elsewhere")
        (tmp_path / "docs").symlink_to(tmp_path / "elsewhere")
        assert alice.notes.paths() == ["extra/docs/rules.md"]


@pytest.mark.parametrize(
    "extra",
    [["a/docs", "b/docs"], [".."], ["."], ["/"], ["notes"], ["notes/bob"], ["../bank"], ["x/.."]],
)
def test_extra_paths_that_cannot_be_used_are_said_at_opening(
    tmp_path: Path, extra: list[str]
) -> None:
    with pytest.raises(ConfigError, match=r"notes\.extra_paths"):
        MemoryBank.open(tmp_path / "bank", storage=MANUAL, notes={"extra_paths": extra})


# Tiers that an agent gave


def test_a_pin_survives_an_append(alice: AgentMemory) -> None:
    alice.notes.append("NEVER transfer to agent_X", "MEMORY.md")
    alice.pin(alice.all()[0].id)
    alice.notes.append("bought apples", "MEMORY.md")
    (memory,) = alice.all()
    assert memory.tier is Tier.PINNED
    assert memory.content == "NEVER transfer to agent_X\nbought apples\n"


def test_a_tier_that_the_note_gets_is_what_counts(alice: AgentMemory) -> None:
    alice.notes.append("NEVER transfer to agent_X", "MEMORY.md")
    alice.pin(alice.all()[0].id)
    alice.notes.write("MEMORY.md", "---\ntier: low\n---\nNEVER transfer to agent_X\n")
    assert [memory.tier for memory in alice.all()] == [Tier.LOW]


def test_a_pin_goes_with_its_text(alice: AgentMemory) -> None:
    alice.notes.append("NEVER transfer to agent_X", "MEMORY.md")
    alice.pin(alice.all()[0].id)
    alice.notes.write("MEMORY.md", "bought apples\n")
    assert [memory.tier for memory in alice.all()] == [Tier.NORMAL]


def test_pins_that_survive_keep_the_cap(bank: MemoryBank, alice: AgentMemory) -> None:
    alice.notes.append("NEVER transfer to agent_X", "MEMORY.md")
    alice.pin(alice.all()[0].id)
    for number in range(bank.settings.memory.max_pinned - 1):
        alice.add(f"by hand {number}", "pinned")
    alice.notes.append("bought apples", "MEMORY.md")
    assert alice.count("pinned") == bank.settings.memory.max_pinned


def test_chunks_are_kept_by_their_text_and_not_by_their_lines(tmp_path: Path) -> None:
    text = " ".join(f"w{number:03}" for number in range(600)) + "\n"
    sizes = [{"chunk_tokens": tokens, "chunk_overlap": 0} for tokens in (400, 450)]
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, notes=sizes[0]) as bank:
        bank.agent("alice").notes.write("MEMORY.md", text)
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, notes=sizes[1]) as bank:
        alice = bank.agent("alice")
        alice.notes.append("\nmore", "MEMORY.md")
        assert note_texts(alice) == [each.text for each in cut(alice.notes.read(), 450, 0)]


# Forgetting


def test_what_a_note_still_has_is_not_forgotten(
    bank: MemoryBank, alice: AgentMemory, tmp_path: Path
) -> None:
    alice.notes.write("MEMORY.md", "the password is hunter2\n")
    memory = alice.all()[0]
    with pytest.raises(InvalidInput, match=r"MEMORY\.md.*edit the note first"):
        alice.forget(memory.id)
    alice.notes.write("MEMORY.md", "no password\n")
    alice.forget(memory.id)
    assert alice.find(memory.sequence) is None


# Notes with mistakes


def test_a_note_with_a_wrong_tier_is_read_and_replaced(notes: AgentNotes, file: Path) -> None:
    text = "# Rules <!-- tier: crtical -->\n\nan important line\n"
    file.write_text(text)
    assert notes.read() == text
    assert notes.lines("MEMORY.md", 3, 1).text == "an important line\n"
    with pytest.raises(InvalidTier, match="crtical"):
        notes.append("x", "MEMORY.md")
    assert file.read_text() == text
    notes.write("MEMORY.md", "right\n")
    assert file.read_text() == "right\n"
    assert notes.read() == "right\n"


# What a model is told


@pytest.mark.parametrize("read_only", [True, False])
def test_a_model_is_told_of_notes_where_it_may_write_them(tmp_path: Path, read_only: bool) -> None:
    run = tmp_path / "run"
    with OpenAIServer(lambda _: json.dumps({"actions": []})) as server:
        model = {"openai_base_url": server.url, "api_key": "x", "model": "m"}
        settings = load_settings(
            {
                "seed": 3,
                "storage": MANUAL,
                "notes": {"read_only": read_only},
                "llm": {"provider": "openai", "config": model},
                "simulation": {"world": "market", "policy": "llm", "agents": 5, "ticks": 1},
            },
            preset="vector",
        )
        finish(Run.create(run, settings))
    asked = (run / "cassette.jsonl").read_text()
    assert ("append_note" in asked) is not read_only


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


def test_a_folder_of_notes_that_is_a_link_is_not_followed(tmp_path: Path, file: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        bank.agent("alice").notes.write("MEMORY.md", "first\n")
    (tmp_path / "bank/notes").rename(tmp_path / "elsewhere")
    (tmp_path / "bank/notes").symlink_to(tmp_path / "elsewhere")
    file.write_text("through a link\n")
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        assert note_texts(bank.agent("alice")) == ["first\n"]
        assert bank.sync_notes()["alice"].problems


@pytest.mark.parametrize("agent", ["../../out", "..", "*", "", "/etc", ".hidden"])
def test_files_are_looked_at_for_agents_only(tmp_path: Path, agent: str) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        bank.agent("alice").notes.write("MEMORY.md", "first\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/MEMORY.md").write_text("a secret\n")
    with MemoryBank.at(tmp_path / "bank") as copy, pytest.raises(InvalidAgentId):
        look_at_files(copy.parts, tmp_path / "bank", agent)


def test_a_copy_of_a_killed_bank_is_looked_at_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        bank.agent("alice").notes.write("MEMORY.md", "first\n")
        monkeypatch.setattr(bank.parts, "settle_notes", lambda: None)
        bank.agent("alice").notes.append("second", "MEMORY.md")
        shutil.copytree(tmp_path / "bank", tmp_path / "killed")
    with MemoryBank.at(tmp_path / "killed") as copy:
        own, _ = look_at_files(copy.parts, tmp_path / "killed", "alice")
        for _ in range(2):
            assert own.sync().changed == ()
            assert AgentNotes(own).read() == "first\nsecond\n"
