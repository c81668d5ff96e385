"""A run over workers whose language model goes away, or costs too much: it stands between two
ticks, asks again for nothing that was answered, and ends as a run in one process does."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openai_server import Fault, OpenAIServer

Command = Callable[..., Any]
Write = Callable[..., Path]

pytestmark = pytest.mark.slow

STEP = json.dumps({"actions": [{"name": "step"}]})
TICKS, AGENTS = 4, ["ann", "bob", "cat", "dan"]
OUTPUTS = ("metrics.parquet", "ticks.parquet", "decisions.parquet")


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(lambda _: STEP) as running:
        yield running


@pytest.fixture
def run(tiermem: Command, scenario: Write, server: OpenAIServer) -> Callable[..., Any]:
    """Runs a scenario of four agents, by default over two workers."""

    def start(out: str, *more: object, workers: int = 2) -> Any:
        options = {"policy": "llm", "policy_options": {"pause": 0}, "agents": AGENTS}
        given = scenario(ticks=TICKS, **options)
        llm = {"base_url": server.url, "model": "m", "patience": 0}
        spread = ("--engine", "processes", "--workers", workers) if workers else ()
        return tiermem("run", given, "--set", f"llm={llm}", *spread, "--out", out, "-q", *more)

    return start


def asked(server: OpenAIServer) -> Counter[str]:
    """How often each prompt was answered or refused."""
    return Counter(json.dumps(body["messages"]) for _, body in server.requests)


def outputs(folder: str) -> list[bytes]:
    return [Path(folder, name).read_bytes() for name in OUTPUTS]


def test_a_model_that_goes_away_pauses_all_workers_and_resume_asks_the_rest(
    tiermem: Command, run: Callable[..., Any], server: OpenAIServer
) -> None:
    assert run("local", workers=0).code == 0
    alone = asked(server)
    server.requests.clear()
    whole = 2 * len(AGENTS)  # two ticks, and then one answer of the third
    refused: list[str] = []

    def leaves(body: dict[str, Any]) -> str:
        if len(server.requests) > whole + 1:
            refused.append(json.dumps(body["messages"]))
            raise Fault(503)
        return STEP

    server.reply = leaves
    assert run("r").is_one_error(3, "HTTP 503", "the run is paused", "tiermem resume r")
    assert json.loads(Path("r/summary.json").read_text())["ticks"] == 2
    assert not Path("r/error.txt").exists()
    assert tiermem("resume", "r", "-q").code == 3  # it is away still
    server.reply = lambda _: STEP
    assert tiermem("resume", "r", "-q").code == 0
    assert refused
    assert asked(server) - Counter(refused) == alone
    assert outputs("r") == outputs("local")
    assert tiermem("replay", "r", "-q").code == 0


def test_a_spent_budget_stops_all_workers_between_two_ticks(
    tiermem: Command, run: Callable[..., Any], server: OpenAIServer
) -> None:
    assert run("local", workers=0).code == 0
    alone = asked(server)
    server.requests.clear()
    done = run("r", "--set", "llm.budget.tokens=5")  # nobody knows what the first tick costs
    assert done.is_one_error(3, "llm.budget.tokens is 5", "tiermem resume r --set llm.budget")
    assert len(server.requests) == len(AGENTS)
    assert tiermem("resume", "r", "-q").code == 3
    assert len(server.requests) == len(AGENTS)
    assert tiermem("resume", "r", "--set", "llm.budget.tokens=1_000_000", "-q").code == 0
    assert asked(server) == alone
    assert outputs("r") == outputs("local")
