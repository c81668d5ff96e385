"""``tiermem sweep``: many runs at once, and what can be said of them."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
import yaml

import shortcuts
import warm_children
from agents.interfaces.cli.progress import Screen
from agents.storage.files import lock_folder
from waiting import ended

Command = Callable[..., Any]
Write = Callable[..., Path]


def write_sweep(beside: Path, **values: Any) -> Path:
    path = beside.with_name("sweep.yaml")
    path.write_text(yaml.safe_dump({"scenario": beside.name, **values}))
    return path


TWO_BY_TWO = {
    "question": "Do steps pay?",
    "variants": {"walking": {}, "resting": {"simulation.policy_options.steps": False}},
    "grid": {"memory.max_pinned": [1, 3]},
    "seeds": 2,
}


@pytest.fixture(scope="module")
def _swept(command: Command, scenario_in: Write, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("swept")
    file = write_sweep(scenario_in(folder / "mine", ticks=3), **TWO_BY_TWO)
    with shortcuts.spawned_processes_of_sweeps():
        done = command("sweep", file, "--out", folder / "s", "--workers", 2)
    assert done.code == 0, done.err
    (folder / "said").write_text(done.out)
    return folder


@pytest.fixture
def swept(_swept: Path, tmp_path: Path) -> Path:
    """A finished sweep of eight runs."""
    shutil.copytree(_swept, tmp_path, dirs_exist_ok=True)
    return tmp_path / "s"


def stamps(folder: Path) -> dict[str, int]:
    return {path.name: (path / "summary.json").stat().st_mtime_ns
            for path in sorted((folder / "cells").iterdir())}  # fmt: skip


@pytest.mark.slow
def test_results_have_a_row_per_variant_point_and_seed(swept: Path) -> None:
    rows = pq.read_table(swept / "results.parquet").to_pylist()
    assert {(row["variant"], row["memory.max_pinned"], row["seed"]) for row in rows} == {
        (variant, cap, seed)
        for variant in ("walking", "resting") for cap in (1, 3) for seed in (1, 2)
    }  # fmt: skip
    assert len(rows) == 8
    assert {(row["variant"], row["steps"]) for row in rows} == {("walking", 6), ("resting", 0)}


def test_a_cell_is_a_run_like_any_other(swept: Path, tiermem: Command) -> None:
    cell = sorted((swept / "cells").iterdir())[0]
    assert tiermem("replay", cell, "--verify", "-q") == (0, "", "")
    assert tiermem("show", cell).code == 0


def test_two_seeds_give_means_without_intervals_and_say_what_is_missing(swept: Path) -> None:
    rows = pq.read_table(swept / "statistics.parquet").to_pylist()
    assert len(rows) == 2 * 2 * 2
    assert {(row["n"], row["low"], row["high"]) for row in rows} == {(2, None, None)}
    assert "1 more seed at least, for an interval" in (swept.parent / "said").read_text()


@pytest.mark.slow
def test_statistics_have_the_evidence_of_each_difference(tiermem: Command, scenario: Write) -> None:
    file = write_sweep(
        scenario(ticks=3), **{**TWO_BY_TWO, "seeds": 6, "grid": {}, "baseline": "walking"}
    )
    done = tiermem("sweep", file, "--out", "s", "--json")
    assert done.code == 0
    rows = pq.read_table("s/statistics.parquet").to_pylist()
    assert rows == done.json["statistics"]
    (steps,) = (row for row in rows if (row["variant"], row["metric"]) == ("resting", "steps"))
    assert steps["against_walking"] == -6
    # Six equal differences have no interval and no p.
    ends = ("low", "high", "p", "p_holm", "seeds_needed")
    assert {steps[f"against_walking_{end}"] for end in ends} == {None}
    said = "all 6 are equal; up to 39 % of others may differ"
    assert f"−6 in every seed: {said}" in Path("s/report.html").read_text()
    again = tiermem("sweep", file, "--out", "s")
    assert f"resting\tsteps\t-6\t–\t–\t{said}" in again.out
    assert f"walking\tsteps\t6\t6\t{said}" in again.out
    (base,) = (row for row in rows if (row["variant"], row["metric"]) == ("walking", "steps"))
    assert base["against_walking_p"] is None


@pytest.mark.slow
def test_points_of_a_grid_are_compared_with_the_baseline_by_seed(
    tiermem: Command, scenario: Write
) -> None:
    key = "simulation.policy_options.steps"
    file = write_sweep(
        scenario(ticks=3),
        grid={key: [False, True]}, baseline={key: True}, seeds=7, metrics=["steps"],
    )  # fmt: skip
    done = tiermem("sweep", file, "--out", "s")
    assert done.code == 0
    assert f"against {key}=true, paired by seed" in done.out
    rows = pq.read_table("s/statistics.parquet").to_pylist()
    column = "against_simulation_policy_options_steps_true"
    assert [(row[key], row[column]) for row in rows] == [(False, -6), (True, None)]
    report = Path("s/report.html").read_text()
    assert f"Compared with {key}=true" in report


@pytest.mark.slow
def test_without_a_baseline_the_first_point_of_the_grid_is_it(
    tiermem: Command, scenario: Write
) -> None:
    file = write_sweep(scenario(ticks=1), grid={"memory.max_pinned": [3, 1]}, seeds=1)
    assert tiermem("sweep", file, "--out", "s", "-q").code == 0
    rows = pq.read_table("s/statistics.parquet").to_pylist()
    assert {row["memory.max_pinned"] for row in rows if row["against_memory_max_pinned_3"] is None
            } == {3}  # fmt: skip


@pytest.mark.slow
def test_a_variant_may_be_named_as_the_baseline(tiermem: Command, scenario: Write) -> None:
    file = write_sweep(
        scenario(ticks=2), **{**TWO_BY_TWO, "grid": {}, "baseline": "walking", "seeds": 1}
    )
    done = tiermem("sweep", file, "--out", "s")
    assert "against walking, paired by seed" in done.out


def test_another_baseline_runs_nothing_again(tiermem: Command, swept: Path, tmp_path: Path) -> None:
    before = stamps(swept)
    file = write_sweep(tmp_path / "mine" / "stones.yaml", **{**TWO_BY_TWO, "baseline": "walking"})
    done = tiermem("sweep", file, "--out", swept)
    assert "against walking" in done.out
    assert stamps(swept) == before


@pytest.mark.long
def test_runs_that_are_kept_whole_are_linked_and_have_the_scenarios_checkpoints(
    tiermem: Command, swept: Path, tmp_path: Path
) -> None:
    report = (swept / "report.html").read_text()
    assert "report of its own" in report
    assert "<code>tiermem inspect s</code>" in report
    results = (swept / "results.parquet").read_bytes()
    file = tmp_path / "mine" / "sweep.yaml"
    assert tiermem("sweep", file, "--out", swept, "--keep-runs", "-q", "--workers", 2).code == 0
    report = (swept / "report.html").read_text()
    for cell in (swept / "cells").iterdir():
        assert "TierMem run" in (cell / "report.html").read_text()
        assert f'href="cells/{quote(cell.name)}/report.html"' in report
        used = yaml.safe_load((cell / "config.yaml").read_text())
        assert used["checkpoint"] == {"every": 4, "keep": 3}
    assert (swept / "results.parquet").read_bytes() == results
    before = stamps(swept)
    assert tiermem("sweep", file, "--out", swept, "-q").code == 0
    assert stamps(swept) == before
    assert (swept / "report.html").read_text() == report
    one = min((swept / "cells").iterdir())
    assert tiermem("inspect", one, "--export", one / "inspector.html", "-q").code == 0
    assert tiermem("sweep", file, "--out", swept, "-q").code == 0
    report = (swept / "report.html").read_text()
    assert report.count(f'href="cells/{quote(one.name)}/inspector.html"') == 1


def test_there_is_a_plot_per_metric_and_a_report(swept: Path) -> None:
    for name in ("steps.svg", "luck.svg"):
        assert ElementTree.parse(swept / name).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    report = (swept / "report.html").read_text()
    assert "Do steps pay?" in report
    assert "resting" in report


def test_it_prints_question_means_and_where_the_report_is(swept: Path) -> None:
    said = (swept.parent / "said").read_text()
    for part in ("Do steps pay?", "walking", "memory.max_pinned", "steps", "s/report.html"):
        assert part in said


def test_the_memories_of_a_cell_do_not_go_to_mem0(swept: Path) -> None:
    for cell in (swept / "cells").iterdir():
        assert not (cell / "bank" / "chroma").exists()
        assert yaml.safe_load((cell / "config.yaml").read_text())["storage"]["sync"] == "manual"


@pytest.mark.slow
def test_a_preset_beats_the_scenario_of_every_cell_and_the_grid_beats_the_preset(
    tiermem: Command, scenario: Write, tmp_path: Path
) -> None:
    given = scenario(ticks=1)
    given.write_text(given.read_text() + "temperature: {ttl_cold_below: 2d}\n")
    common = {"temperature.ttl_warm_below": "30d"}
    file = write_sweep(given, seeds=1, set=common, grid={"temperature.initial": ["warm", "hot"]})
    done = tiermem("sweep", file, "--preset", "lifetime", "--out", "s")
    assert (done.code, "changes nothing" in done.err) == (0, False)
    cells = sorted((tmp_path / "s" / "cells").iterdir())
    used = [yaml.safe_load((cell / "config.yaml").read_text())["temperature"] for cell in cells]
    assert [each["initial"] for each in used] == ["hot", "warm"]
    assert {(each["ttl_cold_below"], each["ttl_warm_below"]) for each in used} == {("1d", "7d")}
    assert tiermem("sweep", file, "--out", "s").is_one_error(1, "another sweep", "--force")


def test_a_report_is_the_same_wherever_its_sweep_lies(
    tiermem: Command, swept: Path, tmp_path: Path
) -> None:
    there = tmp_path / "elsewhere" / swept.name
    shutil.copytree(swept, there)
    (there / "report.html").unlink()
    assert tiermem("sweep", tmp_path / "mine" / "sweep.yaml", "--out", there, "-q").code == 0
    assert (there / "report.html").read_bytes() == (swept / "report.html").read_bytes()


@pytest.mark.slow
def test_a_preset_that_changes_no_run_of_a_sweep_says_so(tiermem: Command, scenario: Write) -> None:
    file = write_sweep(scenario(ticks=1), seeds=1)
    done = tiermem("sweep", file, "--preset", "hybrid", "--out", "s")
    assert "--preset hybrid changes nothing here" in done.err


@pytest.mark.slow
def test_finished_cells_are_kept_and_the_others_run_again(
    tiermem: Command, swept: Path, tmp_path: Path
) -> None:
    results = (swept / "results.parquet").read_bytes()
    before = stamps(swept)
    gone, half = list(before)[:2]
    shutil.rmtree(swept / "cells" / gone)
    summary = swept / "cells" / half / "summary.json"
    summary.write_text(json.dumps({**json.loads(summary.read_text()), "finished": False}))
    for name in ("results.parquet", "report.html"):
        (swept / name).unlink()
    file = tmp_path / "mine" / "sweep.yaml"
    assert tiermem("sweep", file, "--out", swept, "-q", "--workers", 1).code == 0
    after = stamps(swept)
    assert {name for name in before if before[name] != after[name]} == {gone, half}
    assert (swept / "results.parquet").read_bytes() == results


@pytest.mark.slow
def test_kept_runs_do_not_count_for_the_pace_of_a_sweep(
    tiermem: Command, swept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[int | None, list[tuple[int, int]]]] = []

    def meter(_: Screen, name: str, unit: str, start: int | None = None) -> Callable[..., None]:
        shown.append((start, steps := []))
        return lambda done, total: steps.append((done, total))

    monkeypatch.setattr(Screen, "meter", meter)
    file = tmp_path / "mine" / "sweep.yaml"
    cells = sorted((swept / "cells").iterdir())
    shutil.rmtree(cells[-1])
    for _ in range(2):  # the second time, all are kept
        assert tiermem("sweep", file, "--out", swept, "--workers", 1).code == 0
    total = len(cells)
    assert shown == [
        (total - 1, [(total - 1, total), (total, total)]),
        (total, [(total, total)]),
    ]


def test_a_sweep_that_is_whole_runs_nothing(tiermem: Command, swept: Path, tmp_path: Path) -> None:
    before = stamps(swept)
    done = tiermem("sweep", tmp_path / "mine" / "sweep.yaml", "--out", swept, "--json")
    assert (done.code, done.err) == (0, "")
    assert (done.json["failed"], len(done.json["statistics"])) == ({}, 8)
    assert stamps(swept) == before


def test_a_sweep_that_has_changed_is_not_mixed_with_the_old_one(
    tiermem: Command, swept: Path, tmp_path: Path
) -> None:
    file = write_sweep(
        tmp_path / "mine" / "stones.yaml", **{**TWO_BY_TWO, "grid": {"memory.max_pinned": [3]}}
    )
    before = stamps(swept)
    assert tiermem("sweep", file, "--out", swept).is_one_error(1, "another sweep", "--force")
    assert stamps(swept) == before


@pytest.mark.slow
def test_more_seeds_go_on_with_what_is_there(tiermem: Command, swept: Path, tmp_path: Path) -> None:
    before = stamps(swept)
    file = write_sweep(tmp_path / "mine" / "stones.yaml", **{**TWO_BY_TWO, "seeds": 3})
    assert tiermem("sweep", file, "--out", swept, "-q").code == 0
    after = stamps(swept)
    assert len(after) > len(before)
    assert {name: after[name] for name in before} == before


@pytest.mark.slow
def test_a_sweep_whose_code_has_changed_is_not_mixed_with_the_old_one(
    tiermem: Command, scenario: Write
) -> None:
    given = scenario(ticks=1)
    file = write_sweep(given, seeds=1)
    assert tiermem("sweep", file, "--out", "s", "-q").code == 0
    code = given.parent / "worlds_for_tests.py"
    code.write_text(code.read_text() + "\n# changed\n")
    assert tiermem("sweep", file, "--out", "s").is_one_error(1, "the code", "--force")


def test_a_folder_that_is_no_sweep_is_left_alone(tiermem: Command, scenario: Write) -> None:
    Path("thesis").mkdir()
    Path("thesis/chapter.txt").write_text("years of work")
    file = write_sweep(scenario(ticks=1), seeds=1)
    assert tiermem("sweep", file, "--out", "thesis").is_one_error(1, "is not a sweep")
    assert tiermem("sweep", file, "--out", "thesis", "--force").is_one_error(1, "is not a sweep")
    assert Path("thesis/chapter.txt").read_text() == "years of work"


def test_force_does_not_delete_the_folder_of_the_sweeps_own_file(
    tiermem: Command, scenario: Write
) -> None:
    file = write_sweep(scenario(ticks=1), seeds=1)
    tiermem("sweep", file, "--out", file.parent, "--force", "-q", "--workers", 1)
    assert file.is_file()
    assert (file.parent / "stones.yaml").is_file()


@pytest.mark.slow
def test_a_cell_that_fails_is_named_and_the_others_count(tiermem: Command, scenario: Write) -> None:
    variants = {"fine": {}, "broken": {"simulation.world_options.fail_at": 2}}
    file = write_sweep(scenario(ticks=3), variants=variants, seeds=1)
    done = tiermem("sweep", file, "--out", "s")
    assert done.code == 1
    assert "broken_seed=1" in done.err
    assert "the sky fell" in done.err
    assert "1 of 2 runs failed" in done.err
    rows = pq.read_table("s/results.parquet").to_pylist()
    assert [row["variant"] for row in rows] == ["fine"]


@pytest.mark.slow
def test_a_policy_that_raises_fails_its_cell_only(tiermem: Command, scenario: Write) -> None:
    variants = {"fine": {}, "broken": {"simulation.policy": "worlds_for_tests:RaisingPolicy"}}
    file = write_sweep(scenario(ticks=3), variants=variants, seeds=1)
    done = tiermem("sweep", file, "--out", "s")
    assert done.code == 1
    assert "1 of 2 runs failed" in done.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("simulation.policy_options", [{"steps": True}, {"steps": False}]),
        pytest.param(
            "simulation.agents", [2, ["alice", "bob"]],
        ),
    ],
)  # fmt: skip
def test_a_grid_may_hold_values_of_any_kind(
    tiermem: Command, scenario: Write, key: str, values: list[Any]
) -> None:
    file = write_sweep(scenario(ticks=2), grid={key: values}, seeds=1)
    assert tiermem("sweep", file, "--out", "s", "-q").code == 0


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        ({"scenario": 5}, ["scenario must be"]),
        ({"scenario": "nowhere.yaml"}, ["nowhere.yaml", "no such file"]),
        ({"variant": {}}, ["unknown key 'variant'", "variants"]),
        ({"variants": ["a"]}, ["variants must be"]),
        ({"variants": {"a": 5}}, ["variants must be"]),
        ({"variants": {"a": {"memory.max_pined": 1}}}, ["did you mean memory.max_pinned?"]),
        ({"grid": {"memory.max_pinned": 5}}, ["grid must be"]),
        ({"grid": {"memory.max_pinned": []}}, ["grid must be"]),
        ({"grid": {"memory.max_pinned": ["many"]}}, ["memory.max_pinned"]),
        ({"grid": {"memory.max_pined": [1]}}, ["did you mean memory.max_pinned?"]),
        ({"grid": {"memory.max_pinned": [1, 1]}}, ["the same name"]),
        ({"seeds": 0}, ["seeds must be"]),
        ({"seeds": [1, 1]}, ["seeds must be"]),
        ({"seeds": "many"}, ["seeds must be"]),
        ({"metrics": "loss"}, ["metrics must be"]),
        ({"baseline": "nobody"}, ["'nobody' is neither a variant nor"]),
        ({"baseline": {}}, ["is neither a variant nor"]),
        ({"baseline": [1]}, ["is neither a variant nor"]),
        ({"baseline": {"memory.max_pinned": 5}}, ["the grid has no 'memory.max_pinned'"]),
        (
            {"grid": {"memory.max_pinned": [1, 3]}, "baseline": {"memory.max_pinned": 2}},
            ["the grid does not try 2 for memory.max_pinned", "it tries 1, 3"],
        ),
    ],
)
def test_a_wrong_sweep_is_one_clear_error_and_runs_nothing(
    tiermem: Command, scenario: Write, values: dict[str, Any], parts: list[str]
) -> None:
    file = write_sweep(scenario(ticks=1), **values)
    assert tiermem("sweep", file, "--out", "s").is_one_error(2, *parts)
    assert not Path("s").exists()


@pytest.mark.parametrize("text", ["", "- 1\n", "scenario: [", "seeds: 3\n"])
def test_a_file_that_is_no_sweep_is_one_clear_error(tiermem: Command, text: str) -> None:
    Path("wrong.yaml").write_text(text)
    assert tiermem("sweep", "wrong.yaml").is_one_error(2, "wrong.yaml")


def test_a_metric_that_the_world_has_not_is_one_clear_error(
    tiermem: Command, scenario: Write
) -> None:
    file = write_sweep(scenario(ticks=1), seeds=1, metrics=["loss"])
    done = tiermem("sweep", file, "--out", "s", "-q")
    assert done.is_one_error(2, "'loss'", "steps")


def test_a_scenario_whose_world_is_wrong_runs_nothing(tiermem: Command, scenario: Write) -> None:
    file = write_sweep(scenario(world="marked", ticks=1), seeds=1)
    done = tiermem("sweep", file, "--out", "s")
    assert done.code in (1, 2)
    assert "there is no world 'marked'" in done.err
    assert "Traceback" not in done.err


@pytest.mark.long
def test_ctrl_c_ends_a_sweep_which_then_goes_on(
    tiermem: Command, scenario: Write, tmp_path: Path
) -> None:
    file = write_sweep(scenario(ticks=60), seeds=14)
    command = [str(Path(sys.executable).with_name("tiermem")), "sweep", str(file), "--out", "s"]
    with warm_children.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        while not list(Path("s").glob("cells/*/summary.json")):
            time.sleep(0.02)
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, said = ended(process)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert tiermem("sweep", file, "--out", "s", "-q").code == 0
    assert len(pq.read_table("s/results.parquet")) == 14


@pytest.mark.slow
def test_a_sweep_that_somebody_runs_is_left_alone(
    tiermem: Command, swept: Path, tmp_path: Path
) -> None:
    before = stamps(swept)
    file = write_sweep(tmp_path / "mine" / "stones.yaml", **TWO_BY_TWO)
    lock = lock_folder(swept, "sweep.lock")
    try:
        assert tiermem("sweep", file, "--out", swept).is_one_error(
            1, "is open in", str(os.getpid())
        )
        refused = tiermem("sweep", file, "--out", swept, "--force")
        assert refused.is_one_error(1, "is open in")
    finally:
        lock.release()
    assert stamps(swept) == before


def test_a_plan_says_how_many_seeds_and_runs_and_makes_none(
    tiermem: Command, scenario: Write
) -> None:
    file = write_sweep(scenario(), **TWO_BY_TWO, metrics=["steps"])
    plan = ["sweep", file, "--plan", "--difference", 1, "--spread", 2]
    said = tiermem(*plan)
    assert said.code == 0, said.err
    needed = tiermem(*plan, "--json").json
    assert f"{needed['seeds_needed']} seeds: {4 * needed['seeds_needed']} runs" in said.out
    assert needed["runs"] == 4 * needed["seeds_needed"] > 40
    assert not Path("runs").exists()
    assert tiermem("sweep", file, "--spread", 2).is_one_error(
        2, "--spread says something of --plan"
    )


def test_a_plan_like_an_earlier_sweep_says_how_long(tiermem: Command, swept: Path) -> None:
    more = write_sweep(swept.parent / "mine" / "stones.yaml", **{**TWO_BY_TWO, "seeds": 9})
    said = tiermem("sweep", more, "--plan", "--like", swept)
    assert said.code == 0, said.err
    assert "at once, as fast as in" in said.out
    assert "equal in all seeds" in said.out


@pytest.mark.slow
def test_a_sweep_over_ranges_says_what_a_metric_depends_on(
    tiermem: Command, scenario: Write
) -> None:
    file = scenario("village", world="rumor", agents=8, ticks=3)
    ranges = {"simulation.world_options.corrections": [0, 6]}
    plan = write_sweep(
        file, ranges=ranges, points=8, seeds=[4], metrics=["corrections", "accuracy"]
    )
    with shortcuts.spawned_processes_of_sweeps():
        done = tiermem("sweep", plan, "--out", "s", "--workers", 2)
    assert done.code == 0, done.err
    assert "shares of the variance" in done.out
    assert "one seed does not tell how much is chance" in done.out
    again = tiermem("sweep", plan, "--out", "s", "--json").json
    (row, *_) = again["indices"]
    assert row["total"] == pytest.approx(1, abs=0.4)
    assert tiermem("sweep", plan, "--plan", "--like", "s").is_one_error(2, "compares nothing")
    assert tiermem("inspect", "s", "--export", "s.html").code == 0
