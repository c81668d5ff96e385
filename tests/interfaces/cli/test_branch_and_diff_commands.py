"""``tiermem branch`` and ``tiermem diff``: what if, and what came of it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from agents import MemoryBank

Command = Callable[..., Any]
Write = Callable[..., Path]


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-wal", "-shm"))
    }


def summary(folder: Path | str) -> Any:
    return json.loads(Path(folder, "summary.json").read_text())


def edits(*entries: dict[str, Any]) -> Path:
    path = Path("edits.yaml")
    path.write_text(yaml.safe_dump(list(entries)))
    return path


def contents(folder: str, agent: str, tick: int | None = None) -> list[tuple[str, str]]:
    with MemoryBank.at(Path(folder) / "bank", tick) as bank:
        return [(m.content, m.tier.name.lower()) for m in bank.agent(agent).all()]


# branch


def test_a_branch_with_nothing_changed_is_the_same_run(tiermem: Command, whole: Path) -> None:
    assert tiermem("branch", whole, "--at", 5, "--out", "b", "-q").code == 0
    assert summary("b")["state_hash"] == summary(whole)["state_hash"]
    assert summary("b")["metrics"] == summary(whole)["metrics"]


def test_branching_changes_nothing_in_the_parent(tiermem: Command, whole: Path) -> None:
    before = files(whole)
    tiermem("branch", whole, "--at", 5, "--out", "b", "-q")
    assert files(whole) == before


def test_a_branch_knows_its_parent(tiermem: Command, whole: Path) -> None:
    tiermem("branch", whole, "--at", 5, "--out", "b", "-q")
    parent = json.loads(Path("b/run.json").read_text())["parent"]
    assert (parent["run"], parent["tick"]) == (str(whole), 5)


def test_settings_change_from_there_on(tiermem: Command, whole: Path) -> None:
    fewer = ("--set", "simulation.policy_options.tier=low")
    tiermem("branch", whole, "--at", 5, "--out", "b", "-q", *fewer)
    with MemoryBank.at(Path("b/bank")) as bank:
        notes = [m for m in bank.agent("bob").all() if m.content.startswith("note")]
    assert {m.tier.name for m in notes if m.created_tick > 5} == {"LOW"}
    assert "LOW" not in {m.tier.name for m in notes if m.created_tick <= 5}


def test_a_setting_that_the_run_has_says_so(tiermem: Command, whole: Path) -> None:
    flags = ("--set", "seed=3", "--set", "memory.max_pinned=1")
    done = tiermem("branch", whole, "--at", 5, *flags, "--out", "b", "--make-only")
    assert done.err == "--set seed=3 changes nothing here: these settings are so already\n"
    again = tiermem("branch", whole, "--at", 5, *flags, "--out", "q", "--make-only", "-q")
    assert again == (0, "", "")


def test_ticks_say_how_long_the_branch_is(tiermem: Command, whole: Path) -> None:
    tiermem("branch", whole, "--at", 5, "--out", "b", "--ticks", 7, "-q")
    assert summary("b")["ticks"] == 7


def test_make_only_leaves_the_rest_to_resume(tiermem: Command, whole: Path) -> None:
    assert tiermem("branch", whole, "--at", 5, "--out", "b", "--make-only").code == 0
    assert not Path("b/summary.json").exists()
    assert tiermem("resume", "b", "-q").code == 0
    assert summary("b")["state_hash"] == summary(whole)["state_hash"]


@pytest.mark.parametrize("option", [("--ticks", 4), ("--set", "simulation.ticks=4")])
def test_a_branch_does_not_end_before_it_begins(
    tiermem: Command, whole: Path, option: tuple[object, ...]
) -> None:
    refused = tiermem("branch", whole, "--at", 5, "--out", "b", *option)
    assert refused.code == 1
    assert "a branch at tick 5 can't be 4 ticks long" in refused.err
    assert not Path("b").exists()
    assert tiermem("branch", whole, "--at", 4, "--out", "b", "-q", *option).code == 0


def test_a_branch_that_is_only_made_is_as_long_as_it_was_told(
    tiermem: Command, whole: Path
) -> None:
    tiermem("branch", whole, "--at", 5, "--out", "b", "--ticks", 7, "--make-only", "-q")
    tiermem("resume", "b", "-q")
    assert summary("b")["ticks"] == 7


def test_a_branch_can_start_before_the_first_tick_and_after_the_last(
    tiermem: Command, whole: Path
) -> None:
    assert tiermem("branch", whole, "--at", 0, "--out", "first", "-q").code == 0
    assert summary("first")["state_hash"] == summary(whole)["state_hash"]
    assert tiermem("branch", whole, "--at", 12, "--out", "last", "--ticks", 13, "-q").code == 0
    assert summary("last")["ticks"] == 13


def test_a_branch_lives_on_without_its_parent(tiermem: Command, whole: Path) -> None:
    tiermem("branch", whole, "--at", 5, "--out", "b", "-q")
    shutil.rmtree(whole)
    shutil.rmtree(whole.parent / "mine")
    assert tiermem("resume", "b", "--ticks", 13, "-q").code == 0
    assert tiermem("replay", "b", "--verify", "-q").code == 0


@pytest.mark.slow
def test_a_branch_can_be_branched(tiermem: Command, whole: Path) -> None:
    tiermem("branch", whole, "--at", 5, "--out", "b", "-q")
    assert tiermem("branch", "b", "--at", 7, "--out", "c", "-q").code == 0
    assert summary("c")["state_hash"] == summary(whole)["state_hash"]


def test_a_branch_may_take_a_policy_from_the_scenarios_folder(
    tiermem: Command, whole: Path
) -> None:
    scenario = Path(json.loads((whole / "run.json").read_text())["scenario"])
    (scenario / "minds.py").write_text(
        "class Still:\n    def decide(self, observation, memories, rng):\n        return []\n"
    )
    other = ("--set", "simulation.policy=minds:Still", "--set", "simulation.policy_options={}")
    done = tiermem("branch", whole, "--at", 5, "--out", "b", "-q", *other)
    assert done.code == 0, done.err


def test_edits_add_pin_unpin_move_and_delete_memories(tiermem: Command, whole: Path) -> None:
    before = contents(str(whole), "bob", 2)
    path = edits(
        {"agent": "alice", "do": "add", "content": "NEVER trust bob", "tier": "pinned"},
        {"agent": "bob", "do": "delete", "matching": "stones"},
        {"agent": "bob", "do": "set_tier", "matching": "took step 1", "tier": "critical"},
        {"agent": "bob", "do": "pin", "matching": "took step 2"},
        {"agent": "bob", "do": "unpin", "matching": "note"},
    )
    assert tiermem("branch", whole, "--at", 2, "--out", "b", "--edit", path, "-q").code == 0
    assert ("NEVER trust bob", "pinned") in contents("b", "alice", 2)
    notes = [(text, "normal") for text, _ in before if text.startswith("note")]
    assert sorted(contents("b", "bob", 2)) == sorted(
        [("bob took step 1", "critical"), ("bob took step 2", "pinned"), *notes]
    )
    assert contents(str(whole), "bob", 2) == before


def test_an_edit_may_name_a_memory_by_its_id_or_the_last_digits_of_it(
    tiermem: Command, whole: Path
) -> None:
    row = tiermem("show", whole, "-a", "bob", "-t", 1, "--json").json[0]
    left = contents(str(whole), "bob", 5)[1:]
    for name, given in (("b", row["id"]), ("c", row["id"][-4:])):
        path = edits({"agent": "bob", "do": "delete", "memory": given})
        assert tiermem("branch", whole, "--at", 5, "--out", name, "--edit", path, "-q").code == 0
        assert contents(name, "bob", 5) == left


@pytest.mark.parametrize("at", [4, 5])  # one has a checkpoint
def test_an_edited_branch_replays_and_verifies(tiermem: Command, whole: Path, at: int) -> None:
    path = edits({"agent": "alice", "do": "add", "content": "NEVER trust bob", "tier": "pinned"})
    tiermem("branch", whole, "--at", at, "--out", "b", "--edit", path, "-q")
    assert tiermem("replay", "b", "--verify", "-q") == (0, "", "")


def test_a_branch_with_other_settings_replays(tiermem: Command, whole: Path) -> None:
    tiermem("branch", whole, "--at", 5, "--out", "b", "-q", "--set", "memory.max_pinned=1")
    assert tiermem("replay", "b", "--verify", "-q") == (0, "", "")


def test_a_branch_taken_back_to_its_start_keeps_its_edits(tiermem: Command, whole: Path) -> None:
    path = edits({"agent": "alice", "do": "add", "content": "NEVER trust bob", "tier": "pinned"})
    tiermem("branch", whole, "--at", 5, "--out", "b", "--edit", path, "-q")
    before = summary("b")["state_hash"]
    assert tiermem("resume", "b", "--from-tick", 5, "-q").code == 0
    assert summary("b")["state_hash"] == before


@pytest.mark.parametrize(
    ("text", "code", "parts"),
    [
        ("{agent: alice, do: add}", 2, ["a list of edits"]),
        ("- 5", 2, ["edit 1"]),
        ("- {agent: alice, do: fly}", 2, ["edit 1", "'fly'"]),
        ("- {do: add, content: hi}", 2, ["edit 1", "agent"]),
        ("- {agent: alice, do: add}", 2, ["edit 1", "content"]),
        ("- {agent: alice, do: pin}", 2, ["edit 1", "matching"]),
        ("- {agent: alice, do: set_tier, matching: note}", 2, ["edit 1", "tier"]),
        ("- {agent: alice, do: add, content: hi, colour: red}", 2, ["edit 1", "colour"]),
        ("- {agent: alice, do: add, content: hi, tier: shiny}", 1, ["edit 1", "'shiny'"]),
        ("- {agent: alice, do: pin, matching: nonsense}", 1, ["edit 1", "'nonsense'"]),
        ("- {agent: alice, do: delete, memory: nope}", 1, ["edit 1", "'nope'"]),
        ("- {agent: zed, do: pin, matching: note}", 1, ["edit 1", "'zed'"]),
        pytest.param(
            "- {agent: zed, do: add, content: hi}",
            1,
            ["edit 1", "'zed'"],
        ),
    ],
)
def test_a_wrong_edit_is_one_clear_error_and_makes_no_run(
    tiermem: Command, whole: Path, text: str, code: int, parts: list[str]
) -> None:
    Path("edits.yaml").write_text(text)
    done = tiermem("branch", whole, "--at", 5, "--out", "b", "--edit", "edits.yaml", "-q")
    assert done.is_one_error(code, *parts)
    assert not Path("b").exists()


@pytest.mark.parametrize("change", ["seed=9", "simulation.agents=3"])
def test_a_branch_keeps_what_its_past_was_made_with(
    tiermem: Command, whole: Path, change: str
) -> None:
    done = tiermem("branch", whole, "--at", 5, "--out", "b", "--set", change)
    assert done.is_one_error(2, change.partition("=")[0], "branch")
    assert not Path("b").exists()


def test_a_branch_replaces_nothing_without_force(tiermem: Command, whole: Path) -> None:
    Path("b").mkdir()
    Path("b/thesis").touch()
    assert tiermem("branch", whole, "--at", 5, "--out", "b").is_one_error(1, "exists already")
    assert tiermem("branch", whole, "--at", 5, "--out", "b", "--force").is_one_error(1, "not a run")
    assert Path("b/thesis").exists()


def test_a_branch_does_not_replace_its_own_parent(tiermem: Command, whole: Path) -> None:
    tiermem("branch", whole, "--at", 5, "--out", whole, "--force", "-q")
    assert (whole / "bank" / "journal.db").is_file()


def test_a_branch_that_fails_leaves_the_run_that_force_would_replace(
    tiermem: Command, whole: Path
) -> None:
    tiermem("branch", whole, "--at", 5, "--out", "b", "-q")
    path = edits({"agent": "alice", "do": "pin", "matching": "nonsense"})
    arguments = ("branch", whole, "--at", 5, "--out", "b", "--edit", path, "--force", "-q")
    assert tiermem(*arguments).code == 1
    assert Path("b/bank/journal.db").is_file()


# diff


@pytest.fixture
def branched(tiermem: Command, whole: Path) -> str:
    """A branch at tick 5 in which alice has one memory more and bob one less, and one moved."""
    path = edits(
        {"agent": "alice", "do": "add", "content": "NEVER trust bob", "tier": "critical"},
        {"agent": "bob", "do": "delete", "matching": "bob took step 2"},
        {"agent": "bob", "do": "set_tier", "matching": "bob took step 1", "tier": "important"},
    )
    assert tiermem("branch", whole, "--at", 5, "--out", "b", "--edit", path, "-q").code == 0
    return "b"


def test_equal_runs_are_said_to_be_equal(tiermem: Command, whole: Path) -> None:
    tiermem("branch", whole, "--at", 5, "--out", "b", "-q")
    done = tiermem("diff", whole, "b")
    assert done.code == 0
    assert "equal after every tick up to 12" in done.out


def test_diff_names_the_first_tick_in_which_they_part(
    tiermem: Command, whole: Path, branched: str
) -> None:
    assert "they part in tick 6" in tiermem("diff", whole, branched).out
    assert tiermem("diff", whole, branched, "--json").json["parted"] == 6


def test_diff_lists_memories_only_in_one_and_in_another_tier(
    tiermem: Command, whole: Path, branched: str
) -> None:
    found = tiermem("diff", whole, branched, "--json").json
    assert [row["memory"] for row in found["only_first"]] == ["bob took step 2"]
    assert [row["memory"] for row in found["only_second"]] == ["NEVER trust bob"]
    (moved,) = found["changed"]
    assert (moved["agent"], moved["memory"]) == ("bob", "bob took step 1")
    assert moved["fields"] == {"tier": ["normal", "important"]}
    text = tiermem("diff", whole, branched).out
    for each in ("bob took step 2", "NEVER trust bob", "important"):
        assert each in text


def test_diff_puts_metrics_side_by_side(tiermem: Command, whole: Path, branched: str) -> None:
    found = tiermem("diff", whole, branched, "--json").json
    assert found["metrics"]["steps"] == [24, 24]
    assert found["runs"] == [str(whole), branched]


def test_diff_names_the_settings_that_differ(tiermem: Command, whole: Path) -> None:
    tiermem("branch", whole, "--at", 5, "--set", "memory.max_pinned=2", "--out", "b", "-q")
    assert tiermem("diff", whole, "b", "--json").json["settings"] == {"memory.max_pinned": [5, 2]}
    assert "memory.max_pinned\t5\t2" in tiermem("diff", whole, "b").out


@pytest.mark.slow
def test_diff_compares_runs_of_different_length_at_their_last_common_tick(
    tiermem: Command, whole: Path
) -> None:
    tiermem("branch", whole, "--at", 5, "--out", "b", "--ticks", 9, "-q")
    found = tiermem("diff", whole, "b", "--json").json
    assert (found["parted"], found["last"]) == (None, 9)
    assert found["metrics"]["steps"] == [18, 18]


def test_diff_draws_a_plot(tiermem: Command, whole: Path, branched: str) -> None:
    assert "plot: b/diff.svg" in tiermem("diff", whole, branched).out
    plot = Path("b/diff.svg").read_text()
    told = [text.text for text in ElementTree.fromstring(plot).iter() if text.text]
    assert {"run", "b", "steps", "tick"} <= {*told}
    tiermem("diff", whole, branched, "--plot", "mine.svg")
    assert Path("mine.svg").read_text() == plot


def test_a_run_equals_itself(tiermem: Command, whole: Path) -> None:
    done = tiermem("diff", whole, whole)
    assert "equal after every tick up to 12" in done.out
    assert "metrics\tfirst\tsecond" in done.out


def test_diff_lists_memories_with_another_temperature(tiermem: Command, whole: Path) -> None:
    tiermem("branch", whole, "--at", 5, "--ticks", 5, "--out", "b", "-q")
    with MemoryBank.open("b/bank") as bank:
        bob = bank.agent("bob")
        heated = bob.all("normal")[0]
        assert bob.update(heated.id, temperature="hot")
    tiermem("resume", "b", "--ticks", 6, "-q")
    (row,) = tiermem("diff", whole, "b", "--json").json["changed"]
    assert row["ids"] == [heated.id, heated.id]
    assert row["fields"] == {"temperature": ["warm", "hot"]}
    assert "in both, but not the same, after tick 6: 1" in tiermem("diff", whole, "b").out


def test_diff_tells_all_that_differs_of_a_memory_in_one_row(tiermem: Command, whole: Path) -> None:
    pinned = edits({"agent": "bob", "do": "pin", "matching": "bob took step 1"})
    tiermem("branch", whole, "--at", 5, "--ticks", 5, "--out", "b", "--edit", pinned, "-q")
    rows = [line for line in tiermem("diff", whole, "b").out.splitlines() if "step 1" in line]
    both = "tier: normal → pinned; temperature: warm → hot"
    assert rows == [f"bob\t1\tbob took step 1\t{both}"]


def test_diff_names_memories_by_their_texts_because_an_id_is_another_memory_in_another_run(
    tiermem: Command, whole: Path
) -> None:
    for name in ("one", "two"):
        added = edits({"agent": "alice", "do": "add", "content": f"of {name}"})
        tiermem("branch", whole, "--at", 5, "--ticks", 5, "--out", name, "--edit", added, "-q")
    found = tiermem("diff", "one", "two", "--json").json
    (first,), (second,) = found["only_first"], found["only_second"]
    assert first["id"] == second["id"]
    out = tiermem("diff", "one", "two").out
    assert "alice\t5\tof one\n" in out
    assert "alice\t5\tof two\n" in out
    assert first["id"] not in out


def test_runs_that_differ_by_an_edit_since_their_last_tick_are_not_said_to_be_equal(
    tiermem: Command, whole: Path
) -> None:
    added = edits({"agent": "alice", "do": "add", "content": "NEVER trust bob"})
    tiermem("branch", whole, "--at", 5, "--ticks", 5, "--out", "b", "--edit", added, "-q")
    said = "equal after every tick up to 5, but for what was changed since"
    assert tiermem("diff", whole, "b").out.startswith(f"{said}\n")
