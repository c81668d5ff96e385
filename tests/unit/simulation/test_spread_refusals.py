"""A spread run refuses a tick in which the world gives what can't become a memory."""

from pathlib import Path

import pytest

from agents import SimulationError
from agents.config.load import load_settings
from agents.config.settings import Settings
from agents.simulation.runs.record import last_tick
from agents.simulation.runs.run import Run
from agents.simulation.workers.log import read_log
from spread_runs import HERE, engine, results, run_to_the_end, scenario

CODE = Path(__file__).parents[2]


def faulty(fault: str, file: Path) -> Settings:
    plain = scenario(
        f"{HERE}:Faulty", policy=f"{HERE}:Walker", ticks=4,
        world_options={"fault": fault, "file": str(file)},
    )  # fmt: skip
    return load_settings(
        plain,
        overrides={
            "memory.on_tier_full": "reject",
            "memory.max_critical": 1,
            "simulation.memories": [{"content": "a rule", "tier": "critical"}],
        },
    )


@pytest.mark.long_after(2)
@pytest.mark.slow_after(1)
@pytest.mark.parametrize("fault", ["tier", "metadata", "full"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_tick_that_can_not_be_remembered_did_not_happen_and_the_mended_run_goes_on(
    tmp_path: Path, fault: str, workers: int
) -> None:
    file, folder = tmp_path / "broken", tmp_path / "run"
    settings = faulty(fault, file)
    run_to_the_end(tmp_path / "whole", settings, workers=0)
    file.touch()
    with Run.create(folder, settings, scenario=CODE, engine=engine(workers)) as run:
        with pytest.raises(SimulationError, match="the world gave what can't become a memory"):
            list(run.advance(4))
        assert run.tick == 2
    if workers:
        assert [each.tick for each in read_log(folder / "shards" / "ticks.log")] == [1, 2]
    assert last_tick(folder) == 2
    file.unlink()
    with Run.open(folder, engine=engine(workers)) as run:
        list(run.advance(4))
        run.finish(report=False)
    assert results(folder) == results(tmp_path / "whole")
