"""docs/results.md is what the sweeps of the classic agents give."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from agents.config.load import preset_settings
from agents.errors import ConfigError
from agents.simulation.sweeps.sweep import read_sweep
from banks import ROOT

SWEEPS = ("market", "household", "rumor", "market_seller", "household_orders")


def maker() -> Any:
    spec = importlib.util.spec_from_file_location("make_results", ROOT / "docs/make_results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", SWEEPS[:3])
def test_a_variant_has_the_settings_of_its_preset(name: str) -> None:
    sweep = read_sweep(ROOT / "simulations" / f"{name}_classics.yaml")
    by_variant = {cell.variant: sweep.settings(cell) for cell in sweep.runs()}
    assert by_variant["tiers"].retrieval.score == "tiers"
    assert by_variant["memorybank"].retrieval.score == "forgetting"
    assert by_variant["recency"].retrieval.score == "recency"
    assert by_variant["generative-agents"].reflection.enabled
    plain = by_variant["generative-agents without reflection"]
    assert (plain.retrieval.score, plain.reflection.enabled) == ("generative", False)
    for variant, each in by_variant.items():
        own = 30 if variant.startswith("generative-agents") else 5
        alike = (100, 100) if variant.endswith("at 100 tokens") else (own, None)
        assert (each.memory.default_limit, each.memory.context_tokens) == alike
    assert preset_settings("recency")["retrieval.pins_first"] is False


def test_a_variant_with_an_unknown_preset_is_refused(tmp_path: Path) -> None:
    (tmp_path / "market.yaml").write_text((ROOT / "simulations/market.yaml").read_text())
    file = tmp_path / "sweep.yaml"
    file.write_text("scenario: market.yaml\nvariants: {a: {preset: memorybnk}}\nseeds: 1\n")
    with pytest.raises(ConfigError, match=r"run a_seed=1: there is no preset 'memorybnk'"):
        read_sweep(file)


def test_the_page_names_every_sweep_and_design() -> None:
    text = maker().PAGE.read_text()
    for name, (title, _) in maker().WORLDS.items():
        sweep = read_sweep(ROOT / "simulations" / f"{name}_classics.yaml")
        section = text.split(f"## {title} (")[1].split("\n## ")[0]
        rows = [line.split(" | ")[0].removeprefix("| ") for line in section.splitlines()]
        assert set(sweep.variants) <= set(rows)
        assert len(sweep.seeds) >= 20
        assert f"{len(sweep.seeds)} seeds each" in text
    assert tuple(maker().WORLDS) == SWEEPS


def compared(mean: float, low: float | None, high: float | None, p: float | None) -> Any:
    return {"metric": "loss", "n": 20, "mean": mean, "low": low, "high": high, "p_holm": p}


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (compared(100, 80, 120, 0.001), "loses"),
        (compared(-100, -120, -80, 0.001), "wins"),
        (compared(1, -2, 4, 0.6), "equal"),
        (compared(15, -10, 40, 0.3), "open"),
        (compared(0, None, None, None), "same"),
    ],
)
def test_a_verdict_needs_evidence(row: Any, verdict: str) -> None:
    assert maker()._verdict(row) == verdict


@pytest.mark.long
def test_the_page_agrees_with_a_fresh_run(tmp_path: Path) -> None:
    made = maker()
    results = {name: made.sweep(name, tmp_path / name) for name in SWEEPS}
    assert made.page(results) == made.PAGE.read_text()
