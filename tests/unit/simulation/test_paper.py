"""What goes into a paper comes from what a run or a sweep has recorded, and its numbers add up."""

import csv
import html
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import tiermem
from agents.config.load import load_settings
from agents.errors import InvalidInput, RunError
from agents.simulation.paper.methods import GAP
from agents.simulation.paper.paper import _difference, as_csv, as_latex, write_paper
from agents.simulation.paper.source import WorldSource, source_of
from agents.simulation.reports import plots
from agents.simulation.reports.pdf import pdf
from agents.simulation.reports.sweep_report import render_sweep
from agents.simulation.runs.outputs import table
from agents.simulation.runs.run import Run
from agents.simulation.statistics import Band, Interval, differences, summarise
from agents.simulation.sweeps.fit import read_data, read_fit, write_fit
from agents.simulation.sweeps.record import SweepRecord
from agents.simulation.sweeps.run_sweep import _run_one, prepare, write_results
from agents.simulation.sweeps.sensitivity import write_sensitivity
from agents.simulation.sweeps.sweep import read_sweep

LIARS, HERALD = "simulation.world_options.liars", "simulation.world_options.corrections"
MARK = GAP.partition("{")[0]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished sweep: two variants, two places in the grid, three seeds."""
    folder = tmp_path_factory.mktemp("paper")
    scenario = {"simulation": {"world": "market", "agents": 5, "ticks": 3}}
    (folder / "own.yaml").write_text(yaml.safe_dump(scenario))
    plan = {
        "scenario": "own.yaml",
        "question": "Do pins pay? 5 % & more_or less",
        "registration": {"primary": "loss", "looks": 2},
        "variants": {"flat": {"simulation.policy_options.tiers": False}, "tiers": {}},
        "grid": {"simulation.world_options.scammers": [2, 3]},
        "seeds": 3,
    }
    (folder / "sweep.yaml").write_text(yaml.safe_dump(plan, sort_keys=False))
    sweep = read_sweep(folder / "sweep.yaml")
    prepare(sweep, folder / "swept", force=False)
    done: dict[str, Any] = {}
    for planned in sweep.runs():
        made = _run_one(sweep, planned, folder / "swept" / "cells" / planned.name, False)
        assert isinstance(made, dict), made
        done[planned.name] = made
    results = write_results(sweep, folder / "swept", done)
    assert (folder / "swept" / "report.html").read_text() == render_sweep(results)
    return folder / "swept"


def rows_of(file: Path) -> list[dict[str, Any]]:
    """The rows of a CSV file, numbers as numbers."""

    def value(text: str) -> Any:
        if text in ("", "True", "False"):
            return {"": None, "True": True, "False": False}[text]
        return float(text) if re.fullmatch(r"-?\d[\d.]*(e-?\d+)?", text) else text

    with file.open(newline="") as opened:
        return [{key: value(text) for key, text in row.items()} for row in csv.DictReader(opened)]


def test_the_numbers_of_a_report_follow_from_its_csv_alone(swept: Path, tmp_path: Path) -> None:
    write_paper(swept, tmp_path / "paper")
    runs = rows_of(tmp_path / "paper" / "tables" / "results.csv")
    told = rows_of(tmp_path / "paper" / "tables" / "statistics.csv")
    where = ["variant", "simulation.world_options.scammers"]
    metrics = list(dict.fromkeys(row["metric"] for row in told))
    assert metrics[0] == "loss"

    means = summarise(runs, where, metrics, level=0.975, shapes=True)
    apart = [
        row
        for family in (["loss"], metrics[1:])
        for row in differences(
            runs, where[1:], family, baseline={"variant": "flat"}, shapes=True,
            alpha=0.025, alpha_next=0.025,
        )
    ]  # fmt: skip
    assert len(told) == len(means) == 4 * len(metrics)
    assert len(apart) == 2 * len(metrics)
    by = {tuple(row[key] for key in (*where, "metric")): row for row in told}
    for row in means:
        kept = by[tuple(row[key] for key in (*where, "metric"))]
        assert {key: kept[key] for key in row} == pytest.approx(row, nan_ok=True)
    for row in apart:
        kept = by[tuple(row[key] for key in (*where, "metric"))]
        assert kept["against_flat"] == pytest.approx(row["mean"])
        assert kept["against_flat_p_holm"] == pytest.approx(row["p_holm"])
    main = (tmp_path / "paper" / "tables" / "main.tex").read_text()
    assert main.count(r"\\") == 1 + len(told)
    assert r"loss\_tick & flat & 2 & 3 & " in main


def test_methods_say_what_was_compared_registered_and_tested(swept: Path, tmp_path: Path) -> None:
    write_paper(swept, tmp_path / "paper")
    methods = (tmp_path / "paper" / "methods.md").read_text()
    registered = yaml.safe_load((swept / "registration.yaml").read_text())["hash"]
    for part in (
        "We simulated 5 agents in the world `market` for 3 ticks",
        "A market with scammers",
        "`flat` (simulation.policy_options.tiers false), `tiers` (as the scenario says)",
        "`simulation.world_options.scammers` was 2 and 3",
        "the same 3 seeds (1–3), 12 runs in all",
        "the primary metric, `loss`, and 2 looks",
        registered,
        "the baseline (variant flat)",
        "a level of 97.5 %",
        "(Holm 1979)",
        "Holm, S. (1979)",
        f"on TierMem {tiermem.__version__}",
        "| `simulation.agents` | 10 | 5 |",
    ):
        assert part in methods, part
    assert "Park, J. S." not in methods, "what is not cited is no reference"


def test_a_deviation_from_the_registration_is_told(swept: Path, tmp_path: Path) -> None:
    changed = tmp_path / "swept"
    changed.mkdir()
    for file in swept.iterdir():
        if file.is_file():
            (changed / file.name).write_bytes(file.read_bytes())
    sweep = read_sweep(swept.parent / "sweep.yaml")
    rows = SweepRecord.read(swept).rows[1:]
    done = {
        row["cell"]: {"state_hash": row["state_hash"], "metrics": {"loss": row["loss"]}}
        for row in rows
    }
    report = write_results(sweep, changed, done)
    assert report.look.deviations == ["1 run missing"]
    write_paper(changed, tmp_path / "paper")
    methods = (tmp_path / "paper" / "methods.md").read_text()
    assert "Deviation from the registration: 1 run missing." in methods


def test_an_odd_has_its_seven_elements_and_marks_gaps(swept: Path, tmp_path: Path) -> None:
    write_paper(swept, tmp_path / "paper")
    text = (tmp_path / "paper" / "odd.md").read_text()
    parts = re.split(r"^## (\d) (.*)$", text, flags=re.MULTILINE)
    assert parts[1::3] == list("1234567")
    assert parts[2::3] == [
        "Purpose and patterns", "Entities, state variables, and scales",
        "Process overview and scheduling", "Design concepts", "Initialization", "Input data",
        "Submodels",
    ]  # fmt: skip
    concepts = parts[parts.index("Design concepts") + 1]
    assert re.findall(r"^\*\*([A-Z][a-z ]+)\.\*\*", concepts, re.MULTILINE) == [
        "Basic principles", "Emergence", "Adaptation", "Objectives", "Learning", "Prediction",
        "Sensing", "Interaction", "Stochasticity", "Collectives", "Observation",
    ]  # fmt: skip
    assert "| `decline` | let the offer pass |" in text
    assert "| `scammers` | 3 |" in text
    assert text.count(MARK) > 8


def test_an_odd_says_who_can_hear_whom_and_whence_it_is_known(tmp_path: Path) -> None:
    (tmp_path / "friends.csv").write_text("a,b\nagent_00,agent_01\n")
    own = {"world": "minority", "agents": 3, "ticks": 2}
    societies = {"drawn": {"grid": [2, 2], "talk": 0.5}, "read": {"file": "friends.csv"}}
    for name, society in societies.items():
        simulation = {**own, "society": society}
        settings = load_settings({"storage": {"sync": "manual"}, "simulation": simulation})
        with Run.create(tmp_path / name, settings, scenario=tmp_path) as run:
            list(run.advance(2))
            run.finish()
        write_paper(tmp_path / name, tmp_path / f"{name}-paper")
    drawn, read = ((tmp_path / f"{name}-paper" / "odd.md").read_text() for name in societies)
    assert '`{"grid": [2, 2], "talk": 0.5}`' in drawn
    assert "agents that the world brings together talk" in drawn
    assert "reads no data from outside" in drawn
    assert "Who can hear whom is read from the file `friends.csv`." in read
    assert "reads no data from outside" not in read
    assert "brings together" not in read


WORLD = '''
"""A pond with frogs, where one is heard from afar."""
raise SystemExit("this code was run")


class Pond:
    """Frogs that :meth:`~pond.Pond.apply` croak."""

    actions = {"croak": "be heard"}

    def __init__(self, *, lilies: int = 4, depth: float = compute()) -> None: ...

    def observe(self, agent_id):
        """Who croaked in the last tick."""
'''


def test_a_world_of_the_users_own_is_read_and_not_run(tmp_path: Path) -> None:
    (tmp_path / "ponds").mkdir()
    (tmp_path / "ponds" / "pond.py").write_text(WORLD)
    source = source_of("ponds.pond:Pond", tmp_path)
    assert source.module == "A pond with frogs, where one is heard from afar."
    assert source.world == "Frogs that `apply` croak."
    assert source.actions == {"croak": "be heard"}
    assert source.options == {"lilies": 4, "depth": None}
    assert source.methods == {"observe": "Who croaked in the last tick."}
    os.mkfifo(tmp_path / "waits.py")
    (tmp_path / "deep.py").write_text("-" * 200_000 + "1")
    (tmp_path.parent / "beside.py").write_text('"""Not of the run."""')
    for world in ("waits:World", "deep:World", "../beside:World"):
        assert source_of(world, tmp_path) == WorldSource()
    for world, code in (("gone:World", tmp_path), ("gone:World", None), (None, None)):
        assert source_of(world, code) == WorldSource()


def test_the_same_run_gives_the_same_paper(swept: Path, tmp_path: Path) -> None:
    run = next((swept / "cells").iterdir())
    for name in ("one", "two"):
        write_paper(run, tmp_path / name)
    first, second = (
        {file.relative_to(place): file.read_bytes() for file in place.rglob("*") if file.is_file()}
        for place in (tmp_path / "one", tmp_path / "two")
    )
    assert first == second
    assert {Path("methods.md"), Path("odd.md"), Path("tables/metrics.csv")} < set(first)
    assert "This is one run, of seed" in (tmp_path / "one" / "methods.md").read_text()


def test_a_paper_replaces_nothing_but_a_paper(swept: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    for force in (False, True):
        with pytest.raises(RunError, match="is not a paper"):
            write_paper(swept, tmp_path / "full", force=force)
    write_paper(swept, tmp_path / "paper")
    with pytest.raises(RunError, match="exists already"):
        write_paper(swept, tmp_path / "paper")
    write_paper(swept, tmp_path / "paper", force=True)
    assert not list(tmp_path.glob(".*"))
    with pytest.raises(RunError, match="not a run"):
        write_paper(tmp_path / "full", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_place_that_takes_no_paper_is_one_clear_error(swept: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match="can't be written"):
        write_paper(swept, tmp_path / "file" / "paper")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("judged", "said"), [("mean", "-5 [-7, -3]"), ("median", "median -4 [-6, -2]")]
)
def test_the_main_table_shows_the_difference_that_was_judged(judged: str, said: str) -> None:
    row = {
        "against_flat": -5, "against_flat_low": -7, "against_flat_high": -3,
        "against_flat_median": -4, "against_flat_median_low": -6, "against_flat_median_high": -2,
        "against_flat_judged": judged,
    }  # fmt: skip
    assert _difference(row, "against_flat").replace("−", "-") == said


def test_a_sweep_that_has_no_results_says_so(swept: Path, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_bytes((swept / "plan.yaml").read_bytes())
    with pytest.raises(RunError, match="has no results"):
        SweepRecord.read(tmp_path)
    (tmp_path / "plan.yaml").write_text("seed: 1\n")
    with pytest.raises(RunError, match="no folder of a sweep"):
        SweepRecord.read(tmp_path)


def test_latex_and_csv_escape_what_has_a_meaning_there() -> None:
    rows = [{"a_b": "5 % & $x$ {y} \\ #", "n": -0.5}, {"a_b": 'a "q", b', "n": None}]
    text = as_latex(rows, "100 %")
    assert r"a\_b & n \\" in text
    assert r"5 \% \& \$x\$ \{y\} \textbackslash{} \# & $-$0.5 \\" in text
    assert r"\caption{100 \%}" in text
    assert as_csv(rows).splitlines() == ["a_b,n", "5 % & $x$ {y} \\ #,-0.5", '"a ""q"", b",']


CHARTS = {
    "curves": plots.curves({"loss": [1.0, None, 3.0], "−gain é": [0.1, -0.2, 4]}, [1, 2, 3]),
    "bands": plots.bands({"a": Band(5, [1, 2], [1.0, 2.0], [0.5, 1.0], [1.5, 3.0])}),
    "stacked": plots.stacked({"pinned": [1, 2], "low": [3, 4]}, [1, 2]),
    "bars": plots.bars({"alice": 3.0, "bob": -1.0}, "coins"),
    "intervals": plots.intervals(
        {str(n): [Interval(5, 3.0 + n, 2.0, 4.0 + n), None] for n in range(7)},
        ["a long name of a place", "b"], "loss", x_label="x", y_label="loss", connected=True,
        dots={"0": [[2.5, 3.1], []]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHARTS)
def test_a_pdf_is_well_formed_and_has_every_text_of_its_chart(name: str) -> None:
    chart = plots.alone(CHARTS[name])
    data = pdf(chart)
    assert data == pdf(chart)
    table = int(re.findall(rb"startxref\n(\d+)\n%%EOF\n$", data)[0])
    places = re.findall(rb"^(\d{10}) 00000 n $", data[table:], re.MULTILINE)
    for number, place in enumerate(places, 1):
        assert data[int(place) :].startswith(b"%d 0 obj\n" % number)
    (length,) = re.findall(rb"/Length (\d+) >>\nstream\n", data)
    start = data.index(b"stream\n") + len(b"stream\n")
    content = data[start : start + int(length)]
    assert data[start + int(length) :].startswith(b"\nendstream")
    assert len(re.findall(rb"^q\b", content, re.M)) == len(re.findall(rb"^Q$", content, re.M))
    shown = [bytes.fromhex(each.decode()) for each in re.findall(rb"<([0-9a-f]*)> Tj", content)]
    texts = [html.unescape(each) for each in re.findall(r"<text[^>]*>([^<]*)", chart)]
    assert [each.replace(b"\x81", b"-").decode("cp1252").replace("-", "−") for each in shown] == [
        each.replace("-", "−") for each in texts
    ]


@pytest.mark.parametrize(
    ("chart", "said"),
    [
        ("", "no element found"),
        ("<svg", "unclosed"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><svg/>', "not drawn by TierMem"),
        ("<svg/>", "width"),
        ('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><image/></svg>', "image"),
    ],
)
def test_what_is_no_chart_of_ours_is_refused(chart: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        pdf(chart)


def simulated(folder: Path, **plan: Any) -> Path:
    """A sweep's file about a small rumour."""
    simulation = {"world": "rumor", "agents": 8, "ticks": 4}
    (folder / "own.yaml").write_text(yaml.safe_dump({"simulation": simulation}))
    ranges = {LIARS: [0, 4], HERALD: [0, 6]}
    (folder / "plan.yaml").write_text(
        yaml.safe_dump({"scenario": "own.yaml", "ranges": ranges, **plan}, sort_keys=False)
    )
    return folder / "plan.yaml"


