"""``tiermem resume``: what goes on is the run that it would have been."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import warm_children
from agents import MemoryBank
from agents.simulation.runs.run import Run

Command = Callable[..., Any]
Write = Callable[..., Path]

OUTPUTS = ("metrics.parquet", "ticks.parquet", "summary.json")


def outputs(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in OUTPUTS}


def summary(folder: Path) -> Any:
    return json.loads((folder / "summary.json").read_text())


# Longer, and back


def test_a_finished_run_stays_as_it_is(tiermem: Command, whole: Path) -> None:
    before = outputs(whole)
    assert tiermem("resume", whole, "-q").code == 0
    assert outputs(whole) == before


def test_a_run_made_longer_equals_one_that_was_long_from_the_start(
    tiermem: Command, scenario: Write, whole: Path
) -> None:
    assert tiermem("run", scenario(), "--ticks", 15, "--out", "long", "-q").code == 0
    assert tiermem("resume", whole, "--ticks", 15, "-q").code == 0
    assert outputs(whole) == outputs(Path("long"))
    assert yaml.safe_load((whole / "config.yaml").read_text())["simulation"]["ticks"] == 15


def test_going_back_gives_the_same_run_again(tiermem: Command, whole: Path) -> None:
    before = outputs(whole)
    assert tiermem("resume", whole, "--from-tick", 5, "-q").code == 0
    assert outputs(whole) == before


def test_going_back_forgets_later_ticks_and_checkpoints(tiermem: Command, whole: Path) -> None:
    assert tiermem("resume", whole, "--from-tick", 3, "--ticks", 6, "-q").code == 0
    assert summary(whole)["ticks"] == 6
    assert sorted(path.name for path in (whole / "checkpoints").iterdir()) == [
        "tick-000004.tmck", "tick-000006.tmck",
    ]  # fmt: skip
    with MemoryBank.at(whole / "bank") as bank:
        assert bank.tick == 6


def test_going_back_to_the_start_gives_the_same_run_again(tiermem: Command, whole: Path) -> None:
    before = outputs(whole)
    assert tiermem("resume", whole, "--from-tick", 0, "-q").code == 0
    assert outputs(whole) == before


def test_fewer_ticks_than_there_are_is_refused(tiermem: Command, whole: Path) -> None:
    done = tiermem("resume", whole, "--ticks", 5)
    assert done.code != 0
    assert yaml.safe_load((whole / "config.yaml").read_text())["simulation"]["ticks"] == 12


def test_it_says_what_run_does(tiermem: Command, whole: Path) -> None:
    done = tiermem("resume", whole, "--ticks", 14)
    assert done.err.splitlines()[0].startswith("tick 14/14 ")
    assert done.out == ""
    assert tiermem("resume", whole, "--ticks", 15, "--json").json["ticks"] == 15
    assert tiermem("resume", whole, "--ticks", 16, "--quiet") == (0, "", "")


def test_an_error_of_the_tick_before_is_told_after_a_stop(
    tiermem: Command, scenario: Write
) -> None:
    told = (
        "from agents.simulation.protocols import Action\n"
        "class Told:\n"
        "    def decide(self, seen, memories, rng):\n"
        "        if seen.errors:\n"
        "            return [Action('store_memory', {'content': f'told: {seen.errors[0]}'})]\n"
        "        return [Action('fly')] if seen.tick == 3 else []\n"
    )
    path = scenario(policy="minds:Told")
    (path.parent / "minds.py").write_text(told)
    assert tiermem("run", path, "--ticks", 3, "--out", "r", "-q").code == 0
    assert tiermem("resume", "r", "--ticks", 4, "-q").code == 0
    rows = tiermem("show", "r", "-a", "alice", "--json").json
    assert any("told: fly was refused: there is no fly here" in row["memory"] for row in rows)


# A world that failed


def test_a_run_goes_on_once_its_world_is_mended(
    tiermem: Command, scenario: Write, whole: Path
) -> None:
    tiermem("run", scenario(world_options={"fail_at": 7}), "--out", "r", "-q")
    code = Path("r/code/worlds_for_tests.py")
    code.write_text(code.read_text().replace('raise RuntimeError("the sky fell")', "pass"))
    assert tiermem("resume", "r", "-q").code == 0
    assert outputs(Path("r")) == outputs(whole)


def test_a_run_goes_on_once_its_world_is_mended_beside_the_scenario(
    tiermem: Command, scenario: Write
) -> None:
    path = scenario(world_options={"fail_at": 7})
    failed = tiermem("run", path, "--out", "r", "-q")
    code = path.parent / "worlds_for_tests.py"
    code.write_text(code.read_text().replace('raise RuntimeError("the sky fell")', "pass"))
    done = tiermem("resume", "r", "-q")
    # Either it takes the mended code, or the error tells where the code is that it takes.
    assert done.code == 0 or "r/code" in failed.err


def test_a_world_that_failed_in_the_first_tick_is_mended_beside_the_scenario_and_run_again(
    tiermem: Command, scenario: Write, whole: Path
) -> None:
    path = scenario(world_options={"fail_at": 1})
    code = path.parent / "worlds_for_tests.py"
    failed = tiermem("run", path, "--out", "r", "-q")
    assert failed.is_one_error(1, "tick 1", f"mend it in {code}, then run the scenario again")
    assert "resume" not in failed.err
    code.write_text(code.read_text().replace('raise RuntimeError("the sky fell")', "pass"))
    assert tiermem("resume", "r", "-q").is_one_error(1, f"mend it in {code}", "--force")
    assert tiermem("run", path, "--out", "r", "--force", "-q").code == 0
    assert outputs(Path("r")) == outputs(whole)


def test_a_world_that_failed_in_the_first_tick_and_is_gone_is_mended_in_the_run(
    tiermem: Command, scenario: Write
) -> None:
    path = scenario(world_options={"fail_at": 1})
    tiermem("run", path, "--out", "r", "-q")
    shutil.rmtree(path.parent)
    assert tiermem("resume", "r").is_one_error(1, "mend it in r/code", "tiermem resume r")


def test_a_world_that_is_not_mended_fails_again_in_the_same_tick(
    tiermem: Command, scenario: Write
) -> None:
    tiermem("run", scenario(world_options={"fail_at": 7}), "--out", "r", "-q")
    assert tiermem("resume", "r").is_one_error(1, "tick 7", "the sky fell")


# The user's own code


def test_it_goes_on_when_the_scenarios_folder_is_gone(tiermem: Command, whole: Path) -> None:
    shutil.rmtree(whole.parent / "mine")
    assert tiermem("resume", whole, "--ticks", 13, "-q").code == 0


def test_it_goes_on_when_the_run_was_moved(tiermem: Command, whole: Path) -> None:
    shutil.rmtree(whole.parent / "mine")
    whole.rename("elsewhere")
    assert tiermem("resume", "elsewhere", "--ticks", 13, "-q").code == 0
    assert tiermem("replay", "elsewhere", "--verify", "-q").code == 0


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("gone", [False, True])
def test_code_that_imports_its_neighbour_goes_on_in_a_new_process(
    tiermem: Command, scenario: Write, gone: bool
) -> None:
    path = scenario(world="outer:Outer")
    (path.parent / "outer.py").write_text(
        "from worlds_for_tests import Stones\nclass Outer(Stones):\n    pass\n"
    )
    assert tiermem("run", path, "--ticks", 2, "--out", "r", "-q").code == 0
    if gone:
        shutil.rmtree(path.parent)
    command = [str(Path(sys.executable).with_name("tiermem")), "resume", "r", "--ticks", "3"]
    done = warm_children.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# Files that are missing or damaged


@pytest.mark.parametrize("name", ["run.json", "config.yaml"])
def test_without_what_made_it_a_run_is_a_clear_error(
    tiermem: Command, whole: Path, name: str
) -> None:
    (whole / name).unlink()
    assert tiermem("resume", whole).is_one_error(1, name)


@pytest.mark.parametrize(
    "text",
    [
        "{", "[]", "5", "{}", '{"format": 2}',
        pytest.param('{"format": 1, "scenario": 5}'),
    ],
)  # fmt: skip
def test_a_damaged_run_json_is_a_clear_error(tiermem: Command, whole: Path, text: str) -> None:
    (whole / "run.json").write_text(text)
    assert tiermem("resume", whole).is_one_error(1)


@pytest.mark.parametrize("text", ["simulation: [", "5", "memory: {max_pinned: x}\n"])
def test_a_damaged_config_is_a_clear_error(tiermem: Command, whole: Path, text: str) -> None:
    (whole / "config.yaml").write_text(text)
    assert tiermem("resume", whole).is_one_error(2, "config.yaml")


def test_without_its_journal_it_continues_from_a_checkpoint_and_says_so(
    tiermem: Command, whole: Path
) -> None:
    before = outputs(whole)
    (whole / "bank" / "journal.db").unlink()
    done = tiermem("resume", whole)
    assert done.code == 0
    assert "lost its journal" in done.err
    assert "continuing from the checkpoint tick-000012.tmck" in done.err
    assert outputs(whole) == before


def test_with_a_damaged_journal_it_continues_from_a_checkpoint_and_says_so(
    tiermem: Command, whole: Path
) -> None:
    before = outputs(whole)
    (whole / "bank" / "journal.db").write_bytes(b"this is not a database" * 500)
    done = tiermem("resume", whole)
    assert done.code == 0
    assert "continuing from the checkpoint tick-000012.tmck" in done.err
    assert outputs(whole) == before


def test_a_damaged_checkpoint_and_a_lost_journal_take_it_to_the_checkpoint_before(
    tiermem: Command, whole: Path
) -> None:
    before = outputs(whole)
    (whole / "bank" / "journal.db").unlink()
    last = whole / "checkpoints" / "tick-000012.tmck"
    last.write_bytes(last.read_bytes()[: last.stat().st_size // 2])
    done = tiermem("resume", whole)
    assert done.code == 0
    assert "tick-000012.tmck is not a whole checkpoint" in done.err
    assert "continuing from the checkpoint tick-000008.tmck" in done.err
    assert outputs(whole) == before


def test_a_damaged_checkpoint_that_was_passed_over_is_replaced(
    tiermem: Command, whole: Path
) -> None:
    (whole / "bank" / "journal.db").unlink()
    (whole / "checkpoints" / "tick-000012.tmck").write_bytes(b"junk")
    tiermem("resume", whole, "-q")
    assert tiermem("replay", whole, "--verify", "-q") == (0, "", "")


def test_without_a_whole_checkpoint_a_lost_journal_is_a_clear_error(
    tiermem: Command, whole: Path
) -> None:
    (whole / "bank" / "journal.db").unlink()
    for path in (whole / "checkpoints").iterdir():
        path.write_bytes(b"junk")
    done = tiermem("resume", whole)
    assert done.code == 1
    assert "can't go on" in done.err.splitlines()[-2]
    assert done.err.splitlines()[-1].startswith("     do: run the scenario again")


def test_without_journal_and_checkpoints_it_does_not_start_over_in_silence(
    tiermem: Command, whole: Path
) -> None:
    (whole / "bank" / "journal.db").unlink()
    shutil.rmtree(whole / "checkpoints")
    done = tiermem("resume", whole)
    assert done.code == 1 or "lost its journal" in done.err


def test_without_its_checkpoints_it_goes_on_from_its_journal(tiermem: Command, whole: Path) -> None:
    shutil.rmtree(whole / "checkpoints")
    assert tiermem("resume", whole, "--ticks", 13, "-q").code == 0
    assert (whole / "checkpoints" / "tick-000013.tmck").is_file()


def test_outputs_that_are_missing_are_made_again(tiermem: Command, whole: Path) -> None:
    before = outputs(whole)
    for name in (*OUTPUTS, "report.html"):
        (whole / name).unlink()
    assert tiermem("resume", whole, "-q").code == 0
    assert outputs(whole) == before
    assert (whole / "report.html").is_file()


def test_going_back_with_a_lost_journal_takes_a_checkpoint_before_that_tick(
    tiermem: Command, whole: Path
) -> None:
    before = outputs(whole)
    (whole / "bank" / "journal.db").unlink()
    done = tiermem("resume", whole, "--from-tick", 10)
    assert done.code == 0
    assert "continuing from the checkpoint tick-000008.tmck" in done.err
    assert outputs(whole) == before


# Two at once


def test_the_second_on_a_run_gets_a_clear_error(tiermem: Command, whole: Path) -> None:
    with Run.open(whole):
        assert tiermem("resume", whole).is_one_error(1, str(os.getpid()))
        assert tiermem("resume", whole, "--from-tick", 3).is_one_error(1, str(os.getpid()))
    assert summary(whole)["ticks"] == 12
    assert tiermem("resume", whole, "-q").code == 0


# report


def test_report_makes_the_outputs_anew(tiermem: Command, whole: Path) -> None:
    before = outputs(whole)
    for name in (*OUTPUTS, "report.html"):
        (whole / name).unlink()
    done = tiermem("report", whole)
    assert (done.code, done.out) == (0, f"{whole / 'report.html'}\n")
    assert outputs(whole) == before


def test_report_does_not_restore_a_checkpoint_in_silence(tiermem: Command, whole: Path) -> None:
    (whole / "bank" / "journal.db").unlink()
    done = tiermem("report", whole)
    assert done.code == 1 or "checkpoint" in done.err


def test_workers_of_the_local_engine_are_refused(tiermem: Command, scenario: Write) -> None:
    refused = tiermem("run", scenario(), "--workers", 3, "--out", "r")
    assert refused.is_one_error(2, "the engine local has no workers: 3", "--engine processes")
    assert not Path("r").exists()
    assert tiermem("run", scenario(), "--ticks", 1, "--out", "r", "-q").code == 0
    assert tiermem("resume", "r", "--ticks", 2, "--workers", 3).is_one_error(2, "no workers")
