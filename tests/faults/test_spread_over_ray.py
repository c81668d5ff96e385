"""Ray's actors as workers: the same bytes, and no file outside Ray's own folder."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("ray")

from agents import MemoryBank, RunError
from agents.config.load import load_settings
from agents.simulation.runs.placement import LOCAL, Placement
from agents.simulation.runs.run import Run
from spread_runs import results, run_to_the_end, scenario

pytestmark = pytest.mark.slow

HERE = Path(__file__).parents[1]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder in which Ray would leave its token."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PYTHONPATH", str(HERE))  # Ray's processes find the world there
    return folder


def test_a_run_is_the_same_on_ray_and_goes_on_after_an_actor_was_lost(
    tmp_path: Path, home: Path
) -> None:
    settings = scenario(ticks=4)
    run_to_the_end(tmp_path / "local", settings, workers=0)
    folder = tmp_path / "run"
    with Run.create(folder, settings, scenario=HERE, engine=Placement("ray", 2)) as run:
        list(run.advance(2))
        assert run.driver is not None
        run.driver._links[0].end()
        with pytest.raises(RunError, match="worker 1 of 2 was lost"):
            list(run.advance(3))
    with Run.open(folder, engine=Placement("ray", 1)) as run:
        list(run.advance(4))
        run.finish(report=False)
    assert results(folder) == results(tmp_path / "local")
    assert not (home / ".ray").exists()
    assert "RAY_AUTH_TOKEN" not in os.environ


def test_a_run_goes_on_where_ray_starts_at_the_second_try(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    real, failed = ray.init, []

    def init(**options: object) -> object:
        if not failed:
            failed.append(options)
            raise Exception("The current node timed out during startup.")
        return real(**options)

    monkeypatch.setattr(ray, "init", init)
    with Run.create(
        tmp_path / "run", scenario(ticks=1), scenario=HERE, engine=Placement("ray", 1)
    ) as run:
        assert len(list(run.advance(1))) == 1
    assert failed


def raylet() -> int:
    """The process that starts Ray's workers on this machine; a child of this process."""
    listed = ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(os.getpid())]
    found = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    (own,) = [line for line in found.splitlines() if "/raylet/raylet" in line]
    return int(own.split()[0])


def test_a_run_whose_raylet_was_killed_is_the_same_run(tmp_path: Path, home: Path) -> None:
    settings = scenario(ticks=6)
    run_to_the_end(tmp_path / "local", settings, workers=0)
    folder = tmp_path / "run"
    with Run.create(folder, settings, scenario=HERE, engine=Placement("ray", 2)) as run:
        list(run.advance(2))
        os.kill(raylet(), signal.SIGKILL)
        with suppress(RunError):  # the actors go on, or end with their node
            list(run.advance(4))
    with Run.open(folder, engine=Placement("processes", 2)) as run:
        list(run.advance(6))
        run.finish(report=False)
    assert results(folder) == results(tmp_path / "local")


def test_boards_are_the_same_on_ray(tmp_path: Path, home: Path) -> None:
    simulation = {"world": "telling_worlds:OpenClubs", "agents": 6, "ticks": 4}
    settings = load_settings({"seed": 3, "storage": {"sync": "manual"}, "simulation": simulation})
    for name, engine in (("local", LOCAL), ("ray", Placement("ray", 2))):
        with Run.create(tmp_path / name, settings, scenario=HERE, engine=engine) as run:
            list(run.advance(4))
            run.finish(report=False)
    assert results(tmp_path / "ray") == results(tmp_path / "local")
    with MemoryBank.at(tmp_path / "local" / "bank") as bank:  # else it would be about nothing
        assert any(bank.group(name).all() for name in bank.groups())
