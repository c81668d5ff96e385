"""Fits to data: which points are drawn, which runs are near, and what is refused."""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from agents.config.yaml_files import to_yaml
from agents.errors import RunError, TierMemError
from agents.simulation.runs import outputs
from agents.simulation.sweeps import fit as fits
from agents.simulation.sweeps.drawn import Drawn
from agents.simulation.sweeps.fit import Fit, read_data, read_fit, write_fit
from agents.simulation.sweeps.posterior import (
    Posterior,
    as_accepted,
    calibrate,
    distances,
    interval,
    nearest,
    scales,
)

LIARS, HERALD = "simulation.world_options.liars", "simulation.world_options.corrections"
TICKS = 10


def plan(folder: Path, **values: Any) -> Fit:
    """A fit of a small scenario, read from its file."""
    simulation = {"world": "rumor", "agents": 8, "ticks": TICKS}
    (folder / "own.yaml").write_text(yaml.safe_dump({"simulation": simulation}))
    file = folder / "fit.yaml"
    ranges = {LIARS: [0, 4], HERALD: [0, 6]}
    given = {"scenario": "own.yaml", "ranges": ranges, "runs": 200, "accept": 0.1, **values}
    given = {key: each for key, each in given.items() if each is not None}
    file.write_text(yaml.safe_dump(given, sort_keys=False))
    return read_fit(file)


def course(value: Callable[[int], float], until: int = TICKS) -> str:
    rows = "".join(f"{tick},{value(tick)}\n" for tick in range(1, until + 1))
    return f"tick,false_answers\n{rows}"


# What is drawn


def test_a_hypercube_has_one_point_in_each_part_of_a_range() -> None:
    drawn = Drawn({"a": (0.0, 50.0), "b": (1, 5)}, 50)
    a, b = zip(*drawn.values, strict=True)
    assert sorted(math.floor(value) for value in a) == list(range(50))
    assert {value: b.count(value) for value in b} == dict.fromkeys(range(1, 6), 10)
    assert all(isinstance(value, int) for value in b)


def test_the_plan_of_a_fit_keeps_its_points() -> None:
    drawn = Drawn({"b": (0.0, 1.0), "a": (1, 5)}, 40)
    kept = yaml.safe_load(to_yaml(drawn.to_dict(), sort_keys=True))
    assert Drawn.from_dict(kept).columns == drawn.columns
    with pytest.raises(ValueError, match="too many"):
        Drawn.from_dict({**kept, "points": 10**9})


def test_equal_ranges_give_equal_points_and_each_run_has_its_own_seed(tmp_path: Path) -> None:
    one, other = plan(tmp_path).sweep, plan(tmp_path).sweep
    assert one.runs() == other.runs()
    assert len({each.seed for each in one.runs()}) == len(one.runs()) == 200
    changed = one.settings(one.runs()[0]).simulation.world_options
    assert (changed["liars"], changed["corrections"]) == one.runs()[0].point


# Which runs are near, and whether their interval is right


