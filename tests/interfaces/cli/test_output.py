"""What commands print: JSON that is JSON, and tables that show memories as they are."""

import json
import os
import pty
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from terminals import on_a_terminal

import warm_children
from agents import BankError, InvalidInput, InvalidTier, MemoryBank
from agents.interfaces.cli import progress as screen
from agents.interfaces.cli.progress import Screen

Command = Callable[..., Any]
TIERMEM = str(Path(sys.executable).with_name("tiermem"))
TEXT = "a :bomb: and [bold]x[/] and a trail \\"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        bank.agent("alice").add(TEXT)
        bank.agent("alice").add("boom 💣 \x9b31m")
    return tmp_path / "bank"


def test_json_is_json_where_output_is_not_utf_8(folder: Path) -> None:
    done = warm_children.run(
        [TIERMEM, "show", str(folder), "-a", "alice", "--json"],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
    )
    rows = json.loads(done.stdout.decode("latin-1"))
    assert [row["memory"] for row in rows] == [TEXT, "boom 💣 \x9b31m"]


def test_a_comparison_as_json_has_no_control_characters(tiermem: Command, whole: Path) -> None:
    shutil.copytree(whole, "other")
    with MemoryBank.open("other/bank") as bank:
        bank.agent("alice").add("evil \x9b31m")
    done = tiermem("diff", whole, "other", "--json")
    assert "\x9b" not in done.out
    assert [row["memory"] for row in done.json["only_second"]] == ["evil \x9b31m"]


@pytest.mark.parametrize(
    "command",
    ["show -a alice", "search -a alice x", "show -a alice --query x"],
)
def test_on_a_terminal_a_memory_is_shown_as_it_is(folder: Path, command: str) -> None:
    name, *rest = command.split()
    shown = on_a_terminal(name, folder, *rest, columns=140)
    assert TEXT in shown


@pytest.mark.parametrize(("no_color", "red"), [("", True), ("1", False)])
def test_problems_of_notes_are_red_unless_no_colour_is_wanted(
    folder: Path, no_color: str, red: bool
) -> None:
    (folder / "notes/alice").mkdir(parents=True)
    (folder / "notes/alice/MEMORY.md").write_bytes(b"\xff\xfe")
    outside, inside = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": no_color}
    command = [TIERMEM, "notes", str(folder), "-a", "alice", "sync"]
    done = warm_children.run(command, stdout=inside, stderr=inside, env=environment, check=False)
    os.close(inside)
    shown = os.read(outside, 65536).decode()
    os.close(outside)
    assert done.returncode == 1
    assert "MEMORY.md" in shown
    assert ("\x1b[31m" in shown) is red


def test_a_branch_that_is_only_made_is_told_as_json(tiermem: Command, whole: Path) -> None:
    done = tiermem("branch", whole, "--at", 4, "--out", "new", "--make-only", "--json")
    assert done.json == {"run": "new", "branch_of": str(whole), "at": 4}


def test_settings_can_be_had_as_json(tiermem: Command) -> None:
    assert (
        tiermem("config", "--set", "memory.max_pinned=3", "--json").json["memory"]["max_pinned"]
        == 3
    )


def test_each_sync_of_a_run_has_a_pace_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(screen.time, "monotonic", lambda: now)
    meter = Screen(quiet=False).meter("store", "commits")
    for seconds, done, total in (
        (100, 50, 100),
        (101, 100, 100),
        (500, 60, 60),
        (900, 10, 20),
        (901, 20, 20),
    ):
        now = float(seconds)
        meter(done, total)
    said = [
        line
        for line in capsys.readouterr().err.splitlines()
        if " 20/20" in line or "/100" in line or "/60" in line
    ]
    assert said == [
        "store 50/100", "store 100/100 (50 commits/s)", "store 60/60", "store 20/20 (10 commits/s)",
    ]  # fmt: skip
    assert time is screen.time


def test_a_slow_task_has_a_speed_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(screen.time, "monotonic", lambda: now)
    meter = Screen(quiet=False).meter("sweep", "runs", start=0)
    now = 16.0
    meter(1, 1)
    assert capsys.readouterr().err == "sweep 1/1 (0.062 runs/s)\n"


@pytest.mark.parametrize(
    ("seconds", "line"),
    [
        (8, "runs 4/10 (0.5 runs/s, 12 s left)"),
        (200, "runs 4/10 (0.02 runs/s, 5 min left)"),
        (6000, "runs 4/10 (0.00067 runs/s, 2.5 h left)"),
    ],
)
def test_progress_tells_the_time_left(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    seconds: float,
    line: str,
) -> None:
    now = 0.0
    monkeypatch.setattr(screen.time, "monotonic", lambda: now)
    meter = Screen(quiet=False).meter("runs", "runs", start=0)
    meter(0, 10)
    now = seconds
    meter(4, 10)
    assert capsys.readouterr().err == f"{line}\n"


def test_on_a_terminal_the_time_left_goes_down_between_two_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(screen.time, "monotonic", lambda: now)
    pace = screen.Pace(start=0)
    pace.step(0, 3)
    assert pace.left() == ""
    now = 20.0
    pace.step(2, 3)
    assert pace.left() == "10 s left"
    now = 24.0
    assert pace.left() == "6 s left"
    now = 60.0  # the last step takes longer than the others
    assert pace.left() == "0 s left"


# What errors say


def test_a_runs_folder_gets_one_answer_from_every_command(tiermem: Command, whole: Path) -> None:
    for command in (
        ["status", whole], ["doctor", whole], ["store", "export", whole],
        ["store", "rebuild", whole], ["store", "vacuum", whole], ["add", whole, "-a", "alice", "x"],
    ):  # fmt: skip
        done = tiermem(*command)
        assert done.is_one_error(
            1, f"there is no bank in {whole}", f"the run's bank is {whole}/bank"
        )


def test_an_empty_journal_is_called_empty(tiermem: Command) -> None:
    Path("crew").mkdir()
    Path("crew/journal.db").touch()
    assert tiermem("status", "crew").is_one_error(1, "is empty", "tiermem init crew")


def test_a_file_in_the_way_of_a_bank_is_called_a_file(tiermem: Command) -> None:
    Path("crew").touch()
    assert tiermem("init", "crew").is_one_error(1, "crew is a file, not a folder")
    with pytest.raises(BankError, match="crew is a file"):
        MemoryBank.open("crew/deeper")


def test_without_any_agent_it_says_how_to_get_one(tiermem: Command) -> None:
    tiermem("init", "crew", "--set", "storage.sync=manual")
    assert tiermem("status", "crew", "-a", "zed").is_one_error(1, "tiermem add crew --agent zed")


def test_unpin_does_not_offer_the_tier_it_refuses(make_bank: Callable[..., MemoryBank]) -> None:
    alice = make_bank().agent("alice")
    memory = alice.add("0", "pinned")
    with pytest.raises(InvalidTier) as caught:
        alice.unpin(memory.id, "pinned")
    assert "pinned" not in caught.value.hint


def test_a_number_that_is_too_large_is_called_that(make_bank: Callable[..., MemoryBank]) -> None:
    with pytest.raises(InvalidInput, match="is too large; it may be 4611686018427387904 at most"):
        make_bank().agent("alice").search("0", 10**20)
