"""Groups of a run that is spread over workers: every cell reads the same boards."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank
from agents.config.load import load_settings
from agents.simulation.runs.run import Run
from agents.simulation.workers.cells import cell_folder
from spread_runs import engine, results

pytestmark = pytest.mark.slow
CODE = Path(__file__).parents[2]
TICKS = 8


def scenario(world: str = "OpenClubs", **more: Any) -> Any:
    return load_settings(
        {
            "seed": 3,
            "simulation": {"world": f"telling_worlds:{world}", "agents": 6, "ticks": TICKS},
            "storage": {"sync": "manual"},
            "checkpoint": {"every": 3},
            "retrieval": {"trust": True},
            **more,
        }
    )


def begun(folder: Path, settings: Any, workers: int) -> Run:
    return Run.create(folder, settings, scenario=CODE, engine=engine(workers))


def ended(run: Run) -> list[list[tuple[str, Any]]]:
    with run:
        records = [[*each.items()] for each in run.advance(TICKS)]
        run.finish(report=False)
    return records


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The run in one process, and its records."""
    folder = tmp_path_factory.mktemp("local") / "run"
    return folder, ended(begun(folder, scenario(), 0))


def test_boards_are_the_same_on_workers(tmp_path: Path, local: tuple[Path, Any]) -> None:
    folder, records = local
    with MemoryBank.at(folder / "bank") as bank:  # else the comparison would be about nothing
        assert bank.groups() == ["club_0", "club_1", "league"]
        assert all(bank.group(name).all() for name in bank.groups())
        assert any(each.access_count for each in bank.group("club_0").all())
    assert ended(begun(tmp_path / "run", scenario(), 2)) == records
    assert results(tmp_path / "run") == results(folder)


def test_a_run_with_groups_goes_on_with_other_workers_and_lost_cells(
    tmp_path: Path, local: tuple[Path, Any]
) -> None:
    folder, records = local
    with begun(tmp_path / "run", scenario(), 3) as run:
        list(run.advance(3))
        old = tmp_path / "old"
        shutil.copytree(cell_folder(run.folder / "shards", 2), old)
        list(run.advance(5))
    lagging = cell_folder(run.folder / "shards", 2)
    shutil.rmtree(lagging)
    old.rename(lagging)  # it does two ticks again, from the log
    with Run.open(run.folder, engine=engine(1)) as run:
        again = [[*each.items()] for each in run.advance(6)]
    shutil.rmtree(cell_folder(run.folder / "shards", 0))  # all cells are made anew
    again += ended(Run.open(run.folder, engine=engine(2)))
    assert again == records[5:]
    assert results(run.folder) == results(folder)


def test_boards_that_fade_are_the_same(tmp_path: Path) -> None:
    settings = scenario(
        "ThinkingClubs",
        retrieval={"mode": "vector", "score": "generative", "trust": True},
        reflection={"enabled": True, "threshold": 9},
        decay={"enabled": True, "half_life": {"normal": 1, "important": 2}},
        temperature={"compact_every": 2},
    )
    local, spread = (ended(begun(tmp_path / str(n), settings, n)) for n in (0, 2))
    assert spread == local
    assert results(tmp_path / "2") == results(tmp_path / "0")
