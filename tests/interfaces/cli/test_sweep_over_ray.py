"""``tiermem sweep --engine ray``: runs as tasks of Ray, with the results of local processes."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import Command, Write

pytest.importorskip("ray")

from waiting import ended, until

pytestmark = pytest.mark.slow

KILL = "simulation.world_options.kill_at"
ONCE = "simulation.world_options.kill_once"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder in which Ray would leave its token."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


def write_sweep(beside: Path, **values: Any) -> Path:
    path = beside.with_name("sweep.yaml")
    path.write_text(yaml.safe_dump({"scenario": beside.name, **values}))
    return path


def results(folder: Path) -> dict[str, bytes]:
    """The files of a sweep, without those of its runs."""
    found = {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}
    found.pop("sweep.lock")
    assert {"plan.yaml", "report.html", "results.parquet", "statistics.parquet"} <= set(found)
    return found


def children(process: int) -> set[int]:
    """The processes that a process started, and those that they started."""
    listed = ["ps", "-o", "pid=", "--ppid", str(process)]
    own = subprocess.run(listed, capture_output=True, text=True, check=False).stdout.split()
    return {each for child in map(int, own) for each in (child, *children(child))}


def is_running(process: int) -> bool:
    state = Path(f"/proc/{process}/stat")
    try:
        return state.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_tasks_give_the_results_of_processes_and_are_tried_again_when_lost(
    tiermem: Command, scenario: Write, tmp_path: Path, home: Path
) -> None:
    killed = tmp_path / "killed"
    variants = {"fine": {}, "unlucky": {KILL: 2, ONCE: str(killed)}, "deadly": {KILL: 2}}
    file = write_sweep(scenario(ticks=3), variants=variants, seeds=2)
    said = []
    for engine in ("processes", "ray"):
        done = tiermem("sweep", file, "--out", f"{engine}/s", "--engine", engine, "--workers", 2)
        assert done.code == 1
        assert "deadly_seed=1: its process was killed, twice" in done.err
        assert "2 of 6 runs failed" in done.err
        assert "Traceback" not in done.err
        said.append(done.out.replace(engine, ""))
        killed.unlink()
    assert said[0] == said[1]
    assert results(Path("ray/s")) == results(Path("processes/s"))
    assert not (home / ".ray").exists()
    assert "RAY_AUTH_TOKEN" not in os.environ


def test_a_sweep_whose_command_is_killed_goes_on_with_another_engine(
    tiermem: Command, scenario: Write, tmp_path: Path
) -> None:
    file = write_sweep(scenario(ticks=12, engine="ray", workers=2), seeds=30)
    command = [Path(sys.executable).with_name("tiermem"), "sweep", file, "--out", tmp_path / "a/s"]
    with subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        cells = tmp_path / "a" / "s" / "cells"
        until("two runs are done", lambda: len(list(cells.glob("*/summary.json"))) >= 2)
        started = children(process.pid)
        process.send_signal(signal.SIGKILL)
        ended(process)
    assert len(started) > 2
    until("Ray's processes end", lambda: not any(map(is_running, started)))
    finished = {each: each.stat().st_ino for each in cells.glob("*/summary.json")}
    assert 2 <= len(finished) < 30
    assert tiermem("sweep", file, "--out", "a/s", "--engine", "processes", "-q").code == 0
    assert {each: each.stat().st_ino for each in finished} == finished
    assert tiermem("sweep", file, "--out", "b/s", "--engine", "local", "-q").code == 0
    assert results(tmp_path / "a" / "s") == results(tmp_path / "b" / "s")
