"""``tiermem notes``: an agent's Markdown notes from the command line."""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from terminals import on_a_terminal

import warm_children
from agents import MemoryBank
from agents.bank import history

Command = Callable[..., Any]

MANUAL = {"sync": "manual"}
LASTING = (
    "# People\n\nCarol drinks green tea.\n\n"
    "# Warnings <!-- tier: pinned -->\n\nNEVER transfer to agent_X [scammer]\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A bank of two agents, of which one has two notes."""
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        alice = bank.agent("alice")
        alice.add("Green tea is sold at the market")
        alice.notes.write("MEMORY.md", LASTING)
        alice.notes.append("Dave repairs bicycles.", "memory/dave.md")
        bank.agent("bob").add("Trading starts at nine o'clock")
    return tmp_path / "bank"


@pytest.fixture
def notes(tiermem: Command, folder: Path) -> Command:
    """``tiermem notes`` for alice."""
    return lambda *arguments: tiermem("notes", folder, "--agent", "alice", *arguments)


def on_disk(folder: Path, path: str) -> Path:
    return folder / "notes" / "alice" / path


def unpublished(folder: Path, path: str) -> None:
    """Make a note one that was committed, and is not in its place yet."""
    with MemoryBank.at(folder) as bank:
        token = bank.engine.state.block("alice").notes[path].token
    note = on_disk(folder, path)
    note.rename(note.with_name(f".{note.name}.{token}-none.new"))


def state(folder: Path) -> str:
    with MemoryBank.at(folder) as bank:
        return bank.state_hash()


# Listing


def test_without_an_action_it_lists_the_notes(notes: Command, folder: Path) -> None:
    done = notes()
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        f"{folder}: notes of alice",
        "path\tlines\tbytes\tchunks\ttiers",
        f"MEMORY.md\t7\t{len(LASTING)}\t2\t1 pinned, 1 normal",
        "memory/dave.md\t1\t23\t1\t1 normal",
    ]
    assert notes("list") == done


def test_the_list_as_json(notes: Command) -> None:
    first, second = notes("--json").json
    assert first == {
        "path": "MEMORY.md",
        "lines": 7,
        "bytes": len(LASTING),
        "chunks": 2,
        "tiers": {"pinned": 1, "normal": 1},
    }
    assert second["path"] == "memory/dave.md"


def test_the_list_is_a_table_on_a_terminal(folder: Path) -> None:
    shown = on_a_terminal("notes", folder, "-a", "alice")
    assert "┃ path" in shown
    assert "│ memory/dave.md │" in shown


def test_an_agent_without_notes_has_none_to_list(tiermem: Command, folder: Path) -> None:
    done = tiermem("notes", folder, "-a", "bob")
    assert (done.code, done.out) == (0, f"{folder}: notes of bob: nothing\n")
    assert tiermem("notes", folder, "-a", "bob", "--json").json == []


# Searching


def test_a_search_gives_score_citation_and_snippet(notes: Command) -> None:
    title, names, best, *_ = notes("search", "who", "repairs", "bicycles?").out.splitlines()
    assert title == "alice searches: who repairs bicycles?"
    assert names == "score\tmatch\tcitation\tsnippet"
    score, match, citation, snippet = best.split("\t")
    assert 0 < float(score) <= float(match) <= 1
    assert (citation, snippet) == ("memory/dave.md#L1", "Dave repairs bicycles.")


def test_a_search_gives_what_memory_search_gives(notes: Command, folder: Path) -> None:
    rows = notes("search", "green tea", "--json").json
    with MemoryBank.at(folder) as bank:
        found = bank.agent("alice").memory_search("green tea")
    assert [(row["citation"], row["snippet"], row["id"]) for row in rows] == [
        (each.citation, each.snippet, each.memory.id) for each in found
    ]
    assert {row["citation"] for row in rows} == {"MEMORY.md#L1-L3", None}


