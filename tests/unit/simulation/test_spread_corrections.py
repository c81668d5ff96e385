"""Corrections in a run that is spread over workers: they reach what they reach in one process."""

from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank
from agents.config.load import load_settings
from agents.simulation.runs.run import Run
from spread_runs import engine, results

CODE = Path(__file__).parents[2]
AGENTS, TICKS = 6, 6


def ended(folder: Path, workers: int) -> list[Any]:
    settings = load_settings(
        {
            "seed": 3,
            "simulation": {"world": "telling_worlds:Market", "agents": AGENTS, "ticks": TICKS},
            "storage": {"sync": "manual"},
        }
    )
    with Run.create(folder, settings, scenario=CODE, engine=engine(workers)) as run:
        records = [[*each.items()] for each in run.advance(TICKS)]
        run.finish(report=False)
    return records


@pytest.mark.slow
def test_a_second_correction_is_the_same_on_workers(tmp_path: Path) -> None:
    records = ended(tmp_path / "local", 0)
    with MemoryBank.at(tmp_path / "local" / "bank") as bank:
        assert len(bank.agents()) == AGENTS
        for name in bank.agents():
            texts = [each.content for each in bank.agent(name).all()]
            (now,) = [each for each in texts if "the well" in each]
            assert now.startswith("the well is clean")
    assert ended(tmp_path / "spread", 2) == records
    assert results(tmp_path / "spread") == results(tmp_path / "local")
