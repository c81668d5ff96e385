"""``tiermem show``: an agent's memory as it was."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from terminals import on_a_terminal

from agents import CheckpointError, Memory, MemoryBank
from agents.simulation.runs.run import Run

Command = Callable[..., Any]


def test_without_an_agent_it_lists_them(tiermem: Command, whole: Path) -> None:
    assert tiermem("show", whole, "--json").json == [
        {"agent": "alice", "memories": 36}, {"agent": "bob", "memories": 36},
    ]  # fmt: skip


def test_it_shows_an_agents_memories(tiermem: Command, whole: Path) -> None:
    rows = tiermem("show", whole, "--agent", "bob", "--json").json
    with MemoryBank.at(whole / "bank") as bank:
        expected = bank.agent("bob").all()
    assert [row["id"] for row in rows] == [memory.id for memory in expected]
    assert [row["memory"] for row in rows] == [memory.content for memory in expected]
    assert {row["tier"] for row in rows} == {"pinned", "critical", "normal"}
    assert [row["temperature"] for row in rows] == [
        each.temperature.name.lower() for each in expected
    ]


@pytest.mark.parametrize("tick", [0, 1, 5, 12])
def test_it_shows_them_as_they_were_after_a_tick(tiermem: Command, whole: Path, tick: int) -> None:
    rows = tiermem("show", whole, "-a", "bob", "-t", tick, "--json")
    if tick == 0:
        assert rows.code in (0, 1)  # nobody remembers anything yet
        return
    assert len(rows.json) == 3 * tick
    assert max(row["created"] for row in rows.json) == tick


def test_it_shows_the_tier_that_a_memory_had_then(tiermem: Command, whole: Path) -> None:
    first_note = {
        tick: next(row for row in tiermem("show", whole, "-a", "bob", "-t", tick, "--json").json
                   if row["memory"].startswith("note"))["tier"]
        for tick in (1, 12)
    }  # fmt: skip
    assert first_note == {1: "pinned", 12: "critical"}


def test_a_query_shows_what_was_retrieved_then_and_why(tiermem: Command, whole: Path) -> None:
    rows = tiermem("show", whole, "-a", "bob", "-t", 6, "--query", "stones", "--json").json
    with MemoryBank.at(whole / "bank", 6) as bank:
        hits = bank.agent("bob").search("stones")
    chosen = [row for row in rows if row["rank"] is not None]
    assert [row["memory"] for row in chosen] == [hit.memory.content for hit in hits]
    assert {row["why"] for row in chosen} <= {"pinned", "chosen"}
    assert all("stones" not in row["why"] for row in rows)
    assert len(rows) < 18


def test_a_query_lists_what_was_no_candidate_if_asked(tiermem: Command, whole: Path) -> None:
    arguments = ("show", whole, "-a", "bob", "-t", 6, "--query", "stones")
    assert len(tiermem(*arguments, "--all", "--json").json) == 18
    assert "that were not candidates; --all lists them" in tiermem(*arguments).out


def test_a_limit_changes_how_many_are_retrieved(tiermem: Command, whole: Path) -> None:
    arguments = ("show", whole, "-a", "bob", "-t", 1, "--query", "stones", "--limit", 2, "--json")
    rows = tiermem(*arguments).json
    assert len([row for row in rows if row["rank"] is not None]) == 2


def test_off_a_terminal_it_is_lines_with_tabs(tiermem: Command, whole: Path) -> None:
    lines = tiermem("show", whole).out.splitlines()
    assert lines == [f"{whole} after tick 12", "agent\tmemories", "alice\t36", "bob\t36"]


def test_what_an_agent_said_can_not_draw_on_the_screen(
    tiermem: Command, scenario: Callable[..., Path]
) -> None:
    known = [{"agent": "bob", "content": "[red]tab\there\nline \x1b[31mtwo[/]"}]
    tiermem("run", scenario(memories=known), "--ticks", 1, "--out", "r", "-q")
    lines = tiermem("show", "r", "-a", "bob", "-t", 0).out.splitlines()
    assert len(lines) == 3
    assert "\x1b" not in lines[2]
    assert lines[2].count("\t") == 5
    assert "[red]tab" in lines[2]


def test_an_empty_query_is_one_clear_error_or_an_answer(tiermem: Command, whole: Path) -> None:
    done = tiermem("show", whole, "-a", "bob", "--query", "")
    assert "Traceback" not in done.err
    assert done.code in (0, 2)


def test_a_run_that_lost_its_journal_is_one_clear_error(tiermem: Command, whole: Path) -> None:
    (whole / "bank" / "journal.db").unlink()
    assert tiermem("show", whole).is_one_error(1, str(whole))


def test_a_run_in_use_can_be_looked_at(tiermem: Command, whole: Path) -> None:
    with Run.open(whole):
        assert tiermem("show", whole).code == 0


def test_a_tick_before_the_checkpoint_that_a_run_was_restored_from_is_not_made_up(
    tiermem: Command, whole: Path
) -> None:
    (whole / "bank" / "journal.db").unlink()
    tiermem("resume", whole, "--ticks", 13, "-q")  # from the checkpoint after tick 12
    done = tiermem("show", whole, "-a", "bob", "-t", 5, "--json")
    assert done.code == 1 or len(done.json) == 15
    branched = tiermem("branch", whole, "--at", 5, "--out", "b", "--make-only")
    assert branched.code == 1 or MemoryBank.at(Path("b/bank")).tick == 5
    assert "Traceback" not in tiermem("replay", whole, "--from-tick", 5).err


def test_it_shows_what_was_given_to_a_checkpoint(tiermem: Command, tmp_path: Path) -> None:
    extra = {"experiment": "à la carte", "round": 3, "nested": {"list": [1, None]}}
    path = tmp_path / "mine.tmck"
    with MemoryBank.ephemeral() as bank:
        bank.agent("alice").add("x")
        bank.advance(5)
        bank.checkpoint(path, extra)
    assert MemoryBank.checkpoint_extra(path) == extra
    about = {"checkpoint": str(path), "tick": 5, "agents": ["alice"], "extra": extra}
    assert tiermem("show", path, "--json").json == about
    shown = tiermem("show", path)
    assert "a checkpoint after tick 5, with 1 agent" in shown.out
    assert '"experiment": "à la carte"' in shown.out


def test_a_file_that_is_no_checkpoint_is_one_clear_error(tiermem: Command, tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("dear reader")
    assert tiermem("show", path).is_one_error(1, "is not a whole checkpoint")
    with pytest.raises(CheckpointError):
        MemoryBank.checkpoint_extra(path)
    assert path.read_text() == "dear reader"


def test_on_a_terminal_an_id_is_its_last_digits_unless_all_of_it_is_wanted(whole: Path) -> None:
    with MemoryBank.at(whole / "bank", 1) as bank:
        ids = [memory.id for memory in bank.agent("bob").all()]
    arguments = ("show", whole, "-a", "bob", "-t", 1)
    short = on_a_terminal(*arguments)
    assert all(f"│ {each[-4:]} │" in short for each in ids)
    assert not any(each in short for each in ids)
    assert all(f"│ {each} │" in on_a_terminal(*arguments, "--ids") for each in ids)


def test_on_a_narrow_terminal_the_heads_of_numbers_leave_room_for_the_memories(
    whole: Path,
) -> None:
    head = on_a_terminal("show", whole, "-a", "bob", "-t", 1, columns=60).splitlines()[2:5]
    assert [line.split("┃")[4].strip() for line in head] == ["in", "tier", "since"]


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        (["--tier", "pinned"], lambda own: [each for each in own if each.tier == 0]),
        (["--tier", "0", "--tier", "Critical"], lambda own: [e for e in own if e.tier <= 1]),
        (["--text", "TOOK step 1"], lambda own: [e for e in own if "took step 1" in e.content]),
        (["--last", "2"], lambda own: own[-2:]),
        (["--last", "99"], lambda own: own),
        (["--tier", "pinned", "--text", "note", "--last", "1"],
         lambda own: [each for each in own if each.tier == 0][-1:]),
        (["--text", "nobody said this"], lambda own: []),
    ],
)  # fmt: skip
def test_it_shows_memories_of_a_tier_with_a_text_and_the_newest_alone(
    tiermem: Command,
    whole: Path,
    options: list[str],
    chosen: Callable[[list[Memory]], list[Memory]],
) -> None:
    with MemoryBank.at(whole / "bank") as bank:
        own = bank.agent("bob").all()
    expected = chosen(own)
    rows = tiermem("show", whole, "-a", "bob", *options, "--json").json
    assert [row["id"] for row in rows] == [memory.id for memory in expected]
    title = tiermem("show", whole, "-a", "bob", *options).out.splitlines()[0]
    assert title.startswith(f"bob after tick 12: {len(expected)} of 36 memories")


def test_notes_are_left_out_of_a_choice_of_memories(tiermem: Command, tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank") as bank:
        bank.agent("alice").add("x")
        bank.agent("alice").notes.write("MEMORY.md", "# A day")
    assert {"note", "lines"} in map(set, tiermem("show", "bank", "-a", "alice", "--json").json)
    (row,) = tiermem("show", "bank", "-a", "alice", "--text", "x", "--json").json
    assert row["memory"] == "x"
