"""The README's table, the picture and the shipped scenarios say what `make demo` measures."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from banks import ROOT
from tiermem.config.load import load_settings

README = (ROOT / "README.md").read_text()
WORLDS = (ROOT / "docs/architecture/worlds.md").read_text()


def rows_in(text: str) -> list[list[str]]:
    """The rows of the demo's table of memories, as cells."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if (row[0], row[1]) in PLACES]


SCENARIOS = [
    path
    for path in sorted((ROOT / "simulations").glob("*.yaml"))
    if not path.stem.endswith(("sweep", "classics", "llm", "society"))
    and path.stem not in ("helping", "minority")  # of papers in which agents remember more or less
]


def read_demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", ROOT / "simulations/demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DEMO = read_demo()


PLACES = [(regime.name, memory) for regime in DEMO.REGIMES for memory in regime.memories]
ROWS = rows_in(WORLDS)


def test_the_page_of_the_worlds_has_a_row_for_each_memory_of_the_demo() -> None:
    assert [(row[0], row[1]) for row in ROWS] == PLACES
    assert len(DEMO.SEEDS) >= 10  # docs/results.md has 20; the demo is to take two minutes
    assert f"`make demo`, {len(DEMO.SEEDS)} seeds" in README
    assert f"the {len(DEMO.cells())} runs" in README


def test_the_readme_names_what_does_as_well_and_where_tiers_harm() -> None:
    shown = rows_in(README)
    assert all(row in ROWS for row in shown)
    found = {(row[0], row[1]): row for row in shown}
    market, harm = DEMO.REGIMES[0].name, DEMO.REGIMES[-1].name
    for other in ("flat, well worded", "importance"):
        low, high = re.findall(r"[−+][\d.]+(?= to|\))", found[market, other][4])
        assert (low[0], high[0]) == ("−", "+")  # not told apart from tiers
    assert found[harm, "flat"][4].startswith("−")
    assert "they harm" in README


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_shipped_scenario_leaves_search_limit_and_budget_as_they_are(path: Path) -> None:
    scenario = yaml.safe_load(path.read_text())
    assert scenario.keys() <= {"seed", "checkpoint", "simulation", "clock"}
    assert scenario["simulation"]["policy"] == "rules"
    assert scenario["simulation"].get("policy_options") in ({"tiers": True}, {"recall": True}, None)
    assert "memories" not in scenario["simulation"]


def test_a_memory_of_the_demo_changes_what_it_is_named_for_and_nothing_else() -> None:
    defaults = load_settings(ROOT / "simulations/market.yaml").to_dict()
    changed = {
        memory: {
            section
            for section, value in DEMO.Cell(DEMO.REGIMES[0], memory, 7).settings().to_dict().items()
            if value != defaults[section]
        }
        for memory in DEMO.DESIGNS
    }
    assert changed["tiers"] == set()
    assert changed["flat"] == changed["flat, well worded"] == {"simulation"}
    assert changed["no memory"] == changed["flat, as many tokens"] == {"simulation", "memory"}
    assert changed["importance"] >= {"retrieval", "memory"}
    assert "simulation" not in changed["importance"]  # it has the rules of tiers


def test_flat_with_as_many_tokens_has_no_fewer_than_tiers() -> None:
    tokens = {row[1]: int(row[3]) for row in ROWS if row[0] == DEMO.REGIMES[0].name}
    assert tokens["flat, as many tokens"] >= tokens["tiers"] > tokens["flat"]


def test_the_picture_shows_the_means_of_the_table() -> None:
    picture = (ROOT / "docs/images/demo.svg").read_text()
    figures = re.findall(r">([\d,]+\.\d)</text>", picture)
    assert figures == [row[2] for row in ROWS]
    assert all(regime.name in picture for regime in DEMO.REGIMES)


def test_the_table_has_means_and_paired_intervals() -> None:
    rows = [
        {"regime": "r", "memory": memory, "noise": "", "seed": seed, "result": each, "tokens": 9}
        for memory, results in (("flat", [9.0, 11.0, 13.0, 15.0]), ("tiers", [4.0, 5.0, 6.0, 7.0]))
        for seed, each in enumerate(results)
    ]
    *_, flat, tiers = DEMO.table(rows)
    assert tiers == "| r | tiers | 5.5 | 9 |  |"
    assert flat.startswith("| r | flat | 12.0 | 9 | +6.5 (+")


@pytest.mark.long
def test_a_run_of_the_demo_gives_the_same_again() -> None:
    cell = DEMO.Cell(DEMO.REGIMES[1], "flat", 3)
    first = DEMO.run(cell)
    assert first == DEMO.run(cell)
    assert first["result"] > 0


@pytest.mark.long
def test_the_numbers_are_those_of_a_fresh_run(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "simulations/demo.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=3_600,
        check=True,
    )
    printed = [line for line in done.stdout.splitlines() if line.startswith("|")]
    rows = [line for line in printed if not line.startswith("|---")]  # other tables have these
    assert rows == [line for line in WORLDS.splitlines() if line in rows]
    assert len(printed) == 2 + len(ROWS) + 2 + len(DEMO.NOISE)
    assert len(json.loads((tmp_path / DEMO.FIGURES).read_text())) == len(DEMO.cells())
