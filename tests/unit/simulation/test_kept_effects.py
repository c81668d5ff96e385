"""The experiments in a run's own folder are a section of its report."""

import json
from pathlib import Path
from typing import Any

from agents.simulation.runs.kept_effects import effects_section

EFFECT: dict[str, Any] = {
    "changed": ["agent_00 forgets “Never <b>accept</b>”"],
    "statistics": [
        {"metric": "loss", "n": 8, "mean": 7.0, "low": 4.5, "high": 9.5},
        {"metric": "scams", "n": 8, "mean": 1.0, "low": None, "high": None},
    ],
}
RANKING = {"metric": "loss", "tested": [{"difference": 7.0, "text": "the <i>bridge</i> is out"}]}


def kept(run: Path, name: str, told: object) -> None:
    folder = run / "effects" / name
    folder.mkdir(parents=True)
    (folder / "effect.json").write_text(told if isinstance(told, str) else json.dumps(told))


def test_a_run_without_experiments_has_no_section(tmp_path: Path) -> None:
    assert effects_section(tmp_path) == ""
    (tmp_path / "effects" / "empty").mkdir(parents=True)
    assert effects_section(tmp_path) == ""


def test_each_experiment_has_a_row_with_a_link(tmp_path: Path) -> None:
    kept(tmp_path, "warning", EFFECT)
    kept(tmp_path, "all that mattered", RANKING)
    section = effects_section(tmp_path)
    assert 'href="effects/warning/report.html"' in section
    assert 'href="effects/all%20that%20mattered/report.html"' in section
    assert "loss: 7 (4.5 to 9.5)<br>scams: 1" in section
    assert "which memories mattered for loss" in section
    assert "Never &lt;b&gt;accept" in section
    assert "<i>bridge" not in section


def test_what_can_not_be_read_is_named_and_harms_nothing(tmp_path: Path) -> None:
    for name, told in (("a", "{"), ("b", []), ("c", {"changed": 3}), ("d", 7),
                       ("e", {"changed": [], "statistics": [{"metric": "<script>"}]})):  # fmt: skip
        kept(tmp_path, name, told)
    kept(tmp_path, "good", EFFECT)
    section = effects_section(tmp_path)
    assert section.count("can't be read") == 5
    assert "<script>" not in section
    assert "loss: 7" in section
