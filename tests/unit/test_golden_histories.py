"""Results, ids, scores and hashes are to the last bit what was recorded of them."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "golden"))

import histories

RECORDED = json.loads(histories.RECORDED.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", histories.SCENARIOS)
def test_a_shipped_scenario_runs_as_it_was_recorded(name: str, tmp_path: Path) -> None:
    assert histories.run_history(name, tmp_path / "run") == RECORDED[name]


@pytest.mark.parametrize("preset", histories.BANKS)
def test_a_bank_answers_as_it_was_recorded(preset: str, tmp_path: Path) -> None:
    assert histories.bank_history(preset, tmp_path / "bank") == RECORDED[preset]
