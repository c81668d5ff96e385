"""Commands on a run whose ticks a program of the user makes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import programs

Command = Callable[..., Any]

SCENARIO = """
seed: 7
storage: {sync: manual}
simulation: {model: "programs:Street", ticks: 6}
"""


@pytest.fixture
def street(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiermem: Command) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "programs.py").write_text(Path(programs.__file__).read_text())
    (tmp_path / "street.yaml").write_text(SCENARIO)
    assert tiermem("run", "street.yaml", "--out", "run", "-q").code == 0
    return tmp_path


def test_a_program_is_run_replayed_branched_and_compared(street: Path, tiermem: Command) -> None:
    assert (street / "run/code/programs.py").is_file()
    assert json.loads(tiermem("replay", "run", "--verify", "--json").out)["equal"]
    call = ("--at", "0", "--call", "programs:rob_all")
    assert tiermem("branch", "run", *call, "--out", "robbed", "-q").code == 0
    assert "rob_all changes the program" in tiermem("effect", "run", *call).out
    assert "lost" in tiermem("diff", "run", "robbed").out
    assert tiermem("resume", "robbed", "--ticks", "8", "-q").code == 0
    assert json.loads(tiermem("replay", "robbed", "--json").out) == {
        "equal": True, "ticks": 8, "problems": [],
    }  # fmt: skip


def test_a_sweep_runs_programs(street: Path, tiermem: Command) -> None:
    (street / "sweep.yaml").write_text(
        "scenario: street.yaml\nseeds: 2\n"
        "variants: {few: {simulation.world_options: {robbers: 0.1}}, many: {}}\n"
    )
    done = tiermem("sweep", "sweep.yaml", "--out", "swept", "--workers", "1", "-q", "--json")
    assert done.code == 0, done.err
    assert {row["metric"] for row in json.loads(done.out)["statistics"]} == {"lost"}
