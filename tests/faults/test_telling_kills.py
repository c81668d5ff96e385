"""Killed in ticks in which agents tell or reflect, a run becomes the run it would have been."""

import os
import random
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

import warm_children
from agents import MemoryBank
from agents.config.load import load_settings
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.runs.replay import verify_files
from agents.simulation.runs.run import Run
from waiting import exit_code

pytestmark = pytest.mark.slow

OUTPUTS = ("metrics.parquet", "ticks.parquet", "decisions.parquet", "summary.json", "config.yaml")
RUMOR = {
    "simulation": {"world": "telling_worlds:MortalRumor", "agents": 8, "ticks": 12},
    "retrieval": {"trust": True},
}
PRESET = Path(__file__).parents[2] / "config" / "presets" / "generative-agents.yaml"
CLASSIC: dict[str, Any] = yaml.safe_load(PRESET.read_text())
REFLECTION = {
    **CLASSIC,
    "reflection": {**CLASSIC["reflection"], "threshold": 20},
    "simulation": {"world": "telling_worlds:MortalHousehold", "agents": 4, "ticks": 12},
}


def command(*arguments: object) -> int:
    """``tiermem`` in a process of its own; its exit code, or minus the signal that ended it."""
    process = warm_children.Popen(
        [warm_children.SCRIPT, *map(str, arguments), "--quiet"],
        env={**os.environ, "TOKENIZERS_PARALLELISM": "false"},
    )
    return exit_code(process)


def scenario_in(place: Path, values: dict[str, Any]) -> Path:
    """A scenario beside the code of its world, whose process dies as files in ``kills`` say."""
    place.mkdir()
    shutil.copy(Path(__file__).parents[1] / "telling_worlds.py", place)
    (place / "kills").mkdir()
    own = {**values["simulation"], "world_options": {"kills": str(place / "kills")}}
    more = {"seed": 4, "storage": {"sync": "manual"}, "checkpoint": {"every": 5, "keep": 2}}
    path = place / "scenario.yaml"
    path.write_text(yaml.safe_dump({**values, **more, "simulation": own}))
    return path


def came_to(folder: Path) -> dict[str, Any]:
    with MemoryBank.at(folder / "bank") as bank:
        history = ticks_of(bank).hash(), bank.state_hash(), list(ticks_of(bank).records())
    assert list(verify_files(folder)) == []
    return {"history": history, **{name: (folder / name).read_bytes() for name in OUTPUTS}}


def not_killed(path: Path) -> dict[str, Any]:
    """What the run of this process came to."""
    folder, settings = path.parent / "whole", load_settings(path)
    with Run.create(folder, settings, scenario=path) as run:
        list(run.advance(settings.simulation.ticks))
        run.finish(report=False)
    return came_to(folder)


def killed_at(path: Path, moments: list[str]) -> dict[str, Any]:
    """What a run came to that was killed at each of the moments and then resumed."""
    folder = path.parent / "killed"
    for number, moment in enumerate(moments):
        (path.parent / "kills" / moment).touch()
        begin = ("run", path, "--out", folder) if number == 0 else ("resume", folder)
        assert command(*begin) == -signal.SIGKILL
        assert list((path.parent / "kills").iterdir()) == []
    assert command("resume", folder) == 0
    return came_to(folder)


@pytest.mark.long_after(1)
@pytest.mark.parametrize(
    ("values", "moments"),
    [
        (RUMOR, ["told-5"]),
        (RUMOR, ["speaking-3", "told-3", "keeping-3", "told-4", "speaking-9", "keeping-12"]),
        (REFLECTION, ["reflected-7"]),
        (REFLECTION, [f"{name}-{tick}" for tick in (6, 7, 9) for name in ("reflected", "keeping")]),
    ],
)  # fmt: skip
def test_killed_in_the_middle_of_a_tick_it_is_the_run_that_nobody_killed(
    tmp_path: Path, values: dict[str, Any], moments: list[str]
) -> None:
    path = scenario_in(tmp_path / "here", values)
    assert killed_at(path, moments) == not_killed(path)
    with MemoryBank.at(path.parent / "whole" / "bank") as bank:
        memories = [each for name in bank.agents() for each in bank.agent(name).all()]
    if values is RUMOR:
        assert any(each.source is not None for each in memories)
    else:
        assert any(each.kind == "insight" for each in memories)


@pytest.mark.long_after(1)
@pytest.mark.parametrize("values", [RUMOR, REFLECTION])
def test_killed_at_random_moments_it_is_the_run_that_nobody_killed(
    tmp_path: Path, values: dict[str, Any]
) -> None:
    path = scenario_in(tmp_path / "here", values)
    names = ("speaking", "told", "keeping") if values is RUMOR else ("reflected", "keeping")
    rng = random.Random(str(names))
    moments = [f"{rng.choice(names)}-{tick}" for tick in sorted(rng.choices(range(1, 13), k=12))]
    assert killed_at(path, moments) == not_killed(path)
