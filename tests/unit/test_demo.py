"""The README's table, the picture and the shipped scenarios say what `make demo` measures."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from banks import ROOT
from tiermem.config.load import load_settings

README = (ROOT / "README.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in README.splitlines()
    if re.match(r"\| [^|]+ \| (default|vector) \|", line)
]
SCENARIOS = [
    path
    for path in sorted((ROOT / "simulations").glob("*.yaml"))
    if not path.stem.endswith(("sweep", "classics", "llm"))
]


def read_demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", ROOT / "simulations/demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DEMO = read_demo()


def test_the_readme_has_a_row_for_each_regime_and_search_of_the_demo() -> None:
    expected = [(regime.name, search) for regime in DEMO.REGIMES for search in DEMO.SEARCHES]
    assert [(row[0], row[1]) for row in ROWS] == expected
    assert len(DEMO.SEEDS) >= 20
    assert f"{len(DEMO.SEEDS)} seeds" in README


def test_the_readme_names_a_regime_in_which_tiers_do_not_pay() -> None:
    assert [row[0] for row in ROWS if row[2] == row[3]] == [DEMO.REGIMES[-1].name] * 2
    assert "They do not pay" in README


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_shipped_scenario_leaves_search_limit_and_budget_as_they_are(path: Path) -> None:
    scenario = yaml.safe_load(path.read_text())
    assert scenario.keys() <= {"seed", "checkpoint", "simulation", "clock"}
    assert scenario["simulation"]["policy"] == "rules"
    assert scenario["simulation"].get("policy_options") in ({"tiers": True}, {"recall": True}, None)
    assert "memories" not in scenario["simulation"]


def test_both_memories_of_the_demo_have_the_same_settings() -> None:
    defaults = load_settings().to_dict()
    for regime in DEMO.REGIMES:
        settings = DEMO.settings_of(regime, "default", False, 1).to_dict()
        other = DEMO.settings_of(regime, "default", True, 1).to_dict()
        assert settings["simulation"].pop("policy_options") == {"tiers": False}
        assert other["simulation"].pop("policy_options") == {"tiers": True}
        assert settings == other
        changed = {key for key, value in settings.items() if value != defaults[key]}
        assert changed <= {"seed", "checkpoint", "simulation"}


def test_the_two_searches_differ_in_the_section_about_finding_alone() -> None:
    default, vector = (
        DEMO.settings_of(DEMO.REGIMES[0], search, True, 1).to_dict() for search in DEMO.SEARCHES
    )
    assert {key for key in default if default[key] != vector[key]} == {"retrieval"}


def test_the_picture_shows_the_numbers_of_the_table() -> None:
    picture = (ROOT / "docs/images/demo.svg").read_text()
    shown = re.findall(r">(flat|tiers|flat and tiers): ([\d,.]+)<", picture)
    expected: list[tuple[str, str]] = []
    for name, search, flat, tiers, _ in ROWS:
        if search == "default":
            same = [("flat and tiers", tiers)]
            expected += same if flat == tiers else [("flat", flat), ("tiers", tiers)]
            assert name.removesuffix(": coins lost") in picture
    assert shown == expected


def test_the_table_has_means_and_paired_intervals() -> None:
    rows = [
        {"regime": "r", "search": "default", "memory": memory, "seed": seed, "result": result}
        for memory, results in (("flat", [9.0, 11.0, 13.0, 15.0]), ("tiers", [4.0, 5.0, 6.0, 7.0]))
        for seed, result in enumerate(results)
    ]
    *_, line = DEMO.table(rows)
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:4] == ["r", "default", "12.0", "5.5"]
    assert cells[4].startswith("−6.5 (−")


@pytest.mark.long
def test_a_run_of_the_demo_gives_the_same_again() -> None:
    def again() -> dict[str, Any]:
        found: dict[str, Any] = DEMO.run(DEMO.REGIMES[1], "default", False, 3)
        return found

    first = again()
    assert first == again()
    assert first["by_tick"][-1] == first["result"] > 0


@pytest.mark.long
def test_the_readmes_numbers_are_those_of_a_fresh_run(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "simulations/demo.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=3_600,
        check=True,
    )
    table = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert table == [line for line in README.splitlines() if line in table]
    assert len(table) == 2 + len(ROWS)
    rows = json.loads((tmp_path / DEMO.FIGURES).read_text())
    assert len(rows) == 2 * len(ROWS) * len(DEMO.SEEDS)
