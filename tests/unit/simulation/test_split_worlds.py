"""A world that splits: its regions act in the workers, with the bytes of one process."""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents import SimulationError
from agents.config.load import load_settings
from agents.config.settings import Settings
from agents.simulation.loop.regions import regions_of
from agents.simulation.runs.run import Run
from agents.simulation.runs.sharded import Placement
from agents.testing.scenario_laws import check_world
from spread_runs import engine, results

pytestmark = pytest.mark.slow_after(1)

PAGE = Path(__file__).parents[3] / "docs" / "architecture" / "sharding.md"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder with the world of the page."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "valleys.py").write_text(code)
    yield tmp_path / "code"
    sys.modules.pop("valleys", None)


def scenario(world: str = "Valleys", **more: Any) -> Settings:
    own = {"world": f"valleys:{world}", "policy": "valleys:Farmer", "agents": 14, "ticks": 8}
    return load_settings(
        {
            "seed": 5,
            "simulation": {**own, **more},
            "storage": {"sync": "manual"},
            "checkpoint": {"every": 4, "keep": 2},
        }
    )


def ran(folder: Path, code: Path, workers: int, settings: Settings) -> dict[str, bytes]:
    with Run.create(folder, settings, scenario=code, engine=engine(workers)) as run:
        list(run.advance(settings.simulation.ticks))
        run.finish(report=False)
    return results(folder)


@pytest.mark.long_after(2)
@pytest.mark.parametrize("workers", [2, 1, 3, 5])
def test_regions_give_the_bytes_of_one_process(tmp_path: Path, place: Path, workers: int) -> None:
    settings = scenario()
    local = ran(tmp_path / "local", place, 0, settings)
    assert ran(tmp_path / "spread", place, workers, settings) == local


@pytest.mark.slow
def test_a_split_run_goes_on_with_another_number_of_workers(tmp_path: Path, place: Path) -> None:
    settings, folder = scenario(), tmp_path / "run"
    local = ran(tmp_path / "local", place, 0, settings)
    with Run.create(folder, settings, scenario=place, engine=engine(2)) as run:
        list(run.advance(3))
    with Run.open(folder, engine=Placement("processes", 3)) as run:
        list(run.advance(8))
        run.finish(report=False)
    assert results(folder) == local


BAD = {
    "leaves something out": """
class Bad(Valleys):
    def get_region(self, name):
        return {**super().get_region(name), "grain": 9}
""",
    "one stream for all": """
class Bad(Valleys):
    def apply(self, agent_id, action):
        done = super().apply(agent_id, action)
        return Outcome(f"{done.text}, luck {self.rng.random()}")
""",
    "reads another region": """
class Bad(Valleys):
    def apply(self, agent_id, action):
        done = super().apply(agent_id, action)
        return Outcome(f"{done.text} of {sum(self.grain.values())}")
""",
}


@pytest.mark.slow
def test_the_world_of_the_page_keeps_its_promise(place: Path) -> None:
    found = check_world(scenario(ticks=6, agents=6), place)
    assert found.problems == []
    assert "regions(), each in a world of its own" in found.tried


@pytest.mark.slow
@pytest.mark.long_after(1)
@pytest.mark.parametrize("bug", list(BAD))
def test_a_world_that_breaks_its_promise_is_told(place: Path, bug: str) -> None:
    with (place / "valleys.py").open("a") as file:
        file.write(BAD[bug])
    found = check_world(scenario("Bad", ticks=6, agents=6), place)
    assert len(found.problems) == 1
    assert "with each region in a world of its own, the run is another" in found.problems[0]


class Odd:
    """A world with wrong regions."""

    def __init__(self, regions: Any) -> None:
        self._given = regions

    def regions(self) -> Any:
        return self._given


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"east": ["a", "b"], "west": ["b"]}, "has 'b' 2 times"),
        ({"east": ["a"]}, "has 'b' 0 times"),
        ({"east": ["a", "b", "zed"]}, "has 'zed' 1 times"),
        (["a", "b"], "not names with the agents of each"),
        ({"east": 3}, "not names with the agents of each"),
    ],
)
def test_regions_name_each_agent_once(given: Any, why: str) -> None:
    world: Any = Odd(given)
    agents: Sequence[str] = ["a", "b"]
    with pytest.raises(SimulationError, match=why):
        regions_of(world, agents, 3)
