"""A run with a language model, through the command line: its costs, its budget, its failures."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from inspected_sites import ask, looked_at

from openai_server import Fault, OpenAIServer

Command = Callable[..., Any]
Write = Callable[..., Path]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # third-party code
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

STEP = json.dumps({"actions": [{"name": "step"}]})
PRICES = "llm.prices=[{model: m, read: 1000, written: 4000}]"


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(lambda _: STEP) as running:
        yield running


@pytest.fixture
def run(tiermem: Command, scenario: Write, server: OpenAIServer) -> Callable[..., Any]:
    """Runs a scenario of two agents and three ticks into the folder ``r``."""

    def start(*more: object) -> Any:
        given = scenario(policy="llm", policy_options={"pause": 0}, ticks=3)
        config = f"llm.config={{openai_base_url: '{server.url}', api_key: hush-hush, model: m}}"
        provider = ("--set", "llm.provider=openai", "--set", config)
        return tiermem("run", given, *provider, "--out", "r", "-q", *more)

    return start


def resume(tiermem: Command, *more: object) -> Any:
    return tiermem("resume", "r", "--set", "llm.config.api_key=hush-hush", "-q", *more)


def summary() -> Any:
    return json.loads(Path("r/summary.json").read_text())


def test_the_tables_the_summary_and_the_report_say_what_a_run_cost(
    tiermem: Command, run: Callable[..., Any]
) -> None:
    assert run("--set", PRICES).code == 0
    rows = pq.read_table("r/calls.parquet").to_pylist()
    assert [(row["tick"], row["agent"]) for row in rows] == [
        (tick, agent) for tick in (1, 2, 3) for agent in ("alice", "bob")
    ]
    assert {(row["kind"], row["model"], row["usable"]) for row in rows} == {("decision", "m", True)}
    assert all(row["seconds"] > 0 for row in rows)
    calls = summary()["calls"]
    assert (calls["calls"], calls["usable"], calls["estimated"]) == (6, 6, True)
    assert calls["cost"] == pytest.approx(sum(row["cost"] for row in rows))
    assert calls["by_agent"]["bob"]["calls"] == 3
    assert "The language model" in Path("r/report.html").read_text()
    with looked_at(Path("r")) as site:
        (call,) = ask(site, "agent", agent="bob", tick=2)["calls"]
    assert call.startswith("decision by m; about ")
    assert f"call 1: {call}" in tiermem("why", "r", "-a", "bob", "-t", 2).out
    before = Path("r/calls.parquet").read_bytes()
    assert tiermem("replay", "r", "--verify", "--json").json["problems"] == []
    assert tiermem("report", "r").code == 0
    assert Path("r/calls.parquet").read_bytes() == before


def test_a_spent_budget_pauses_the_run_and_a_larger_one_goes_on(
    tiermem: Command, run: Callable[..., Any], server: OpenAIServer
) -> None:
    done = run("--set", "llm.budget.tokens=5")  # nobody knows what the first tick costs
    assert done.is_one_error(3, "llm.budget.tokens is 5", "tiermem resume r --set llm.budget")
    asked = len(server.requests)
    first = summary()["calls"]
    spent = first["read"] + first["written"]
    assert summary()["ticks"] * 2 == asked == 2
    assert resume(tiermem).code == 3
    assert len(server.requests) == asked
    assert resume(tiermem, "--set", f"llm.budget.tokens={3 * spent + 500}").code == 0
    assert (summary()["ticks"], len(server.requests)) == (3, 6)
    assert tiermem("replay", "r", "-q").code == 0


@pytest.mark.parametrize(
    ("setting", "code", "told"),
    [
        ("llm.budget.cost=0.5", 2, "no model has a price"),
        ("llm.budget={cost: 0.01, minutes: 60}", 3, "llm.budget.cost is 0.01"),
        ("llm.budget.minutes=0.00001", 3, "llm.budget.minutes is 1e-05"),
    ],
)
def test_money_and_minutes_are_budgets_as_well(
    run: Callable[..., Any], setting: str, code: int, told: str
) -> None:
    prices = ("--set", PRICES) if code == 3 else ()
    assert run("--set", setting, *prices).is_one_error(code, told)


def test_a_run_without_one_usable_reply_ends_with_an_error_that_says_why(
    run: Callable[..., Any], server: OpenAIServer
) -> None:
    server.reply = lambda _: "I would rather not."
    done = run()
    assert done.is_one_error(1, "none of the 18 replies", "most often: Expecting value")
    calls = summary()["calls"]
    assert calls["example"]["reply"] == "I would rather not."
    assert sum(calls["problems"].values()) == calls["unusable"] == 18
    assert "I would rather not." in Path("r/report.html").read_text()


def test_what_was_passed_over_is_asked_again_from_its_first_tick_on(
    tiermem: Command, run: Callable[..., Any], server: OpenAIServer
) -> None:
    def fails_for_bob(request: dict[str, Any]) -> str:
        text = json.dumps(request["messages"])
        if "Tick 2" in text and "You are bob" in text:
            raise Fault(503)
        return STEP

    server.reply = fails_for_bob
    quick = ("--set", "llm.on_failure=no_op", "--set", "llm.patience=0")
    assert run(*quick).code == 0
    assert (summary()["no_ops"], summary()["metrics"]["steps"]) == (1, 5)
    assert tiermem("replay", "r", "-q").code == 0
    server.reply = lambda _: STEP
    server.requests.clear()
    assert resume(tiermem, "--retry-failed").code == 0
    assert (summary()["no_ops"], summary()["metrics"]["steps"]) == (0, 6)
    asked = Counter(
        body["messages"][1]["content"].count("You are bob") for _, body in server.requests
    )
    assert asked[1] >= 1
    assert tiermem("replay", "r", "-q").code == 0
    assert resume(tiermem, "--retry-failed").code == 0


def test_a_dry_run_asks_nobody_and_estimates_what_the_run_would_read(
    tiermem: Command, run: Callable[..., Any], server: OpenAIServer
) -> None:
    dry = run("--dry-run", "--ticks", 9, "--set", PRICES, "--json")
    assert (dry.code, server.requests, Path("r").exists()) == (0, [], False)
    assert (dry.json["calls"], dry.json["by_kind"]) == (18, {"decision": 18})
    server.reply = lambda _: json.dumps({"actions": []})
    assert run("--ticks", 9, "--set", PRICES).code == 0
    assert dry.json["read"] == pytest.approx(summary()["calls"]["read"], rel=0.1)
    assert dry.json["cost"] > 0
    assert "about 18 calls in 9 ticks" in run("--dry-run", "--ticks", 9).out
