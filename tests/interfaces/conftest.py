"""What tests of commands on runs share: the command in this process, scenarios, a finished run."""

import contextlib
import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from agents.interfaces.cli.app import main
from agents.simulation.runs import outputs

WORLDS = Path(__file__).with_name("worlds_for_tests.py")


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def is_one_error(self, code: int, *parts: str) -> bool:
        """It failed with three lines that hold all ``parts``, and without a traceback."""
        assert "Traceback" not in self.err
        assert self.code == code, self
        assert self.out == ""
        lines = self.err.splitlines()
        assert len(lines) == 3, self.err
        for line, label in zip(lines, ("tiermem: ", "    why: ", "     do: "), strict=True):
            assert line.startswith(label), self.err
            assert line.removeprefix(label).strip(), self.err
        for part in parts:
            assert part in self.err
        return True


Command = Callable[..., Done]
Write = Callable[..., Path]


def run_command(*arguments: object) -> Done:
    """``tiermem`` with these arguments, in this process: to start Python anew takes a second."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["tiermem", *map(str, arguments)]
    code: object = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = before
    assert code is None or isinstance(code, int)
    return Done(code or 0, out.getvalue(), err.getvalue())


def write_scenario(folder: Path, name: str = "stones", **simulation: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(WORLDS, folder)
    values = {
        "seed": 3,
        "storage": {"sync": "manual"},
        "checkpoint": {"every": 4, "keep": 3},
        "simulation": {
            "world": "worlds_for_tests:Stones",
            "agents": ["alice", "bob"],
            "ticks": 12,
            **simulation,
        },
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.fixture
def drawn() -> None:
    """Reports are whole in this test, plots and all."""


@pytest.fixture(autouse=True)
def _no_plots(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """To draw a report takes longer than the runs here, and has tests of its own."""
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(outputs, "render_run", lambda results: f"<html>{results.name}</html>")


@pytest.fixture(scope="session")
def command() -> Command:
    return run_command


@pytest.fixture(scope="session")
def scenario_in() -> Write:
    return write_scenario


@pytest.fixture
def tiermem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return run_command


@pytest.fixture
def scenario(tmp_path: Path) -> Write:
    """Writes a scenario of the tiny world, beside a copy of its code."""

    def write(name: str = "stones", **simulation: Any) -> Path:
        return write_scenario(tmp_path / "mine", name, **simulation)

    return write


@pytest.fixture(scope="session")
def _whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    done = run_command("run", write_scenario(folder / "mine"), "--out", folder / "run", "-q")
    assert done == Done(0, "", "")
    return folder


@pytest.fixture
def whole(_whole_run: Path, tmp_path: Path) -> Path:
    """A finished run of 12 ticks, with checkpoints after 4, 8 and 12."""
    shutil.copytree(_whole_run, tmp_path, dirs_exist_ok=True)
    return tmp_path / "run"