def test_a_sweep_over_ranges_tells_its_indices(tmp_path: Path) -> None:
    sweep = read_sweep(simulated(tmp_path, points=64))
    prepare(sweep, tmp_path / "swept", force=False)
    done = {
        each.name: {"state_hash": each.name, "metrics": {"accuracy": float(each.point[0]) ** 2}}  # type: ignore[arg-type]
        for each in sweep.runs()
    }
    write_sensitivity(sweep, tmp_path / "swept", done)
    write_paper(tmp_path / "swept", tmp_path / "paper")
    methods = (tmp_path / "paper" / "methods.md").read_text()
    assert f"uniformly and independently: `{LIARS}` (0 to 4) and `{HERALD}` (0 to 6)" in methods
    assert "Saltelli, A." in methods
    assert "Talts, S." not in methods
    main = (tmp_path / "paper" / "tables" / "main.tex").read_text()
    assert "accuracy & scenario & simulation.world" in main
    assert (tmp_path / "paper" / "figures" / "indices-1.pdf").read_bytes().startswith(b"%PDF")


def test_a_fit_tells_its_posterior_and_how_it_was_checked(tmp_path: Path) -> None:
    fit = read_fit(simulated(tmp_path, runs=200, accept=0.1))
    prepare(fit.sweep, tmp_path / "swept", force=False)
    done = {}
    for each in fit.sweep.runs():
        value = 2.0 * each.point[0]  # type: ignore[operator]
        place = tmp_path / "swept" / "cells" / each.name
        place.mkdir(parents=True)
        rows = [{"tick": tick, "false_answers": value * tick} for tick in range(5)]
        (place / "metrics.parquet").write_bytes(table(rows))
        done[each.name] = {"state_hash": each.name, "metrics": {"false_answers": value}}
    (tmp_path / "data.csv").write_text("tick,false_answers\n1,4\n2,8\n3,12\n4,16\n")
    write_fit(fit, read_data(tmp_path / "data.csv", fit), tmp_path / "swept", done)
    write_paper(tmp_path / "swept", tmp_path / "paper")
    methods = (tmp_path / "paper" / "methods.md").read_text()
    assert "by rejection: the 20 runs" in methods
    assert "Talts, S." in methods
    main = (tmp_path / "paper" / "tables" / "main.tex").read_text()
    assert r"simulation.world\_options.liars & 0 & 4 & 20 & 2 [2, 2]" in main
    assert (tmp_path / "paper" / "tables" / "predictions.csv").is_file()
