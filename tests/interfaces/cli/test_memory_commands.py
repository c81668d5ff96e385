"""The commands on a bank's memories: status, compact, prune, vacuum."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from terminals import on_a_terminal

from agents import MemoryBank

Command = Callable[..., Any]

MANUAL = {"sync": "manual"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A bank of two agents, with something of everything."""
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        alice = bank.agent("alice")
        alice.add("NEVER transfer to agent_X [scammer]", "pinned")
        alice.add("The deal with Bob is done", kind="decision")
        alice.add("Waiting for the key\nof the vault", tags=["blocker"])
        alice.add("Carol likes tea", temperature="hot")
        for number in range(4):
            alice.add(f"Once upon a time {number}", temperature="cold")
        bank.agent("bob").add("Trading starts at nine o'clock")
        bank.agent("bob").add("Trading starts at nine o'clock")
    return tmp_path / "bank"


def state(folder: Path) -> str:
    with MemoryBank.at(folder) as bank:
        return bank.state_hash()


# Status


def test_status_off_a_terminal_is_lines_with_tabs(tiermem: Command, folder: Path) -> None:
    done = tiermem("status", folder)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == (
        f"{folder}: 2 agents after tick 0; 10 active, 0 archived, 0 deleted memories"
    )
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in lines if line[0] != "\t"}
    assert [rows[each][0] for each in ("hot", "warm", "cold")] == ["2", "4", "4"]
    assert rows["pinned"] == ["1", "1", "5"]
    assert rows["low"] == ["0", "0", "none"]


def test_status_says_how_far_the_store_is_behind(tiermem: Command, tmp_path: Path) -> None:
    def store() -> str:
        lines = tiermem("status", tmp_path / "bank").out.splitlines()
        return next(line for line in lines if line.startswith("store"))

    tiermem("init", tmp_path / "bank")
    for text in ("the well is dry", "the ford is deep"):
        tiermem("add", tmp_path / "bank", "--agent", "alice", text)
    head = MemoryBank.at(tmp_path / "bank").engine.journal.head
    assert store() == f"store\tchroma, {head} commits behind the journal"
    tiermem("store", "sync", tmp_path / "bank")
    assert store() == "store\tchroma, in step"
    tiermem("add", tmp_path / "bank", "--agent", "alice", "the mill is shut")
    assert store() == "store\tchroma, 1 commit behind the journal"
    with MemoryBank.at(tmp_path / "bank", 0) as past:
        assert past.status().store == ("chroma", 1, None)


def test_status_on_a_terminal_has_bars(folder: Path) -> None:
    shown = on_a_terminal("status", folder)
    for name in ("hot", "warm", "cold", "pinned", "critical"):
        (line,) = [each for each in shown.splitlines() if each.startswith(f"{name} ")]
        assert "━━━━━" in line
        assert line.endswith("%")
    assert "1 of 5" in shown
    assert "nothing to suggest" in shown
    assert "\x1b" not in shown


def test_status_shows_what_it_suggests_and_for_which_memories(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    full = {"hot_max_facts": 2, "auto_spill": False}
    with MemoryBank.open(folder, temperature=full) as bank:
        for text in ("the well is dry", "the ford is deep", "the mill is shut"):
            bank.agent("alice").add(text, temperature="hot")
    shown = on_a_terminal("status", folder)
    assert "nothing to suggest" not in shown
    assert "spill" in shown
    assert "auto_spill is off" in shown
    assert "the well is dry" in shown


def test_status_on_a_narrow_terminal_is_still_whole(folder: Path) -> None:
    shown = on_a_terminal("status", folder, "--agent", "alice", columns=70)
    assert max(map(len, shown.splitlines())) <= 70
    for name in ("hot", "warm", "cold", "alice", "pinned", "critical"):
        assert [line for line in shown.splitlines() if line.startswith(name) and line[-1] == "%"]


def test_status_of_one_agent_as_json(tiermem: Command, folder: Path) -> None:
    found = tiermem("status", folder, "--agent", "alice", "--json").json
    assert found["agent_id"] == "alice"
    assert found["temperatures"]["cold"]["items"] == 4
    assert found["tiers"]["pinned"] == {"items": 1, "cap": 5, "most": 1}
    with MemoryBank.at(folder) as bank:
        assert found == bank.status("alice").to_dict()


def test_status_of_a_bank_in_use_changes_nothing(tiermem: Command, folder: Path) -> None:
    before = (folder / "journal.db").read_bytes()
    with MemoryBank.open(folder) as bank:
        bank.agent("bob").add("not on the first page")
        assert tiermem("status", folder, "--agent", "bob", "--json").json["tiers"]["normal"] == {
            "items": 3, "cap": None, "most": 3,
        }  # fmt: skip
    assert before != (folder / "journal.db").read_bytes()
    before = (folder / "journal.db").read_bytes()
    tiermem("status", folder)
    assert before == (folder / "journal.db").read_bytes()


def test_status_says_that_hot_is_over_its_limits(tiermem: Command, tmp_path: Path) -> None:
    own = {"auto_spill": False, "hot_max_facts": 1}
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, temperature=own) as bank:
        for text in ("one", "two"):
            bank.agent("alice").add(text, temperature="hot")
    assert "1 agent has more hot than the limits allow" in tiermem("status", "bank").out
    shown = on_a_terminal("status", tmp_path / "bank", "-a", "alice")
    assert "temperature.auto_spill is off" in " ".join(shown.split())


def test_status_of_an_empty_bank_has_nothing_to_suggest(tmp_path: Path) -> None:
    MemoryBank.open(tmp_path / "bank", storage=MANUAL).close()
    shown = on_a_terminal("status", tmp_path / "bank")
    assert "nothing is hot" in shown
    assert "nothing to suggest" in shown


