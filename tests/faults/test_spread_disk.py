"""A disk that is full under a cell: a resumed run becomes the run that it would have been."""

import resource
from pathlib import Path

import pytest

from agents import MemoryBank, RunError, SimulationError
from agents.simulation.runs.placement import Placement
from agents.simulation.runs.record import last_tick
from agents.simulation.runs.run import Run
from agents.simulation.workers.log import read_log
from spread_runs import engine, results, run_to_the_end, scenario

pytestmark = pytest.mark.slow

HERE = Path(__file__).parents[1]


def fill_the_disk(run: Run, worker: int) -> None:
    """Let no file of a worker grow beyond a page: writing fails as on a full disk."""
    assert run.driver is not None
    pid = run.driver._links[worker].process.pid
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, 4096))


@pytest.mark.long_after(2)
@pytest.mark.parametrize(("workers", "full"), [(2, [1]), (3, [0, 2]), (1, [0])])
def test_a_tick_whose_cells_can_not_be_written_is_done_once_there_is_room(
    tmp_path: Path, workers: int, full: list[int]
) -> None:
    run_to_the_end(tmp_path / "local", scenario(), workers=0)
    folder = tmp_path / "run"
    with Run.create(
        folder, scenario(), scenario=HERE, engine=Placement("processes", workers)
    ) as run:
        list(run.advance(2))
        for worker in full:
            fill_the_disk(run, worker)
        with pytest.raises(RunError, match=r"a cell can't record tick 3.*tiermem resume"):
            list(run.advance(3))
        with pytest.raises(SimulationError, match="failed"):
            list(run.advance(4))
    logged = [entry.tick for entry in read_log(folder / "shards" / "ticks.log")]
    assert logged == [1, 2, 3]
    for cell in (folder / "shards").glob("cell-*"):
        with MemoryBank.at(cell) as bank:
            assert bank.tick in (2, 3)
    assert last_tick(folder) == 3
    with Run.open(folder, engine=engine(2)) as run:
        assert run.tick == 3
        list(run.advance(6))
        run.finish(report=False)
    assert results(folder) == results(tmp_path / "local")
