"""Several pages over one sweep: each sees its own run. An export of a sweep has no runs."""

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from browsers import Browser, served
from commands import Command
from inspected_sites import ask, looked_at

from agents import MemoryBank
from agents.interfaces.inspector.export import write_export
from agents.interfaces.inspector.parameters import NotThere, Parameters
from agents.simulation.runs.placement import LOCAL
from agents.simulation.sweeps.run_sweep import run_all, write_results
from agents.simulation.sweeps.sweep import read_sweep
from waiting import until

pytestmark = pytest.mark.slow

AGENT = "agent_00"


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sweeps")
    (place / "market.yaml").write_text(
        "storage: {sync: manual}\nsimulation: {world: market, agents: 5, ticks: 4}\n"
    )
    (place / "sweep.yaml").write_text(
        "scenario: market.yaml\nseeds: 4\ngrid: {memory.max_pinned: [1, 3]}\n"
    )
    plan = read_sweep(place / "sweep.yaml")
    cells = run_all(plan, place / "swept", LOCAL, force=False)
    done = {cell.name: result for cell, result in cells if not isinstance(result, str)}
    write_results(plan, place / "swept", done)
    return place / "swept"


def _cells(swept: Path) -> list[str]:
    return sorted(each.name for each in (swept / "cells").iterdir())


def _texts(swept: Path, cell: str, tick: int) -> list[str]:
    """What an agent of a sweep's run remembered after a tick."""
    with MemoryBank.at(swept / "cells" / cell / "bank", tick) as bank:
        return [memory.content for memory in bank.agent(AGENT).all()]


def _open_runs() -> int:
    return sum(each.name == "inspector" for each in threading.enumerate())


def test_requests_that_name_a_run_see_it_whatever_others_open(swept: Path) -> None:
    cells, before = _cells(swept), _open_runs()
    expected = {cell: _texts(swept, cell, 4) for cell in cells}
    with looked_at(swept) as site:
        ask(site, "open", name=cells[0])
        for cell in [*cells, *reversed(cells)]:
            rows = ask(site, "memories", cell=cell, effect="", agent=AGENT, tick=4)["rows"]
            assert [row["text"] for row in rows] == expected[cell]
            about = ask(site, "about", cell=cell, effect="")
            assert (about["cell"], about["runs"][0]["name"]) == (cell, cell)
            assert _open_runs() - before <= 5
        assert ask(site, "about")["cell"] == cells[0]  # what was opened last
        assert ask(site, "about", cell="", effect="")["kind"] == "sweep"
        with pytest.raises(NotThere, match="no run 'nothing'"):
            ask(site, "memories", cell="nothing", agent=AGENT, tick=4)
        assert ask(site, "about")["cell"] == cells[0]
    assert _open_runs() == before


def test_two_tabs_look_at_two_runs(browser: Browser, swept: Path) -> None:
    one, other = _cells(swept)[0], _cells(swept)[-1]
    driver = browser.driver
    first = driver.current_window_handle
    with served(swept) as address:
        try:
            browser.open(address, f"#/agent/{AGENT}?cell={one}&t=4&sort=created")
            browser.shows("#memories[data-ready=true] .row")
            driver.switch_to.new_window("tab")
            browser.open(address, f"#/agent/{AGENT}?cell={other}&t=4&sort=created")
            browser.shows("#memories[data-ready=true] .row")
            for tick in (3, 2):
                for tab, cell in zip(driver.window_handles, (one, other), strict=True):
                    driver.switch_to.window(tab)
                    browser.go(f"#/agent/{AGENT}?cell={cell}&t={tick}&sort=created")
                    browser.shows(".view-head h1", f"in tick {tick}")
                    texts = _texts(swept, cell, tick)
                    browser.shows(f"#memories[data-ready=true][data-total='{len(texts)}']")
                    assert browser.all("#memories .row .c-text") == texts
                    assert browser.all(".brand b") == [cell]
        finally:
            driver.close()
            driver.switch_to.window(first)
    assert _texts(swept, one, 3) != _texts(swept, other, 3)


def test_an_exported_sweep_says_how_its_runs_are_opened(
    browser: Browser, swept: Path, tmp_path: Path
) -> None:
    with looked_at(swept) as site:
        write_export(site, tmp_path / "swept.html")
    browser.open((tmp_path / "swept.html").as_uri())
    browser.click("#grid .cell-button")
    browser.shows("#no-server", "tiermem inspect SWEEP opens them")
    assert browser.all("#runs .tick-link") == []
    assert browser.complaints() == []


