"""Sweeps over ranges: which settings a metric depends on, and what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from agents.errors import TierMemError
from agents.simulation.sweeps.drawn import Drawn
from agents.simulation.sweeps.sensitivity import sobol, write_sensitivity
from agents.simulation.sweeps.sweep import Sweep, read_sweep

LIARS, HERALD = "simulation.world_options.liars", "simulation.world_options.corrections"


def plan(folder: Path, **values: Any) -> Sweep:
    simulation = {"world": "rumor", "agents": 8, "ticks": 3}
    (folder / "own.yaml").write_text(yaml.safe_dump({"simulation": simulation}))
    ranges = {LIARS: [0, 4], HERALD: [0, 6]}
    given = {"scenario": "own.yaml", "ranges": ranges, "points": 64, **values}
    (folder / "sweep.yaml").write_text(yaml.safe_dump(given, sort_keys=False))
    return read_sweep(folder / "sweep.yaml")


def ran(sweep: Sweep, value: Callable[[Any], float | None]) -> dict[str, Any]:
    return {
        cell.name: {"state_hash": cell.name, "metrics": {"accuracy": value(cell), "luck": 3.0}}
        for cell in sweep.runs()
    }


def test_the_indices_of_a_known_function_are_found() -> None:
    drawn = Drawn({"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)}, 1024, is_mixed=True)
    a, b, _ = np.array(drawn.values).T
    found = sobol(2 * a + b + 3 * (a - 0.5) * (b - 0.5), drawn)
    variances = np.array([4 / 12, 1 / 12, 9 / 144])  # of a, of b, of both together
    alone = [*(variances[:2] / variances.sum()), 0.0]
    both = [*((variances[:2] + variances[2]) / variances.sum()), 0.0]
    assert [row["first"] for row in found] == pytest.approx(alone, abs=0.1)
    assert [row["total"] for row in found] == pytest.approx(both, abs=0.1)
    for row, first, total in zip(found[:2], alone, both, strict=False):
        assert row["first_low"] < first < row["first_high"]
        assert row["total_low"] < total < row["total_high"]
    assert (found[2]["total_low"], found[2]["total_high"]) == (0, 0)


def test_a_metric_depends_on_what_moves_it_and_others_do_not_vary(tmp_path: Path) -> None:
    sweep = plan(tmp_path, seeds=3)
    assert len(sweep.runs()) == 64 * (2 + 2) * 3
    done = ran(sweep, lambda cell: float(cell.point[0]) + 0.1 * (cell.seed - 2))
    found = write_sensitivity(sweep, tmp_path, done)
    liars, herald = found.groups["accuracy", "scenario"]
    assert liars["first_high"] >= liars["total"] - 1e-9 > 0.8
    assert herald["total"] == 0
    assert liars["chance"] == pytest.approx(0.01 / 3 / 2, rel=0.3)
    assert {row["why"] for row in found.groups["luck", "scenario"]} == {"nothing varies"}
    report = (tmp_path / "report.html").read_text()
    assert "nothing varies" in report
    assert "nan" not in report
    rows = pq.read_table(tmp_path / "indices.parquet").to_pylist()
    assert [row["setting"] for row in rows] == [LIARS, HERALD, LIARS, HERALD]
    assert (tmp_path / "indices-1.svg").exists()
    assert not (tmp_path / "indices-2.svg").exists()


def test_runs_that_are_missing_leave_no_indices(tmp_path: Path) -> None:
    sweep = plan(tmp_path)
    done = ran(sweep, lambda cell: None if cell.point[0] == 4 else float(cell.point[0]))
    gone = next(iter(done))
    del done[gone]
    found = write_sensitivity(sweep, tmp_path, done)
    why = found.groups["accuracy", "scenario"][0]["why"]
    assert "of 256 runs have no number" in why
    assert found.missing == 1
    assert why in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"grid": {"memory.max_pinned": [1]}}, "a sweep over ranges has no grid"),
        ({"baseline": "flat"}, "a sweep over ranges has no baseline"),
        ({"registration": {"looks": 1}}, "a sweep over ranges has no registration"),
        ({"ranges": {LIARS: [4, 0]}}, "upside down"),
        ({"points": 63}, "points must be a power of two"),
        ({"points": 4}, "points must be a power of two"),
        ({"points": True}, "points must be a power of two"),
        ({"ranges": {LIARS: [0, 7]}}, "liars is 7, of 8 agents"),
        ({"ranges": {"accuracy": [0, 7]}}, "accuracy"),
        (
            {"points": 65536, "seeds": 100_000},
            "are 26,214,400,000 runs, and 1,000,000 are the most",
        ),
    ],
)
def test_a_wrong_sweep_over_ranges_is_one_clear_error(
    tmp_path: Path, values: dict[str, Any], said: str
) -> None:
    with pytest.raises(TierMemError) as error:
        plan(tmp_path, **values)
    assert said in str(error.value)


def test_points_without_ranges_are_refused(tmp_path: Path) -> None:
    plan(tmp_path)
    (tmp_path / "sweep.yaml").write_text("scenario: own.yaml\npoints: 64\n")
    with pytest.raises(TierMemError, match="no ranges to draw points from"):
        read_sweep(tmp_path / "sweep.yaml")
