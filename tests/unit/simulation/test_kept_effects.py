"""The experiments beside a run are a section of its report."""

import json
from pathlib import Path
from typing import Any

from agents.simulation.runs.kept_effects import effects_section

EFFECT: dict[str, Any] = {
    "at": 3,
    "until": 9,
    "changed": ["agent_00 forgets “Never <b>accept</b>”"],
    "statistics": [
        {"metric": "trades", "n": 8, "mean": 0.0, "low": 0.0, "high": 0.0},
        {"metric": "loss", "n": 8, "mean": 7.0, "low": 4.5, "high": 9.5},
        {"metric": "scams", "n": 8, "mean": 1.0, "low": None, "high": None},
    ],
}
RANKING: dict[str, Any] = {
    "until": 9,
    "metric": "loss",
    "tested": [
        {"agent": "agent_01", "difference": 7.0, "low": None, "high": None, "text": "the <i>bridge"}
    ],
}


def kept(folder: Path, told: object) -> None:
    """An experiment with the run ``market``."""
    folder.mkdir(parents=True)
    own = {"run": "runs/market", **told} if isinstance(told, dict) else told
    (folder / "effect.json").write_text(own if isinstance(own, str) else json.dumps(own))


def test_a_run_without_experiments_has_no_section(tmp_path: Path) -> None:
    run = tmp_path / "market"
    (run / "effects" / "empty").mkdir(parents=True)
    assert effects_section(run) == ""


def test_each_experiment_has_a_row_with_a_link(tmp_path: Path) -> None:
    run = tmp_path / "market"
    kept(run / "effects" / "warning", EFFECT)
    kept(tmp_path / "effects" / "all that mattered", RANKING)
    kept(tmp_path / "effects" / "of another", {**EFFECT, "run": "runs/other"})
    section = effects_section(run)
    assert 'href="effects/warning/report.html"' in section
    assert 'href="../effects/all%20that%20mattered/report.html"' in section
    assert "of another" not in section
    assert "loss: 7 (4.5 to 9.5)<br>scams: 1<br>trades: 0" in section
    assert "loss without agent_01" in section
    assert "Never &lt;b&gt;accept" in section
    assert "<i>bridge" not in section


def test_what_can_not_be_read_harms_nothing(tmp_path: Path) -> None:
    run = tmp_path / "market"
    bad: list[object] = ["{", [], {"changed": 3}, 7, {**EFFECT, "statistics": [{"metric": "<s>"}]}]
    for number, told in enumerate(bad):
        kept(run / "effects" / str(number), told)
    kept(run / "effects" / "good", EFFECT)
    section = effects_section(run)
    assert section.count("<tr>") == 2
    assert "loss: 7" in section