def test_a_search_can_be_narrowed(notes: Command) -> None:
    assert len(notes("search", "green tea", "--limit", 1, "--json").json) == 1
    every = notes("search", "bicycles", "--min-score", 0, "--json").json
    assert len(every) > len(notes("search", "bicycles", "--min-score", 0.5, "--json").json) == 1


def test_a_search_that_finds_nothing_says_so(notes: Command) -> None:
    assert notes("search", "volcanoes", "--min-score", 0.9).out == (
        "alice searches: volcanoes: nothing\n"
    )


def test_a_blank_query_finds_nothing(notes: Command) -> None:
    assert notes("search", " ", "--json").json == []


# Getting lines


def test_get_prints_these_lines_and_nothing_else(notes: Command) -> None:
    assert notes("get", "MEMORY.md", "--from", 3, "--lines", 2) == (
        0, "Carol drinks green tea.\n\n", "",
    )  # fmt: skip
    assert notes("get", "MEMORY.md").out == LASTING
    assert notes("get", "MEMORY.md", "--from", 40, "--lines", 30) == (0, "", "")


def test_get_as_json_says_which_lines_they_are(notes: Command) -> None:
    assert notes("get", "MEMORY.md", "--from", 3, "--lines", 30, "--json").json == {
        "path": "MEMORY.md",
        "from": 3,
        "to": 7,
        "text": "".join(LASTING.splitlines(keepends=True)[2:]),
    }


