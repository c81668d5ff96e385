"""``tiermem sweep`` when a worker is killed, or the command itself."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from agents.simulation.workers import ray_carrier
from waiting import ended, until

Command = Callable[..., Any]
Write = Callable[..., Path]

KILLED = "simulation.world_options.kill_at"


def write_sweep(beside: Path, **values: Any) -> Path:
    path = beside.with_name("sweep.yaml")
    path.write_text(yaml.safe_dump({"scenario": beside.name, **values}))
    return path


@pytest.mark.slow
def test_a_cell_whose_worker_is_always_killed_is_named_and_the_others_count(
    tiermem: Command, scenario: Write
) -> None:
    variants = {"fine": {}, "deadly": {KILLED: 2}}
    file = write_sweep(scenario(ticks=3), variants=variants, seeds=1)
    done = tiermem("sweep", file, "--out", "s", "--workers", 1)
    assert done.code == 1
    assert "deadly_seed=1: its process was killed, twice" in done.err
    assert "1 of 2 runs failed" in done.err
    assert "Traceback" not in done.err
    rows = pq.read_table("s/results.parquet").to_pylist()
    assert [row["variant"] for row in rows] == ["fine"]


@pytest.mark.slow
def test_a_cell_whose_worker_is_killed_once_is_run_again(
    tiermem: Command, scenario: Write, tmp_path: Path
) -> None:
    options = {KILLED: 2, "simulation.world_options.kill_once": str(tmp_path / "killed")}
    file = write_sweep(scenario(ticks=3), variants={"unlucky": options}, seeds=2)
    assert tiermem("sweep", file, "--out", "s", "-q", "--workers", 1).code == 0
    assert (tmp_path / "killed").exists()
    assert len(pq.read_table("s/results.parquet")) == 2


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_a_command_that_is_ended(
    scenario: Write, tmp_path: Path, number: signal.Signals
) -> None:
    started = tmp_path / "started"
    started.mkdir()
    options = {"simulation.world_options.wait_in": str(started)}
    file = write_sweep(scenario(ticks=3), variants={"waiting": options}, seeds=2)
    command = [Path(sys.executable).with_name("tiermem"), "sweep", file, "--out", tmp_path / "s"]
    with subprocess.Popen(
        [*map(str, command), "--workers", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        until("both workers run", lambda: len(list(started.iterdir())) == 2)
        workers = [int(each.name) for each in started.iterdir()]
        process.send_signal(number)
        _, said = ended(process)
    assert "Traceback" not in said
    try:
        until("the workers end", lambda: not any(map(_is_running, workers)), seconds=60)
    finally:
        for worker in filter(_is_running, workers):
            os.kill(worker, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.long_after(2)
@pytest.mark.parametrize("moment", range(4))
def test_ctrl_c_at_any_moment_ends_a_sweep_without_a_traceback(
    scenario: Write, tmp_path: Path, moment: int
) -> None:
    """A terminal sends it to all processes: those that start, those that work, those that wait."""
    file = write_sweep(scenario(ticks=3), seeds=40)
    command = [Path(sys.executable).with_name("tiermem"), "sweep", file, "--out", tmp_path / "s"]
    with subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        if moment:
            folder = tmp_path / "s" / "cells"
            until("some cells have begun", lambda: len(list(folder.glob("*"))) >= 3 * moment - 2)
        else:
            until("a worker starts", lambda: len(_children(process.pid)) > 0)
        os.killpg(process.pid, signal.SIGINT)
        _, said = ended(process)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "stopped; " in said


def _children(process: int) -> list[str]:
    listed = ["ps", "-o", "pid=", "--ppid", str(process)]
    return subprocess.run(listed, capture_output=True, text=True, check=False).stdout.split()


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")  # a process that ended may wait for its parent to look
    return not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_without_ray_a_sweep_says_what_to_install_and_makes_nothing(
    tiermem: Command, scenario: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    file = write_sweep(scenario(ticks=3), seeds=1)
    done = tiermem("sweep", file, "--out", "s", "--engine", "ray")
    assert done.is_one_error(
        2, "the engine ray needs the package ray", "pip install 'tiermem[ray]'"
    )
    assert not Path("s").exists()
    refused = tiermem("sweep", file, "--out", "s", "--address", "auto")
    assert refused.is_one_error(2, "the engine local has no address", "--engine ray")


def test_a_ray_that_does_not_start_is_tried_once_more_and_no_address_is_advised(
    tiermem: Command, scenario: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = "RAY_gcs_server_port_wait_time_s"
    tries: list[str | None] = []

    def init(**options: object) -> None:
        tries.append(os.environ.get(limit))
        raise Exception("The current node timed out during startup.")

    stand_in = SimpleNamespace(init=init, is_initialized=lambda: False)
    monkeypatch.setattr(ray_carrier, "find_spec", lambda name: name)  # as if it were installed
    monkeypatch.setattr(ray_carrier, "_ray", lambda: stand_in)
    done = tiermem("run", scenario(ticks=3), "--out", "s", "--engine", "ray")
    assert done.code == 1
    assert "Ray does not start on this machine: The current node timed out" in done.err
    assert "--engine local" in done.err
    assert "--address" not in done.err
    assert tries == [None, "120"]
    assert limit not in os.environ


def test_an_address_at_which_no_ray_answers_is_an_error_and_makes_nothing(
    tiermem: Command, scenario: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_carrier, "find_spec", lambda name: name)  # as if it were installed
    own = scenario(ticks=3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"127.0.0.1:{server.getsockname()[1]}"
    for name, file in (("run", own), ("sweep", write_sweep(own, seeds=1))):
        on_ray = (name, file, "--out", "s", "--engine", "ray", "--address")
        done = tiermem(*on_ray, closed)
        assert done.is_one_error(1, f"Ray can't be reached at {closed}", "ray start --head")
        for unfit in ("nowhere", "127.0.0.1:many", ":6379", "127.0.0.1:"):
            assert tiermem(*on_ray, unfit).is_one_error(2, repr(unfit), "10.0.0.7:6379")
        with monkeypatch.context() as elsewhere:
            elsewhere.setenv("RAY_ADDRESS", closed)
            assert tiermem(*on_ray, "auto").is_one_error(1, f"Ray can't be reached at {closed}")
        assert not Path("s").exists()


@pytest.mark.parametrize("flag", ["-q", "--json"])
def test_the_reason_of_a_failure_is_said_also_by_a_quiet_sweep(
    tiermem: Command, scenario: Write, flag: str
) -> None:
    variants = {"fine": {}, "broken": {"simulation.world_options.fail_at": 2}}
    file = write_sweep(scenario(ticks=3), variants=variants, seeds=1)
    done = tiermem("sweep", file, "--out", "s", flag)
    assert done.code == 1
    why, count = done.err.splitlines()
    assert why.startswith("broken_seed=1: ")
    assert "the sky fell" in why
    assert count.startswith("1 of 2 runs failed")
