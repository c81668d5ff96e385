"""What a run tells a model of notes."""

import json
from pathlib import Path

import pytest
from note_banks import finish

from agents.config.load import load_settings
from agents.simulation.runs.run import Run
from banks import MANUAL
from openai_server import OpenAIServer


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("read_only", [True, False])
def test_a_model_is_told_of_notes_where_it_may_write_them(tmp_path: Path, read_only: bool) -> None:
    run = tmp_path / "run"
    with OpenAIServer(lambda _: json.dumps({"actions": []})) as server:
        model = {"openai_base_url": server.url, "api_key": "x", "model": "m"}
        settings = load_settings(
            {
                "seed": 3,
                "storage": MANUAL,
                "notes": {"read_only": read_only},
                "llm": {"provider": "openai", "config": model},
                "simulation": {
                    "world": "market",
                    "policy": "llm",
                    "agents": 5,
                    "ticks": 1,
                    "memory_actions": "all",
                },
            },
            preset="vector",
        )
        finish(Run.create(run, settings))
    asked = (run / "cassette.jsonl").read_text()
    assert ("append_note" in asked) is not read_only