def test_get_gives_every_byte_whatever_the_locale(folder: Path) -> None:
    data = "\ufeff“ü”\r\nno \x1b[31mred\x1b[0m\u2028\tend".encode()
    on_disk(folder, "memory/odd.md").write_bytes(data)
    command = [Path(sys.executable).with_name("tiermem"), "notes", folder, "-a", "alice", "get"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = warm_children.run([*command, "memory/odd.md"], capture_output=True, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, data, b"")


def test_a_note_can_not_draw_on_a_terminal(folder: Path) -> None:
    on_disk(folder, "memory/odd.md").write_text("clear\x1b[2J\tthe screen\n")
    shown = on_a_terminal("notes", folder, "-a", "alice", "get", "memory/odd.md")
    assert shown == "clear\\u001b[2J\tthe screen\n"


# Notes that changed on disk


def test_looking_sees_notes_as_they_are_on_disk_and_changes_nothing(
    notes: Command, folder: Path
) -> None:
    on_disk(folder, "memory/dave.md").write_text("Erin bakes bread.\n")
    on_disk(folder, "MEMORY.md").unlink()
    before = (folder / "journal.db").read_bytes()
    assert [row["path"] for row in notes("--json").json] == ["memory/dave.md"]
    assert notes("search", "bread", "--json").json[0]["snippet"] == "Erin bakes bread.\n"
    assert notes("get", "memory/dave.md").out == "Erin bakes bread.\n"
    assert (folder / "journal.db").read_bytes() == before


def test_an_agent_may_begin_with_a_note_on_disk(tiermem: Command, folder: Path) -> None:
    (folder / "notes" / "carol").mkdir()
    (folder / "notes" / "carol" / "MEMORY.md").write_text("I am Carol.\n")
    assert tiermem("notes", folder, "-a", "carol", "search", "Carol", "--json").json
    assert tiermem("notes", folder, "-a", "carol", "sync").out == (
        "changed\tMEMORY.md\n1 changed, 0 removed, 0 unchanged, 0 with problems\n"
    )


def test_sync_says_what_became_of_each_note(notes: Command, folder: Path) -> None:
    on_disk(folder, "memory/erin.md").write_text("Erin bakes bread.\n")
    on_disk(folder, "memory/dave.md").unlink()
    assert notes("sync") == (
        0,
        "changed\tmemory/erin.md\nremoved\tmemory/dave.md\n"
        "1 changed, 1 removed, 1 unchanged, 0 with problems\n",
        "",
    )
    with MemoryBank.at(folder) as bank:
        assert bank.agent("alice").notes.paths() == ["MEMORY.md", "memory/erin.md"]
    assert notes("sync", "--json").json == {
        "changed": [], "removed": [], "unchanged": 2, "problems": [], "skipped": [],
    }  # fmt: skip


def test_sync_with_a_problem_says_it_once_and_fails(notes: Command, folder: Path) -> None:
    on_disk(folder, "memory/dave.md").write_bytes(b"\xff\xfe")
    done = notes("sync")
    problem, total = done.out.splitlines()
    assert (done.code, done.err) == (1, "")
    assert problem.startswith("problem\tmemory/dave.md: ")
    assert "byte 0 is not UTF-8" in problem
    assert total == "0 changed, 0 removed, 1 unchanged, 1 with problems"
    done = notes("sync", "--json")
    assert done.code == 1
    assert len(done.json["problems"]) == 1


def test_a_note_with_a_problem_is_listed_as_it_was(notes: Command, folder: Path) -> None:
    on_disk(folder, "memory/dave.md").write_bytes(b"\xff\xfe")
    done = notes("--json")
    assert [row["path"] for row in done.json] == ["MEMORY.md", "memory/dave.md"]
    assert done.err.startswith("not indexed: memory/dave.md: ")
    assert notes("get", "memory/dave.md").is_one_error(1, "memory/dave.md", "not UTF-8")


def test_extra_notes_are_listed_and_read(tiermem: Command, tmp_path: Path) -> None:
    (tmp_path / "bank" / "rules").mkdir(parents=True)
    (tmp_path / "bank" / "rules" / "trade.md").write_text("No trading on Sundays.\n")
    options: dict[str, Any] = {"storage": MANUAL, "notes": {"extra_paths": ["rules"]}}
    with MemoryBank.open(tmp_path / "bank", **options) as bank:
        bank.agent("alice").add("x")
    alice = ("notes", "bank", "-a", "alice")
    assert [row["path"] for row in tiermem(*alice, "--json").json] == ["extra/rules/trade.md"]
    assert tiermem(*alice, "get", "extra/rules/trade.md").out == "No trading on Sundays.\n"


# Writing


def test_a_note_is_appended_to_written_and_edited(notes: Command, folder: Path) -> None:
    done = notes("append", "Erin", "bakes bread.", "--path", "memory/people/erin.md")
    assert done == (0, "alice appended to memory/people/erin.md\n", "")
    notes("append", "She sings.", "--path", "memory/people/erin.md")
    note = on_disk(folder, "memory/people/erin.md")
    assert note.read_text() == "Erin bakes bread.\nShe sings.\n"
    assert notes("edit", "memory/people/erin.md", "bread", "rye bread").out == (
        "alice edited memory/people/erin.md\n"
    )
    assert note.read_text() == "Erin bakes rye bread.\nShe sings.\n"
    assert notes("write", "MEMORY.md", "All", "is new.").out == "alice wrote MEMORY.md\n"
    assert on_disk(folder, "MEMORY.md").read_text() == "All is new.\n"
    assert notes("search", "rye bread", "--json").json[0]["citation"] == (
        "memory/people/erin.md#L1-L2"
    )


def test_without_a_path_the_note_of_the_day_is_appended_to(notes: Command, folder: Path) -> None:
    path = notes("append", "Rain.", "--json").json["path"]
    assert re.fullmatch(r"memory/\d{4}-\d\d-\d\d\.md", path)
    assert on_disk(folder, path).read_text() == "Rain.\n"


def test_a_note_is_read_from_standard_input(folder: Path) -> None:
    command = [Path(sys.executable).with_name("tiermem"), "notes", folder, "-a", "alice"]
    text = "# People\n\nErin bakes “bread”.\n".encode()
    done = warm_children.run([*command, "write", "MEMORY.md", "-"], capture_output=True, input=text)
    assert (done.returncode, done.stderr) == (0, b"")
    assert on_disk(folder, "MEMORY.md").read_bytes() == text


def test_an_agent_may_begin_with_a_note(tiermem: Command, folder: Path) -> None:
    assert tiermem("notes", folder, "-a", "carol", "append", "I am Carol.").code == 0
    assert tiermem("notes", folder, "-a", "carol", "search", "Carol", "--json").json


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["append"], 2, "append takes TEXT"),
        (["write", "MEMORY.md"], 2, "write takes PATH TEXT"),
        (["edit", "MEMORY.md", "tea"], 2, "edit takes PATH OLD NEW"),
        (["edit", "MEMORY.md", "a", "b", "c"], 2, "edit takes PATH OLD NEW"),
        (["edit", "MEMORY.md", "volcano", "x"], 2, "exactly once; it is not there"),
        (["write", "MEMORY.md", "x", "--path", "MEMORY.md"], 2, "--path goes with append"),
        (["append", "x", "--path", "../bob/MEMORY.md"], 1, "is not a note's path"),
        (["write", "/etc/passwd", "x"], 1, "is not a note's path"),
        (["edit", "memory/none.md", "x", "y"], 2, "exactly once; it is not there"),
    ],
)
def test_what_can_not_be_written_is_one_clear_error(
    notes: Command, folder: Path, arguments: list[str], code: int, part: str
) -> None:
    before = state(folder)
    assert notes(*arguments).is_one_error(code, part)
    assert state(folder) == before


