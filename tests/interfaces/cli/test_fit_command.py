"""``tiermem fit``: its runs are those of a sweep, and its data are checked before the first."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commands import Command, Write

import shortcuts
from agents.interfaces.inspector.sweeps import sweep
from agents.simulation.sweeps import fit as fits
from agents.simulation.sweeps import posterior

LIARS = "simulation.world_options.liars"
DATA = "tick,false_answers\n1,0\n2,1\n3,2\n"


def scenario_and_data(scenario: Write) -> tuple[Path, Path]:
    file = scenario("village", world="rumor", agents=8, ticks=3)
    data = file.with_name("data.csv")
    data.write_text(DATA)
    return file, data


def stamps(folder: Path) -> dict[str, int]:
    return {
        path.name: (path / "summary.json").stat().st_mtime_ns
        for path in (folder / "cells").iterdir()
    }


@pytest.mark.slow
def test_a_fit_goes_on_and_fits_other_data_without_a_run(
    tiermem: Command, scenario: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (fits, posterior):
        monkeypatch.setattr(module, "FEWEST_ACCEPTED", 2)
    file, data = scenario_and_data(scenario)
    text = f"scenario: village.yaml\nranges: {{{LIARS}: [0, 5]}}\nruns: 6\naccept: 0.5\n"
    file.with_name("fit.yaml").write_text(text)
    fit = ["fit", file.with_name("fit.yaml"), "--to", data, "--out", "f"]
    with shortcuts.spawned_processes_of_sweeps():
        done = tiermem(*fit, "--workers", 2)
    assert done.code == 0, done.err
    assert "3 of 6 runs are accepted" in done.out
    folder = Path("f")
    assert not (folder / "registration.yaml").exists()  # a fit tests nothing
    files = ("results.parquet", "posterior.parquet", "predictions.parquet", "report.html")
    first = {name: (folder / name).read_bytes() for name in files}
    before = stamps(folder)
    gone = min(before)
    rows = pq.read_table(folder / "results.parquet").to_pylist()
    liars = {row["cell"]: row[LIARS] for row in rows}
    shutil.rmtree(folder / "cells" / gone)
    (folder / "results.parquet").unlink()
    shown = {each["runs"][0]["name"]: each["values"][LIARS] for each in sweep(folder)["points"]}
    assert shown == {name: ran for name, ran in liars.items() if name != gone}
    again = tiermem(*fit, "--workers", 1, "--json")
    assert again.code == 0, again.err
    assert {name: (folder / name).read_bytes() for name in files} == first
    after = stamps(folder)
    assert [name for name in before if before[name] != after[name]] == [gone]
    assert again.json["posterior"] == pq.read_table(folder / "posterior.parquet").to_pylist()

    data.write_text("false_answers\n5\n")
    assert tiermem(*fit, "-q").code == 0
    assert stamps(folder) == after
    assert (folder / "report.html").read_bytes() != first["report.html"]
    more = tiermem(*fit, "--runs", 7)
    assert more.is_one_error(1, "is of another sweep")
    assert tiermem("inspect", folder, "--export", "fit.html").code == 0


@pytest.mark.parametrize(
    ("text", "options", "parts"),
    [
        (DATA, ["--range", LIARS], "is not KEY=LOW:HIGH"),
        (DATA, ["--range", f"{LIARS}=0"], "is not KEY=LOW:HIGH"),
        (DATA, ["--range", f"{LIARS}=0:nan"], "is not KEY=LOW:HIGH"),
        (DATA, ["--range", f"{LIARS}=5:0"], "upside down"),
        (DATA, ["--range", "weather=1:5"], "weather"),
        (DATA, [], "nothing is to be fitted"),
        ("", ["--range", f"{LIARS}=0:5"], "has no line"),
    ],
)
def test_a_wrong_fit_is_one_clear_error_and_runs_nothing(
    tiermem: Command, scenario: Write, text: str, options: list[str], parts: str
) -> None:
    file, data = scenario_and_data(scenario)
    data.write_text(text)
    assert tiermem("fit", file, "--to", data, *options).is_one_error(2, parts)
    assert not Path("runs").exists()
