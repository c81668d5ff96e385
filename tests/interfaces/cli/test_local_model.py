"""A real model in this process, from a scenario to the replay without it: ``make llm``."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from banks import ROOT

Command = Callable[..., Any]

pytestmark = pytest.mark.llm


def test_a_small_model_decides_in_the_market_and_the_run_replays_without_it(
    tiermem: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xllamacpp")
    given = ROOT / "simulations" / "market_llm.yaml"
    # One thread, since other work may go on; a call that hangs ends the run, which names it.
    chosen = ("simulation.agents=4", "llm.threads=1", "llm.timeout=60", "llm.patience=0")
    options = [part for each in chosen for part in ("--set", each)]
    done = tiermem("run", given, "--ticks", 2, *options, "--out", "r", "-q")
    assert done.code == 0, done.err
    summary = json.loads(Path("r/summary.json").read_text())
    assert summary["no_ops"] == 0
    lines = [json.loads(line) for line in Path("r/cassette.jsonl").read_text().splitlines()]
    assert {line["agent"] for line in lines} == {"agent_00", "agent_01", "agent_02", "agent_03"}
    later = [line for line in lines if line["tick"] > 1]
    assert sum(line["cached"] for line in later) > 0.5 * sum(line["read"] for line in later)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    assert tiermem("replay", "r", "--verify", "--json").json["equal"] is True
