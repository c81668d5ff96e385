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
from agents.config.load import EARLIER
from agents.simulation.runs.run import Run
from agents.storage.checkpoint import file as checkpoint

SHA256 = {
    1: "2983f42d6769356e2b09ce0e8f65df5d36718fbee6f02087d2052d8f650c85ca",
    2: "0b9de636fcd383ec17240bd69c8899aba610ca326fea255f5b3b72938d41c7cb",
    3: "1cf93e6cd5378669a3f0ede1a37d56a3c6cae2d0b1802d3d75e31a630efab75a",
}


def expected_of(number: int) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(
        (golden.FOLDER / f"checkpoint-{number}.json").read_text(encoding="utf-8")
    )
    return result


@pytest.fixture(params=[1, 2, 3])
def number(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def path(tmp_path: Path, number: int) -> Path:
    place = tmp_path / f"checkpoint-{number}.tmck"
    packed = golden.FOLDER / f"checkpoint-{number}.tmck.gz"
    assert packed.stat().st_size < 200_000
    place.write_bytes(gzip.decompress(packed.read_bytes()))
    return place


def test_the_golden_file_is_the_one_that_was_made_first(path: Path, number: int) -> None:
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SHA256[number]


def test_it_is_whole_and_says_what_made_it(path: Path, number: int) -> None:
    found = checkpoint.read(path)
    assert found.tick == golden.TICK
    assert found.versions["tiermem"] == "0.1.0"
    assert found.versions["format"] == str(number)
    assert found.bank["seed"] == 2024
    assert found.extra["config"]["simulation"]["world"] == "golden_world:Coins"


def test_it_gives_the_state_that_was_recorded(path: Path, number: int) -> None:
    with MemoryBank.restore(path, path.parent / "bank", storage={"sync": "manual"}) as bank:
        found = golden.as_json(golden.state(bank))
    expected = expected_of(number)["after"]
    assert found.keys() == expected.keys()
    if number == 1:  # it knew less of a memory, and the hash over the state was another
        del expected["state_hash"]
        for memory in found["memories"]:
            kind, tags, temperature, retention, expires, *use = memory[7:]
            assert (kind, tags, retention, expires, use) == ("fact", [], 0, None, [0, None, 0.5])
            assert temperature == (0 if memory[3] == 0 else 1)
            del memory[7:]
    for name, value in expected.items():
        assert found[name] == value, name


def test_a_run_goes_on_from_it_as_was_recorded(path: Path, number: int) -> None:
    preset = EARLIER if number < 3 else None  # as settings are read that such a version wrote
    settings = golden.load_settings(golden.FOLDER / "scenario.yaml", preset=preset)
    folder = path.parent / "run"
    Run.create(folder, settings, scenario=golden.FOLDER).close()
    shutil.rmtree(folder / "bank")
    (folder / "checkpoints").mkdir()
    shutil.copy(path, folder / "checkpoints" / f"tick-{golden.TICK:06}.tmck")
    with Run.open(folder) as run:
        assert run.tick == golden.TICK
        later = golden.ending(run)
        assert run.tick == golden.LAST
    if number > 1:  # what was recorded of the first are hashes of another definition
        assert later == expected_of(number)["later"]


def test_the_same_run_today_comes_to_the_same_state(tmp_path: Path) -> None:
    _, made = golden.make(tmp_path / "run")
    assert golden.as_json(made) == expected_of(3)
