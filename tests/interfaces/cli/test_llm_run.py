"""A run whose agents ask an LLM, through the command line: it replays when the LLM is gone."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openai_server import OpenAIServer

Command = Callable[..., Any]
Write = Callable[..., Path]

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # third-party code
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

STEP = json.dumps({"actions": [{"name": "step"}]})


@pytest.fixture
def llm_run(tiermem: Command, scenario: Write) -> Path:
    with OpenAIServer(lambda _: STEP) as server:
        given = scenario(policy="llm", policy_options={"pause": 0})
        config = f"llm.config={{openai_base_url: '{server.url}', api_key: hush-hush, model: m}}"
        done = tiermem(
            "run", given, "--ticks", 3, "--set", "llm.provider=openai", "--set", config,
            "--out", "r", "-q",
        )  # fmt: skip
        assert done == (0, "", "")
        assert len(server.requests) == 6  # two agents, three ticks
    return Path("r")


def test_a_run_with_an_llm_replays_without_it(tiermem: Command, llm_run: Path) -> None:
    assert tiermem("replay", llm_run, "--verify", "--json").json["equal"] is True
    assert "hush-hush" not in "".join(
        path.read_text(errors="replace") for path in llm_run.rglob("*") if path.is_file()
    )


def test_a_reply_that_is_missing_is_a_divergence(tiermem: Command, llm_run: Path) -> None:
    cassette = llm_run / "cassette.jsonl"
    lines = cassette.read_text().splitlines(keepends=True)
    missing = json.loads(lines[3])
    cassette.write_text("".join(lines[:3] + lines[4:]))
    done = tiermem("replay", llm_run)
    assert done.code == 1
    assert f"tick {missing['tick']}" in done.out
    assert missing["agent"] in done.out


def test_a_checkpoint_holds_all_that_a_run_needs(llm_run: Path) -> None:
    database = sqlite3.connect(llm_run / "checkpoints" / "tick-000003.tmck")
    meta = dict(database.execute("SELECT key, value FROM meta").fetchall())
    ticks = database.execute("SELECT tick, state IS NOT NULL FROM ticks ORDER BY tick").fetchall()
    agents = [name for (name,) in database.execute("SELECT agent FROM agents ORDER BY agent")]
    database.close()
    extra = json.loads(meta["extra"])
    assert json.loads(meta["random"]) == {"seed": extra["config"]["seed"], "tick": 3}
    assert json.loads(meta["head"])[1] == 3
    assert json.loads(meta["versions"]).keys() == {"tiermem", "format", "python", "numpy"}
    assert len(meta["sha256"]) == 64
    assert extra["config"]["simulation"]["policy"] == "llm"
    assert extra["cassette"] == 6
    assert ticks == [(0, 0), (1, 0), (2, 0), (3, 1)]
    assert agents == ["alice", "bob"]