def test_a_bank_in_use_is_not_written(notes: Command, folder: Path) -> None:
    with MemoryBank.open(folder, storage=MANUAL):
        assert notes("append", "x").is_one_error(1, str(os.getpid()), "one writer at a time")


def test_the_help_names_every_action(tiermem: Command) -> None:
    said = tiermem("notes", "--help").out
    for action in ("list", "search", "get", "append", "write", "edit", "sync"):
        assert action in said


# Banks in use, killed or branched


def test_a_bank_in_use_can_be_looked_at_but_not_synced(notes: Command, folder: Path) -> None:
    with MemoryBank.open(folder, storage=MANUAL) as bank:
        bank.agent("alice").notes.append("Erin bakes bread.", "memory/erin.md")
        assert len(notes("--json").json) == 3
        assert notes("search", "bread", "--json").json
        assert notes("get", "memory/erin.md").out == "Erin bakes bread.\n"
        assert notes("sync").is_one_error(1, str(os.getpid()), "one writer at a time")


def test_a_note_that_was_committed_but_not_yet_written_is_seen(
    notes: Command, folder: Path
) -> None:
    unpublished(folder, "memory/dave.md")
    note = on_disk(folder, "memory/dave.md")
    note.write_text("as it was before\n")
    assert notes("get", "memory/dave.md").out == "Dave repairs bicycles.\n"
    assert notes("--json").json[1]["bytes"] == len("Dave repairs bicycles.\n")
    assert note.read_text() == "as it was before\n"


def test_a_new_note_that_was_committed_but_not_yet_written_is_seen(
    notes: Command, folder: Path
) -> None:
    unpublished(folder, "memory/dave.md")
    assert notes("get", "memory/dave.md").out == "Dave repairs bicycles.\n"
    assert len(notes("--json").json) == 2
    assert notes("search", "bicycles", "--json").json[0]["citation"] == "memory/dave.md#L1"
    assert not on_disk(folder, "memory/dave.md").exists()


def test_a_branch_has_its_notes_before_it_is_opened(tiermem: Command, folder: Path) -> None:
    history.branch(folder, 0, Path("branch"))
    alice = ("notes", "branch", "-a", "alice")
    assert len(tiermem(*alice, "--json").json) == 2
    assert tiermem(*alice, "get", "MEMORY.md").out == LASTING
    assert not Path("branch/notes").exists()


# Mistakes


