"""docs/replications.md is what ``make replications`` writes: papers' results beside ours."""

import importlib
import math
import re
from pathlib import Path
from typing import Any

import pytest

from agents.simulation.sweeps.sweep import read_sweep
from banks import ROOT


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "docs")
    return importlib.import_module("make_replications")


def test_the_page_has_the_words_of_its_script_and_a_row_for_all_that_was_run(maker: Any) -> None:
    page, place = maker.PAGE.read_text(), 0
    for words in re.split(r"\{\w+\}", maker.TEXT):
        place = page.index(words, place) + len(words)
    tables = re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE)
    rows = [table.count("\n") - 2 for table in tables if not table.startswith("| | ")]
    for name, found in zip(maker.SWEEPS, rows, strict=True):
        plan = read_sweep(ROOT / f"simulations/{name}_sweep.yaml")
        points = math.prod(len(values) for values in plan.grid.values())
        assert found == len(plan.variants) * points
        assert f"{len(plan.seeds)} seeds" in page
    for name in re.findall(r"images/\w+\.svg", page):
        assert (maker.PAGE.parent / name).read_text().startswith("<svg ")


def test_the_plain_models_have_the_papers_results(maker: Any) -> None:
    def spread(outcomes: int) -> float:
        return sum(maker.game(25, outcomes, 300, 100, seed) for seed in range(5)) / 5

    assert spread(1) > maker.COINS > 0.15 > spread(4)
    own = read_sweep(ROOT / "simulations/helping_sweep.yaml").settings().simulation

    def helped(memories: int) -> float:
        runs = [
            maker.village(memories, seed, own.world_options, 20, own.ticks) for seed in range(5)
        ]
        return sum(runs) / 5

    assert helped(0) < 0.25 < 0.4 < helped(40)


@pytest.mark.long
def test_the_page_agrees_with_a_fresh_run(maker: Any, tmp_path: Path) -> None:
    found = maker.find(maker.Scale(), tmp_path)
    assert maker.page(found) == maker.PAGE.read_text()
    for name, figure in maker.figures(found).items():
        assert (maker.IMAGES / name).read_text() == figure
