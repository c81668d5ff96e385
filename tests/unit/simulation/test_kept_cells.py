"""A sweep goes on with finished runs only if it would run the same ones now."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents.errors import RunError
from agents.simulation.runs.placement import LOCAL
from agents.simulation.sweeps.run_sweep import run_all
from agents.simulation.sweeps.sweep import read_sweep

WORLD = """
from tiermem.simulation import Observation
from helping import VALUE

class World:
    def __init__(self, size=1):
        self._size = size

    def setup(self, rng, agent_ids):
        pass

    def observe(self, agent_id):
        return Observation("a street")

    def apply(self, agent_id, action):
        return None

    def end_tick(self):
        pass

    def metrics(self):
        return {"size": self._size + VALUE}

    def get_state(self):
        return {}

    def set_state(self, state):
        pass

    def rules(self):
        return Rests()

class Rests:
    def decide(self, observation, memories, rng):
        return []
"""
SWEEP: dict[str, Any] = {
    "scenario": "scenario.yaml",
    "variants": {
        "one": {},
        "two": {"simulation.world": "second:World", "simulation.world_options": {"size": 2}},
    },
    "seeds": 2,
}


def go(place: Path, *, force: bool = False, keep_runs: bool = False, **values: Any) -> list[str]:
    """Run the sweep in a folder, and say which cells ran anew."""
    (place / "sweep.yaml").write_text(yaml.safe_dump({**SWEEP, **values}, sort_keys=False))
    plan, folder = read_sweep(place / "sweep.yaml"), place / "swept"
    before = stamps(folder)
    for cell, result in run_all(plan, folder, LOCAL, force=force, keep_runs=keep_runs):
        assert not isinstance(result, str), (cell.name, result)
    after = stamps(folder)
    return [name for name in after if after[name] != before.get(name)]


def stamps(folder: Path) -> dict[str, int]:
    found = sorted(folder.glob("cells/*/summary.json"))
    return {each.parent.name: each.stat().st_mtime_ns for each in found}


@pytest.fixture(scope="module")
def _swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("kept")
    (place / "helping.py").write_text("VALUE = 0\n")
    (place / "first.py").write_text(WORLD)
    (place / "second.py").write_text(WORLD.replace("helping", "helping_second"))
    (place / "helping_second.py").write_text("VALUE = 0\n")
    scenario = {"simulation": {"world": "first:World", "agents": 2, "ticks": 2}}
    (place / "scenario.yaml").write_text(yaml.safe_dump(scenario))
    assert len(go(place)) == 4
    return place


@pytest.fixture
def swept(_swept: Path, tmp_path: Path) -> Path:
    """A folder with a finished sweep over two worlds of the user's own."""
    shutil.copytree(_swept, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.parametrize("name", ["second.py", "helping_second.py"])
def test_the_code_of_a_variant_that_has_changed_is_refused(swept: Path, name: str) -> None:
    (swept / name).write_text((swept / name).read_text() + "# changed\n")
    before = stamps(swept / "swept")
    with pytest.raises(RunError, match=f"two_seed=1 ran with other code .* now: {name}") as refused:
        go(swept)
    assert "--force" in refused.value.hint
    assert stamps(swept / "swept") == before
    assert len(go(swept, force=True)) == 4
    assert go(swept) == []


def test_a_module_that_is_no_longer_imported_is_other_code(swept: Path) -> None:
    (swept / "swept" / "cells" / "two_seed=2" / "code" / "gone.py").write_text("")
    with pytest.raises(RunError, match=r"two_seed=2 ran with other code .* now: gone\.py"):
        go(swept)


def _other_size(config: dict[str, Any]) -> None:
    config["simulation"]["world_options"]["size"] = 5


def _no_size(config: dict[str, Any]) -> None:
    del config["simulation"]["world_options"]["size"]


def _other_seed(config: dict[str, Any]) -> None:
    config["seed"] = 9


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_other_size, "simulation.world_options.size was 5 and is 2"),
        (_no_size, "simulation.world_options.size was not set and is 2"),
        (_other_seed, "seed was 9 and is 2"),
    ],
)
def test_a_run_that_had_other_settings_is_refused(
    swept: Path, change: Callable[[dict[str, Any]], None], said: str
) -> None:
    """Another version of TierMem may make other settings of the same plan."""
    file = swept / "swept" / "cells" / "two_seed=2" / "config.yaml"
    config = yaml.safe_load(file.read_text())
    change(config)
    file.write_text(yaml.safe_dump(config, sort_keys=False))
    before = stamps(swept / "swept")
    with pytest.raises(RunError, match=f"two_seed=2 ran with other settings .* now: {said};"):
        go(swept, seeds=3)
    assert stamps(swept / "swept") == before


def test_a_run_that_does_not_say_what_it_ran_is_refused(swept: Path) -> None:
    config = swept / "swept" / "cells" / "one_seed=2" / "config.yaml"
    config.write_text("simulation: [\n")
    with pytest.raises(RunError, match=r"one_seed=2 .* can't be read"):
        go(swept)
    config.unlink()
    with pytest.raises(RunError, match=r"one_seed=2 .* can't be read"):
        go(swept)


@pytest.mark.slow
def test_what_changes_no_result_runs_nothing_again(swept: Path) -> None:
    """Other checkpoints, and files that no world imports."""
    (swept / "unused.py").write_text("")
    assert go(swept, seeds=3) == ["one_seed=3", "two_seed=3"]
    assert len(go(swept, seeds=3, keep_runs=True)) == 6
    assert go(swept, seeds=3) == []


@pytest.mark.slow
def test_secrets_that_a_run_does_not_keep_are_no_difference(swept: Path) -> None:
    common = {"llm": {"provider": "openai", "config": {"model": "m", "api_key": "sk-1"}}}
    assert len(go(swept, set=common, force=True)) == 4
    assert go(swept, set=common) == []


def test_a_sweep_with_a_file_of_the_users_is_not_replaced(swept: Path) -> None:
    mine = swept / "swept" / "thesis.tmp"
    mine.write_text("mine")
    with pytest.raises(RunError, match=r"is not a sweep: it holds thesis\.tmp"):
        go(swept, force=True)
    assert mine.read_text() == "mine"