def table(noise: float, runs: int = 600) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Settings, and statistics that tell them with noise; the last statistic tells nothing."""
    rng = np.random.default_rng(3)
    settings = np.column_stack([rng.random(runs), rng.integers(0, 9, runs)])
    told = settings / [1, 8] + noise * rng.normal(size=(runs, 2))
    return settings, np.column_stack([told, np.ones(runs)])


def test_the_posterior_of_a_known_model_is_found() -> None:
    settings, statistics = table(noise=0.1)
    scale = scales(statistics)
    assert scale[2] == 0
    near = nearest(distances(statistics, np.array([0.7, 0.25, 5.0]), scale), 30)
    (low, high), (few, many) = (interval(own) for own in settings[near].T)
    assert 0.4 < low < 0.7 < high < 1.0
    assert 0 <= few <= 2 <= many <= 4


def test_the_interval_of_few_values_has_the_next_one_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(2000):
        *values, other = rng.normal(size=20)
        low, high = interval(np.array(values))
        inside += low < other < high
    assert 0.88 < inside / 2000 < 0.92


def _shifted(settings: Any, near: Any) -> Any:
    return settings[near] + [0.1, 1]


def _squeezed(settings: Any, near: Any) -> Any:
    middle = settings[near].mean(axis=0)
    return middle + 0.4 * (settings[near] - middle)


def _widened(settings: Any, near: Any) -> Any:
    middle = settings[near].mean(axis=0)
    return middle + 3 * (settings[near] - middle)


@pytest.mark.parametrize(
    ("posterior", "verdicts"),
    [
        (as_accepted, {"covers"}),
        (_shifted, {"lies beside the truth", "too narrow"}),
        (_squeezed, {"too narrow"}),
        (_widened, {"too wide"}),
    ],
)
def test_the_check_finds_a_posterior_that_is_wrong(
    posterior: Posterior, verdicts: set[str]
) -> None:
    found = calibrate(*table(noise=0.3), 30, posterior)
    assert {each.verdict for each in found} <= verdicts
    assert [each.holds for each in found] == [posterior is as_accepted] * 2


# A fit from its runs' tables to its report


def made(fit: Fit, folder: Path, value: Callable[[Any, int], float | None]) -> dict[str, Any]:
    """The folder of a fit as its runs leave it, each with these values over ticks."""
    summaries = {}
    for cell in fit.sweep.runs():
        place = folder / "cells" / cell.name
        place.mkdir(parents=True)
        rows = [
            {"tick": tick, "false_answers": value(cell, tick), "accuracy": 0.5}
            for tick in range(TICKS + 1)
        ]
        (place / "metrics.parquet").write_bytes(outputs.table(rows))
        metrics = {name: rows[-1][name] for name in ("false_answers", "accuracy")}
        summaries[cell.name] = {"state_hash": cell.name, "metrics": metrics}
    return summaries


def lying(cell: Any, tick: int) -> float:
    """As many false answers a tick as there are liars, with chance, and a start by the herald."""
    rng = np.random.default_rng(cell.seed)
    return float(tick * (cell.point[0] + 0.2 * rng.normal()) + cell.point[1])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (course(lambda tick: 3.0 * tick + 2), "2 of 2 held-out values lie"),
        ("false_answers\n32\n", "nothing was held out"),
    ],
)
def test_a_fit_finds_the_settings_that_made_the_data(tmp_path: Path, text: str, said: str) -> None:
    fit, folder = plan(tmp_path), tmp_path / "fitted"
    (tmp_path / "data.csv").write_text(text)
    done = made(fit, folder, lying)
    results = write_fit(fit, read_data(tmp_path / "data.csv", fit), folder, done)
    liars, herald = results.posterior
    assert liars["low"] <= 3 <= liars["high"]
    if "tick" in text:
        assert (liars["low"], liars["high"]) == (3, 3)
        assert herald["low"] <= 2 <= herald["high"]
    assert said in results.held_out
    rows = pq.read_table(folder / "results.parquet").to_pylist()
    assert sum(row["accepted"] for row in rows) == 20
    far = [row["distance"] for row in rows if row["accepted"]]
    assert max(far) <= min(row["distance"] for row in rows if not row["accepted"])
    report = (folder / "report.html").read_text()
    assert all(word in report for word in (LIARS, "Check", "90 % of accepted runs"))
    assert "nan" not in report


def test_a_fit_says_that_no_run_reaches_the_data_and_what_does_not_vary(tmp_path: Path) -> None:
    fit, folder = plan(tmp_path, statistics=["last"]), tmp_path / "fitted"
    (tmp_path / "data.csv").write_text("false_answers,accuracy\n900,0.5\n")
    results = write_fit(
        fit, read_data(tmp_path / "data.csv", fit), folder, made(fit, folder, lying)
    )
    assert "no run reaches the data in last of false_answers" in results.warnings[0]
    assert "nothing varies in last of accuracy" in results.warnings[1]
    assert all(each in (folder / "report.html").read_text() for each in ("no run reaches",))


def test_runs_without_a_number_are_left_out_and_told(tmp_path: Path) -> None:
    fit, folder = plan(tmp_path), tmp_path / "fitted"
    (tmp_path / "data.csv").write_text(course(float))
    data = read_data(tmp_path / "data.csv", fit)
    done = made(fit, folder, lambda cell, tick: None if cell.seed % 10 == 0 else lying(cell, tick))
    assert write_fit(fit, data, folder, done).lost == 20
    few = dict(list(done.items())[:30])
    with pytest.raises(RunError, match="only 27 runs"):
        write_fit(fit, data, folder, few)


def test_a_metric_may_be_held_out_and_predicted(tmp_path: Path) -> None:
    fit, folder = plan(tmp_path, held_out=["accuracy"]), tmp_path / "fitted"
    (tmp_path / "data.csv").write_text("false_answers,accuracy\n32,0.75\n")
    results = write_fit(
        fit, read_data(tmp_path / "data.csv", fit), folder, made(fit, folder, lying)
    )
    assert [row["statistic"] for row in results.compared] == ["last of false_answers"]
    assert "0 of 1 held-out value" in results.held_out


def test_runs_that_are_all_equal_fit_nothing(tmp_path: Path) -> None:
    fit, folder = plan(tmp_path), tmp_path / "fitted"
    (tmp_path / "data.csv").write_text("false_answers\n7\n")
    done = made(fit, folder, lambda cell, tick: 7.0)
    with pytest.raises(RunError, match="nothing varies"):
        write_fit(fit, read_data(tmp_path / "data.csv", fit), folder, done)


# What is refused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no line"),
        ("\ufeff\n\n", "has no line"),
        ("tick,false_answers\n", "has no row"),
        ("tick,lies\n1,2\n", "no metric 'lies'"),
        ("tick\n1\n", "it has no metric"),
        ("tick,false_answers\n1,\n", ":2: false_answers is '', which is no number"),
        ("tick,false_answers\n1,many\n", ":2: false_answers is 'many'"),
        ("tick,false_answers\n1,nan\n", "'nan', which is no number"),
        ("tick,false_answers\n1,1e999\n", "'1e999', which is no number"),
        ("tick,false_answers\n1,2,3\n", ":2: 3 cells, and there are 2 columns"),
        ("tick,false_answers,tick\n1,2,3\n", "two columns have the same name"),
        ("tick,false_answers\n1.5,2\n", "tick 1.5 is none of a run of 10 ticks"),
        ("tick,false_answers\n11,2\n", "tick 11 is none of a run of 10 ticks"),
        ("tick,false_answers\n2,2\n2,3\n", ":3: tick 2 does not come after 2"),
        ("false_answers\n2\n3\n", "2 rows and no column tick"),
        ('tick,false_answers\n1,"2\n', "is no CSV"),
    ],
)
def test_data_that_are_wrong_are_one_clear_error(tmp_path: Path, text: str, said: str) -> None:
    fit = plan(tmp_path)
    (tmp_path / "data.csv").write_text(text)
    with pytest.raises(TierMemError) as error:
        read_data(tmp_path / "data.csv", fit)
    assert said in str(error.value)


def test_a_path_that_is_no_file_of_data_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = plan(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "huge.csv").write_text("tick,false_answers\n1,2\n")
    (tmp_path / "bytes.csv").write_bytes(b"tick,\xff\n")
    monkeypatch.setattr(fits, "_MOST_BYTES", 8)
    for path, said in {
        "pipe": "is not a file",
        ".": "is not a file",
        "nowhere.csv": "can't be read",
        "a\0b": "can't be read",
        "bytes.csv": "can't be read",
        "huge.csv": "is larger than",
    }.items():
        with pytest.raises(TierMemError, match=said):
            read_data(tmp_path / path, fit)


def test_a_column_that_the_fit_names_must_be_there(tmp_path: Path) -> None:
    fit = plan(tmp_path, metrics=["accuracy"])
    (tmp_path / "data.csv").write_text("tick,weather\n1,2\n")
    with pytest.raises(TierMemError, match="no column 'accuracy'"):
        read_data(tmp_path / "data.csv", fit)
    (tmp_path / "data.csv").write_text("tick,weather,accuracy\n1,2,0.5\n")
    assert list(read_data(tmp_path / "data.csv", fit).values) == ["accuracy"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"ranges": {LIARS: [4, 0]}}, "upside down: 4 to 0"),
        ({"ranges": {LIARS: [2, 2]}}, "upside down: 2 to 2"),
        ({"ranges": {LIARS: [0, 1, 2]}}, "no pair of numbers"),
        ({"ranges": {LIARS: [False, True]}}, "no pair of numbers"),
        ({"ranges": {LIARS: 3}}, "no pair of numbers"),
        ({"ranges": {"seed": [1, 9]}}, "seed can't have a range"),
        ({"ranges": {}}, "ranges must be"),
        ({"ranges": None}, "nothing is to be fitted"),
        ({"ranges": {f"{LIARS}s": [0, 4]}}, "run scenario_liarss=0_seed=1"),
        ({"ranges": {LIARS: [0, 7]}}, "liars is 7, of 8 agents"),
        ({"ranges": {"memory.max_pinned": [0.5, 2.5]}}, "memory.max_pinned"),
        ({"runs": 39}, "runs must be"),
        ({"runs": 60}, "0.1 of 60 runs are 6, and an interval needs 20"),
        ({"accept": 1.5}, "accept must be"),
        ({"statistics": ["median"]}, "statistics must be"),
        ({"metrics": ["accuracy", "accuracy"]}, "metrics must be"),
        ({"held_out": 1.0}, "held_out must be"),
        ({"held_out": ["false_answers"]}, "all metrics are held out"),
        ({"set": {"seed": 3}}, "set must be"),
        ({"variants": {}}, "unknown key 'variants'"),
    ],
)
def test_a_fit_that_is_wrong_is_one_clear_error(
    tmp_path: Path, values: dict[str, Any], said: str
) -> None:
    (tmp_path / "data.csv").write_text("tick,false_answers\n1,2\n")
    with pytest.raises(TierMemError) as error:
        read_data(tmp_path / "data.csv", plan(tmp_path, **values))
    assert said in str(error.value)


def test_a_scenario_and_ranges_are_a_fit(tmp_path: Path) -> None:
    plan(tmp_path)
    fit = read_fit(tmp_path / "own.yaml", ranges={LIARS: (0, 4)}, runs=400)
    assert [each.point for each in fit.sweep.runs()] == Drawn({LIARS: (0, 4)}, 400).values
