"""What tests of commands on runs share: the command in this process, scenarios, a finished run."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import Command, Done, Write, run_command, write_scenario


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
