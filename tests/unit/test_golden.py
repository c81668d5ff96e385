"""A checkpoint that an earlier version wrote keeps loading, and its run goes on as it would have.

If one of these fails, then files that users have are read differently now. Don't make the golden
file again: read the old format too, or give the new one a number of its own.
"""

import gzip
import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "golden"))

import make as golden

from agents import MemoryBank
from agents.simulation.run import Run
from agents.storage import checkpoint

SHA256 = "2983f42d6769356e2b09ce0e8f65df5d36718fbee6f02087d2052d8f650c85ca"


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    result: dict[str, Any] = json.loads(golden.EXPECTED.read_text())
    return result


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "checkpoint-1.tmck"
    place.write_bytes(gzip.decompress(golden.CHECKPOINT.read_bytes()))
    return place


def as_json(value: object) -> Any:
    return json.loads(json.dumps(value))


def test_the_golden_file_is_the_one_that_was_made_first(path: Path) -> None:
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SHA256
    assert golden.CHECKPOINT.stat().st_size < 200_000


def test_it_is_whole_and_says_what_made_it(path: Path) -> None:
    found = checkpoint.read(path)
    assert found.tick == golden.TICK
    assert found.versions["tiermem"] == "0.1.0"
    assert found.versions["format"] == "1"
    assert found.bank["seed"] == 2024
    assert found.extra["config"]["simulation"]["world"] == "golden_world:Coins"


def test_it_gives_the_state_that_was_recorded(path: Path, expected: dict[str, Any]) -> None:
    with MemoryBank.restore(path, path.parent / "bank", storage={"sync": "manual"}) as bank:
        found = as_json(golden.state(bank))
    for name, value in expected["after"].items():
        assert found[name] == value, name
    assert found.keys() == expected["after"].keys()


def test_a_run_goes_on_from_it_as_was_recorded(path: Path, expected: dict[str, Any]) -> None:
    settings = golden.load_settings(golden.FOLDER / "scenario.yaml")
    folder = path.parent / "run"
    Run.create(folder, settings, scenario=golden.FOLDER).close()
    shutil.rmtree(folder / "bank")
    (folder / "checkpoints").mkdir()
    shutil.copy(path, folder / "checkpoints" / f"tick-{golden.TICK:06}.tmck")
    with Run.open(folder) as run:
        assert run.tick == golden.TICK
        assert golden.ending(run) == expected["later"]


def test_the_same_run_today_comes_to_the_same_state(
    tmp_path: Path, expected: dict[str, Any]
) -> None:
    _, made = golden.make(tmp_path / "run")
    assert as_json(made) == expected
