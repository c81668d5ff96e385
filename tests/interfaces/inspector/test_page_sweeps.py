"""Several pages over one sweep: each sees its own run. An export of a sweep has no runs."""

import shutil
import threading
from pathlib import Path
from shlex import quote

import pytest
from browsers import Browser, served
from commands import Command
from inspected_sites import ask, looked_at

from agents import MemoryBank
from agents.interfaces.inspector.export import write_export
from agents.interfaces.inspector.parameters import NotThere, Parameters
from agents.simulation.runs.sharded import LOCAL
from agents.simulation.sweeps.results import write_results
from agents.simulation.sweeps.sweep import read_sweep, run_cells

AGENT = "agent_00"


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sweeps")
    (place / "market.yaml").write_text("simulation: {world: market, agents: 5, ticks: 4}\n")
    (place / "sweep.yaml").write_text(
        "scenario: market.yaml\nseeds: 4\ngrid: {memory.max_pinned: [1, 3]}\n"
    )
    plan = read_sweep(place / "sweep.yaml")
    cells = run_cells(plan, place / "swept", LOCAL, force=False, keep_runs=True)
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


def test_a_sweep_that_goes_on_names_a_run_that_is_done(
    swept: Path, tmp_path: Path, tiermem: Command
) -> None:
    shutil.copytree(swept, tmp_path / "swept")
    (tmp_path / "swept" / "results.parquet").unlink()
    cells = _cells(swept)
    (tmp_path / "swept" / "cells" / cells[0] / "summary.json").unlink()
    refused = tiermem("inspect", "swept")
    assert refused.is_one_error(1, "swept has no results yet", f"{len(cells) - 1} of its runs are")
    assert f"Meanwhile: tiermem inspect {quote(f'swept/cells/{cells[1]}')}" in refused.err
