"""The experiments in a run's folder or beside it are a section of its report."""

import json
from pathlib import Path
from typing import Any

import pytest

from agents.simulation.runs.found_effects import effects_section

EFFECT: dict[str, Any] = {
    "run": "run",
    "at": 3,
    "until": 9,
    "changed": ["agent_00 forgets “Never <b>accept</b>”"],
    "statistics": [
        {"metric": "scams", "n": 8, "mean": 0.0, "low": None, "high": None},
        {"metric": "loss", "n": 8, "mean": 7.0, "low": 4.5, "high": 9.5},
    ],
}
TESTED = {
    "agent": "bob",
    "text": "the <i>bridge</i> is out",
    "difference": 7.0,
    "low": 6,
    "high": 8,
}
RANKING = {"run": "run", "until": 9, "metric": "loss", "tested": [TESTED]}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


def keep(folder: Path, told: object) -> None:
    folder.mkdir(parents=True)
    (folder / "effect.json").write_text(told if isinstance(told, str) else json.dumps(told))


def test_a_run_without_experiments_has_no_section(run: Path) -> None:
    assert effects_section(run) == ""
    (run / "effects" / "empty").mkdir(parents=True)
    assert effects_section(run) == ""


def test_each_experiment_has_a_row_with_a_link(run: Path) -> None:
    keep(run / "effects" / "warning", EFFECT)
    keep(run.parent / "all that mattered", RANKING)
    section = effects_section(run)
    assert 'href="effects/warning/report.html"' in section
    assert 'href="../all%20that%20mattered/report.html"' in section
    assert "loss: 7 (4.5 to 9.5)<br>scams: 0" in section
    assert "loss without bob" in section
    assert "Never &lt;b&gt;accept" in section
    assert "<i>bridge" not in section


def test_another_runs_experiment_is_left_out(run: Path) -> None:
    keep(run.parent / "effects" / "other", {**EFFECT, "run": "another"})
    assert effects_section(run) == ""


def test_what_can_not_be_read_harms_nothing(run: Path) -> None:
    wrong = {"run": "run", "until": 9, "changed": [], "statistics": [{"metric": "<script>"}]}
    for name, told in (("a", "{"), ("b", []), ("c", {"changed": 3}), ("d", 7), ("e", wrong)):
        keep(run / "effects" / name, told)
    keep(run / "effects" / "good", EFFECT)
    section = effects_section(run)
    assert section.count("<tr>") == 2  # the head, and one experiment
    assert "<script>" not in section
    assert "loss: 7" in section