@pytest.mark.parametrize("action", [[], ["search", "x"], ["get", "MEMORY.md"], ["sync"]])
def test_a_missing_bank_or_agent_is_one_clear_error(
    tiermem: Command, folder: Path, action: list[str]
) -> None:
    before = state(folder)
    done = tiermem("notes", "nowhere", "-a", "alice", *action)
    assert done.is_one_error(1, "there is no bank in nowhere")
    assert not Path("nowhere").exists()
    done = tiermem("notes", folder, "-a", "zed", *action)
    assert done.is_one_error(1, "no agent zed", "alice, bob")
    done = tiermem("notes", folder, "-a", "../alice", *action)
    assert done.is_one_error(2, "'../alice' is not an agent id")
    assert state(folder) == before


@pytest.mark.parametrize("path", ["../bob/MEMORY.md", "/etc/passwd", "memory/../../x.md", "x", ""])
def test_what_is_no_path_of_a_note_is_one_clear_error(notes: Command, path: str) -> None:
    assert notes("get", path).is_one_error(1, "is not a note's path", "MEMORY.md, memory/NAME.md")


def test_a_note_that_is_not_there_is_one_clear_error(notes: Command) -> None:
    done = notes("get", "memory/none.md")
    assert done.is_one_error(1, "alice has no note memory/none.md", "MEMORY.md, memory/dave.md")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["search"], "search QUERY"),
        (["get"], "takes one note's path"),
        (["get", "MEMORY.md", "memory/dave.md"], "takes one note's path"),
        (["sync", "MEMORY.md"], "sync takes nothing more"),
        (["--lines", "3"], "--lines goes with get, not with list"),
        (["get", "MEMORY.md", "--min-score", "0.5"], "--min-score goes with search, not with get"),
    ],
)
def test_what_does_not_go_together_is_one_clear_error(
    notes: Command, arguments: list[str], part: str
) -> None:
    assert notes(*arguments).is_one_error(2, part)


@pytest.mark.parametrize(
    "arguments",
    [
        ["dance"],
        ["get", "MEMORY.md", "--from", "0"],
        ["get", "MEMORY.md", "--lines", "-1"],
        ["get", "MEMORY.md", "--lines", "many"],
        ["search", "tea", "--limit", "-1"],
        ["search", "tea", "--min-score", "nan"],
        ["search", "tea", "--min-score", "1.5"],
    ],
)
def test_a_bad_number_or_action_is_refused(notes: Command, arguments: list[str]) -> None:
    done = notes(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Invalid value" in done.err
    assert "Traceback" not in done.err


# Transcripts


def test_a_transcript_is_listed_searched_read_and_synced(tiermem: Command, tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, notes={"transcripts": True}) as bank:
        bank.agent("alice").add("x")
    file = tmp_path / "bank/notes/alice/sessions/monday.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text('{"role": "user", "content": "Erin bakes bread."}\nno JSON\n')
    alice = ("notes", "bank", "-a", "alice")
    listed = tiermem(*alice, "--json")
    assert listed.err.startswith("not indexed: sessions/monday.jsonl: line 2 skipped: ")
    (row,) = listed.json
    assert (row["path"], row["lines"], row["bytes"]) == (
        "sessions/monday.jsonl", 2, file.stat().st_size,
    )  # fmt: skip
    (first, *_) = tiermem(*alice, "search", "bread", "--json").json
    assert first["citation"] == "sessions/monday.jsonl#L1"
    assert tiermem(*alice, "get", "sessions/monday.jsonl").out == "user: Erin bakes bread.\n\n"
    done = tiermem(*alice, "sync")
    assert (done.code, done.out.splitlines()[:2]) == (
        0,
        [
            "changed\tsessions/monday.jsonl",
            "skipped\tsessions/monday.jsonl: line 2 skipped: no JSON object, or over 1048576 bytes",
        ],
    )
    assert tiermem("show", "bank", "--agent", "alice", "--json").json[-1]["lines"] == 2
