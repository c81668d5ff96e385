"""How many seeds a sweep needs before its first run: by its own test, comparisons and looks."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from agents.errors import TierMemError
from agents.simulation.runs import outputs
from agents.simulation.statistics import differences, power, student_test
from agents.simulation.sweeps.planning import plan_sweep
from agents.simulation.sweeps.sweep import Sweep, read_sweep


def planned(folder: Path, **values: Any) -> Sweep:
    simulation = {"world": "rumor", "agents": 8, "ticks": 3}
    (folder / "own.yaml").write_text(yaml.safe_dump({"simulation": simulation}))
    given = {
        "scenario": "own.yaml",
        "variants": {"flat": {"simulation.policy_options": {"tiers": False}}, "tiers": {}},
        "seeds": 5,
        "metrics": ["accuracy"],
        **values,
    }
    (folder / "sweep.yaml").write_text(yaml.safe_dump(given, sort_keys=False))
    return read_sweep(folder / "sweep.yaml")


def swept(folder: Path, gaps: list[float], metric: str = "accuracy") -> list[dict[str, Any]]:
    """The results of an earlier sweep, with these differences between runs of a seed."""
    rows = [
        {"cell": name, "variant": name, "seed": seed, "state_hash": "", metric: value}
        for seed, gap in enumerate(gaps)
        for name, value in (("flat", seed % 3 + 0.0), ("tiers", seed % 3 + gap))
    ]
    folder.mkdir(exist_ok=True)
    (folder / "results.parquet").write_bytes(outputs.table(rows))
    return rows


@pytest.mark.parametrize(("looks", "variants"), [(1, 1), (2, 3)])
def test_the_seeds_of_a_plan_show_the_difference_four_times_of_five(
    tmp_path: Path, looks: int, variants: int
) -> None:
    more = {f"v{number}": {"memory.max_pinned": number + 2} for number in range(variants)}
    sweep = planned(tmp_path, variants={"flat": {}, **more}, registration={"looks": looks})
    plan = plan_sweep(sweep, difference=0.1, spread=0.12)
    assert plan.places == variants + 1
    seeds = plan.seeds_needed
    assert seeds is not None
    rng = np.random.default_rng(1)
    shown = 0
    for _ in range(400):
        gaps = rng.normal(0.1, 0.12, seeds)
        rows = [
            {"variant": name, "seed": seed, "loss": value}
            for seed, gap in enumerate(gaps)
            for name, value in (("flat", 0.0), ("v0", gap), *((f"n{n}", 0.3 * (-1) ** seed)
                                for n in range(1, variants)))
        ]  # fmt: skip
        found = differences(rows, [], ["loss"], baseline="flat", alpha=plan.share)
        shown += next(row for row in found if row["variant"] == "v0")["p_holm"] <= 0.05
    assert 0.74 < shown / 400 < 0.88
    (row, *_) = plan.rows
    assert row["power"] == power(student_test([0.0, 1.0, 2.0])._replace(mean=0.1, deviation=0.12),
                                 5, row["level"])  # fmt: skip


def test_a_plan_like_an_earlier_sweep_needs_what_that_sweep_says(tmp_path: Path) -> None:
    gaps = [0.5, 0.1, -0.3, 0.4, 0.3, -0.2, 0.2, 0.6]
    rows = swept(tmp_path / "earlier", gaps)
    sweep = planned(tmp_path, registration={"looks": 2})
    plan = plan_sweep(sweep, like=tmp_path / "earlier")
    (said,) = differences(rows, [], ["accuracy"], baseline="flat", shapes=True, alpha=0.025)
    assert plan.rows[0]["seeds_needed"] == said["seeds_needed"] == plan.seeds_needed
    assert plan.rows[0]["difference"] == pytest.approx(0.2)
    smaller = plan_sweep(sweep, like=tmp_path / "earlier", difference=0.1)
    assert smaller.rows[0]["spread"] == pytest.approx(plan.rows[0]["spread"])
    assert smaller.seeds_needed > 3 * plan.seeds_needed  # type: ignore[operator]
    narrow = plan_sweep(sweep, like=tmp_path / "earlier", spread=0.05)
    assert narrow.seeds_needed < 6  # type: ignore[operator]


def test_skewed_differences_are_planned_for_the_test_that_will_judge_them(tmp_path: Path) -> None:
    rows = swept(tmp_path / "earlier", [0.1, 0.2, 0.1, -0.1, 0.2, 0.1, 0.1, 0.3, 9.0, 0.2])
    (said,) = differences(rows, [], ["accuracy"], baseline="flat", shapes=True, alpha=0.025)
    plan = plan_sweep(planned(tmp_path), like=tmp_path / "earlier")
    assert (plan.rows[0]["by"], plan.rows[0]["power"]) == ("median", None)
    assert plan.seeds_needed == said["seeds_needed"]


def test_a_plan_knows_how_long_the_earlier_runs_took(tmp_path: Path) -> None:
    swept(tmp_path / "earlier", [0.5, 0.1, -0.3])
    assert plan_sweep(planned(tmp_path), like=tmp_path / "earlier").seconds is None
    for number, seconds in enumerate((4, 6, 50)):
        cell = tmp_path / "earlier" / "cells" / str(number)
        cell.mkdir(parents=True)
        for name, when in (("config.yaml", 1000), ("summary.json", 1000 + seconds)):
            (cell / name).touch()
            os.utime(cell / name, (when, when))
    assert plan_sweep(planned(tmp_path), like=tmp_path / "earlier").seconds == 6


@pytest.mark.parametrize(
    ("asked", "sweep", "said"),
    [
        ({}, {}, "how large the differences are"),
        ({"difference": 0.1}, {}, "how large the differences are"),
        ({"difference": 0.0, "spread": 1.0}, {}, "--difference is 0.0"),
        ({"difference": 1.0, "spread": float("inf")}, {}, "--spread is inf"),
        ({"difference": 1.0, "spread": 1.0}, {"metrics": None}, "whose difference is it"),
        ({"difference": 1.0, "spread": 1.0}, {"variants": {"one": {}}}, "compares nothing"),
        ({"like": "nowhere"}, {}, "has no results of a sweep"),
        ({"like": "earlier"}, {"metrics": ["false_answers"]}, "has no 'false_answers'"),
        ({"like": "earlier"}, {"grid": {"memory.max_pinned": [1, 2]}}, "has no 'memory.max_pin"),
        ({"like": "earlier"}, {"variants": {"a": {}, "b": {}}}, "compares nothing that this one"),
    ],
)
def test_a_plan_without_a_ground_is_one_clear_error(
    tmp_path: Path, asked: dict[str, Any], sweep: dict[str, Any], said: str
) -> None:
    swept(tmp_path / "earlier", [0.5, 0.1, -0.3])
    values = {key: value for key, value in sweep.items() if value is not None}
    own = planned(tmp_path, **values)
    if "metrics" in sweep and sweep["metrics"] is None:
        text = (tmp_path / "sweep.yaml").read_text().replace("metrics:\n- accuracy\n", "")
        (tmp_path / "sweep.yaml").write_text(text)
        own = read_sweep(tmp_path / "sweep.yaml")
    if "like" in asked:
        asked = {**asked, "like": tmp_path / asked["like"]}
    with pytest.raises(TierMemError) as error:
        plan_sweep(own, **asked)
    assert said in str(error.value)


def test_equal_differences_have_no_number_of_seeds(tmp_path: Path) -> None:
    swept(tmp_path / "earlier", [0.5] * 6)
    assert plan_sweep(planned(tmp_path), like=tmp_path / "earlier").seeds_needed is None
