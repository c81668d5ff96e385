"""The run of a real model in the repository shows itself to everybody, without any model.

If a change of prompts or of what is recorded is meant, ``make record-llm`` records the run anew.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspected_sites import ask, looked_at

from banks import ROOT

Command = Callable[..., Any]
RECORDED = ROOT / "simulations/recorded/market_llm"
AGENTS = [f"agent_0{number}" for number in range(4)]


def files() -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in RECORDED.rglob("*") if path.is_file()}


def test_the_recorded_run_is_small_and_names_no_machine() -> None:
    found = files()
    assert 50_000 < sum(map(len, found.values())) < 300_000
    assert json.loads((RECORDED / "run.json").read_text())["scenario"] is None
    for path, content in found.items():
        assert not re.search(rb"(?<![\w:/.<*])/[a-z]+/", content), path  # an absolute path
    lines = [json.loads(line) for line in (RECORDED / "cassette.jsonl").read_text().splitlines()]
    assert {(line["tick"], line["agent"]) for line in lines} == {
        (tick, agent) for tick in range(1, 7) for agent in AGENTS
    }
    # A model was asked, which counts what it reads.
    assert all(line["model"] == "local" for line in lines)
    assert sum(line["read"] or 0 for line in lines) > 100 * len(AGENTS)


def test_the_recorded_run_replays_and_is_shown_without_a_model(
    tiermem: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    before = files()
    assert tiermem("replay", RECORDED, "--json").json == {"equal": True, "ticks": 6, "problems": []}
    told = tiermem("why", RECORDED, "--agent", "agent_01", "--tick", 2).out
    assert "decision by local" in told
    assert "You are agent_01." in told
    with looked_at(RECORDED) as site:
        shown = ask(site, "agent", agent="agent_01", tick=2)
    assert "You are agent_01." in shown["exchanges"][0]["messages"][1]["content"]
    assert shown["calls"][0].startswith("decision by local")
    assert tiermem("inspect", RECORDED, "--export", tmp_path / "page.html").code == 0
    assert files() == before