# Compaction


def test_compact_says_what_it_moved_and_moves_nothing_twice(tiermem: Command, folder: Path) -> None:
    first = tiermem("compact", folder)
    assert first == (0, "moved 1 to hot, 1 to warm, 1 to cold\n", "")
    after = state(folder)
    assert tiermem("compact", folder).out == "moved 0 to hot, 0 to warm, 0 to cold\n"
    assert state(folder) == after


def test_a_dry_compaction_lists_each_move_and_changes_nothing(
    tiermem: Command, folder: Path
) -> None:
    before = state(folder)
    done = tiermem("compact", folder, "--dry-run")
    *lines, last = done.out.splitlines()
    assert last == "would move 1 to hot, 1 to warm, 1 to cold"
    assert [line.split("\t")[2:] for line in lines[1:]] == [
        ["warm → cold", "completed", "The deal with Bob is done"],
        ["warm → hot", "blocker", "Waiting for the key\\nof the vault"],
        ["hot → warm", "cool down", "Carol likes tea"],
    ]
    assert state(folder) == before
    shown = on_a_terminal("compact", folder, "-n", columns=140)
    assert "warm → hot" in shown
    assert state(folder) == before


def test_a_dry_compaction_works_while_the_bank_is_in_use(tiermem: Command, folder: Path) -> None:
    with MemoryBank.open(folder):
        assert tiermem("compact", folder, "-n").code == 0
        tiermem("compact", folder).is_one_error(1, str(os.getpid()))


def test_compact_as_json(tiermem: Command, folder: Path) -> None:
    would = tiermem("compact", folder, "-n", "--json").json
    done = tiermem("compact", folder, "--json").json
    assert done == {"dry_run": False, "hot": 1, "warm": 1, "cold": 1, "pruned": 0}
    moves = would.pop("moves")
    assert would == {**done, "dry_run": True}
    assert moves[1] == {
        "agent": "alice",
        "id": moves[1]["id"],
        "from": "warm",
        "to": "hot",
        "rule": "blocker",
        "memory": "Waiting for the key\nof the vault",
    }


def test_compact_of_one_agent_and_with_settings(tiermem: Command, folder: Path) -> None:
    assert "would move 0 to hot, 0 to warm, 0" in tiermem("compact", folder, "-n", "-a", "bob").out
    none = tiermem("compact", folder, "-n", "--set", "temperature.rules=[]")
    assert none.out == "would move 0 to hot, 0 to warm, 0 to cold\n"
    preset = tiermem(
        "compact",
        folder,
        "-n",
        "--preset",
        "hot-warm-cold",
        "--set",
        "temperature.max_cold_items=3",
    )
    assert "would archive" in preset.out


def test_a_preset_that_compacts_on_closing_does_not_make_prune_compact(
    tiermem: Command, folder: Path
) -> None:
    before = state(folder)
    assert tiermem("compact", folder, "--prune", "--preset", "hot-warm-cold").out == (
        "archived 0 cold memories\n"
    )
    assert state(folder) == before


# Pruning


def test_prune_archives_what_the_dry_run_lists(tiermem: Command, folder: Path) -> None:
    few: Callable[..., Any] = lambda *more: tiermem(  # noqa: E731
        "compact", folder, "--prune", "--set", "temperature.max_cold_items=3", *more
    )
    before = state(folder)
    would = few("--dry-run")
    assert would.out.splitlines()[-1] == "would archive 1 cold memory"
    assert "Once upon a time 0" in would.out
    assert few("-n", "--json").json["archived"][0]["memory"] == "Once upon a time 0"
    assert state(folder) == before
    done = few("--json").json
    assert [each["agent"] for each in done["archived"]] == ["alice"]
    assert few().out == "archived 0 cold memories\n"
    assert tiermem("status", folder, "--json").json["retention"]["archived"] == 1


# Vacuum


def test_vacuum_says_sizes_and_leaves_nothing_of_what_was_forgotten(
    tiermem: Command, folder: Path
) -> None:
    with MemoryBank.open(folder, storage=MANUAL) as bank:
        alice = bank.agent("alice")
        secret = [alice.add(f"Die Katze schläft {n} " + "x" * 4000) for n in range(50)]
        for memory in secret:
            alice.forget(memory.id)
    before = state(folder)
    done = tiermem("store", "vacuum", folder)
    assert (done.code, done.err) == (0, "")
    assert re.match(r"journal: [\d.,]+ kB → [\d.,]+ kB\n", done.out)
    for path in folder.rglob("*"):
        if path.is_file():
            assert b"Katze" not in path.read_bytes()
    assert state(folder) == before


# Mistakes


@pytest.mark.parametrize("command", ["status", "compact", "compact --prune", "store vacuum"])
def test_a_missing_bank_is_one_clear_error(tiermem: Command, command: str) -> None:
    assert tiermem(*command.split(), "nowhere").is_one_error(1, "there is no bank in nowhere")
    assert not Path("nowhere").exists()


@pytest.mark.parametrize("command", ["status", "compact", "compact --prune"])
def test_an_unknown_agent_is_told_who_there_is(
    tiermem: Command, folder: Path, command: str
) -> None:
    before = state(folder)
    tiermem(*command.split(), folder, "-a", "bobby").is_one_error(1, "no agent bobby", "alice, bob")
    tiermem(*command.split(), folder, "-a", "*").is_one_error(2, "'*' is not an agent id")
    assert state(folder) == before


def test_a_wrong_setting_is_one_clear_error(tiermem: Command, folder: Path) -> None:
    for dry_run in ([], ["-n"]):
        done = tiermem("compact", folder, *dry_run, "--set", "temperature.hot_max_fact=3")
        assert done.is_one_error(2, "did you mean temperature.hot_max_facts?")