def test_a_branch_of_a_sweeps_run_lies_among_its_cells_and_changes_no_result(
    swept: Path, tmp_path: Path, tiermem: Command
) -> None:
    shutil.copytree(swept, tmp_path / "swept")
    cell = _cells(swept)[0]
    with looked_at(tmp_path / "swept", allow_branch=True) as site:
        given = {"cell": cell, "effect": "", "agent": AGENT, "tick": "2"}
        before = ask(site, "sweep")
        made = site.branched(Parameters(given))
        assert Path(made["out"]) == tmp_path / "swept" / "cells" / f"{cell}-branch-2"
        assert (Path(made["out"]) / "summary.json").is_file()
        assert ask(site, "sweep") == before
    said = " ".join(tiermem("inspect", "--help").out.split())
    assert "in SWEEP/cells" in said
    assert "Nothing is written to the folder" not in said


def test_a_sweep_that_goes_on_is_a_grid_that_grows(
    browser: Browser, swept: Path, tmp_path: Path
) -> None:
    going = shutil.copytree(swept, tmp_path / "swept")
    with looked_at(swept) as site:
        whole = ask(site, "sweep")
    (going / "results.parquet").rename(tmp_path / "results.parquet")
    cell = _cells(swept)[0]
    (going / "cells" / cell / "summary.json").rename(tmp_path / "summary.json")
    with served(going) as address:
        browser.open(address)
        browser.shows("#points", "7 of 8 runs that began are done")
        browser.click("#grid .cell-button")
        browser.shows("#runs .tick-link", cell)
        (tmp_path / "summary.json").rename(going / "cells" / cell / "summary.json")
        browser.shows("#points", "8 of 8 runs")
        (tmp_path / "results.parquet").rename(going / "results.parquet")
        until("it is finished", lambda: "so far" not in browser.all("#points")[0])
        browser.click(f"#runs .tick-link[data-run='{cell}']")
        browser.shows(".brand b", cell)
        assert browser.complaints() == []
    with looked_at(going) as site:
        assert ask(site, "sweep") == whole


def test_the_grid_of_a_sweep_that_goes_on_is_that_of_its_table(swept: Path, tmp_path: Path) -> None:
    place = tmp_path / "sweeps"
    place.mkdir()
    (place / "market.yaml").write_text(
        "storage: {sync: manual}\nsimulation: {world: market, agents: 5, ticks: 1}\n"
    )
    (place / "sweep.yaml").write_text(
        "scenario: market.yaml\nseeds: [7, 2]\n"
        "variants: {b c: {}, a: {temperature.hot_max_facts: 2}}\n"
        "grid: {memory.max_pinned: [1, 3], memory.default_limit: [2, 4]}\n"
    )
    plan = read_sweep(place / "sweep.yaml")
    cells = run_all(plan, place / "swept", LOCAL, force=False)
    done = {cell.name: result for cell, result in cells if not isinstance(result, str)}
    with looked_at(place / "swept") as site:
        so_far = ask(site, "sweep")
    write_results(plan, place / "swept", done)
    with looked_at(place / "swept") as site:
        whole = ask(site, "sweep")
    assert len(whole["points"]) == 8
    assert (so_far.pop("is_finished"), whole.pop("is_finished")) == (False, True)
    assert _sorted(so_far) == _sorted(whole)


def _sorted(sweep: dict[str, Any]) -> dict[str, Any]:
    """A sweep with its points and runs in one order; the plan does not keep that of the file."""
    points = [
        {**own, "seeds": sorted(own["seeds"]), "runs": sorted(own["runs"], key=str)}
        for own in sweep["points"]
    ]
    return {**sweep, "points": sorted(points, key=str)}


def test_a_sweep_says_what_is_missing_or_damaged(
    swept: Path, tmp_path: Path, tiermem: Command
) -> None:
    shutil.copytree(swept, tmp_path / "swept")
    (tmp_path / "swept" / "results.parquet").write_bytes(b"PAR1")
    damaged = tiermem("inspect", "swept")
    assert damaged.is_one_error(1, "results.parquet can't be read", "writes it anew")
    (tmp_path / "swept" / "results.parquet").unlink()
    plan = (tmp_path / "swept" / "plan.yaml").read_text()
    keys = "".join(f"  a.k{number}: [1, 2]\n" for number in range(60))
    (tmp_path / "swept" / "plan.yaml").write_text(f"{plan}grid:\n{keys}")
    assert tiermem("inspect", "swept").is_one_error(1, "plan.yaml can't be read", "100000 points")
    (tmp_path / "swept" / "plan.yaml").write_text(plan)
    shutil.rmtree(tmp_path / "swept" / "cells")
    (tmp_path / "swept" / "cells").mkdir()
    assert tiermem("inspect", "swept").is_one_error(1, "swept has no run yet")
