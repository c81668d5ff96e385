"""docs/results-llm.md is what ``make results-llm`` writes, which asks a small real model."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from agents.simulation.sweeps.sweep import read_sweep
from banks import ROOT


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "docs")
    return importlib.import_module("make_results_llm")


def rows_of(page: str, section: str) -> set[str]:
    """What the rows of a section's tables are about."""
    text = page.split(f"## {section}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return {line.split(" | ")[0].removeprefix("| ") for line in lines}


def check(page: str, maker: Any) -> None:
    place = 0
    for words in re.split(r"\{\w+\}", maker.TEXT):
        place = page.index(words, place) + len(words)
    usable, pinned = rows_of(page, "Usable replies"), rows_of(page, "What it pins")
    assert (len(usable), len(pinned)) == (4, 6)
    assert {f"pins something, {way}" for way in maker.WAYS} < pinned
    sweep = read_sweep(ROOT / "simulations/market_llm_sweep.yaml")
    alone = rows_of(page, "What tiers then gain: the model decides by itself")
    assert alone == {"design", *sweep.variants}
    ruled = rows_of(page, "What tiers then gain: rules with the model's pins")
    its_pins = (f"tiers, pins by {way}" for way in maker.WAYS)
    assert ruled == {"design", "flat", *its_pins, "tiers, pins by rule"}


def test_the_page_has_the_words_of_its_script_and_a_row_for_all_that_was_tried(maker: Any) -> None:
    page = maker.PAGE.read_text()
    check(page, maker)
    scale = maker.Scale()
    assert f"over the shares of {len(scale.seeds)} seeds" in page
    assert f"(less is better), {len(scale.rules_seeds)} seeds:" in " ".join(page.split())


@pytest.mark.llm
def test_a_small_model_gives_the_page(maker: Any, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    few = {"simulation.agents": 3, "simulation.world_options": {"scammers": 1}}
    once = {"simulation.ticks": 1, "simulation.policy_options": {"retries": 0}}
    scale = maker.Scale(
        seeds=[1],
        model={**maker.MODEL, "llm.max_tokens": 128},
        market=few,
        asked=[2],
        no_schema=1,
        alone={**few, **once},
        alone_seeds=[1],
        rules={"simulation.ticks": 5},
        rules_seeds=[1],
    )
    found = maker.find(scale, tmp_path)
    check(maker.page(found), maker)
    by_what = {(case.way, case.what) for case in found.cases[1]}
    assert len(by_what) == 10
    assert found.deeds["decisions"] == 6
    # A schema makes replies of the form; this model does not do so by words alone.
    assert any(case.is_so for case in found.cases[1] if case.what == "usable")
    assert not any(case.is_so for case in found.cases[1] if case.way == maker.PLAIN)
