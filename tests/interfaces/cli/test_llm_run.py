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


def asking(request: dict[str, Any]) -> str:
    """A model that asks before it steps."""
    if "You asked your memory" in request["messages"][1]["content"]:
        return STEP
    actions = [{"name": "recall_memory", "arguments": {"query": "stones", "limit": 2}}]
    return json.dumps({"actions": [*actions, {"name": "step"}]})


def test_a_model_asks_its_memory_and_the_run_replays(tiermem: Command, scenario: Write) -> None:
    with OpenAIServer(asking) as server:
        given = scenario(policy="llm", policy_options={"pause": 0})
        config = f"llm.config={{openai_base_url: '{server.url}', api_key: hush-hush, model: m}}"
        done = tiermem(
            "run", given, "--ticks", 3, "--set", "llm.provider=openai", "--set", config,
            "--set", "simulation.memory_actions=[search_memory, broadcast]", "--out", "r", "-q",
        )  # fmt: skip
        assert done == (0, "", "")
        assert len(server.requests) == 12  # two agents, three ticks, a question and an answer each
        assert "search_memory" in server.requests[0][1]["messages"][0]["content"]
        assert "- broadcast: tell several" in server.requests[0][1]["messages"][0]["content"]
    told = tiermem("why", "r", "-a", "bob", "-t", 3, "--json").json
    (question,) = told["asked"]
    assert (question["query"], question["limit"], question["cold"]) == ("stones", 2, True)
    assert len(question["found"]) == 2
    first, second = told["exchanges"]
    assert question["found"][0]["text"] in second["messages"][1]["content"]
    assert "You asked your memory: stones" in second["messages"][1]["content"]
    assert "You asked" not in first["messages"][1]["content"]
    assert [deed["name"] for deed in told["did"]] == ["step"]  # once, after the answer
    assert "its policy asked among cold memories, too: stones" in tiermem(
        "why", "r", "-a", "bob", "-t", 3
    ).out  # fmt: skip
    found = question["found"][0]["id"]
    life = tiermem("why", "r", "--memory", found, "--json").json["moments"]
    assert any(each["what"] == "found" and each["tick"] == 3 for each in life)
    assert tiermem("replay", "r", "--verify", "--json").json["equal"] is True


def test_a_model_that_may_ask_nothing_is_not_told_of_questions(
    tiermem: Command, scenario: Write
) -> None:
    with OpenAIServer(lambda _: STEP) as server:
        given = scenario(policy="llm", policy_options={"pause": 0}, asks=0)
        config = f"llm.config={{openai_base_url: '{server.url}', api_key: hush-hush, model: m}}"
        tiermem("run", given, "--ticks", 2, "--set", "llm.provider=openai", "--set", config,
                "--out", "r", "-q")  # fmt: skip
        assert "search_memory" not in server.requests[0][1]["messages"][0]["content"]
    assert tiermem("replay", "r", "--json").json["equal"] is True
