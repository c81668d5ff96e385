"""docs/results.md is what the sweeps of the classic agents give."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from agents.config.load import preset_settings
from agents.errors import ConfigError
from agents.simulation.sweeps.sweep import read_sweep
from banks import ROOT

WORLDS = ("market", "household", "rumor")


def maker() -> Any:
    spec = importlib.util.spec_from_file_location("make_results", ROOT / "docs/make_results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("world", WORLDS)
def test_a_variant_has_the_settings_of_its_preset(world: str) -> None:
    sweep = read_sweep(ROOT / "simulations" / f"{world}_classics.yaml")
    by_variant = {cell.variant: sweep.settings(cell) for cell in sweep.runs()}
    assert by_variant["tiers"].retrieval.score == "tiers"
    assert by_variant["memorybank"].retrieval.score == "forgetting"
    assert by_variant["recency"].retrieval.score == "recency"
    assert by_variant["generative-agents"].reflection.enabled
    plain = by_variant["generative-agents without reflection"]
    assert (plain.retrieval.score, plain.reflection.enabled) == ("generative", False)
    assert {each.memory.default_limit for each in by_variant.values()} == {5}
    assert preset_settings("recency")["retrieval.pins_first"] is False


def test_a_variant_with_an_unknown_preset_is_refused(tmp_path: Path) -> None:
    (tmp_path / "market.yaml").write_text((ROOT / "simulations/market.yaml").read_text())
    file = tmp_path / "sweep.yaml"
    file.write_text("scenario: market.yaml\nvariants: {a: {preset: memorybnk}}\nseeds: 1\n")
    with pytest.raises(ConfigError, match=r"run a_seed=1: there is no preset 'memorybnk'"):
        read_sweep(file)


def test_the_page_names_every_world_and_design() -> None:
    text = (ROOT / "docs/results.md").read_text()
    for world in WORLDS:
        sweep = read_sweep(ROOT / "simulations" / f"{world}_classics.yaml")
        section = text.split(f"## {world}: ")[1].split("\n## ")[0]
        rows = [line.split(" | ")[0].removeprefix("| ") for line in section.splitlines()]
        assert set(sweep.variants) <= set(rows)
        assert f"{len(sweep.seeds)} seeds each" in text


@pytest.mark.long
def test_the_page_agrees_with_a_fresh_run(tmp_path: Path) -> None:
    made = maker()
    results = {world: made.sweep(world, tmp_path / world) for world in WORLDS}
    assert made.page(results) == made.PAGE.read_text()
