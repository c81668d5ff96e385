"""What a sweep registers before its first run, and how looks at its results share the 5 %."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from agents.errors import ConfigError, RunError
from agents.simulation.reports.sweep_report import SweepResults
from agents.simulation.sweeps.run_sweep import prepare, write_results
from agents.simulation.sweeps.sweep import Sweep, read_sweep

Options = dict[str, Any]


def plan(folder: Path, **values: Any) -> Sweep:
    (folder / "own.yaml").write_text(
        yaml.safe_dump({"simulation": {"world": "market", "agents": 6, "ticks": 3}})
    )
    usual = {
        "scenario": "own.yaml", "seeds": 10, "metrics": ["loss", "welfare"],
        "variants": {"flat": {}, "tiers": {"memory.max_pinned": 1}},
    }  # fmt: skip
    (folder / "sweep.yaml").write_text(yaml.safe_dump({**usual, **values}, sort_keys=False))
    return read_sweep(folder / "sweep.yaml")


def results(folder: Path, sweep: Sweep, *, leave_out: int = 0, first: bool = False) -> SweepResults:
    """The results of runs whose metrics are made up: 'tiers' loses a little more."""
    swept = folder / "swept"
    if not first:
        prepare(sweep, swept, force=False)
    done = {}
    for run in sweep.runs()[leave_out:]:
        noise = run.seed * 7 % 11
        loss = 20.0 + noise if run.variant == "flat" else 22.0 + run.seed * 5 % 9 + noise
        metrics = {"loss": loss, "welfare": 2 * loss}
        done[run.name] = {"state_hash": f"hash of {run.name}", "metrics": metrics}
    return write_results(sweep, swept, done)


def test_a_sweep_that_is_run_as_registered_says_so(tmp_path: Path) -> None:
    sweep = plan(tmp_path, registration={"primary": "loss", "looks": 1})
    look = results(tmp_path, sweep).look

    assert (look.verdict, look.number, look.alpha, look.alpha_next) == (
        "as registered", 1, 0.05, 0.0,
    )  # fmt: skip
    kept = yaml.safe_load((tmp_path / "swept" / "registration.yaml").read_text())
    assert kept["registered"]["primary"] == "loss"
    assert kept["registered"]["seeds"] == list(range(1, 11))
    report = (tmp_path / "swept" / "report.html").read_text()
    assert "The sweep is as registered" in report
    assert kept["hash"] in report


def test_the_registration_is_written_before_the_first_run(tmp_path: Path) -> None:
    prepare(plan(tmp_path), tmp_path / "swept", force=False)

    kept = yaml.safe_load((tmp_path / "swept" / "registration.yaml").read_text())
    assert kept["looks"] == []
    assert "after_runs" not in kept


def _edit(swept: Path, change: Callable[[Options], None]) -> None:
    file = swept / "registration.yaml"
    kept = yaml.safe_load(file.read_text())
    change(kept)
    file.write_text(yaml.safe_dump(kept))


@pytest.mark.parametrize(
    ("changes", "leave_out", "said"),
    [
        ({"registration": {"primary": "welfare"}}, 0, "the primary metric was loss and is welfare"),
        ({"registration": {"primary": "loss", "looks": 4}}, 0, "number of looks was none and is 4"),
        ({"metrics": ["loss"]}, 0, 'the metrics was ["loss", "welfare"] and is ["loss"]'),
        ({"baseline": "tiers"}, 0, "the baseline was "),
        ({"seeds": [1, 2, 3, 4]}, 0, "6 registered seeds left out"),
        ({}, 2, "2 runs missing"),
    ],
)
def test_each_deviation_from_the_registration_is_listed(
    tmp_path: Path, changes: Options, leave_out: int, said: str
) -> None:
    registered: Options = {"registration": {"primary": "loss"}}
    results(tmp_path, plan(tmp_path, **registered))
    swept = plan(tmp_path, **{**registered, **changes})
    look = results(tmp_path, swept, leave_out=leave_out).look

    assert look.verdict == "1 deviation"
    assert said in look.deviations[0]
    assert look.primary == "loss"  # what was registered counts
    assert "not as registered" in (tmp_path / "swept" / "report.html").read_text()


def test_a_registration_that_was_edited_or_made_later_is_told(tmp_path: Path) -> None:
    sweep = plan(tmp_path, registration={"looks": 1})
    results(tmp_path, sweep)
    _edit(tmp_path / "swept", lambda kept: kept["registered"].update(seeds=[1, 2]))
    assert "its hash is different" in results(tmp_path, sweep).look.deviations[0]
    (tmp_path / "swept" / "registration.yaml").unlink()
    late = results(tmp_path, sweep, first=True).look
    assert late.deviations == ["it was registered after 20 runs"]


def test_a_registration_that_cannot_be_read_is_no_empty_one(tmp_path: Path) -> None:
    sweep = plan(tmp_path)
    results(tmp_path, sweep)
    (tmp_path / "swept" / "registration.yaml").write_text("looks: 3")
    with pytest.raises(RunError, match="nobody knows what was registered"):
        results(tmp_path, sweep)


def test_more_seeds_are_a_new_look_and_the_same_runs_are_none(tmp_path: Path) -> None:
    looks = [
        results(tmp_path, plan(tmp_path, seeds=seeds)).look for seeds in (2, 10, 10, 15, 10, 20)
    ]

    # Two seeds test nothing, and spend nothing.
    assert [(each.number, each.alpha) for each in looks[1:]] == [
        (1, 0.025), (1, 0.025), (2, 0.0125), (1, 0.025), (3, 0.00625),
    ]  # fmt: skip
    assert list(looks[-1].seeds) == [10, 15, 20]


def test_another_metric_of_the_same_runs_is_a_new_look(tmp_path: Path) -> None:
    for metrics in (["loss"], ["welfare"]):
        look = results(tmp_path, plan(tmp_path, metrics=metrics)).look
    assert look.number == 2


def test_a_look_beyond_the_registered_ones_shows_no_difference(tmp_path: Path) -> None:
    registered: Options = {"registration": {"looks": 1}, "metrics": ["loss"]}
    first = results(tmp_path, plan(tmp_path, **registered))
    more = results(tmp_path, plan(tmp_path, seeds=12, **registered))

    assert first.compared[0]["p_holm"] <= 0.05
    assert first.compared[0]["seeds_needed"] is None
    assert more.compared[0]["p"] <= 0.05
    assert more.compared[0]["p_holm"] == 1.0
    assert "nothing counts as a difference any more" in more.look.deviations[0]


def test_looks_correct_p_and_widen_intervals(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    whole = results(tmp_path / "whole", plan(tmp_path / "whole", registration={"looks": 1}))
    halves = results(tmp_path, plan(tmp_path))

    for one, half in zip(whole.compared, halves.compared, strict=True):
        assert half["p"] == one["p"]
        assert half["p_holm"] == pytest.approx(min(1.0, 2 * one["p_holm"]))
        assert half["low"] < one["low"] < one["high"] < half["high"]
    for one, half in zip(whole.statistics, halves.statistics, strict=True):
        assert half["low"] < one["low"]


def test_the_primary_metric_is_corrected_for_its_own_comparisons_alone(tmp_path: Path) -> None:
    sweep = plan(tmp_path, registration={"primary": "welfare", "looks": 1})
    compared = results(tmp_path, sweep).compared

    assert [row["metric"] for row in compared] == ["welfare", "loss"]
    assert all(row["p_holm"] == row["p"] for row in compared)  # two families of one


def test_force_forgets_no_look_at_the_same_runs(tmp_path: Path) -> None:
    for seeds in (10, 11):
        results(tmp_path, plan(tmp_path, seeds=seeds))
    prepare(plan(tmp_path, seeds=12), tmp_path / "swept", force=True)
    assert results(tmp_path, plan(tmp_path, seeds=12)).look.number == 3
    other = plan(tmp_path, seeds=12, variants={"a": {}, "b": {"memory.max_pinned": 2}})
    prepare(other, tmp_path / "swept", force=True)
    assert results(tmp_path, other).look.number == 1


def test_statistics_have_what_was_corrected(tmp_path: Path) -> None:
    results(tmp_path, plan(tmp_path))
    rows = pq.read_table(tmp_path / "swept" / "statistics.parquet").to_pylist()
    assert {"against_flat_p_permutation", "against_flat_median", "skewed"} <= rows[0].keys()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"looks": 0}, "registration must be"),
        ({"looks": True}, "registration must be"),
        ({"primary": ["loss"]}, "registration must be"),
        ({"seeds": 3}, "registration must be"),
        ("loss", "registration must be"),
        ({"primary": "luck"}, "the world has no metric 'luck'"),
    ],
)
def test_a_registration_that_says_nothing_is_refused(
    tmp_path: Path, given: object, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        plan(tmp_path, registration=given)
