"""A run that can't go on now: it stands between two ticks, and is the same run when it goes on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.config.load import load_settings
from agents.errors import RunPaused
from agents.simulation.runs.run import Run

Command = Callable[..., Any]
Write = Callable[..., Path]

OUTPUTS = ("metrics.parquet", "ticks.parquet", "decisions.parquet", "summary.json", "report.html")
PAUSING = "worlds_for_tests:PausingPolicy"


def outputs(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in OUTPUTS}


def ready() -> None:
    Path("ready").touch()


@pytest.fixture
def expected(tiermem: Command, scenario: Write) -> dict[str, bytes]:
    """What comes out of a run that nothing kept waiting."""
    ready()
    assert tiermem("run", scenario(policy=PAUSING), "--out", "undisturbed/r", "-q").code == 0
    Path("ready").unlink()
    return outputs(Path("undisturbed/r"))


def test_a_paused_run_has_an_exit_code_of_its_own_and_says_what_to_do(
    tiermem: Command, scenario: Write, expected: dict[str, bytes]
) -> None:
    done = tiermem("run", scenario(policy=PAUSING), "--out", "r", "-q")
    assert done.is_one_error(3, "the run is paused", "the oracle is away", "tiermem resume r")
    assert not Path("r/error.txt").exists()
    again = tiermem("resume", "r", "--json", "-q")
    assert (again.code, again.json["ticks"]) == (3, 2)  # the tick under way is undone
    ready()
    assert tiermem("resume", "r", "-q").code == 0
    assert outputs(Path("r")) == expected
    assert tiermem("replay", "r", "-q").code == 0


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "processes", "ray"])
def test_python_goes_on_with_the_same_open_run(
    tmp_path: Path, scenario: Write, expected: dict[str, bytes], engine: str
) -> None:
    if engine == "ray":
        pytest.importorskip("ray")
    file = scenario(policy=PAUSING, engine=engine, workers=None if engine == "local" else 2)
    with Run.create(tmp_path / "r", load_settings(file), scenario=file.parent) as run:
        for _ in range(2):
            with pytest.raises(RunPaused, match="the oracle is away"):
                list(run.advance(12))
            assert run.tick == 2
        ready()
        list(run.advance(12))
        run.finish()
    assert outputs(tmp_path / "r") == expected
