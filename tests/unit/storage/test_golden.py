"""A checkpoint that was written once keeps loading, and its run goes on as it would have.

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

from banks import TESTS

sys.path.insert(0, str(TESTS / "golden"))

import make as golden

from agents import MemoryBank
from agents.simulation.runs.run import Run
from agents.storage import checkpoint

SHA256 = "1cf93e6cd5378669a3f0ede1a37d56a3c6cae2d0b1802d3d75e31a630efab75a"


@pytest.fixture
def expected() -> dict[str, Any]:
    result: dict[str, Any] = json.loads(golden.EXPECTED.read_text(encoding="utf-8"))
    return result


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "checkpoint.tmck"
    assert golden.CHECKPOINT.stat().st_size < 200_000
    place.write_bytes(gzip.decompress(golden.CHECKPOINT.read_bytes()))
    return place


def test_the_golden_file_is_the_one_that_was_made_first(path: Path) -> None:
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SHA256


def test_it_is_whole_and_says_what_made_it(path: Path) -> None:
    found = checkpoint.read(path)
    assert found.tick == golden.TICK
    assert found.versions["tiermem"] == "0.1.0"
    assert found.versions["format"] == "3"
    assert found.bank["seed"] == 2024
    assert found.extra["config"]["simulation"]["world"] == "golden_world:Coins"


def test_it_gives_the_state_that_was_recorded(path: Path, expected: dict[str, Any]) -> None:
    with MemoryBank.restore(path, path.parent / "bank", storage={"sync": "manual"}) as bank:
        found = golden.as_json(golden.state(bank))
    assert found.keys() == expected["after"].keys()
    for name, value in expected["after"].items():
        assert found[name] == value, name


def test_a_run_goes_on_from_it_as_was_recorded(path: Path, expected: dict[str, Any]) -> None:
    """Recorded again since: what the loop says of a refused action is no memory any more."""
    settings = golden.load_settings(golden.FOLDER / "scenario.yaml")
    folder = path.parent / "run"
    Run.create(folder, settings, scenario=golden.FOLDER).close()
    shutil.rmtree(folder / "bank")
    (folder / "checkpoints").mkdir()
    shutil.copy(path, folder / "checkpoints" / f"tick-{golden.TICK:06}.tmck")
    with Run.open(folder) as run:
        assert run.tick == golden.TICK
        later = golden.ending(run)
        assert run.tick == golden.LAST
    assert later == expected["later"]


def test_the_same_run_today_comes_to_the_same_state(
    tmp_path: Path, expected: dict[str, Any]
) -> None:
    """Today a tick's record counts cold memories, a promotion makes the most relevant, and what
    the loop says of a refused action is no memory.

    That changes what agents remember, and the hashes of the state and of the journal.
    """
    today = expected.pop("today")
    expected["after"].update(today["after"])
    expected["later"] = today["later"]
    _, made = golden.make(tmp_path / "run")
    assert golden.as_json(made) == expected
